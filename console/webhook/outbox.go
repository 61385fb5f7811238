package webhook

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
)

// outbox takes deliveries until they are sent.
type outbox struct {
	store  *pgwebhook.Outbox
	random io.Reader
	now    func() time.Time
	wake   chan struct{} // signals that deliveries may be due
}

// add stores deliveries and alerts, which are due now.
func (ob *outbox) add(ctx context.Context, out pgwebhook.Outgoing) error {
	if err := ob.store.Add(ctx, out); err != nil {
		return err
	}
	ob.signal()
	return nil
}

// signal wakes the sender.
func (ob *outbox) signal() { poke(ob.wake) }

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// delivery returns the delivery of an event to a recipient.
func (ob *outbox) delivery(org, target uuid.UUID, recipient, room string, e *event) (pgwebhook.Delivery, error) {
	text, err := e.text()
	if err != nil {
		return pgwebhook.Delivery{}, err
	}
	// Ids of version 7 sort by time.
	id, err := uuid.NewV7FromReader(ob.random)
	if err != nil {
		return pgwebhook.Delivery{}, fmt.Errorf("make delivery: %w", err)
	}
	return pgwebhook.Delivery{
		Org: org, ID: id, Target: target, Recipient: recipient, Type: string(e.kind), Room: room, Payload: text,
		Created: ob.now(),
	}, nil
}

// deliveriesFor returns the deliveries of an event in a room.
func (ob *outbox) deliveriesFor(o *listener, slug string, e *event) (list []pgwebhook.Delivery, err error) {
	for _, endpoint := range o.endpoints {
		if !isSubscribed(&endpoint, slug, e) {
			continue
		}
		d, err := ob.delivery(o.org, endpoint.ID, endpoint.URL, slug, e)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// isSubscribed reports whether an endpoint is subscribed to an event's kind and room, and existed at its
// time.
func isSubscribed(e *pgwebhook.Endpoint, slug string, ev *event) bool {
	return (len(e.Events) == 0 || slices.Contains(e.Events, string(ev.kind))) &&
		(len(e.Rooms) == 0 || slices.Contains(e.Rooms, slug)) && !ev.at.Before(e.Since)
}
