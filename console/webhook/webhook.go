package webhook

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
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/room"
)

var (
	// ErrDisabled is returned when sending to an endpoint that is disabled or deleted.
	ErrDisabled = errors.New("the endpoint is disabled or deleted: enable it first")
)

// ActivityLog writes the activity log.
type ActivityLog interface {
	Record(ctx context.Context, a account.Actor, verb, object string, detail map[string]any) error
}

// Options configures [New]. Store, Rooms, Sealer and Log are required.
type Options struct {
	Store       *pgwebhook.Store
	Rooms       *room.Rooms
	Sealer      Sealer
	ActivityLog ActivityLog // nil: no activity log
	Log         *slog.Logger
	// Mail sends alerts by mail; nil if the server cannot send mail.
	Mail *SMTP
	// Allowed are networks that endpoints may be in, besides public addresses.
	Allowed []netip.Prefix

	Now    func() time.Time // nil: time.Now
	Random io.Reader        // nil: crypto/rand.Reader
	Jitter func() float64   // returns a value in [0, 1); nil: random
	TLS    *tls.Config      // for requests to endpoints; nil: default
}

// Service sends webhooks and alerts. It is safe for concurrent use.
type Service struct {
	Options
	guard   guard
	clients map[string]*http.Client // by scheme
	wake    chan struct{}           // signals that deliveries may be due
	listen  chan struct{}           // signals that an organization has new recipients

	listening atomic.Pointer[listening]
	slots     slots
	sending   sync.WaitGroup
	outage    outage // used by the follower only
}

// New returns the webhook service of a server. The caller must call Run.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Jitter == nil {
		o.Jitter = mathrand.Float64
	}
	h := &Service{Options: o, guard: guard{o.Allowed}, wake: make(chan struct{}, 1), listen: make(chan struct{}, 1)}
	h.clients = map[string]*http.Client{"http": h.client("http"), "https": h.client("https")}
	h.listening.Store(&listening{})
	return h
}

// Intervals of the loops in [Service.Run].
const (
	followInterval   = time.Second
	dispatchInterval = 500 * time.Millisecond
	tidyInterval     = time.Minute
)

// Run follows rooms and sends deliveries until ctx is done.
func (h *Service) Run(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { h.every(ctx, followInterval, h.listen, h.followAll) })
	parts.Go(func() { h.every(ctx, dispatchInterval, h.wake, h.dispatch) })
	parts.Go(func() { h.every(ctx, tidyInterval, nil, h.tidy) })
	parts.Wait()
	h.sending.Wait()
	for _, c := range h.clients {
		c.CloseIdleConnections()
	}
}

// every calls do immediately, then at each interval and wake-up, until ctx is done.
func (h *Service) every(ctx context.Context, d time.Duration, wake <-chan struct{}, do func(context.Context) error) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	isFailing := false
	for ctx.Err() == nil {
		err := do(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !isFailing {
			h.Log.Error("cannot process webhooks and alerts", "err", err)
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

// signal wakes the dispatcher.
func (h *Service) signal() { poke(h.wake) }

// signalListener wakes the follower, so that new recipients miss as little as possible.
func (h *Service) signalListener() { poke(h.listen) }

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	logAge     = 30 * 24 * time.Hour
	pruneBatch = 10_000
	// maxWaiting is the number of waiting deliveries at which an endpoint is disabled.
	maxWaiting = 50_000
)

// tidy deletes old deliveries, and disables endpoints with too many waiting deliveries.
func (h *Service) tidy(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := h.Store.Prune(ctx, h.Now().Add(-logAge), pruneBatch)
		if err != nil {
			return err
		}
		if n < pruneBatch {
			break
		}
	}
	full, err := h.Store.Overfull(ctx, maxWaiting)
	for _, e := range full {
		err = errors.Join(err, h.disable(ctx, e.Org, e.ID, DisabledOverfull))
	}
	return err
}

// newID returns an id for a delivery. Ids sort by time.
func (h *Service) newID() (uuid.UUID, error) { return uuid.NewV7FromReader(h.Random) }

// record writes an entry to the activity log.
func (h *Service) record(ctx context.Context, a account.Actor, verb, object string, detail map[string]any) error {
	if h.ActivityLog == nil {
		return nil
	}
	return h.ActivityLog.Record(ctx, a, verb, object, detail)
}

// siteOf returns the part of a recipient for the activity log: only scheme and host of a URL. All
// members of the organization can read the log, and for many receivers the path or query is a
// secret.
func siteOf(recipient string) string {
	u, err := url.Parse(recipient)
	if err != nil || u.Host == "" {
		return recipient
	}
	return u.Scheme + "://" + u.Host
}

// mayOperate returns an error unless the actor mayOperate operate rooms.
func mayOperate(a account.Actor) error {
	if !a.May(account.Operate) {
		return account.ErrForbidden
	}
	return nil
}

// mapError maps pgwebhook's sentinel errors to those of this package's API.
func mapError(err error) error {
	switch {
	case errors.Is(err, pgwebhook.ErrNotFound):
		return account.ErrNotFound
	case errors.Is(err, pgwebhook.ErrTooMany):
		return &account.LimitError{Max: MaxEndpoints, Objects: "webhooks"}
	}
	return err
}
