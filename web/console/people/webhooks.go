package people

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// webhooks serves the pages of webhooks and their delivery log.
type webhooks struct {
	endpoints  *webhook.Endpoints
	deliveries *webhook.Deliveries
}

func (h *webhooks) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/webhooks", account.Operate, h.listWebhooks),
		shell.Get("/webhooks/new", account.Operate, h.newWebhook),
		shell.Post("/webhooks/new", account.Operate, h.createWebhook),
		shell.Get("/webhooks/deliveries", account.Operate, h.listDeliveries),
		shell.Get("/webhooks/deliveries/:delivery", account.Operate, h.showDelivery),
		shell.Post("/webhooks/deliveries/:delivery/redeliver", account.Operate, h.redeliver),
		shell.Get("/webhooks/:id", account.Operate, h.showWebhook),
		shell.Post("/webhooks/:id", account.Operate, h.changeWebhook),
		shell.Post("/webhooks/:id/enable", account.Operate, h.enableWebhook),
		shell.Post("/webhooks/:id/disable", account.Operate, h.disableWebhook),
		shell.Post("/webhooks/:id/rotate", account.Operate, h.rotateWebhook),
		shell.Post("/webhooks/:id/test", account.Operate, h.testWebhook),
		shell.Post("/webhooks/:id/delete", account.Operate, h.deleteWebhook),
	}
}

// eventWords describe when an event is sent.
var eventWords = map[webhook.EventKind]string{
	webhook.RoomOpened: "visitors can join", webhook.WindowDrawn: "places were drawn",
	webhook.RoomCalled:  "visitors were called",
	webhook.Admitted:    "visitors were admitted, with their tickets",
	webhook.RoomPaused:  "calls are paused, or claims frozen",
	webhook.RoomResumed: "calls continue",
	webhook.RoomAmended: "the outflow, the message or the windows changed", webhook.Revoked: "places were revoked",
	webhook.RoomEnded:  "the room has ended",
	webhook.GateOpened: "the site admits visitors without waiting",
	webhook.GateShut:   "the site makes visitors wait in line again",
	webhook.FailOpen:   "a connector could not reach the room and let everyone in",
	webhook.BeaconLate: "a draw has waited for 30 seconds",
	webhook.ForkSeen:   "a server or a witness has seen another history",
}

// disabledWords explain why a webhook is disabled.
var disabledWords = map[webhook.Disabled]string{
	webhook.DisabledByHand:   "It was disabled manually.",
	webhook.DisabledGone:     "Its server answered 410 Gone.",
	webhook.DisabledFailing:  "All deliveries failed for three days.",
	webhook.DisabledOverfull: "It had 50,000 pending deliveries.",
}

// choice is a checkbox.
type choice struct {
	Name, Hint string
	Chosen     bool
}

// webhookForm is the data of the form of a webhook.
type webhookForm struct {
	URL, Description, Rooms string
	Events                  []choice
}

// formOf returns the form of a webhook.
func formOf(e webhook.EndpointConfig) webhookForm {
	f := webhookForm{URL: e.URL, Description: e.Description, Rooms: strings.Join(e.Rooms, ", ")}
	for _, k := range webhook.EventKinds() {
		f.Events = append(f.Events, choice{string(k), eventWords[k], slices.Contains(e.Events, k)})
	}
	return f
}

// webhook reads the form.
func (h *webhooks) webhook(x *shell.Request) webhook.EndpointConfig {
	c := webhook.EndpointConfig{URL: x.Form("url"), Description: x.Form("description"), Events: []webhook.EventKind{}}
	for _, name := range x.Request().PostForm["event"] {
		c.Events = append(c.Events, webhook.EventKind(name))
	}
	c.Rooms = strings.FieldsFunc(x.Form("rooms"),
		func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' })
	return c
}

func (h *webhooks) listWebhooks(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	list, err := h.endpoints.List(ctx, x.Actor)
	if err != nil {
		return err
	}
	return x.Page("webhooks", list)
}

func (h *webhooks) newWebhook(x *shell.Request) error {
	return x.Page("webhook-new", formOf(webhook.EndpointConfig{}))
}

func (h *webhooks) createWebhook(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	config := h.webhook(x)
	e, secret, err := h.endpoints.Create(ctx, x.Actor, config)
	if account.IsLimit(err) {
		err = invalid.Field("", format.Sentence(err))
	}
	if err != nil {
		return x.Invalid("webhook-new", formOf(config), err)
	}
	return x.Page("webhook-secret", shownSecret{e, secret, false})
}

// shownSecret shows a secret once.
type shownSecret struct {
	webhook.Endpoint
	Secret  string
	Rotated bool
}

// webhookPage is the data of the page of a webhook.
type webhookPage struct {
	webhook.Endpoint
	Why    string // why it is disabled; empty: it is not
	Form   webhookForm
	Latest []webhook.Delivery
}

// latestShown is the number of deliveries on the page of a webhook.
const latestShown = 10

func (h *webhooks) webhookPage(ctx context.Context, x *shell.Request, id uuid.UUID) (p webhookPage, err error) {
	if p.Endpoint, err = h.endpoints.Get(ctx, x.Actor, id); err != nil {
		return p, err
	}
	latest, err := h.deliveries.List(ctx, x.Actor, webhook.DeliveryFilter{Endpoint: &id, Limit: latestShown})
	p.Latest, p.Why = latest.Deliveries, disabledWords[p.Disabled]
	p.Form = formOf(webhook.EndpointConfig{URL: p.URL, Events: p.Events, Rooms: p.Rooms, Description: p.Description})
	return p, err
}

// onWebhook calls do with the webhook in the path.
func (h *webhooks) onWebhook(x *shell.Request, do func(ctx context.Context, id uuid.UUID) error) error {
	ctx, stop := x.Wait()
	defer stop()
	id, err := x.ID()
	if err != nil {
		return err
	}
	return do(ctx, id)
}

func (h *webhooks) showWebhook(x *shell.Request) error {
	return h.onWebhook(x, func(ctx context.Context, id uuid.UUID) error {
		page, err := h.webhookPage(ctx, x, id)
		if err != nil {
			return err
		}
		return x.Page("webhook", page)
	})
}

func (h *webhooks) changeWebhook(x *shell.Request) error {
	return h.onWebhook(x, func(ctx context.Context, id uuid.UUID) error {
		f := h.webhook(x)
		_, err := h.endpoints.Update(ctx, x.Actor, id, webhook.EndpointChange{URL: &f.URL, Events: &f.Events,
			Rooms: &f.Rooms, Description: &f.Description})
		if err == nil {
			return x.Done("/webhooks/"+id.String(), "webhook-saved")
		}
		if _, ok := errors.AsType[*invalid.Error](err); !ok {
			return err
		}
		page, wrong := h.webhookPage(ctx, x, id)
		if wrong != nil {
			return wrong
		}
		page.Form = formOf(f)
		return x.Invalid("webhook", page, err)
	})
}

func (h *webhooks) enableWebhook(x *shell.Request) error {
	return h.setWebhook(x, true, "webhook-enabled")
}

func (h *webhooks) disableWebhook(x *shell.Request) error {
	if !x.IsConfirmed() {
		return x.Confirm(shell.Ask("Disable this webhook?", "Disable", "Pending deliveries are dropped."),
			"/webhooks/"+x.Param("id"))
	}
	return h.setWebhook(x, false, "webhook-disabled")
}

func (h *webhooks) setWebhook(x *shell.Request, enabled bool, notice string) error {
	return h.onWebhook(x, func(ctx context.Context, id uuid.UUID) error {
		if _, err := h.endpoints.Update(ctx, x.Actor, id, webhook.EndpointChange{Enabled: &enabled}); err != nil {
			return err
		}
		return x.Done("/webhooks/"+id.String(), notice)
	})
}

func (h *webhooks) rotateWebhook(x *shell.Request) error {
	if !x.IsConfirmed() {
		return x.Confirm(shell.Ask("Create a new secret?", "New secret",
			"For 24 hours, deliveries are signed with both the old and the new secret. "+
				"After that, only with the new one."), "/webhooks/"+x.Param("id"))
	}
	return h.onWebhook(x, func(ctx context.Context, id uuid.UUID) error {
		secret, err := h.endpoints.RotateSecret(ctx, x.Actor, id)
		if err != nil {
			return err
		}
		e, err := h.endpoints.Get(ctx, x.Actor, id)
		if err != nil {
			return err
		}
		return x.Page("webhook-secret", shownSecret{e, secret, true})
	})
}

func (h *webhooks) testWebhook(x *shell.Request) error {
	return h.onWebhook(x, func(ctx context.Context, id uuid.UUID) error {
		d, err := h.endpoints.Ping(ctx, x.Actor, id)
		if errors.Is(err, webhook.ErrDisabled) {
			return x.Done("/webhooks/"+id.String(), "webhook-is-disabled")
		}
		if err != nil {
			return err
		}
		return x.Done("/webhooks/deliveries/"+d.ID.String(), "webhook-tested")
	})
}

func (h *webhooks) deleteWebhook(x *shell.Request) error {
	if !x.IsConfirmed() {
		return x.Confirm(shell.Ask("Delete this webhook?", "Delete",
			"Pending deliveries are dropped. The delivery log stays for 30 days.").Dangerous(),
			"/webhooks/"+x.Param("id"))
	}
	return h.onWebhook(x, func(ctx context.Context, id uuid.UUID) error {
		if err := h.endpoints.Delete(ctx, x.Actor, id); err != nil {
			return err
		}
		return x.Done("/webhooks", "webhook-deleted")
	})
}

// deliveriesPage is the data of the delivery log.
type deliveriesPage struct {
	webhook.DeliveryPage
	Endpoints []webhook.Endpoint
	Endpoint  string // selected endpoint: an id, "mail", or "" for all
	State     string
	Room      string
}

// mailTarget selects all mail.
const mailTarget = "mail"

func (h *webhooks) listDeliveries(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	p := deliveriesPage{Endpoint: x.QueryParam("endpoint"), State: x.QueryParam("state"),
		Room: strings.TrimSpace(x.QueryParam("room"))}
	f := webhook.DeliveryFilter{State: webhook.DeliveryState(p.State), Room: p.Room, After: x.QueryParam("after")}
	switch {
	case p.Endpoint == mailTarget:
		f.Endpoint = &uuid.UUID{}
	case p.Endpoint != "":
		id, err := uuid.Parse(p.Endpoint)
		if err != nil {
			return account.ErrNotFound
		}
		f.Endpoint = &id
	}
	var err error
	if p.Endpoints, err = h.endpoints.List(ctx, x.Actor); err != nil {
		return err
	}
	if p.DeliveryPage, err = h.deliveries.List(ctx, x.Actor, f); err != nil {
		return err
	}
	return x.Page("deliveries", p)
}

// deliveryID returns the id of the delivery in the path.
func deliveryID(x *shell.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(x.Param("delivery"))
	if err != nil {
		return id, account.ErrNotFound
	}
	return id, nil
}

// deliveryView is the data of the page of a delivery.
type deliveryView struct {
	webhook.DeliveryDetail
	Sent string // the payload, indented
}

func (h *webhooks) showDelivery(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	id, err := deliveryID(x)
	if err != nil {
		return err
	}
	d, err := h.deliveries.Get(ctx, x.Actor, id)
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, d.Payload, "", "  "); err != nil {
		return err
	}
	return x.Page("delivery", deliveryView{d, indented.String()})
}

func (h *webhooks) redeliver(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	id, err := deliveryID(x)
	if err != nil {
		return err
	}
	page := "/webhooks/deliveries/" + id.String()
	switch err := h.deliveries.Redeliver(ctx, x.Actor, id); {
	case errors.Is(err, webhook.ErrDisabled):
		return x.Done(page, "webhook-is-disabled")
	case err != nil:
		return err
	}
	return x.Done(page, "redelivered")
}
