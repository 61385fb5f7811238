package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Timeouts and intervals for a site.
const (
	dialTimeout   = 5 * time.Second
	checkTimeout  = 3 * time.Second
	checkInterval = 5 * time.Second
	retryInterval = time.Second
)

// idleAtSite is how long idle connections are kept: less than the 5 s after which many servers
// (Node.js, Apache, uvicorn) close them, losing a request sent at that moment.
const idleAtSite = 4 * time.Second

// failuresToDown is the number of consecutive failures after which an address is
// down. A failed check is enough, too.
const failuresToDown = 3

// idlePerAddress is the number of idle connections kept for each address.
const idlePerAddress = 1000

// readBuffer is the size of each connection's read buffer, which holds most pages.
const readBuffer = 16 << 10

// health is the last known health of an address.
type health int32

const (
	unknown health = iota // not checked yet
	up
	down // gets no requests while another address is not down
)

// address is an address of the site.
type address struct {
	url           *url.URL
	health        atomic.Int32
	failuresInRow atomic.Int64 // failures since the last response
	waiting       atomic.Int64 // requests that have no response yet

	requests, failures atomic.Uint64
}

// site sends requests to the site's addresses.
type site struct {
	addresses    []*address
	turn         atomic.Uint64
	transport    *http.Transport
	checkPath    string // empty: a check only connects
	checkHost    string
	interval     time.Duration // time between checks of an address that is up
	downInterval time.Duration // time between checks of an address that is down
	log          *slog.Logger
}

func newSite(o *Options) *site {
	s := &site{checkPath: o.Check, checkHost: o.CheckHost, log: o.Log}
	s.interval, s.downInterval = checkInterval, retryInterval
	s.transport = &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: o.Limits.Answer,
		MaxIdleConnsPerHost:   idlePerAddress,
		IdleConnTimeout:       idleAtSite,
		ReadBufferSize:        readBuffer,
		DisableCompression:    true, // client and site negotiate compression
	}
	for _, u := range o.To {
		s.addresses = append(s.addresses, &address{url: u})
	}
	return s
}

// isUp reports whether an address is up.
func (s *site) isUp() bool {
	for _, a := range s.addresses {
		if health(a.health.Load()) == up {
			return true
		}
	}
	return false
}

// pick returns the address for a request, except those tried: one that is not down
// if possible, and the one with the fewest waiting requests among those.
func (s *site) pick(tried []*address) *address {
	var best *address
	start := int(s.turn.Add(1) % uint64(len(s.addresses)))
	for i := range s.addresses {
		a := s.addresses[(start+i)%len(s.addresses)]
		if !isIn(a, tried) && (best == nil || a.isBetter(best)) {
			best = a
		}
	}
	return best
}

func isIn(a *address, list []*address) bool {
	for _, other := range list {
		if a == other {
			return true
		}
	}
	return false
}

func (a *address) isBetter(b *address) bool {
	isDown, otherDown := health(a.health.Load()) == down, health(b.health.Load()) == down
	if isDown != otherDown {
		return otherDown
	}
	return a.waiting.Load() < b.waiting.Load()
}

// RoundTrip implements [http.RoundTripper] for the proxy's own requests, which it
// may modify. A request that could not be sent goes to the next address.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(s.addresses) == 1 {
		return s.send(r, s.addresses[0])
	}
	body := &body{ReadCloser: r.Body}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = body
	}
	for tried := []*address(nil); ; {
		a := s.pick(tried)
		answer, err := s.send(r, a)
		tried = append(tried, a)
		isFinal := err == nil || len(tried) == len(s.addresses) || body.isRead.Load()
		if isFinal || !neverSent(err) || r.Context().Err() != nil {
			return answer, err
		}
	}
}

// send sends a request to an address, and updates its health.
func (s *site) send(r *http.Request, a *address) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host = a.url.Scheme, a.url.Host
	a.requests.Add(1)
	a.waiting.Add(1)
	answer, err := s.transport.RoundTrip(r)
	a.waiting.Add(-1)
	switch {
	case err == nil:
		if a.failuresInRow.Load() != 0 {
			a.failuresInRow.Store(0)
		}
	case r.Context().Err() == nil && !isOfClient(err):
		a.failures.Add(1)
		if a.failuresInRow.Add(1) >= failuresToDown {
			s.turnDown(a, err)
		}
	}
	return answer, err
}

// isOfClient reports whether the client caused a request to fail.
func isOfClient(err error) bool {
	tooLarge := (*http.MaxBytesError)(nil)
	return errors.As(err, &tooLarge) || errors.Is(err, errStalled) || errors.Is(err, errBody)
}

// neverSent reports whether a request failed before any of it was sent.
func neverSent(err error) bool {
	failed := (*net.OpError)(nil)
	return errors.As(err, &failed) && failed.Op == "dial"
}

func (s *site) turnDown(a *address, err error) {
	if a.health.Swap(int32(down)) != int32(down) {
		s.log.Error("address of the site is down", "to", a.url.Host, "err", err)
	}
}

// checkAll checks every address periodically until ctx ends.
func (s *site) checkAll(ctx context.Context) {
	var all sync.WaitGroup
	for _, a := range s.addresses {
		all.Go(func() {
			for {
				wait := s.interval
				if s.check(ctx, a); health(a.health.Load()) == down {
					wait = s.downInterval
				}
				select {
				case <-ctx.Done():
					return
				case <-time.After(wait):
				}
			}
		})
	}
	all.Wait()
}

// check checks an address once, and updates its health.
func (s *site) check(ctx context.Context, a *address) {
	asking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := s.probe(asking, a)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.turnDown(a, err)
	default:
		a.failuresInRow.Store(0)
		if before := health(a.health.Swap(int32(up))); before == down {
			s.log.Info("address of the site is up again", "to", a.url.Host)
		}
	}
}

// probe returns nil if an address is healthy.
func (s *site) probe(ctx context.Context, a *address) error {
	if s.checkPath == "" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", hostPort(a.url))
		if err != nil {
			return err
		}
		return conn.Close()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url.Scheme+"://"+a.url.Host+s.checkPath, http.NoBody)
	if err != nil {
		return fmt.Errorf("make a check: %w", err)
	}
	r.Host = s.checkHost
	r.Header.Set("User-Agent", "proofline-check")
	answer, err := s.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // lets the connection be reused
	_ = answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("check failed with status %d", answer.StatusCode)
	}
	return nil
}

// hostPort returns the address to connect to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = u.Scheme // package net resolves the names http and https
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// body is a request's body that a failed attempt does not close, because another
// may follow. The server closes it.
type body struct {
	io.ReadCloser
	isRead atomic.Bool
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	b.isRead.Store(true)
	return b.ReadCloser.Read(p)
}

// Close implements [io.Closer].
func (*body) Close() error { return nil }
