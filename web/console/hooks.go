package console

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
)

// webhookRoutes are those of webhooks and of the log of deliveries.
func (c *Console) webhookRoutes() []route {
	if c.Webhooks == nil {
		return nil
	}
	return []route{
		{GET, "/webhooks", account.Operate, c.listWebhooks},
		{GET, "/webhooks/new", account.Operate, c.newWebhook},
		{POST, "/webhooks/new", account.Operate, c.createWebhook},
		{GET, "/webhooks/deliveries", account.Operate, c.listDeliveries},
		{GET, "/webhooks/deliveries/:delivery", account.Operate, c.showDelivery},
		{POST, "/webhooks/deliveries/:delivery/redeliver", account.Operate, c.redeliver},
		{GET, "/webhooks/:id", account.Operate, c.showWebhook},
		{POST, "/webhooks/:id", account.Operate, c.changeWebhook},
		{POST, "/webhooks/:id/enable", account.Operate, c.enableWebhook},
		{POST, "/webhooks/:id/disable", account.Operate, c.disableWebhook},
		{POST, "/webhooks/:id/rotate", account.Operate, c.rotateWebhook},
		{POST, "/webhooks/:id/test", account.Operate, c.testWebhook},
		{POST, "/webhooks/:id/delete", account.Operate, c.deleteWebhook},
	}
}

// eventWords say when an event comes.
var eventWords = map[webhook.EventKind]string{
	webhook.RoomOpened: "people can join", webhook.WindowDrawn: "places are drawn", webhook.RoomCalled: "people may go in",
	webhook.Admitted: "people went in, with their tickets", webhook.RoomPaused: "calls are paused, or claims frozen", webhook.RoomResumed: "calls go on",
	webhook.RoomAmended: "outflow, message or windows changed", webhook.Revoked: "places were taken away", webhook.RoomEnded: "the room is over",
	webhook.GateOpened: "the site lets people in without waiting", webhook.GateShut: "they wait in line again", webhook.FailOpen: "a connector could not reach the room, and let everybody in",
	webhook.BeaconLate: "a draw has waited for 30 seconds", webhook.ForkSeen: "a server or a witness has seen another history",
}

// disabledWords say why nothing is sent.
var disabledWords = map[webhook.Disabled]string{
	webhook.DisabledByHand:   "It was disabled by hand.",
	webhook.DisabledGone:     "It answered that it is gone (410).",
	webhook.DisabledFailing:  "Nothing that was sent to it succeeded for three days.",
	webhook.DisabledOverfull: "50,000 deliveries waited for it.",
}

// choice is a box that can be ticked.
type choice struct {
	Name, Hint string
	Chosen     bool
}

// webhookForm is what the form of a webhook shows.
type webhookForm struct {
	URL, Description, Rooms string
	Events                  []choice
}

// formOf shows a webhook in a form.
func formOf(e webhook.EndpointConfig) webhookForm {
	f := webhookForm{URL: e.URL, Description: e.Description, Rooms: strings.Join(e.Rooms, ", ")}
	for _, k := range webhook.EventKinds() {
		f.Events = append(f.Events, choice{string(k), eventWords[k], slices.Contains(e.Events, k)})
	}
	return f
}

// webhook reads the form.
func (x *request) webhook() webhook.EndpointConfig {
	c := webhook.EndpointConfig{URL: x.form("url"), Description: x.form("description"), Events: []webhook.EventKind{}}
	for _, name := range x.Request().PostForm["event"] {
		c.Events = append(c.Events, webhook.EventKind(name))
	}
	c.Rooms = strings.FieldsFunc(x.form("rooms"), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' })
	return c
}

func (c *Console) listWebhooks(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	list, err := c.Webhooks.Endpoints(ctx, x.Actor)
	if err != nil {
		return err
	}
	return x.page("webhooks", list)
}

func (c *Console) newWebhook(x *request) error {
	return x.page("webhook-new", formOf(webhook.EndpointConfig{}))
}

func (c *Console) createWebhook(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	config := x.webhook()
	e, secret, err := c.Webhooks.CreateEndpoint(ctx, x.Actor, config)
	if account.IsLimit(err) {
		err = invalid.Field("", sentence(err))
	}
	if err != nil {
		return x.invalid("webhook-new", formOf(config), err)
	}
	return x.page("webhook-secret", shownSecret{e, secret, false})
}

// shownSecret shows a secret, this once.
type shownSecret struct {
	webhook.Endpoint
	Secret  string
	Rotated bool
}

// webhookPage is what the page of a webhook shows.
type webhookPage struct {
	webhook.Endpoint
	Why    string // nothing is sent
	Form   webhookForm
	Latest []webhook.Delivery
}

// latestShown is how many deliveries the page of a webhook shows.
const latestShown = 10

func (x *request) webhookPage(ctx context.Context, id uuid.UUID) (p webhookPage, err error) {
	if p.Endpoint, err = x.console.Webhooks.Endpoint(ctx, x.Actor, id); err != nil {
		return p, err
	}
	latest, err := x.console.Webhooks.Deliveries(ctx, x.Actor, webhook.DeliveryFilter{Endpoint: &id, Limit: latestShown})
	p.Latest, p.Why = latest.Deliveries, disabledWords[p.Disabled]
	p.Form = formOf(webhook.EndpointConfig{URL: p.URL, Events: p.Events, Rooms: p.Rooms, Description: p.Description})
	return p, err
}

// onWebhook does something with the webhook of the path.
func (x *request) onWebhook(do func(ctx context.Context, id uuid.UUID) error) error {
	ctx, stop := x.wait()
	defer stop()
	id, err := x.id()
	if err != nil {
		return err
	}
	return do(ctx, id)
}

func (c *Console) showWebhook(x *request) error {
	return x.onWebhook(func(ctx context.Context, id uuid.UUID) error {
		page, err := x.webhookPage(ctx, id)
		if err != nil {
			return err
		}
		return x.page("webhook", page)
	})
}

func (c *Console) changeWebhook(x *request) error {
	return x.onWebhook(func(ctx context.Context, id uuid.UUID) error {
		f := x.webhook()
		_, err := c.Webhooks.UpdateEndpoint(ctx, x.Actor, id, webhook.EndpointChange{URL: &f.URL, Events: &f.Events, Rooms: &f.Rooms, Description: &f.Description})
		if err == nil {
			return x.done("/webhooks/"+id.String(), "webhook-saved")
		}
		if _, ok := errors.AsType[*invalid.Error](err); !ok {
			return err
		}
		page, wrong := x.webhookPage(ctx, id)
		if wrong != nil {
			return wrong
		}
		page.Form = formOf(f)
		return x.invalid("webhook", page, err)
	})
}

func (c *Console) enableWebhook(x *request) error {
	return x.setWebhook(true, "webhook-enabled")
}

func (c *Console) disableWebhook(x *request) error {
	if !x.isConfirmed() {
		return x.confirm(plainQuestion("Disable this webhook?", "Disable", "Events that wait for delivery are dropped."), "/webhooks/"+x.Param("id"))
	}
	return x.setWebhook(false, "webhook-disabled")
}

func (x *request) setWebhook(enabled bool, notice string) error {
	return x.onWebhook(func(ctx context.Context, id uuid.UUID) error {
		if _, err := x.console.Webhooks.UpdateEndpoint(ctx, x.Actor, id, webhook.EndpointChange{Enabled: &enabled}); err != nil {
			return err
		}
		return x.done("/webhooks/"+id.String(), notice)
	})
}

func (c *Console) rotateWebhook(x *request) error {
	if !x.isConfirmed() {
		return x.confirm(plainQuestion("Make a new secret?", "New secret", "For 24 hours deliveries carry two signatures, with the old and the new secret. Then only the new one counts."), "/webhooks/"+x.Param("id"))
	}
	return x.onWebhook(func(ctx context.Context, id uuid.UUID) error {
		secret, err := c.Webhooks.RotateSecret(ctx, x.Actor, id)
		if err != nil {
			return err
		}
		e, err := c.Webhooks.Endpoint(ctx, x.Actor, id)
		if err != nil {
			return err
		}
		return x.page("webhook-secret", shownSecret{e, secret, true})
	})
}

func (c *Console) testWebhook(x *request) error {
	return x.onWebhook(func(ctx context.Context, id uuid.UUID) error {
		d, err := c.Webhooks.Ping(ctx, x.Actor, id)
		if errors.Is(err, webhook.ErrDisabled) {
			return x.done("/webhooks/"+id.String(), "webhook-is-disabled")
		}
		if err != nil {
			return err
		}
		return x.done("/webhooks/deliveries/"+d.ID.String(), "webhook-tested")
	})
}

func (c *Console) deleteWebhook(x *request) error {
	if !x.isConfirmed() {
		return x.confirm(plainQuestion("Delete this webhook?", "Delete", "Events that wait for delivery are dropped. The delivery log stays for 30 days.").Dangerous(), "/webhooks/"+x.Param("id"))
	}
	return x.onWebhook(func(ctx context.Context, id uuid.UUID) error {
		if err := c.Webhooks.DeleteEndpoint(ctx, x.Actor, id); err != nil {
			return err
		}
		return x.done("/webhooks", "webhook-deleted")
	})
}

// deliveriesPage is what the log of deliveries shows.
type deliveriesPage struct {
	webhook.DeliveryPage
	Endpoints []webhook.Endpoint
	Endpoint  string // chosen: an id, "mail" or ""
	State     string
	Room      string
}

// mailTarget stands for all mail in the log's form.
const mailTarget = "mail"

func (c *Console) listDeliveries(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	p := deliveriesPage{Endpoint: x.QueryParam("endpoint"), State: x.QueryParam("state"), Room: strings.TrimSpace(x.QueryParam("room"))}
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
	if p.Endpoints, err = c.Webhooks.Endpoints(ctx, x.Actor); err != nil {
		return err
	}
	if p.DeliveryPage, err = c.Webhooks.Deliveries(ctx, x.Actor, f); err != nil {
		return err
	}
	return x.page("deliveries", p)
}

// deliveryID is the delivery of the path.
func (x *request) deliveryID() (uuid.UUID, error) {
	id, err := uuid.Parse(x.Param("delivery"))
	if err != nil {
		return id, account.ErrNotFound
	}
	return id, nil
}

// deliveryView is a delivery as its page shows it.
type deliveryView struct {
	webhook.DeliveryDetail
	Sent string // the payload, indented
}

func (c *Console) showDelivery(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	id, err := x.deliveryID()
	if err != nil {
		return err
	}
	d, err := c.Webhooks.Delivery(ctx, x.Actor, id)
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, d.Payload, "", "  "); err != nil {
		return err
	}
	return x.page("delivery", deliveryView{d, indented.String()})
}

func (c *Console) redeliver(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	id, err := x.deliveryID()
	if err != nil {
		return err
	}
	page := "/webhooks/deliveries/" + id.String()
	switch err := c.Webhooks.Redeliver(ctx, x.Actor, id); {
	case errors.Is(err, webhook.ErrDisabled):
		return x.done(page, "webhook-is-disabled")
	case err != nil:
		return err
	}
	return x.done(page, "redelivered")
}
