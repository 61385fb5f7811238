package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// How often sources are looked at.
const (
	fileAgain = 2 * time.Second
	urlAgain  = 10 * time.Second
)

// Source is where rules come from that may change while the connector runs.
// New rules that are wrong are logged, and the ones before stay in force.
type Source struct {
	// File is looked at every 2 s.
	File string
	// URL is asked every 10 s.
	URL string
	// Keep is a file for the latest rules of URL, for a start without it.
	Keep string
}

// loader gets rules.
type loader struct {
	Source
	client  *http.Client
	changed time.Time // of the file
	size    int64     // of the file
	etag    string
	text    []byte // of the rules that next returned last
}

// load takes the first rules into force.
func (c *Connector) load(ctx context.Context) error {
	if c.options.Site != nil {
		return c.use(c.options.Site)
	}
	s := *c.options.Source
	if (s.File == "") == (s.URL == "") || s.URL != "" && !isSafe(s.URL) {
		return ErrSource
	}
	c.loading = &loader{Source: s, client: c.options.Client}
	site, err := c.loading.next(ctx)
	if err != nil && s.URL != "" && s.Keep != "" {
		c.options.Log.Error("no rules from the URL: those kept before are used", "err", err)
		site, err = readRules(s.Keep)
	}
	if err == nil {
		err = c.use(site)
	}
	if err != nil {
		return err
	}
	c.loading.keep(c)
	return nil
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

// run looks for new rules until ctx ends.
func (l *loader) run(ctx context.Context, c *Connector) {
	wait := fileAgain
	if l.URL != "" {
		wait = urlAgain
	}
	tick := time.NewTicker(wait)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.renew(ctx, c)
		}
	}
}

// renew takes new rules into force, if there are any.
func (l *loader) renew(ctx context.Context, c *Connector) {
	site, err := l.next(ctx)
	if err == nil && site != nil {
		err = c.use(site)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.options.Log.Error("new rules are not used: the ones before stay", "err", err)
	case site != nil:
		l.keep(c)
		c.options.Log.Info("new rules", "rules", len(site.Rules), "rooms", len(site.Rooms))
	}
}

// next returns rules; nil: they have not changed.
func (l *loader) next(ctx context.Context) (*rules.Site, error) {
	if l.File == "" {
		return l.pull(ctx)
	}
	info, err := os.Stat(l.File)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	if info.ModTime().Equal(l.changed) && info.Size() == l.size {
		return nil, nil //nolint:nilnil // no change
	}
	l.changed, l.size = info.ModTime(), info.Size()
	return readRules(l.File)
}

func readRules(file string) (*rules.Site, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	site, err := rules.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read rules from %s: %w", file, err)
	}
	return site, nil
}

// pull asks the URL.
func (l *loader) pull(ctx context.Context) (*rules.Site, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("get rules: %w", err)
	}
	if l.etag != "" {
		r.Header.Set("If-None-Match", l.etag)
	}
	answer, err := l.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("get rules: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		return nil, nil //nolint:nilnil // no change
	default:
		return nil, fmt.Errorf("get rules from %s: status %d", l.URL, answer.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, rules.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("get rules: %w", err)
	}
	site, err := rules.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("get rules from %s: %w", l.URL, err)
	}
	l.etag, l.text = answer.Header.Get("ETag"), text
	return site, nil
}

// keep has rules of a URL survive a restart.
func (l *loader) keep(c *Connector) {
	if l.Keep == "" || l.text == nil {
		return
	}
	if err := replaceFile(l.Keep, l.text); err != nil {
		c.options.Log.Error("rules are not kept for a restart", "err", err)
	}
}

// replaceFile writes all of a file or nothing.
func replaceFile(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".rules-*")
	if err != nil {
		return fmt.Errorf("keep rules: %w", err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("keep rules: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
