package connector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// Polling intervals.
const (
	fileInterval = 2 * time.Second
	urlInterval  = 10 * time.Second
)

// Source is where rules come from that may change while the connector runs.
// Invalid new rules are logged, and the current ones stay in force.
type Source struct {
	// File is polled every 2 s.
	File string
	// URL is polled every 10 s.
	URL string
	// SiteKey is the verifier key of the rules' signature. The URL must then be one
	// such as https://SERVER/v1/sites/NAME/rules: see rules/FORMAT.md. Empty: plain
	// JSON without a signature.
	SiteKey string
	// Keep is a file for a copy of the latest rules from URL, for starts while the
	// URL does not respond. With a site key the copy's signature is checked, and
	// rules older than the copy are refused. Empty: no copy.
	Keep string
}

// loader loads rules.
type loader struct {
	Source
	client *http.Client
	bearer *bearer      // token for the URL; nil: none
	logged atomic.Int64 // last log line about missing rules, ms since 1970

	mu       sync.Mutex     // held while loading; guards the fields below
	verifier *rulesVerifier // nil: rules are not signed
	changed  time.Time      // modification time of the file
	size     int64          // of the file
	etag     string
	text     []byte // of the latest rules from URL
}

// loadedRules is rules with what their signature says.
type loadedRules struct {
	site    *rules.Site
	name    string // of the site; empty: not signed
	version uint64 // 0: not signed

	isEarly bool // earlyRules: none have been received yet
}

// load puts the first rules into force: from the source, else from the copy, else
// earlyRules if the server does not respond.
func (c *Connector) load(ctx context.Context) error {
	if c.options.Site != nil {
		return c.use(&loadedRules{site: c.options.Site})
	}
	l, err := c.newLoader()
	if err != nil {
		return err
	}
	c.loading = l
	kept, keptErr := l.readCopy()
	if keptErr != nil && !errors.Is(keptErr, os.ErrNotExist) {
		c.options.Log.Error("cannot use the saved copy of the rules", "err", keptErr)
	}
	f, err := l.first(ctx, c)
	switch {
	case err != nil && kept != nil:
		c.options.Log.Error("cannot load the rules: using the saved copy", "err", err)
		f, err = kept, nil
	case errors.Is(err, errNoResponse):
		l.logFailure(c, err)
		f, err = earlyRules(), nil
	}
	if err == nil && f == nil {
		err = fmt.Errorf("get rules from %s: the server reports no change, but no rules were loaded before", l.URL)
	}
	if err == nil {
		err = c.use(f)
	}
	if err != nil {
		return err
	}
	l.saveCopy(c)
	return nil
}

// first calls next for the first time; a panic counts as no response.
func (l *loader) first(ctx context.Context, c *Connector) (f *loadedRules, err error) {
	err = fmt.Errorf("%w: %w", errNoResponse, errFault)
	c.guarded("loading the first rules", func() { f, err = l.next(ctx) })
	return f, err
}

// newLoader returns the loader of Options.Source. Errors: ErrSource, ErrSiteKey.
func (c *Connector) newLoader() (*loader, error) {
	s := *c.options.Source
	isURL := s.URL != ""
	if (s.File != "") == isURL || isURL && !isSafe(s.URL) || !isURL && (s.SiteKey != "" || s.Keep != "") {
		return nil, ErrSource
	}
	l := &loader{Source: s, client: c.options.Client}
	if s.SiteKey != "" {
		var err error
		if l.verifier, err = newRulesVerifier(s.SiteKey, s.URL); err != nil {
			return nil, err
		}
	}
	if s.URL != "" && originOf(s.URL) == c.options.Server && c.options.Token != "" {
		l.bearer = &c.bearer
	}
	return l, nil
}

// isSafe reports whether a URL is protected on its way: https, or on this machine.
func isSafe(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// originOf returns the scheme and host of a URL; empty: malformed, or with a user.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// run polls the source until ctx ends.
func (l *loader) run(ctx context.Context, c *Connector) {
	for {
		wait := fileInterval
		switch {
		case !c.HasRules():
			wait = earlyInterval
		case l.URL != "":
			wait = urlInterval
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			l.reload(ctx, c)
		}
	}
}

// reload puts new rules into force, if there are any.
func (l *loader) reload(ctx context.Context, c *Connector) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := l.next(ctx)
	if err == nil && f != nil {
		err = c.use(f)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.logFailure(c, err)
	case f != nil:
		l.saveCopy(c)
		c.options.Log.Info("new rules", "rules", len(f.site.Rules), "rooms", len(f.site.Rooms), "version", f.version)
	}
}

// logFailure logs why there are no new rules. While there are no rules at all, or
// the server does not respond, it does so once a minute.
func (l *loader) logFailure(c *Connector, err error) {
	s := c.current.Load()
	switch hasRules := s != nil && !s.isEarly; {
	case hasRules && errors.Is(err, errNoResponse):
		if mayLog(&l.logged, c.options.Now()) {
			c.options.Log.Warn("cannot load the rules: keeping the current ones", "err", err)
		}
		return
	case hasRules:
		c.options.Log.Error("new rules are invalid: keeping the current ones", "err", err)
		return
	}
	if mayLog(&l.logged, c.options.Now()) {
		c.options.Log.Error("cannot load any rules: only requests that the default rules let pass are admitted",
			"err", err)
	}
}

// next loads the rules; nil: they have not changed.
func (l *loader) next(ctx context.Context) (*loadedRules, error) {
	if l.File == "" {
		return l.fetch(ctx)
	}
	info, err := os.Stat(l.File)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	if info.ModTime().Equal(l.changed) && info.Size() == l.size {
		return nil, nil //nolint:nilnil // no change
	}
	l.changed, l.size = info.ModTime(), info.Size()
	return l.readFile(l.File)
}

func (l *loader) readFile(file string) (*loadedRules, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	f, err := l.open(text)
	if err != nil {
		return nil, fmt.Errorf("read rules from %s: %w", file, err)
	}
	return f, nil
}

// readCopy returns the saved copy; nil: Keep is not set.
func (l *loader) readCopy() (*loadedRules, error) {
	if l.Keep == "" {
		return nil, nil //nolint:nilnil // no copy is kept
	}
	return l.readFile(l.Keep)
}

// open parses rules, and verifies them if there is a site key.
func (l *loader) open(text []byte) (*loadedRules, error) {
	if l.verifier != nil {
		document, version, err := l.verifier.open(text)
		if err != nil {
			return nil, err
		}
		site, err := rules.Parse([]byte(document))
		return &loadedRules{site: site, name: l.verifier.name, version: version}, err
	}
	if bytes.HasPrefix(text, []byte(signedLine+"\n")) {
		return nil, ErrNeedsKey
	}
	site, err := rules.Parse(text)
	return &loadedRules{site: site}, err
}

// fetch loads the rules from the URL; nil: they have not changed.
func (l *loader) fetch(ctx context.Context) (*loadedRules, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("get rules: %w", err)
	}
	if l.etag != "" {
		r.Header.Set("If-None-Match", l.etag)
	}
	if l.bearer != nil {
		r.Header.Set("Authorization", "Bearer "+l.bearer.current())
	}
	answer, err := l.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("get rules: %w: %w", errNoResponse, err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		return nil, nil //nolint:nilnil // no change
	default:
		return nil, l.statusError(answer.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, rules.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("get rules: %w: %w", errNoResponse, err)
	}
	f, err := l.open(text)
	if err != nil {
		return nil, fmt.Errorf("get rules from %s: %w", l.URL, err)
	}
	l.etag = answer.Header.Get("ETag")
	if bytes.Equal(text, l.text) {
		return nil, nil //nolint:nilnil // no change
	}
	l.text = text
	return f, nil
}

// statusError returns the error for a response without rules: errNoResponse,
// [ErrToken] or others.
func (l *loader) statusError(status int) error {
	isTransient := status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
	if isTransient || status >= http.StatusInternalServerError {
		return fmt.Errorf("get rules from %s: %w: status %d", l.URL, errNoResponse, status)
	}
	if l.bearer != nil && (status == http.StatusUnauthorized || status == http.StatusForbidden) {
		return fmt.Errorf("get rules from %s: %w: status %d%s", l.URL, ErrToken, status, hintOf(status))
	}
	return fmt.Errorf("get rules from %s: status %d%s", l.URL, status, hintOf(status))
}

// hintOf says what to do about a status of the server; empty: nothing special.
func hintOf(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ", the token must be one of the organization, with the scope connect, that has not ended"
	case http.StatusNotFound:
		return ", there are no rules at this address"
	}
	return ""
}

// saveCopy saves the latest rules to Keep.
func (l *loader) saveCopy(c *Connector) {
	if l.Keep == "" || l.text == nil {
		return
	}
	if err := replaceFile(l.Keep, l.text); err != nil {
		c.options.Log.Error("cannot save a copy of the rules", "err", err)
	}
}

// replaceFile replaces a file atomically.
func replaceFile(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".proofline-*")
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write file: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
