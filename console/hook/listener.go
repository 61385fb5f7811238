package hook

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/hook/pghook"
)

// listener is what an organization wants to hear.
type listener struct {
	org       uuid.UUID
	endpoints []pghook.Endpoint // that are enabled
	alerts    pghook.Alerts     // zero for nobody
}

// listening is who wants to hear what, as last read.
type listening struct{ byOrg map[uuid.UUID]*listener }

func (l *listening) of(org uuid.UUID) *listener {
	o := l.byOrg[org]
	if o == nil {
		o = &listener{org: org}
		l.byOrg[org] = o
	}
	return o
}

// wants tells whether somebody is to be told of a kind of alert.
func (o *listener) wants(k AlertKind) bool {
	return slices.Contains(o.alerts.Kinds, string(k)) && len(o.alerts.Emails)+len(o.alerts.Endpoints) > 0
}

// since returns from when on the organization listens.
func (o *listener) since() time.Time {
	since := o.alerts.Since
	for _, e := range o.endpoints {
		if since.IsZero() || e.Since.Before(since) {
			since = e.Since
		}
	}
	return since
}

// list returns the organizations that follow rooms.
func (l *listening) list() []pghook.Listener {
	var list []pghook.Listener
	for org, o := range l.byOrg {
		list = append(list, pghook.Listener{Org: org, Since: o.since()})
	}
	return list
}

// readListening reads who wants to hear what, and remembers it for when the
// database is away.
func (h *Hooks) readListening(ctx context.Context) (*listening, error) {
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

// readListener reads what one organization wants to hear.
func (h *Hooks) readListener(ctx context.Context, org uuid.UUID) (*listener, error) {
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
	if o.alerts, err = h.Store.Alerts(ctx, org); errors.Is(err, pghook.ErrNotFound) {
		err = nil
	}
	return o, err
}

// deliveries returns what an event in a room gives to send.
func (h *Hooks) deliveries(o *listener, slug string, e *event) (list []pghook.Delivery, err error) {
	for _, endpoint := range o.endpoints {
		if !hears(&endpoint, slug, e) {
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

// hears tells whether an endpoint wants an event: of that kind, in that room,
// since it listens.
func hears(e *pghook.Endpoint, slug string, ev *event) bool {
	return (len(e.Events) == 0 || slices.Contains(e.Events, string(ev.kind))) &&
		(len(e.Rooms) == 0 || slices.Contains(e.Rooms, slug)) && !ev.at.Before(e.Since)
}
