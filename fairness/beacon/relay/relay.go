// Package relay gets the rounds of a drand chain over HTTP.
//
// A relay hands out what anybody can check, so it needs no trust: every round
// is verified before it is believed, which takes about 3 ms. A bad relay can be
// silent or slow, and for that there are others. [Client] asks one, and the next
// when that one fails or takes its time.
//
//	GET /{chain hash}/public/{round}   200 {"round":42,"randomness":hex,"signature":hex}; 404 or 425 before its time
//	GET /{chain hash}/info             200 {"public_key":hex,"period":3,"genesis_time":...,"hash":hex,...}
//
// https://docs.drand.love/developer/http-api
package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/proofline/proofline/fairness/beacon"
)

var (
	// ErrNotYet is returned when no relay has the round, and one says so.
	ErrNotYet = errors.New("the relay does not have the round yet")
	// ErrChain is returned when a relay serves no chain that can be read, or
	// another than was asked for.
	ErrChain = errors.New("not the chain")
	// ErrRelay is returned when a text is not the address of a relay.
	ErrRelay = errors.New("not the address of a relay")
	// ErrNoRelays is returned by a client without addresses.
	ErrNoRelays = errors.New("no relays to ask")
	// ErrRound is returned for round 0, which is none.
	ErrRound = errors.New("rounds count from 1")
)

// Public returns the relays of the chain [beacon.Quicknet] that drand's
// documentation names, of different operators in turn.
func Public() []string {
	return []string{"https://api.drand.sh", "https://drand.cloudflare.com", "https://api2.drand.sh", "https://api3.drand.sh"}
}

// ParseURL checks the address of a relay and returns it without a slash at the
// end, or [ErrRelay]. It may have a path, and no password or query: addresses
// are shown in errors and logs.
func ParseURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("%w: it must be such as https://api.drand.sh", ErrRelay)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%w: %s has more than scheme, host and path", ErrRelay, u.Host)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// Client gets rounds of one chain. Set its fields before the first use and leave
// them; then it is safe for concurrent use.
type Client struct {
	// Chain is whose rounds to get.
	Chain beacon.Chain
	// URLs are the relays' addresses as of [ParseURL], the preferred first.
	URLs []string
	// HTTP does the requests; nil means a client that uses connections again
	// and follows no redirect.
	HTTP *http.Client
	// Log hears of relays that lie, and of rounds that are late; may be nil.
	Log *slog.Logger

	mu      sync.Mutex // guards all below
	best    int        // index of the relay that answered last
	rounds  cache
	flights map[uint64]*flight // rounds somebody is waiting for
}

// flight is a round on its way, for all who want it.
type flight struct {
	done      chan struct{} // closed once signature and err are set
	signature []byte
	err       error
	waiting   int                // callers; guarded by Client.mu
	cancel    context.CancelFunc // ends the requests
}

// Round returns the signature of a round, verified. Callers who want the same
// round share its requests. The error names every relay and what is wrong with
// it; it is [ErrNotYet] if one of them does not have the round yet.
func (c *Client) Round(ctx context.Context, n uint64) ([]byte, error) {
	if err := c.check(n); err != nil {
		return nil, fmt.Errorf("get round %d: %w", n, err)
	}
	c.mu.Lock()
	if signature, ok := c.rounds.get(n); ok {
		c.mu.Unlock()
		return signature, nil
	}
	f := c.flights[n]
	if f == nil {
		f = c.launch(n)
	}
	f.waiting++
	c.mu.Unlock()
	select {
	case <-f.done:
		return slices.Clone(f.signature), f.err
	case <-ctx.Done():
		c.leave(n, f)
		return nil, fmt.Errorf("get round %d: %w", n, ctx.Err())
	}
}

// check finds what no relay can mend.
func (c *Client) check(n uint64) error {
	switch {
	case n == 0:
		return ErrRound
	case len(c.URLs) == 0:
		return ErrNoRelays
	}
	return c.Chain.Valid()
}

// launch begins to get a round. The caller holds c.mu.
func (c *Client) launch(n uint64) *flight {
	ctx, cancel := context.WithCancel(context.Background())
	f := &flight{done: make(chan struct{}), cancel: cancel}
	if c.flights == nil {
		c.flights = map[uint64]*flight{}
	}
	c.flights[n] = f
	go func() {
		defer cancel()
		signature, err := race(ctx, c, func(ctx context.Context, base string) ([]byte, error) { return c.fetchRound(ctx, base, n) })
		if err != nil {
			err = fmt.Errorf("get round %d: %w", n, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			c.rounds.put(n, signature)
		}
		if c.flights[n] == f {
			delete(c.flights, n)
		}
		f.signature, f.err = signature, err
		close(f.done)
	}()
	return f
}

// leave ends the requests for a round when nobody waits for it any more.
func (c *Client) leave(n uint64, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return
	}
	f.cancel()
	if c.flights[n] == f {
		delete(c.flights, n) // whoever comes now begins anew
	}
}

// Info returns the client's chain as its relays describe it, or [ErrChain] if
// they serve another.
func (c *Client) Info(ctx context.Context) (beacon.Chain, error) {
	return c.Find(ctx, c.Chain.Hash())
}

// Find returns the chain of a hash from the client's relays, whatever its own
// chain is. The hash vouches for all of it.
func (c *Client) Find(ctx context.Context, hash [32]byte) (beacon.Chain, error) {
	if len(c.URLs) == 0 {
		return beacon.Chain{}, fmt.Errorf("get chain %x: %w", hash, ErrNoRelays)
	}
	chain, err := race(ctx, c, func(ctx context.Context, base string) (beacon.Chain, error) { return c.fetchInfo(ctx, base, hash) })
	if err != nil {
		return beacon.Chain{}, fmt.Errorf("get chain %x: %w", hash, err)
	}
	return chain, nil
}

func (c *Client) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}

// cacheSize is how many rounds a client remembers: 50 minutes of windows of a
// minute, and then some.
const cacheSize = 64

// cache keeps the latest rounds that were put. The zero value is empty.
type cache struct {
	signatures map[uint64][]byte
	order      []uint64 // as they came
}

func (c *cache) get(n uint64) ([]byte, bool) {
	signature, ok := c.signatures[n]
	return slices.Clone(signature), ok
}

func (c *cache) put(n uint64, signature []byte) {
	if c.signatures == nil {
		c.signatures = map[uint64][]byte{}
	}
	if _, ok := c.signatures[n]; !ok {
		c.order = append(c.order, n)
	}
	c.signatures[n] = slices.Clone(signature)
	if len(c.order) > cacheSize {
		delete(c.signatures, c.order[0])
		c.order = slices.Delete(c.order, 0, 1)
	}
}
