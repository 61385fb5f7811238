// Package relay fetches the rounds of a drand chain over HTTP.
//
// Relays need not be trusted: the client verifies every round, which takes about 3 ms. A bad relay
// can only be silent or slow. [Client] asks one relay, and the next if that one fails or is slow.
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
	// ErrNotYet is returned if no relay has the round and at least one says that it is still to come.
	ErrNotYet = errors.New("the relay does not have the round yet")
	// ErrChain is returned if a relay serves a malformed chain or a different one.
	ErrChain = errors.New("not the requested chain")
	// ErrRelay is returned for a text that is not a relay's address.
	ErrRelay = errors.New("not a relay address")
	// ErrNoRelays is returned by a client without addresses.
	ErrNoRelays = errors.New("no relays to ask")
	// ErrRound is returned for round 0, which does not exist.
	ErrRound = errors.New("rounds count from 1")
)

// Public returns the public relays of the chain [beacon.Quicknet] named in drand's documentation,
// alternating between operators.
func Public() []string {
	return []string{"https://api.drand.sh", "https://drand.cloudflare.com", "https://api2.drand.sh",
		"https://api3.drand.sh"}
}

// ParseURL checks a relay's address and returns it without a trailing slash, or [ErrRelay]. It may
// have a path but no password or query, because errors and logs show addresses.
func ParseURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("%w: want an address such as https://api.drand.sh", ErrRelay)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%w: %s must have only a scheme, a host and a path", ErrRelay, u.Host)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// Client fetches the rounds of one chain. It is safe for concurrent use, as long as its fields do
// not change after the first call.
type Client struct {
	// Chain is the chain to fetch rounds of.
	Chain beacon.Chain
	// URLs are the relays' addresses, as returned by [ParseURL], preferred ones first.
	URLs []string
	// HTTP sends the requests; nil: a client that reuses connections and follows no redirects.
	HTTP *http.Client
	// Log receives warnings about invalid answers and late rounds; nil: no log.
	Log *slog.Logger

	mu      sync.Mutex // guards the fields below
	best    int        // index of the relay that answered last
	rounds  cache
	flights map[uint64]*flight // rounds with waiting callers
}

// flight is a request for a round, shared by all callers that want it.
type flight struct {
	done      chan struct{} // closed once signature and err are set
	signature []byte
	err       error
	waiting   int                // number of callers; guarded by Client.mu
	cancel    context.CancelFunc // ends the requests
}

// Round returns the verified signature of a round. Concurrent callers for the same round share its
// requests. The error says for every relay what is wrong; it is [ErrNotYet] if a relay does not
// have the round yet.
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

// check returns errors that no relay can fix.
func (c *Client) check(n uint64) error {
	switch {
	case n == 0:
		return ErrRound
	case len(c.URLs) == 0:
		return ErrNoRelays
	}
	return c.Chain.Valid()
}

// launch starts fetching a round. The caller holds c.mu.
func (c *Client) launch(n uint64) *flight {
	ctx, cancel := context.WithCancel(context.Background())
	f := &flight{done: make(chan struct{}), cancel: cancel}
	if c.flights == nil {
		c.flights = map[uint64]*flight{}
	}
	c.flights[n] = f
	go func() {
		defer cancel()
		signature, err := race(ctx, c, func(ctx context.Context, base string) ([]byte, error) {
			return c.fetchRound(ctx, base, n)
		})
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

// leave cancels the requests for a round when its last caller leaves.
func (c *Client) leave(n uint64, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return
	}
	f.cancel()
	if c.flights[n] == f {
		delete(c.flights, n) // the next caller starts a new request
	}
}

// Info returns the client's chain as its relays describe it, or [ErrChain] if
// they serve another.
func (c *Client) Info(ctx context.Context) (beacon.Chain, error) {
	return c.Find(ctx, c.Chain.Hash())
}

// Find fetches the chain with the given hash from the client's relays; it may differ from c.Chain.
// The hash covers all parameters except the scheme, which is fixed.
func (c *Client) Find(ctx context.Context, hash [32]byte) (beacon.Chain, error) {
	if len(c.URLs) == 0 {
		return beacon.Chain{}, fmt.Errorf("get chain %x: %w", hash, ErrNoRelays)
	}
	chain, err := race(ctx, c, func(ctx context.Context, base string) (beacon.Chain, error) {
		return c.fetchInfo(ctx, base, hash)
	})
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

// cacheSize is the number of rounds that a client caches: more than 50 minutes' worth with
// one-minute windows.
const cacheSize = 64

// cache holds the latest rounds put into it. The zero value is empty.
type cache struct {
	signatures map[uint64][]byte
	order      []uint64 // oldest first
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
