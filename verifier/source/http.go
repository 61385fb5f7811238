package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

// Limits for reading over HTTP.
const (
	attempts   = 4                      // attempts per request, for temporary failures
	timeout    = 30 * time.Second       // limit for one attempt, body included
	firstPause = 250 * time.Millisecond // pause before the second attempt; doubles each time
	longest    = 10 * time.Second       // longest Retry-After that is honoured
	parallel   = 64                     // idle connections per server
	userAgent  = "proofline-verify (+https://github.com/proofline/proofline)"
)

type httpSource struct {
	base    string
	client  *http.Client
	timeout time.Duration
	pause   time.Duration
}

// HTTP returns the log published below a URL. A nil client selects one with enough connections to
// fetch in parallel. Network errors and the statuses 429 and 5xx are retried with growing pauses.
func HTTP(rawURL string, client *http.Client) (verifier.Source, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%w: %q: want http://host/path or https://host/path", ErrURL, rawURL)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("%w: %q: want neither user, query nor fragment", ErrURL, u.Redacted())
	}
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = parallel
		client = &http.Client{Transport: transport}
	}
	base := strings.TrimRight(strings.TrimSuffix(u.String(), "/"+CheckpointPath), "/")
	return &httpSource{base, client, timeout, firstPause}, nil
}

// Checkpoint implements [verifier.Source].
func (s *httpSource) Checkpoint(ctx context.Context) ([]byte, error) {
	return s.get(ctx, CheckpointPath, maxCheckpoint)
}

// Tile implements [verifier.Source].
func (s *httpSource) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	return tile(t, func(path string, bound int64) ([]byte, error) { return s.get(ctx, path, bound) })
}

// get reads one resource, and retries if that may help.
func (s *httpSource) get(ctx context.Context, path string, bound int64) ([]byte, error) {
	address := s.base + "/" + path
	for attempt := 1; ; attempt++ {
		body, err := s.once(ctx, address, bound)
		var again *passing
		if err == nil {
			return body, nil
		}
		if !errors.As(err, &again) || attempt == attempts || ctx.Err() != nil {
			return nil, fmt.Errorf("get %s: %w", address, err)
		}
		pause := s.pause << (attempt - 1)
		pause += rand.N(pause/2 + 1)
		select {
		case <-time.After(max(pause, min(again.after, longest))):
		case <-ctx.Done():
			return nil, fmt.Errorf("get %s: %w", address, ctx.Err())
		}
	}
}

// passing is a temporary error.
type passing struct {
	error
	after time.Duration // requested wait; 0: none
}

func (p *passing) Unwrap() error { return p.error }

func (s *httpSource) once(ctx context.Context, address string, bound int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := s.client.Do(req)
	if err != nil {
		var named *url.Error // its text repeats the address
		if errors.As(err, &named) {
			err = named.Err
		}
		return nil, &passing{error: err}
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if err := status(resp); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, bound+1))
	switch {
	case err != nil:
		return nil, &passing{error: err}
	case int64(len(body)) > bound:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, bound)
	}
	return body, nil
}

// status returns the error for a response.
func status(resp *http.Response) error {
	// omits the server's text, which could contain anything
	err := fmt.Errorf("%w: %d %s", ErrStatus, resp.StatusCode, http.StatusText(resp.StatusCode))
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone:
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	case code == http.StatusTooManyRequests || code >= 500:
		seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16) // dates are not supported
		return &passing{err, time.Duration(seconds) * time.Second}
	}
	return err
}
