package webhook

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
)

// listener is an organization with endpoints or alert recipients.
type listener struct {
	org       uuid.UUID
	endpoints []pgwebhook.Endpoint // enabled endpoints
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

// listeners keeps track of the organizations with endpoints or alert recipients.
type listeners struct {
	endpoints *pgwebhook.Endpoints
	alerts    *pgwebhook.AlertSettings
	latest    atomic.Pointer[listening]
	wake      chan struct{} // signals that an organization has new recipients
}

func newListeners(store *pgwebhook.Store) *listeners {
	ls := &listeners{endpoints: store.Endpoints, alerts: store.AlertSettings, wake: make(chan struct{}, 1)}
	ls.latest.Store(&listening{})
	return ls
}

// known returns all listeners as of the latest read.
func (ls *listeners) known() map[uuid.UUID]*listener { return ls.latest.Load().byOrg }

// signal wakes the follower, so that new recipients miss as little as possible.
func (ls *listeners) signal() { poke(ls.wake) }

// readAll reads all listeners, and keeps them for when the database is down.
func (ls *listeners) readAll(ctx context.Context) (*listening, error) {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	endpoints, err := ls.endpoints.Enabled(ctx)
	if err != nil {
		return nil, err
	}
	alerts, err := ls.alerts.List(ctx)
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
	ls.latest.Store(l)
	return l, nil
}

// read reads one organization's listener.
func (ls *listeners) read(ctx context.Context, org uuid.UUID) (*listener, error) {
	o := &listener{org: org}
	endpoints, err := ls.endpoints.List(ctx, org)
	if err != nil {
		return nil, err
	}
	for _, e := range endpoints {
		if e.Disabled == "" {
			o.endpoints = append(o.endpoints, e)
		}
	}
	if o.alerts, err = ls.alerts.Get(ctx, org); errors.Is(err, pgwebhook.ErrNotFound) {
		err = nil
	}
	return o, err
}
