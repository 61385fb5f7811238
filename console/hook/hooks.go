package hook

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/hook/pghook"
	"github.com/proofline/proofline/room"
)

var (
	// ErrTooMany is returned when an organization has as many endpoints as it
	// may.
	ErrTooMany = errors.New("too many endpoints: delete one that is not needed")
	// ErrDisabled is returned when something is to be sent to an endpoint that
	// is disabled or deleted.
	ErrDisabled = errors.New("the endpoint is disabled or deleted")
)

// Acts keeps what somebody did.
type Acts interface {
	Record(ctx context.Context, a account.Actor, verb, object string, detail map[string]any) error
}

// Options is what [New] needs.
type Options struct {
	Store  *pghook.Store
	Rooms  *room.Rooms
	Sealer Sealer
	Acts   Acts // nil keeps nothing
	Log    *slog.Logger
	// Mail sends alerts by e-mail; nil where the server has no mail.
	Mail *SMTP
	// Allowed are networks that endpoints may be in beside public addresses.
	Allowed []netip.Prefix

	Now    func() time.Time // nil for time.Now
	Random io.Reader        // nil for crypto/rand.Reader
	Jitter func() float64   // from 0 to below 1; nil for a random one
	TLS    *tls.Config      // of requests to endpoints; nil for the default
}

// Hooks sends webhooks and alerts. Safe for concurrent use.
type Hooks struct {
	Options
	guard   guard
	clients map[string]*http.Client // by scheme
	wake    chan struct{}           // something may be due
	listen  chan struct{}           // somebody new listens

	listening atomic.Pointer[listening]
	slots     slots
	sending   sync.WaitGroup
	trouble   trouble // the follower alone uses it
}

// New returns the hooks of a server. Run must be called for them to work.
func New(o Options) *Hooks {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Jitter == nil {
		o.Jitter = mathrand.Float64
	}
	h := &Hooks{Options: o, guard: guard{o.Allowed}, wake: make(chan struct{}, 1), listen: make(chan struct{}, 1)}
	h.clients = map[string]*http.Client{"http": h.client(true), "https": h.client(false)}
	h.listening.Store(&listening{})
	return h
}

// How often the parts of [Hooks.Run] look.
const (
	followEvery   = time.Second
	dispatchEvery = 500 * time.Millisecond
	tidyEvery     = time.Minute
)

// Run follows rooms and sends deliveries until ctx ends.
func (h *Hooks) Run(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { h.every(ctx, followEvery, h.listen, h.followAll) })
	parts.Go(func() { h.every(ctx, dispatchEvery, h.wake, h.dispatch) })
	parts.Go(func() { h.every(ctx, tidyEvery, nil, h.tidy) })
	parts.Wait()
	h.sending.Wait()
	for _, c := range h.clients {
		c.CloseIdleConnections()
	}
}

// every does something at once, then again and again, and when it is woken.
func (h *Hooks) every(ctx context.Context, d time.Duration, wake <-chan struct{}, do func(context.Context) error) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	isFailing := false
	for ctx.Err() == nil {
		err := do(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !isFailing {
			h.Log.Error("webhooks and alerts are held up", "err", err)
		}
		isFailing = err != nil
		select {
		case <-ticker.C:
		case <-wake:
		case <-ctx.Done():
			return
		}
	}
}

// signal has what is due looked at now.
func (h *Hooks) signal() { poke(h.wake) }

// signalListener has rooms followed now: who listens from now on misses little.
func (h *Hooks) signalListener() { poke(h.listen) }

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	keepLog   = 30 * 24 * time.Hour
	pruneMost = 10_000
	// overfull is for how many waiting deliveries an endpoint is disabled.
	overfull = 50_000
)

// tidy removes old deliveries, and disables endpoints that too many wait for.
func (h *Hooks) tidy(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := h.Store.Prune(ctx, h.Now().Add(-keepLog), pruneMost)
		if err != nil {
			return err
		}
		if n < pruneMost {
			break
		}
	}
	full, err := h.Store.Overfull(ctx, overfull)
	for _, e := range full {
		err = errors.Join(err, h.disable(ctx, e.Org, e.ID, DisabledOverfull))
	}
	return err
}

// newID makes the id of a delivery: they sort by time.
func (h *Hooks) newID() (uuid.UUID, error) { return uuid.NewV7FromReader(h.Random) }

// record keeps what somebody did.
func (h *Hooks) record(ctx context.Context, a account.Actor, verb, object string, detail map[string]any) error {
	if h.Acts == nil {
		return nil
	}
	return h.Acts.Record(ctx, a, verb, object, detail)
}

// siteOf is what acts say of a recipient: of a URL its site alone. Path and query
// are for many receivers the secret that lets one in, and everybody in the
// organization reads acts.
func siteOf(recipient string) string {
	u, err := url.Parse(recipient)
	if err != nil || u.Host == "" {
		return recipient
	}
	return u.Scheme + "://" + u.Host
}

// may refuses who may not operate rooms.
func may(a account.Actor) error {
	if !a.May(account.Operate) {
		return account.ErrForbidden
	}
	return nil
}

// known maps the store's errors to those that callers know.
func known(err error) error {
	switch {
	case errors.Is(err, pghook.ErrNotFound):
		return account.ErrNotFound
	case errors.Is(err, pghook.ErrTooMany):
		return ErrTooMany
	}
	return err
}
