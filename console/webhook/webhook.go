package webhook

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/outbound"
	"github.com/proofline/proofline/internal/traces"
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
	Store    *pgwebhook.Store
	Rooms    *room.Rooms
	Sealer   Sealer
	Activity ActivityLog // nil: no activity log
	Log      *slog.Logger
	// Mail sends alerts by mail; nil if the server cannot send mail.
	Mail *SMTP
	// Tracer traces deliveries; nil: they are not traced.
	Tracer *traces.Tracer
	// Allowed are networks that endpoints may be in, besides public addresses.
	Allowed []netip.Prefix

	Now    func() time.Time // nil: time.Now
	Random io.Reader        // nil: crypto/rand.Reader
	Jitter func() float64   // returns a value in [0, 1); nil: random
	TLS    *tls.Config      // TLS configuration for requests to endpoints; nil: the default
}

// Service manages the webhooks and alerts of a server. Each field manages one kind of object; callers take those
// that they need. All are safe for concurrent use.
type Service struct {
	Endpoints  *Endpoints
	Alerts     *Alerts
	Deliveries *Deliveries

	store     *pgwebhook.Store
	listeners *listeners
	outbox    *outbox
	follower  *follower
	sender    *sender
	now       func() time.Time
	log       *slog.Logger
}

// New returns the webhook service of a server. The caller must call Run.
func New(o Options) *Service {
	o = o.withDefaults()
	activity, guard := &recorder{o.Activity}, outbound.Guard{Allowed: o.Allowed}
	listeners := newListeners(o.Store)
	outbox := &outbox{o.Store.Outbox, o.Random, o.Now, make(chan struct{}, 1)}
	signer := &signer{o.Sealer, o.Random}
	alerts := &Alerts{
		store: o.Store.AlertSettings, endpoints: o.Store.Endpoints, rooms: o.Rooms, listeners: listeners,
		outbox: outbox, activity: activity, hasMail: o.Mail != nil, now: o.Now,
	}
	endpoints := &Endpoints{
		store: o.Store.Endpoints, listeners: listeners, outbox: outbox, signer: signer,
		alerts: alerts, activity: activity,
		guard: guard, random: o.Random, now: o.Now, log: o.Log,
	}
	sender := &sender{
		store: o.Store.Outbox, outbox: outbox, endpoints: endpoints, signer: signer, retry: retry{o.Now, o.Jitter},
		client: newClient(guard, o.TLS), smtp: o.Mail, publicURL: o.Rooms.PublicURL, now: o.Now, log: o.Log,
		tracer: o.Tracer,
	}
	return &Service{
		Endpoints: endpoints, Alerts: alerts,
		Deliveries: &Deliveries{o.Store.Outbox, o.Store.Endpoints, outbox, activity, o.Now},
		store:      o.Store, listeners: listeners, outbox: outbox, sender: sender, now: o.Now, log: o.Log,
		follower: &follower{
			store: o.Store.Cursors, rooms: o.Rooms, listeners: listeners, outbox: outbox, alerts: alerts,
			outage: &outageWatch{
				listeners: listeners, alerts: alerts, sender: sender, now: o.Now, log: o.Log,
			},
			now: o.Now, log: o.Log,
		},
	}
}

// withDefaults fills in the defaults.
func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Jitter == nil {
		o.Jitter = mathrand.Float64
	}
	return o
}

// Intervals of the loops in [Service.Run].
const (
	followInterval   = time.Second
	dispatchInterval = 500 * time.Millisecond
	tidyInterval     = time.Minute
)

// Run follows rooms and sends deliveries until ctx is done.
func (s *Service) Run(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { s.every(ctx, followInterval, s.listeners.wake, s.follower.followAll) })
	parts.Go(func() { s.every(ctx, dispatchInterval, s.outbox.wake, s.sender.dispatch) })
	parts.Go(func() { s.every(ctx, tidyInterval, nil, s.tidy) })
	parts.Wait()
	s.sender.close()
}

// every calls do immediately, then at each interval and wake-up, until ctx is done.
func (s *Service) every(ctx context.Context, d time.Duration, wake <-chan struct{}, do func(context.Context) error) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	isFailing := false
	for ctx.Err() == nil {
		err := do(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !isFailing {
			s.log.Error("cannot process webhooks and alerts", "err", err)
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

const (
	logAge     = 30 * 24 * time.Hour
	pruneBatch = 10_000
	// maxWaiting is the number of waiting deliveries at which an endpoint is disabled.
	maxWaiting = 50_000
)

// tidy deletes old deliveries, and disables endpoints with too many waiting deliveries.
func (s *Service) tidy(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := s.store.Outbox.Prune(ctx, s.now().Add(-logAge), pruneBatch)
		if err != nil {
			return err
		}
		if n < pruneBatch {
			break
		}
	}
	full, err := s.store.Endpoints.Overfull(ctx, maxWaiting)
	for _, e := range full {
		err = errors.Join(err, s.Endpoints.disable(ctx, e.Org, e.ID, DisabledOverfull))
	}
	return err
}

// recorder writes entries to the activity log.
type recorder struct{ log ActivityLog } // nil: no activity log

// record writes an entry to the activity log.
func (r *recorder) record(ctx context.Context, a account.Actor, verb, object string, detail map[string]any) error {
	if r.log == nil {
		return nil
	}
	return r.log.Record(ctx, a, verb, object, detail)
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

// mayOperate returns an error unless the actor may operate rooms.
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
	case errors.Is(err, pgwebhook.ErrTooManyEndpoints):
		return &account.LimitError{Max: MaxEndpoints, Objects: "webhooks"}
	}
	return err
}
