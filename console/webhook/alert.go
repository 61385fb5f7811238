package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

const (
	// AlertQuiet is the minimum interval between alerts of the same kind and room.
	AlertQuiet = 15 * time.Minute
	// DefaultNoShows is the default no-show rate for an alert, in percent.
	DefaultNoShows = 30

	maxEmails = 20
	maxEmail  = 254 // characters, RFC 5321 section 4.5.3.1.3
)

// AlertSettings configures an organization's alerts.
type AlertSettings struct {
	Emails    []string    `json:"emails"`
	Endpoints []uuid.UUID `json:"endpoints"` // get events of type "alert"
	Kinds     []AlertKind `json:"kinds"`
	// NoShowPercent is the no-show rate for an alert of the kind no_shows.
	NoShowPercent int `json:"no_show_percent"`
}

// normal returns the settings in their stored form.
func (s AlertSettings) normal() AlertSettings {
	for i, email := range s.Emails {
		s.Emails[i] = strings.TrimSpace(email)
	}
	s.Emails = slices.Compact(slices.Sorted(slices.Values(s.Emails)))
	s.Endpoints = slices.Compact(slices.SortedFunc(slices.Values(s.Endpoints),
		func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }))
	s.Kinds = slices.Compact(slices.Sorted(slices.Values(s.Kinds)))
	if s.NoShowPercent == 0 {
		s.NoShowPercent = DefaultNoShows
	}
	return s
}

// problems lists the problems with the settings; endpoints are the organization's.
func (s AlertSettings) problems(endpoints []pgwebhook.Endpoint, hasMail bool) (list invalid.List) {
	if len(s.Emails) > 0 && !hasMail {
		list.Add("emails", "cannot be used: this server cannot send mail until its operator sets --smtp")
	}
	if len(s.Emails) > maxEmails {
		list.Add("emails", fmt.Sprintf("must be at most %d", maxEmails))
	}
	for _, email := range s.Emails {
		if !isEmail(email) {
			list.Add("emails", fmt.Sprintf("%.60q is not an e-mail address", email))
		}
	}
	for _, id := range s.Endpoints {
		if !slices.ContainsFunc(endpoints, func(e pgwebhook.Endpoint) bool { return e.ID == id }) {
			list.Add("endpoints", "unknown webhook "+id.String())
		}
	}
	for _, k := range s.Kinds {
		if !isAlert(k) {
			list.Add("kinds", fmt.Sprintf("%.40q is not a kind of alert", k))
		}
	}
	if s.NoShowPercent < 1 || s.NoShowPercent > 100 {
		list.Add("no_show_percent", "must be from 1 to 100")
	}
	return list
}

// isEmail reports whether a text is a bare e-mail address.
func isEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Name == "" && a.Address == text && len(text) <= maxEmail && isText(text)
}

// Alerts manages alert settings, and sends alerts.
type Alerts struct {
	store     *pgwebhook.AlertSettings
	endpoints *pgwebhook.Endpoints
	rooms     *room.Rooms
	listeners *listeners
	outbox    *outbox
	activity  *recorder
	hasMail   bool // the server can send mail
	now       func() time.Time
}

// HasMail reports whether the server can send alerts by mail.
func (as *Alerts) HasMail() bool { return as.hasMail }

// Settings returns the alert settings of the actor's organization. By default there are no
// recipients, and all kinds are enabled. It returns account.ErrForbidden.
func (as *Alerts) Settings(ctx context.Context, a account.Actor) (AlertSettings, error) {
	if err := mayOperate(a); err != nil {
		return AlertSettings{}, err
	}
	row, err := as.store.Get(ctx, a.Org)
	if errors.Is(err, pgwebhook.ErrNotFound) {
		return AlertSettings{Emails: []string{}, Endpoints: []uuid.UUID{}, Kinds: AlertKinds(),
			NoShowPercent: DefaultNoShows}, nil
	}
	if err != nil {
		return AlertSettings{}, err
	}
	s := AlertSettings{Emails: row.Emails, Endpoints: row.Endpoints, Kinds: []AlertKind{}, NoShowPercent: row.NoShows}
	for _, k := range row.Kinds {
		s.Kinds = append(s.Kinds, AlertKind(k))
	}
	return s, nil
}

// SetSettings stores the alert settings. It returns account.ErrForbidden or an [*invalid.Error].
func (as *Alerts) SetSettings(ctx context.Context, a account.Actor, s AlertSettings) error {
	if err := mayOperate(a); err != nil {
		return err
	}
	endpoints, err := as.endpoints.List(ctx, a.Org)
	if err != nil {
		return err
	}
	s = s.normal()
	if err := s.problems(endpoints, as.hasMail).Err(); err != nil {
		return err
	}
	row := pgwebhook.Alerts{Org: a.Org, Emails: append([]string{}, s.Emails...),
		Endpoints: append([]uuid.UUID{}, s.Endpoints...), Kinds: []string{}, NoShows: s.NoShowPercent, Since: as.now()}
	for _, k := range s.Kinds {
		row.Kinds = append(row.Kinds, string(k))
	}
	if len(row.Emails)+len(row.Endpoints) == 0 && s.isDefault() {
		err = as.store.Delete(ctx, a.Org) // without recipients, rooms need not be followed
	} else {
		err = as.store.Set(ctx, row)
	}
	if err != nil {
		return err
	}
	as.listeners.signal()
	return as.activity.record(ctx, a, "alerts.changed", "", map[string]any{"emails": len(s.Emails),
		"endpoints": len(s.Endpoints), "kinds": s.Kinds})
}

// isDefault reports whether the settings are the defaults, apart from recipients.
func (s AlertSettings) isDefault() bool {
	return s.NoShowPercent == DefaultNoShows && len(s.Kinds) == len(AlertKinds())
}

// NoShowPercent returns an organization's no-show rate for an alert, up to a second old.
func (as *Alerts) NoShowPercent(org uuid.UUID) int {
	if o := as.listeners.known()[org]; o != nil && o.alerts.NoShows > 0 {
		return o.alerts.NoShows
	}
	return DefaultNoShows
}

// Wants reports whether an organization has recipients for a kind of alert, up to a second old.
// Callers need not compute alerts without recipients.
func (as *Alerts) Wants(org uuid.UUID, kind AlertKind) bool {
	o := as.listeners.known()[org]
	return o != nil && o.wants(kind)
}

// Send sends an alert to an organization's recipients for its kind, unless one of the same kind
// and room was sent within [AlertQuiet]. room is a slug or "". text is plain, and says what
// happened and what to do.
func (as *Alerts) Send(ctx context.Context, org uuid.UUID, kind AlertKind, room, text string) error {
	o, err := as.listeners.read(ctx, org)
	if err != nil {
		return err
	}
	alert, err := as.build(o, kind, as.whereIs(room), text)
	return as.add(ctx, alert, err)
}

// SendOnce sends an alert that is not about a room, unless one about the same subject was sent
// within [logAge].
func (as *Alerts) SendOnce(ctx context.Context, org uuid.UUID, kind AlertKind, about, text string) error {
	o, err := as.listeners.read(ctx, org)
	if err != nil {
		return err
	}
	alert, err := as.build(o, kind, where{}, text)
	alert.About, alert.Quiet = about, logAge
	return as.add(ctx, alert, err)
}

// add adds an alert to the outbox unless err is set or there are no recipients.
func (as *Alerts) add(ctx context.Context, alert pgwebhook.Alert, err error) error {
	if err != nil || len(alert.Deliveries) == 0 {
		return err
	}
	return as.outbox.add(ctx, pgwebhook.Outgoing{Alerts: []pgwebhook.Alert{alert}})
}

// Test sends a test to all recipients, at most once a minute. It returns account.ErrForbidden,
// or account.ErrNotFound if there are no recipients.
func (as *Alerts) Test(ctx context.Context, a account.Actor) error {
	if err := mayOperate(a); err != nil {
		return err
	}
	o, err := as.listeners.read(ctx, a.Org)
	if err != nil {
		return err
	}
	alert, err := as.build(o, alertTest, where{}, "This is a test of the alerts, requested by "+a.Name+
		". No action is needed.")
	if err != nil {
		return err
	}
	if len(alert.Deliveries) == 0 {
		return account.ErrNotFound
	}
	alert.Quiet = time.Minute
	if err := as.outbox.add(ctx, pgwebhook.Outgoing{Alerts: []pgwebhook.Alert{alert}}); err != nil {
		return err
	}
	return as.activity.record(ctx, a, "alerts.tested", "", nil)
}

// whereIs describes the room with a slug; "" means none.
func (as *Alerts) whereIs(slug string) where {
	if slug == "" {
		return where{}
	}
	for _, r := range as.rooms.Loaded() {
		if r.Slug == slug {
			return where{slug, r.URL, r.Owner.RehearsalOf != nil}
		}
	}
	return where{Room: slug, URL: as.rooms.PublicURL + "/r/" + slug}
}

// build returns an alert with its deliveries, none if it has no recipients.
func (as *Alerts) build(o *listener, kind AlertKind, w where, text string) (alert pgwebhook.Alert, err error) {
	alert = pgwebhook.Alert{Org: o.org, Kind: string(kind), About: w.Room, At: as.now(), Quiet: AlertQuiet}
	if kind != alertTest && !o.wants(kind) {
		return alert, nil
	}
	e := event{alertEvent, alert.At.UTC(), alerted{kind, kind.Title(), w.Room, w.URL, w.IsRehearsal, text}}
	add := func(target uuid.UUID, recipient string) error {
		d, err := as.outbox.delivery(o.org, target, recipient, w.Room, &e)
		alert.Deliveries = append(alert.Deliveries, d)
		return err
	}
	for _, email := range o.alerts.Emails {
		err = errors.Join(err, add(pgwebhook.Mail, email))
	}
	for _, endpoint := range o.endpoints {
		if slices.Contains(o.alerts.Endpoints, endpoint.ID) {
			err = errors.Join(err, add(endpoint.ID, endpoint.URL))
		}
	}
	return alert, err
}
