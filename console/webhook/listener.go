package webhook

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
)

// listener is an organization with endpoints or alert recipients.
type listener struct {
	org       uuid.UUID
	endpoints []pgwebhook.Endpoint // enabled ones
	alerts    pgwebhook.Alerts     // zero value: no recipients
}

// listening holds all listeners as of the latest read.
type listening struct{ byOrg map[uuid.UUID]*listener }

func (l *listening) of(org uuid.UUID) *listener {
	o := l.byOrg[org]
	if o == nil {
		o = &listener{org: org}
		l.byOrg[org] = o
	}
	return o
}

// wants reports whether a kind of alert has recipients.
func (o *listener) wants(k AlertKind) bool {
	return slices.Contains(o.alerts.Kinds, string(k)) && len(o.alerts.Emails)+len(o.alerts.Endpoints) > 0
}

// since returns the time from which the organization gets events or alerts.
func (o *listener) since() time.Time {
	since := o.alerts.Since
	for _, e := range o.endpoints {
		if since.IsZero() || e.Since.Before(since) {
			since = e.Since
		}
	}
	return since
}

// list returns the organizations whose rooms must be followed.
func (l *listening) list() []pgwebhook.Listener {
	var list []pgwebhook.Listener
	for org, o := range l.byOrg {
		list = append(list, pgwebhook.Listener{Org: org, Since: o.since()})
	}
	return list
}

// readListening reads all listeners, and keeps them for when the database is down.
func (h *Service) readListening(ctx context.Context) (*listening, error) {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	endpoints, err := h.Store.Enabled(ctx)
	if err != nil {
		return nil, err
	}
	alerts, err := h.Store.AllAlerts(ctx)
	if err != nil {
		return nil, err
	}
	l := &listening{byOrg: map[uuid.UUID]*listener{}}
	for _, e := range endpoints {
		o := l.of(e.Org)
		o.endpoints = append(o.endpoints, e)
	}
	for _, a := range alerts {
		if len(a.Emails)+len(a.Endpoints) > 0 {
			l.of(a.Org).alerts = a
		}
	}
	h.listening.Store(l)
	return l, nil
}

// readListener reads one organization's listener.
func (h *Service) readListener(ctx context.Context, org uuid.UUID) (*listener, error) {
	o := &listener{org: org}
	endpoints, err := h.Store.Endpoints(ctx, org)
	if err != nil {
		return nil, err
	}
	for _, e := range endpoints {
		if e.Disabled == "" {
			o.endpoints = append(o.endpoints, e)
		}
	}
	if o.alerts, err = h.Store.Alerts(ctx, org); errors.Is(err, pgwebhook.ErrNotFound) {
		err = nil
	}
	return o, err
}

// deliveries returns the deliveries of an event in a room.
func (h *Service) deliveries(o *listener, slug string, e *event) (list []pgwebhook.Delivery, err error) {
	for _, endpoint := range o.endpoints {
		if !isSubscribed(&endpoint, slug, e) {
			continue
		}
		d, err := h.deliveryTo(o.org, endpoint.ID, endpoint.URL, slug, e)
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
