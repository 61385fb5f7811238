// Package source loads the rules of a site from a file or a URL, and verifies their signature.
//
//	file or URL ─► verifier ─► rules.Parse ─► use ─► copy for the next start
//
// Without an answer at the start it uses the saved copy, or else rules that only admit requests which never wait.
package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/internal/address"
	"github.com/proofline/proofline/connector/internal/background"
	"github.com/proofline/proofline/connector/internal/replace"
	"github.com/proofline/proofline/connector/internal/roomapi"
	"github.com/proofline/proofline/connector/internal/token"
	"github.com/proofline/proofline/connector/rules"
)

// ErrSource is returned for a source that is neither a file nor an https URL, and for a
// file with options that are for URLs only.
var ErrSource = errors.New("a source must be a file or an https URL (http on this machine); " +
	"Keep and SiteKey need a URL")

// Polling intervals.
const (
	fileInterval = 2 * time.Second
	urlInterval  = 10 * time.Second
)

// Source is the source of rules that may change while the connector runs. Invalid new rules are
// logged, and the current ones stay in force.
type Source struct {
	// File is polled every 2 s.
	File string
	// URL is polled every 10 s.
	URL string
	// SiteKey is the verifier key of the rules' signature. The URL must then have
	// the form https://SERVER/v1/sites/NAME/rules: see rules/FORMAT.md. Empty: plain
	// JSON without a signature.
	SiteKey string
	// Keep is a file for a copy of the latest rules from URL, for starts while the
	// URL does not respond. With a site key the copy's signature is checked, and
	// rules older than the copy are refused. Empty: no copy.
	Keep string
}

// Loader loads rules. It is safe for concurrent use.
type Loader struct {
	source   Source
	options  Options
	hasRules atomic.Bool // the rules in force were received, not built in
	logged   background.LogLimit

	mu       sync.Mutex // held while loading; guards the fields below
	verifier *verifier  // nil: rules are not signed
	changed  time.Time  // modification time of the file
	size     int64      // size of the file
	etag     string
	text     []byte // text of the latest rules from URL
}

// Rules are rules with the information from their signature.
type Rules struct {
	Site    *rules.Site
	Name    string // name of the site; empty: not signed
	Version uint64 // 0: not signed
	IsEarly bool   // none have been received yet
}

// Options configures a [Loader].
type Options struct {
	Client *http.Client
	Token  *token.Token // token for requests to the URL; nil: none
	Group  *background.Group
	Now    func() time.Time
	Log    *slog.Logger
}

// New returns a loader. Errors: [ErrSource], [ErrSiteKey].
func New(s Source, o Options) (*Loader, error) {
	isURL := s.URL != ""
	isUnsafe := isURL && !address.IsSafe(s.URL)
	if (s.File != "") == isURL || isUnsafe || !isURL && (s.SiteKey != "" || s.Keep != "") {
		return nil, ErrSource
	}
	l := &Loader{source: s, options: o}
	if s.SiteKey != "" {
		var err error
		if l.verifier, err = newVerifier(s.SiteKey, s.URL); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// First puts the first rules into force: those of the source, else those of the copy, else the
// early rules if the server does not respond.
func (l *Loader) First(ctx context.Context, use func(*Rules) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, keptErr := l.readCopy()
	if keptErr != nil && !errors.Is(keptErr, os.ErrNotExist) {
		l.options.Log.Error("cannot use the saved copy of the rules", "err", keptErr)
	}
	f, err := l.guardedNext(ctx)
	switch {
	case err != nil && kept != nil:
		l.options.Log.Error("cannot load the rules: using the saved copy", "err", err)
		f, err = kept, nil
	case errors.Is(err, errNoResponse):
		l.logFailure(err)
		f, err = earlyRules(), nil
	}
	if err == nil && f == nil {
		err = fmt.Errorf("get rules from %s: the server reports no change, but no rules were loaded before",
			l.source.URL)
	}
	if err == nil {
		err = l.put(f, use)
	}
	if err != nil {
		return err
	}
	l.saveCopy()
	return nil
}

// guardedNext calls next; a panic counts as no response.
func (l *Loader) guardedNext(ctx context.Context) (f *Rules, err error) {
	err = fmt.Errorf("%w: %w", errNoResponse, background.ErrPanic)
	l.options.Group.Run("loading the first rules", func() { f, err = l.next(ctx) })
	return f, err
}

// put puts rules into force.
func (l *Loader) put(f *Rules, use func(*Rules) error) error {
	if err := use(f); err != nil {
		return err
	}
	l.hasRules.Store(!f.IsEarly)
	return nil
}

// Run polls the source until ctx ends, and puts new rules into force.
func (l *Loader) Run(ctx context.Context, use func(*Rules) error) {
	for {
		wait := fileInterval
		switch {
		case !l.hasRules.Load():
			wait = earlyInterval
		case l.source.URL != "":
			wait = urlInterval
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			_ = l.Reload(ctx, use) // Reload logs the error
		}
	}
}

// Reload puts new rules into force, if there are any. It logs why there are none, and returns it, too.
func (l *Loader) Reload(ctx context.Context, use func(*Rules) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.load(ctx, use)
	if err != nil && ctx.Err() == nil {
		l.logFailure(err)
	}
	return err
}

// ReloadAll puts the rules of the source into force, even if they seem to be unchanged. It does not log errors.
func (l *Loader) ReloadAll(ctx context.Context, use func(*Rules) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed, l.size, l.etag, l.text = time.Time{}, 0, "", nil
	return l.load(ctx, use)
}

// load puts new rules into force, if there are any.
func (l *Loader) load(ctx context.Context, use func(*Rules) error) error {
	f, err := l.next(ctx)
	if err != nil || f == nil {
		return err
	}
	if err := l.put(f, use); err != nil {
		return err
	}
	l.saveCopy()
	l.options.Log.Info("new rules", "rules", len(f.Site.Rules), "rooms", len(f.Site.Rooms), "version", f.Version)
	return nil
}

// logFailure logs why there are no new rules. While there are no rules at all, or the server does
// not respond, it does so once a minute.
func (l *Loader) logFailure(err error) {
	hasRules := l.hasRules.Load()
	if hasRules && !errors.Is(err, errNoResponse) {
		l.options.Log.Error("new rules are invalid: keeping the current ones", "err", err)
		return
	}
	if !l.logged.Allow(l.options.Now()) {
		return
	}
	if hasRules {
		l.options.Log.Warn("cannot load the rules: keeping the current ones", "err", err)
		return
	}
	l.options.Log.Error("cannot load any rules: only requests that the default rules let pass are admitted", "err", err)
}

// next loads the rules; nil: they have not changed.
func (l *Loader) next(ctx context.Context) (*Rules, error) {
	if l.source.File == "" {
		return l.fetch(ctx)
	}
	info, err := os.Stat(l.source.File)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	if info.ModTime().Equal(l.changed) && info.Size() == l.size {
		return nil, nil //nolint:nilnil // no change
	}
	l.changed, l.size = info.ModTime(), info.Size()
	return l.readFile(l.source.File)
}

func (l *Loader) readFile(file string) (*Rules, error) {
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
func (l *Loader) readCopy() (*Rules, error) {
	if l.source.Keep == "" {
		return nil, nil //nolint:nilnil // no copy is kept
	}
	return l.readFile(l.source.Keep)
}

// open parses rules, and verifies them if there is a site key.
func (l *Loader) open(text []byte) (*Rules, error) {
	if l.verifier != nil {
		document, version, err := l.verifier.open(text)
		if err != nil {
			return nil, err
		}
		site, err := rules.Parse([]byte(document))
		return &Rules{Site: site, Name: l.verifier.name, Version: version}, err
	}
	if bytes.HasPrefix(text, []byte(signedLine+"\n")) {
		return nil, ErrNeedsKey
	}
	site, err := rules.Parse(text)
	return &Rules{Site: site}, err
}

// fetch loads the rules from the URL; nil: they have not changed.
func (l *Loader) fetch(ctx context.Context) (*Rules, error) {
	ctx, cancel := context.WithTimeout(ctx, roomapi.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.source.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("get rules: %w", err)
	}
	if l.etag != "" {
		r.Header.Set("If-None-Match", l.etag)
	}
	if l.options.Token != nil {
		r.Header.Set("Authorization", "Bearer "+l.options.Token.Current())
	}
	answer, err := l.options.Client.Do(r)
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
		return nil, fmt.Errorf("get rules from %s: %w", l.source.URL, err)
	}
	l.etag = answer.Header.Get("ETag")
	if bytes.Equal(text, l.text) {
		return nil, nil //nolint:nilnil // no change
	}
	l.text = text
	return f, nil
}

// statusError returns the error for a response without rules: errNoResponse, [token.ErrToken] or
// another.
func (l *Loader) statusError(status int) error {
	isTransient := status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
	if isTransient || status >= http.StatusInternalServerError {
		return fmt.Errorf("get rules from %s: %w: status %d", l.source.URL, errNoResponse, status)
	}
	if l.options.Token != nil && (status == http.StatusUnauthorized || status == http.StatusForbidden) {
		return fmt.Errorf("get rules from %s: %w: status %d%s", l.source.URL, token.ErrToken, status,
			token.Hint(status))
	}
	return fmt.Errorf("get rules from %s: status %d%s", l.source.URL, status, token.Hint(status))
}

// saveCopy saves the latest rules to Keep.
func (l *Loader) saveCopy() {
	if l.source.Keep == "" || l.text == nil {
		return
	}
	if err := replace.File(l.source.Keep, l.text); err != nil {
		l.options.Log.Error("cannot save a copy of the rules", "err", err)
	}
}
