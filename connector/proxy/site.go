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

// Waits for a site.
const (
	dialTimeout  = 5 * time.Second
	checkTimeout = 3 * time.Second
	checkAgain   = 5 * time.Second
	retryAgain   = time.Second
)

// idleAtSite is how long a connection is kept without a request: less than the
// 5 s after which many servers (Node.js, Apache, uvicorn) close it, for what is
// sent in that moment is lost.
const idleAtSite = 4 * time.Second

// failuresToDown is how many requests in a row an address may fail before it
// gets no more. A check says so sooner.
const failuresToDown = 3

// idlePerAddress is how many connections are kept for each address.
const idlePerAddress = 1000

// readBuffer takes most pages at once; it is there once for each connection.
const readBuffer = 16 << 10

// standing is what is known of an address.
type standing int32

const (
	unknown standing = iota // not asked yet
	up
	down // gets nothing while another is not down
)

// address is one of a site.
type address struct {
	url      *url.URL
	standing atomic.Int32
	inARow   atomic.Int64 // failures since it answered
	waiting  atomic.Int64 // requests that it has not begun to answer

	requests, failures atomic.Uint64
}

// site sends requests to its addresses.
type site struct {
	addresses []*address
	turn      atomic.Uint64
	transport *http.Transport
	check     string // path; empty: a connection is enough
	checkHost string
	again     time.Duration // between checks of an address that is up
	downAgain time.Duration // of one that is down
	log       *slog.Logger
}

func newSite(o *Options) *site {
	s := &site{check: o.Check, checkHost: o.CheckHost, again: checkAgain, downAgain: retryAgain, log: o.Log, transport: &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: o.Limits.Answer,
		MaxIdleConnsPerHost:   idlePerAddress,
		IdleConnTimeout:       idleAtSite,
		ReadBufferSize:        readBuffer,
		DisableCompression:    true, // as the client asks for it
	}}
	for _, u := range o.To {
		s.addresses = append(s.addresses, &address{url: u})
	}
	return s
}

// answers tells whether an address is known to be there.
func (s *site) answers() bool {
	for _, a := range s.addresses {
		if standing(a.standing.Load()) == up {
			return true
		}
	}
	return false
}

// pick returns the address that is to get a request, none of tried: one that is
// not down if there is any, and of those the one with the fewest that wait.
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
	isDown, otherDown := standing(a.standing.Load()) == down, standing(b.standing.Load()) == down
	if isDown != otherDown {
		return otherDown
	}
	return a.waiting.Load() < b.waiting.Load()
}

// RoundTrip implements [http.RoundTripper] for requests of the proxy alone: it
// changes them. A request that never reached an address is sent to the next.
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
		if err == nil || len(tried) == len(s.addresses) || body.isRead.Load() || !neverSent(err) || r.Context().Err() != nil {
			return answer, err
		}
	}
}

// send sends a request to an address, and remembers how that went.
func (s *site) send(r *http.Request, a *address) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host = a.url.Scheme, a.url.Host
	a.requests.Add(1)
	a.waiting.Add(1)
	answer, err := s.transport.RoundTrip(r)
	a.waiting.Add(-1)
	switch {
	case err == nil:
		if a.inARow.Load() != 0 {
			a.inARow.Store(0)
		}
	case r.Context().Err() == nil && !isOfClient(err):
		a.failures.Add(1)
		if a.inARow.Add(1) >= failuresToDown {
			s.turnDown(a, err)
		}
	}
	return answer, err
}

// isOfClient tells whether a request failed because of who sent it.
func isOfClient(err error) bool {
	tooLarge := (*http.MaxBytesError)(nil)
	return errors.As(err, &tooLarge) || errors.Is(err, errStalled) || errors.Is(err, errBody)
}

// neverSent tells whether no byte of a request left.
func neverSent(err error) bool {
	failed := (*net.OpError)(nil)
	return errors.As(err, &failed) && failed.Op == "dial"
}

func (s *site) turnDown(a *address, err error) {
	if a.standing.Swap(int32(down)) != int32(down) {
		s.log.Error("address of the site is down", "to", a.url.Host, "err", err)
	}
}

// watch asks every address again and again whether it is there.
func (s *site) watch(ctx context.Context) {
	var all sync.WaitGroup
	for _, a := range s.addresses {
		all.Go(func() {
			for {
				wait := s.again
				if s.look(ctx, a); standing(a.standing.Load()) == down {
					wait = s.downAgain
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

// look asks an address once.
func (s *site) look(ctx context.Context, a *address) {
	asking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := s.ask(asking, a)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.turnDown(a, err)
	default:
		a.inARow.Store(0)
		if before := standing(a.standing.Swap(int32(up))); before == down {
			s.log.Info("address of the site is up again", "to", a.url.Host)
		}
	}
}

// ask returns nil if an address is there.
func (s *site) ask(ctx context.Context, a *address) error {
	if s.check == "" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", hostPort(a.url))
		if err != nil {
			return err
		}
		return conn.Close()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url.Scheme+"://"+a.url.Host+s.check, http.NoBody)
	if err != nil {
		return fmt.Errorf("make a check: %w", err)
	}
	r.Host = s.checkHost
	r.Header.Set("User-Agent", "proofline-check")
	answer, err := s.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // so that the connection is used again
	_ = answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the check is answered with status %d", answer.StatusCode)
	}
	return nil
}

// hostPort returns where to connect.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = u.Scheme // the names of services are those of the schemes
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// body is a request's, which a failed attempt must not close: another may
// follow, and the server closes it.
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
