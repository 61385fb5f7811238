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

// How often sources are looked at.
const (
	fileInterval = 2 * time.Second
	urlInterval  = 10 * time.Second
)

// Source is where rules come from that may change while the connector runs.
// New rules that are wrong are logged, and the ones before stay in force.
type Source struct {
	// File is looked at every 2 s.
	File string
	// URL is asked every 10 s.
	URL string
	// SiteKey is what the rules at URL must be signed by, which then is such as
	// https://SERVER/v1/sites/NAME/rules: see rules/FORMAT.md. Empty: URL gives
	// plain JSON.
	SiteKey string
	// Keep is a file for the latest rules of URL, for a start without it. With a
	// site key it is checked as they are, and remembers which are the newest.
	Keep string
}

// loader gets rules.
type loader struct {
	Source
	client *http.Client
	bearer *bearer      // for the URL; nil: it needs none
	logged atomic.Int64 // when the log said that there are no rules, in ms since 1970

	mu       sync.Mutex     // held while rules are looked for; guards what follows
	verifier *rulesVerifier // nil: rules are not signed
	changed  time.Time      // of the file
	size     int64          // of the file
	etag     string
	text     []byte // of the rules that next returned last
}

// found is rules that came from somewhere.
type loadedRules struct {
	site   *rules.Site
	name   string // of the site, if they are signed
	serial uint64 // likewise; else 0

	isEarly bool // there never were rules
}

// load takes the first rules into force. If nobody answers who may have them, and
// none were kept, these are few.
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
		c.options.Log.Error("the rules that were kept are not used", "err", keptErr)
	}
	f, err := l.first(ctx, c)
	switch {
	case err != nil && kept != nil:
		c.options.Log.Error("no rules from the URL: those kept before are used", "err", err)
		f, err = kept, nil
	case errors.Is(err, errNoResponse):
		l.logFailure(c, err)
		f, err = earlyRules(), nil
	}
	if err == nil && f == nil {
		err = fmt.Errorf("get rules from %s: the server says that they have not changed, but there are none", l.URL)
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

// first is next for the first time, when a fault is nothing but no answer.
func (l *loader) first(ctx context.Context, c *Connector) (f *loadedRules, err error) {
	err = fmt.Errorf("%w: %w", errNoResponse, errFault)
	c.guarded("the first rules", func() { f, err = l.next(ctx) })
	return f, err
}

// newLoader returns what gets the rules. Errors: ErrSource, ErrSiteKey.
func (c *Connector) newLoader() (*loader, error) {
	s := *c.options.Source
	if (s.File == "") == (s.URL == "") || s.URL != "" && !isSafe(s.URL) || s.URL == "" && (s.SiteKey != "" || s.Keep != "") {
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

// isSafe tells whether nobody on the way can change what a URL gives.
func isSafe(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// originOf returns the scheme and host of a URL; empty: it has none.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// run looks for new rules until ctx ends.
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

// renew takes new rules into force, if there are any.
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
		c.options.Log.Info("new rules", "rules", len(f.site.Rules), "rooms", len(f.site.Rooms), "serial", f.serial)
	}
}

// complain logs why there are no new rules. While there are none at all, or
// nobody answers who may have some, it does so once a minute.
func (l *loader) logFailure(c *Connector, err error) {
	s := c.current.Load()
	switch hasRules := s != nil && !s.isEarly; {
	case hasRules && errors.Is(err, errNoResponse):
		if mayLog(&l.logged, c.options.Now()) {
			c.options.Log.Warn("no news of the rules: those that are in force stay", "err", err)
		}
		return
	case hasRules:
		c.options.Log.Error("new rules are not used: the ones before stay", "err", err)
		return
	}
	if mayLog(&l.logged, c.options.Now()) {
		c.options.Log.Error("there are no rules yet, and none were kept: visitors are held, but for what the shipped rules let pass", "err", err)
	}
}

// next returns rules; nil: they have not changed.
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

// readKept returns the rules that were kept before; nil: there are none.
func (l *loader) readCopy() (*loadedRules, error) {
	if l.Keep == "" {
		return nil, nil //nolint:nilnil // nothing is kept
	}
	return l.readFile(l.Keep)
}

// open reads rules, which are signed if there is a site key.
func (l *loader) open(text []byte) (*loadedRules, error) {
	if l.verifier != nil {
		document, serial, err := l.verifier.open(text)
		if err != nil {
			return nil, err
		}
		site, err := rules.Parse([]byte(document))
		return &loadedRules{site: site, name: l.verifier.name, serial: serial}, err
	}
	if bytes.HasPrefix(text, []byte(signedLine+"\n")) {
		return nil, ErrNeedsKey
	}
	site, err := rules.Parse(text)
	return &loadedRules{site: site}, err
}

// pull asks the URL.
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

// noRules returns what a status says that comes without rules. Errors: errAway,
// [ErrToken], others.
func (l *loader) statusError(status int) error {
	if status >= http.StatusInternalServerError || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests {
		return fmt.Errorf("get rules from %s: %w: status %d", l.URL, errNoResponse, status)
	}
	if l.bearer != nil && (status == http.StatusUnauthorized || status == http.StatusForbidden) {
		return fmt.Errorf("get rules from %s: %w: status %d%s", l.URL, ErrToken, status, hintOf(status))
	}
	return fmt.Errorf("get rules from %s: status %d%s", l.URL, status, hintOf(status))
}

// hintOf says what to do about a status of the server.
func hintOf(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ", the token must be one of the organization, with the scope connect, that has not ended"
	case http.StatusNotFound:
		return ", there are no rules at this address"
	}
	return ""
}

// keep has rules of a URL survive a restart.
func (l *loader) saveCopy(c *Connector) {
	if l.Keep == "" || l.text == nil {
		return
	}
	if err := replaceFile(l.Keep, l.text); err != nil {
		c.options.Log.Error("rules are not kept for a restart", "err", err)
	}
}

// replaceFile writes all of a file or nothing.
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
