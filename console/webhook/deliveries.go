package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/invalid"
)

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of a delivery.
const (
	Waiting   DeliveryState = "waiting"   // waiting for the next attempt
	Delivered DeliveryState = "delivered" // accepted by the receiver
	Failed    DeliveryState = "failed"    // given up
)

// Delivery is one message to one recipient.
type Delivery struct {
	ID        uuid.UUID     `json:"id"`         // webhook-id is "msg_" plus this
	Endpoint  *uuid.UUID    `json:"endpoint"`   // null: mail
	Recipient string        `json:"recipient"`  // URL or e-mail address
	Type      EventKind     `json:"type"`       //
	Room      string        `json:"room"`       // slug; "": none
	Created   time.Time     `json:"created_at"` //
	State     DeliveryState `json:"state"`      //
	Attempts  int           `json:"attempts"`   // attempts so far, including one in progress
	Next      *time.Time    `json:"next_attempt_at,omitempty"`
}

// Attempt is one attempt to deliver.
type Attempt struct {
	Number   int       `json:"number"` // number of the attempt, from 1
	At       time.Time `json:"at"`
	TookMS   int64     `json:"took_ms"`
	Status   int       `json:"status"`   // HTTP or SMTP status; 0: no response
	Error    string    `json:"error"`    // "": success
	Response string    `json:"response"` // beginning of the response
}

// DeliveryDetail is a delivery with its payload and attempts.
type DeliveryDetail struct {
	Delivery
	Payload json.RawMessage `json:"payload"`
	Log     []Attempt       `json:"log"` // oldest first; kept with the delivery for 30 days
}

// DeliveryFilter selects deliveries. Zero fields select all.
type DeliveryFilter struct {
	Endpoint *uuid.UUID // uuid.Nil: mail
	State    DeliveryState
	Type     EventKind
	Room     string
	After    string // Next of the previous page
	Limit    int    // 1 to 100; 0: 50
}

// DeliveryPage is one page of a list, newest first.
type DeliveryPage struct {
	Deliveries []Delivery `json:"deliveries"`
	Next       string     `json:"next,omitempty"` // After of the next page; "": last page
}

const (
	defaultPage = 50
	maxPage     = 100
)

// store converts the filter for the store. It asks for one delivery more than fits on the page.
func (f DeliveryFilter) store() (pgwebhook.Filter, error) {
	p := pgwebhook.Filter{Target: f.Endpoint, State: string(f.State), Type: string(f.Type), Room: f.Room,
		Limit: defaultPage + 1}
	switch {
	case f.Limit < 0 || f.Limit > maxPage:
		return p, invalid.Field("limit", fmt.Sprintf("must be from 1 to %d", maxPage))
	case f.Limit > 0:
		p.Limit = f.Limit + 1
	}
	if f.After != "" {
		before, err := uuid.Parse(f.After)
		if err != nil || before == uuid.Nil {
			return p, invalid.Field("after", "must be the value of next from another page")
		}
		p.Before = before
	}
	return p, nil
}

// Deliveries shows the delivery log, and sends deliveries again.
type Deliveries struct {
	store     *pgwebhook.Outbox
	endpoints *pgwebhook.Endpoints
	outbox    *outbox
	activity  *recorder
	now       func() time.Time
}

// List returns the delivery log of the actor's organization, newest first. It returns
// account.ErrForbidden or an [*invalid.Error].
func (ds *Deliveries) List(ctx context.Context, a account.Actor, f DeliveryFilter) (DeliveryPage, error) {
	if err := mayOperate(a); err != nil {
		return DeliveryPage{}, err
	}
	filter, err := f.store()
	if err != nil {
		return DeliveryPage{}, err
	}
	rows, err := ds.store.List(ctx, a.Org, filter)
	if err != nil {
		return DeliveryPage{}, err
	}
	page := DeliveryPage{Deliveries: []Delivery{}}
	if len(rows) == filter.Limit {
		rows = rows[:len(rows)-1]
		page.Next = rows[len(rows)-1].ID.String()
	}
	for _, d := range rows {
		page.Deliveries = append(page.Deliveries, deliveryOf(d))
	}
	return page, nil
}

func deliveryOf(d pgwebhook.Delivery) Delivery {
	out := Delivery{
		ID: d.ID, Recipient: d.Recipient, Type: EventKind(d.Type), Room: d.Room, Created: d.Created.UTC(),
		State: DeliveryState(d.State), Attempts: d.Attempts, Next: d.Due,
	}
	if d.Target != pgwebhook.Mail {
		out.Endpoint = &d.Target
	}
	return out
}

// Get returns one delivery. It returns account.ErrForbidden or account.ErrNotFound.
func (ds *Deliveries) Get(ctx context.Context, a account.Actor, id uuid.UUID) (DeliveryDetail, error) {
	if err := mayOperate(a); err != nil {
		return DeliveryDetail{}, err
	}
	d, attempts, err := ds.store.Get(ctx, a.Org, id)
	if err != nil {
		return DeliveryDetail{}, mapError(err)
	}
	detail := DeliveryDetail{Delivery: deliveryOf(d), Payload: json.RawMessage(d.Payload), Log: []Attempt{}}
	for _, at := range attempts {
		detail.Log = append(detail.Log, Attempt{at.Number, at.At.UTC(), at.Took.Milliseconds(), at.Status, at.Error,
			at.Response})
	}
	return detail, nil
}

// Redeliver sends a delivery again under the same id, with all retries. It returns
// account.ErrForbidden, account.ErrNotFound or [ErrDisabled].
func (ds *Deliveries) Redeliver(ctx context.Context, a account.Actor, id uuid.UUID) error {
	if err := mayOperate(a); err != nil {
		return err
	}
	d, _, err := ds.store.Get(ctx, a.Org, id)
	if err != nil {
		return mapError(err)
	}
	switch err := ds.store.Redeliver(ctx, a.Org, id, ds.now()); {
	case errors.Is(err, pgwebhook.ErrNotFound):
		if e, err := ds.endpoints.Get(ctx, a.Org, d.Target); d.Target == pgwebhook.Mail ||
			err == nil && e.Disabled == "" {
			return nil // an attempt is in progress
		}
		return ErrDisabled
	case err != nil:
		return err
	}
	ds.outbox.signal()
	return ds.activity.record(ctx, a, "webhook.redelivered", siteOf(d.Recipient),
		map[string]any{"delivery": id, "type": d.Type})
}
