package hook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proofline/proofline/console/hook/pghook"
)

const (
	// databaseTimeout is how long one question to the database may take before
	// it counts as silent.
	databaseTimeout = 5 * time.Second
	// databasePatience is how long the database may be silent before that is
	// told.
	databasePatience = 30 * time.Second
)

// trouble is the database not answering this node.
type trouble struct {
	since time.Time // zero while it answers
	told  time.Time // zero as long as nobody was told
}

// noteDatabase takes whether the database answered, and tells people when it
// has not for a while, and when it does again.
func (h *Hooks) noteDatabase(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	now, t := h.Now(), &h.trouble
	if err == nil {
		if !t.told.IsZero() {
			h.tellAll(ctx, fmt.Sprintf("The database answers again. It did not from %s until %s.", clock(t.since), clock(now)))
		}
		*t = trouble{}
		return
	}
	if t.since.IsZero() {
		t.since = now
	}
	if now.Sub(t.since) < databasePatience || !t.told.IsZero() && now.Sub(t.told) < AlertQuiet {
		return
	}
	t.told = now
	text := fmt.Sprintf("The database has not answered this server since %s. Nobody can join, and nobody is called, until it does. "+
		"Nothing that was confirmed is lost.", clock(t.since))
	for _, o := range h.listening.Load().byOrg {
		h.sending.Go(func() { h.tellDirectly(ctx, o, text) })
	}
}

// tellAll alerts every organization that wants to know of the database.
func (h *Hooks) tellAll(ctx context.Context, text string) {
	for org, o := range h.listening.Load().byOrg {
		if !o.wants(AlertDatabase) {
			continue
		}
		if err := h.Alert(ctx, org, AlertDatabase, "", text); err != nil {
			h.Log.Error("alert cannot be stored", "err", err)
		}
	}
}

// tellDirectly sends an alert without the outbox, which is in the database. It
// tries each recipient once.
func (h *Hooks) tellDirectly(ctx context.Context, o *listener, text string) {
	alert, err := h.alert(o, AlertDatabase, where{}, text)
	for _, d := range alert.Deliveries {
		taken := &pghook.Taken{Delivery: d}
		for _, e := range o.endpoints {
			if e.ID == d.Target {
				taken.Secret, taken.Former, taken.FormerUntil = e.Secret, e.Former, e.FormerUntil
			}
		}
		if r := h.attempt(ctx, taken); r.failure != "" {
			err = errors.Join(err, fmt.Errorf("to %s: %s", d.Recipient, r.failure))
		}
	}
	if err != nil && ctx.Err() == nil {
		h.Log.Error("alert cannot be sent", "err", err)
	}
}
