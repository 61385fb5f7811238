package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
)

const (
	// databaseTimeout is how long a query may take before the database counts as unavailable.
	databaseTimeout = 5 * time.Second
	// minOutage is how long the database may be unavailable before an alert.
	minOutage = 30 * time.Second
)

// outage is the state of a database outage as seen by this node.
type outage struct {
	since   time.Time // zero: the database responds
	alerted time.Time // time of the latest alert; zero: none
}

// outageWatch sends alerts about outages of the database. Only the follower uses it.
type outageWatch struct {
	state     outage
	listeners *listeners
	alerts    *Alerts
	sender    *sender
	now       func() time.Time
	log       *slog.Logger
}

// note records whether the database responded, and sends alerts when an outage lasts and
// when it ends.
func (w *outageWatch) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	now, t := w.now(), &w.state
	if err == nil {
		if !t.alerted.IsZero() {
			w.tellAll(ctx, fmt.Sprintf("The database responds again. It was unavailable from %s until %s.",
				Moment(t.since), Moment(now)))
		}
		*t = outage{}
		return
	}
	if t.since.IsZero() {
		t.since = now
	}
	if now.Sub(t.since) < minOutage || !t.alerted.IsZero() && now.Sub(t.alerted) < AlertQuiet {
		return
	}
	t.alerted = now
	text := fmt.Sprintf("The database has not responded to this server since %s. "+
		"Until it does, no visitor can join or is called. No confirmed entry is lost.", Moment(t.since))
	for _, o := range w.listeners.known() {
		w.sender.sending.Go(func() { w.tellDirectly(ctx, o, text) })
	}
}

// tellAll sends an alert to every organization that wants alerts about the database.
func (w *outageWatch) tellAll(ctx context.Context, text string) {
	for org, o := range w.listeners.known() {
		if !o.wants(AlertDatabase) {
			continue
		}
		if err := w.alerts.Send(ctx, org, AlertDatabase, "", text); err != nil {
			w.log.Error("cannot store alert", "err", err)
		}
	}
}

// tellDirectly sends an alert without the outbox, which is in the database. It tries each recipient
// once.
func (w *outageWatch) tellDirectly(ctx context.Context, o *listener, text string) {
	alert, err := w.alerts.build(o, AlertDatabase, where{}, text)
	for _, d := range alert.Deliveries {
		taken := &pgwebhook.Taken{Delivery: d}
		for _, e := range o.endpoints {
			if e.ID == d.Target {
				taken.Secret, taken.Former, taken.FormerUntil = e.Secret, e.Former, e.FormerUntil
			}
		}
		if r := w.sender.attempt(ctx, taken); r.failure != "" {
			err = errors.Join(err, fmt.Errorf("to %s: %s", d.Recipient, r.failure))
		}
	}
	if err != nil && ctx.Err() == nil {
		w.log.Error("cannot send alert", "err", err)
	}
}
