package webhook

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/outbound"
)

// Limits on endpoints.
const (
	MaxEndpoints   = 20 // maximum number of endpoints per organization
	maxRooms       = 100
	maxDescription = 200 // characters
)

var slugForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Disabled is the reason why an endpoint is disabled.
type Disabled string

// The reasons. An enabled endpoint has none.
const (
	Enabled          Disabled = ""
	DisabledByHand   Disabled = "by hand"
	DisabledGone     Disabled = "gone"     // it responded with 410
	DisabledFailing  Disabled = "failing"  // all attempts failed for three days
	DisabledOverfull Disabled = "overfull" // too many deliveries were waiting
)

// Endpoint is a URL to which an organization's events are sent. Its secret is shown only when it is
// created.
type Endpoint struct {
	ID          uuid.UUID   `json:"id"`
	URL         string      `json:"url"`
	Events      []EventKind `json:"events"` // empty: all
	Rooms       []string    `json:"rooms"`  // slugs; empty: all
	Description string      `json:"description"`
	Enabled     bool        `json:"enabled"`
	Disabled    Disabled    `json:"disabled_reason,omitempty"`
	Created     time.Time   `json:"created_at"`
	// Failures counts the attempts since the last success. The first failed at FailingSince.
	Failures     int        `json:"failures"`
	FailingSince *time.Time `json:"failing_since,omitempty"`
	// FormerUntil is the time until which the previous secret also signs.
	FormerUntil *time.Time `json:"former_secret_until,omitempty"`
}

// EndpointConfig is the configurable part of an endpoint.
type EndpointConfig struct {
	URL         string      `json:"url"`
	Events      []EventKind `json:"events"` // empty: all
	Rooms       []string    `json:"rooms"`  // slugs; empty: all
	Description string      `json:"description"`
}

// EndpointChange lists changes to an endpoint. A nil field stays unchanged.
type EndpointChange struct {
	URL         *string      `json:"url,omitempty"`
	Events      *[]EventKind `json:"events,omitempty"`
	Rooms       *[]string    `json:"rooms,omitempty"`
	Description *string      `json:"description,omitempty"`
	Enabled     *bool        `json:"enabled,omitempty"`
}

// normal returns the configuration in its stored form.
func (c EndpointConfig) normal() EndpointConfig {
	c.URL, c.Description = strings.TrimSpace(c.URL), strings.TrimSpace(c.Description)
	c.Events = slices.Compact(slices.Sorted(slices.Values(c.Events)))
	c.Rooms = slices.Compact(slices.Sorted(slices.Values(c.Rooms)))
	return c
}

// problems lists the problems with a configuration.
func (c EndpointConfig) problems(g outbound.Guard) (list invalid.List) {
	if wrong := checkURL(g, c.URL); wrong != "" {
		list.Add("url", wrong)
	}
	for _, k := range c.Events {
		if !isEvent(k) {
			list.Add("events", fmt.Sprintf("%.40q is not an event", k))
		}
	}
	if len(c.Rooms) > maxRooms {
		list.Add("rooms", fmt.Sprintf("must be at most %d, or empty for all rooms", maxRooms))
	}
	for _, slug := range c.Rooms {
		if !slugForm.MatchString(slug) {
			list.Add("rooms", fmt.Sprintf("%.40q is not the slug of a room", slug))
		}
	}
	if utf8.RuneCountInString(c.Description) > maxDescription || !isText(c.Description) {
		list.Add("description", fmt.Sprintf("must be one line of at most %d characters", maxDescription))
	}
	return list
}

// isText reports whether a text is one printable line.
func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func (c EndpointConfig) check(g outbound.Guard) error {
	return c.problems(g).Err()
}

// Endpoints manages the endpoints of organizations.
type Endpoints struct {
	store     *pgwebhook.Endpoints
	listeners *listeners
	outbox    *outbox
	signer    *signer
	alerts    *Alerts
	activity  *recorder
	guard     outbound.Guard
	random    io.Reader
	now       func() time.Time
	log       *slog.Logger
}

// Create adds an endpoint and returns the secret that signs its deliveries, which is shown
// only once. The endpoint gets events from now on. It returns account.ErrForbidden, an
// [*invalid.Error] or [*account.LimitError].
func (es *Endpoints) Create(ctx context.Context, a account.Actor, c EndpointConfig) (Endpoint, string, error) {
	if err := mayOperate(a); err != nil {
		return Endpoint{}, "", err
	}
	c = c.normal()
	if err := c.check(es.guard); err != nil {
		return Endpoint{}, "", err
	}
	id, err := uuid.NewRandomFromReader(es.random)
	if err != nil {
		return Endpoint{}, "", fmt.Errorf("create endpoint: %w", err)
	}
	secret, sealed, err := es.signer.newSecret(id)
	if err != nil {
		return Endpoint{}, "", err
	}
	now := es.now()
	e := pgwebhook.Endpoint{Org: a.Org, ID: id, Secret: sealed, Created: now, Since: now}
	c.on(&e)
	if err := es.store.Insert(ctx, e, MaxEndpoints); err != nil {
		return Endpoint{}, "", mapError(err)
	}
	es.listeners.signal()
	return endpointOf(e), secret, es.activity.record(ctx, a, "webhook.created", siteOf(c.URL),
		map[string]any{"id": id, "events": c.Events, "rooms": c.Rooms})
}

// on copies the configuration to a row.
func (c EndpointConfig) on(e *pgwebhook.Endpoint) {
	e.URL, e.Description, e.Rooms = c.URL, c.Description, append([]string{}, c.Rooms...)
	e.Events = make([]string, len(c.Events))
	for i, k := range c.Events {
		e.Events[i] = string(k)
	}
}

func endpointOf(e pgwebhook.Endpoint) Endpoint {
	return Endpoint{
		ID: e.ID, URL: e.URL, Events: eventsOf(e.Events), Rooms: e.Rooms, Description: e.Description,
		Enabled: e.Disabled == "", Disabled: Disabled(e.Disabled), Created: e.Created.UTC(),
		Failures: e.Failures, FailingSince: e.FailingSince, FormerUntil: e.FormerUntil,
	}
}

func eventsOf(names []string) []EventKind {
	list := make([]EventKind, len(names))
	for i, name := range names {
		list[i] = EventKind(name)
	}
	return list
}

// List returns the endpoints of the actor's organization, oldest first. It returns
// account.ErrForbidden.
func (es *Endpoints) List(ctx context.Context, a account.Actor) ([]Endpoint, error) {
	if err := mayOperate(a); err != nil {
		return nil, err
	}
	rows, err := es.store.List(ctx, a.Org)
	list := make([]Endpoint, len(rows))
	for i, e := range rows {
		list[i] = endpointOf(e)
	}
	return list, err
}

// Get returns one endpoint. It returns account.ErrForbidden or account.ErrNotFound.
func (es *Endpoints) Get(ctx context.Context, a account.Actor, id uuid.UUID) (Endpoint, error) {
	if err := mayOperate(a); err != nil {
		return Endpoint{}, err
	}
	e, err := es.store.Get(ctx, a.Org, id)
	if err != nil {
		return Endpoint{}, mapError(err)
	}
	return endpointOf(e), nil
}

// Update changes an endpoint. A disabled endpoint gets no events, and its waiting
// deliveries are given up. An endpoint that is enabled again gets events from now on. It returns
// account.ErrForbidden, account.ErrNotFound or an [*invalid.Error].
func (es *Endpoints) Update(ctx context.Context, a account.Actor, id uuid.UUID, c EndpointChange) (Endpoint, error) {
	if err := mayOperate(a); err != nil {
		return Endpoint{}, err
	}
	e, err := es.store.Update(ctx, a.Org, id, func(e *pgwebhook.Endpoint) error {
		changed := c.of(*e).normal()
		if err := changed.check(es.guard); err != nil {
			return err
		}
		changed.on(e)
		es.enable(e, c.Enabled)
		return nil
	})
	if err != nil {
		return Endpoint{}, mapError(err)
	}
	es.listeners.signal()
	return endpointOf(e), es.activity.record(ctx, a, "webhook.changed", siteOf(e.URL),
		map[string]any{"id": id, "enabled": e.Disabled == "", "events": e.Events, "rooms": e.Rooms})
}

// of applies the change to the configuration of a row.
func (c EndpointChange) of(e pgwebhook.Endpoint) EndpointConfig {
	config := EndpointConfig{e.URL, eventsOf(e.Events), e.Rooms, e.Description}
	if c.URL != nil {
		config.URL = *c.URL
	}
	if c.Events != nil {
		config.Events = *c.Events
	}
	if c.Rooms != nil {
		config.Rooms = *c.Rooms
	}
	if c.Description != nil {
		config.Description = *c.Description
	}
	return config
}

// enable enables or disables an endpoint at the request of an operator; nil leaves it unchanged.
func (es *Endpoints) enable(e *pgwebhook.Endpoint, enabled *bool) {
	switch {
	case enabled == nil || *enabled == (e.Disabled == ""):
	case *enabled:
		e.Disabled, e.Since, e.Failures, e.FailingSince = "", es.now(), 0, nil
	default:
		e.Disabled = string(DisabledByHand)
	}
}

// Delete deletes an endpoint. Its delivery log stays. It returns account.ErrForbidden or
// account.ErrNotFound.
func (es *Endpoints) Delete(ctx context.Context, a account.Actor, id uuid.UUID) error {
	if err := mayOperate(a); err != nil {
		return err
	}
	e, err := es.store.Get(ctx, a.Org, id)
	if err == nil {
		err = es.store.Delete(ctx, a.Org, id)
	}
	if err != nil {
		return mapError(err)
	}
	return es.activity.record(ctx, a, "webhook.deleted", siteOf(e.URL), map[string]any{"id": id})
}

// RotateSecret replaces the secret of an endpoint and returns the new one, which is shown only
// once. The previous secret also signs for 24 hours. It returns account.ErrForbidden or
// account.ErrNotFound.
func (es *Endpoints) RotateSecret(ctx context.Context, a account.Actor, id uuid.UUID) (string, error) {
	if err := mayOperate(a); err != nil {
		return "", err
	}
	secret, sealed, err := es.signer.newSecret(id)
	if err != nil {
		return "", err
	}
	until := es.now().Add(rotationOverlap)
	e, err := es.store.Update(ctx, a.Org, id, func(e *pgwebhook.Endpoint) error {
		e.Former, e.FormerUntil, e.Secret = e.Secret, &until, sealed
		return nil
	})
	if err != nil {
		return "", mapError(err)
	}
	return secret, es.activity.record(ctx, a, "webhook.rotated", siteOf(e.URL), map[string]any{"id": id})
}

// Ping sends a test.ping and returns its delivery. It returns account.ErrForbidden,
// account.ErrNotFound or [ErrDisabled].
func (es *Endpoints) Ping(ctx context.Context, a account.Actor, id uuid.UUID) (Delivery, error) {
	if err := mayOperate(a); err != nil {
		return Delivery{}, err
	}
	e, err := es.store.Get(ctx, a.Org, id)
	if err != nil {
		return Delivery{}, mapError(err)
	}
	if e.Disabled != "" {
		return Delivery{}, ErrDisabled
	}
	test := event{TestPing, es.now().UTC(), ping{"A test from Proofline, requested by " + a.Name + "."}}
	d, err := es.outbox.delivery(e.Org, e.ID, e.URL, "", &test)
	if err != nil {
		return Delivery{}, err
	}
	if err := es.outbox.add(ctx, pgwebhook.Outgoing{Deliveries: []pgwebhook.Delivery{d}}); err != nil {
		return Delivery{}, err
	}
	d.State, d.Due = string(Waiting), &d.Created
	return deliveryOf(d), es.activity.record(ctx, a, "webhook.tested", siteOf(e.URL), map[string]any{"id": id})
}

// disable disables a failing endpoint, and alerts its organization once.
func (es *Endpoints) disable(ctx context.Context, org, id uuid.UUID, why Disabled) error {
	isNew := false
	e, err := es.store.Update(ctx, org, id, func(e *pgwebhook.Endpoint) error {
		if isNew = e.Disabled == ""; isNew {
			e.Disabled = string(why)
		}
		return nil
	})
	if err != nil || !isNew {
		return mapError(err)
	}
	es.log.Warn("webhook disabled", "endpoint", id, "why", string(why))
	return es.alerts.Send(ctx, org, AlertEndpointDisabled, "", disabledTexts[why]+"\n\n"+e.URL)
}

var disabledTexts = map[Disabled]string{
	DisabledGone: "The webhook below was disabled because it responded with 410 Gone. " +
		"It gets no more events.",
	DisabledFailing: "The webhook below was disabled because all deliveries failed for three days. " +
		"Enable it when it works again.",
	DisabledOverfull: "The webhook below was disabled because 50,000 deliveries were waiting for it. " +
		"They were given up. Enable it when it can keep up.",
}
