package relay

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness/beacon"
)

// hedgeAfter is how long a relay may take before the next one is asked as well.
const hedgeAfter = 300 * time.Millisecond

// failures joins errors, such as those of several relays, on one line. Elements may be nil.
type failures []error

func (f failures) Error() string {
	var texts []string
	for _, err := range f {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }

// race asks the relays one after the other, beginning with the one that answered last, and returns
// the first valid answer. It asks the next relay when one fails or takes longer than hedgeAfter. It
// needs at least one relay.
func race[T any](ctx context.Context, c *Client, fetch func(ctx context.Context,
	base string) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithCancel(ctx) // stops the other requests once one has succeeded
	defer cancel()
	c.mu.Lock()
	first := c.best
	c.mu.Unlock()
	type result struct {
		relay  int
		answer T
		err    error
	}
	results := make(chan result, len(c.URLs))
	var failed failures
	next := time.NewTimer(0)
	defer next.Stop()
	for asked := 0; len(failed) < len(c.URLs); {
		select {
		case <-ctx.Done():
			return answer, append(failures{ctx.Err()}, failed...)
		case <-next.C:
			if asked < len(c.URLs) {
				relay := (first + asked) % len(c.URLs)
				go func() {
					answer, err := fetch(ctx, c.URLs[relay])
					results <- result{relay, answer, err}
				}()
				asked++
				next.Reset(hedgeAfter)
			}
		case r := <-results:
			if r.err == nil {
				c.mu.Lock()
				c.best = r.relay
				c.mu.Unlock()
				return r.answer, nil
			}
			name := host(c.URLs[r.relay])
			if errors.Is(r.err, beacon.ErrSignature) || errors.Is(r.err, ErrChain) {
				c.log().Warn("beacon relay returned an invalid answer", "relay", name, "error", r.err)
			}
			failed = append(failed, fmt.Errorf("%s: %w", name, r.err))
			next.Reset(0)
		}
	}
	return answer, failed
}

// host returns the only part of a relay's address that logs and errors may show.
func host(base string) string {
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		return u.Host
	}
	return "a relay without a host"
}
