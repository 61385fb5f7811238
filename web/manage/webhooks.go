package manage

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/invalid"
)

type endpointList struct {
	Endpoints []webhook.Endpoint `json:"endpoints"`
}

// madeEndpoint is a new endpoint with its secret.
type madeEndpoint struct {
	webhook.Endpoint
	Secret string `json:"secret" doc:"Secret that signs its deliveries (Standard Webhooks). It is shown once."`
}

type secretJSON struct {
	Secret string `json:"secret" doc:"Secret that signs deliveries from now on; the previous one also signs for 24 hours. It is shown once."`
}

type deliveryList struct {
	Deliveries []webhook.Delivery `json:"deliveries"`
	Next       *string            `json:"next" doc:"Cursor of the next page; null on the last page."`
}

// maxDeliveries is the maximum page size of the delivery log.
const maxDeliveries = 100

func (a *API) webhookRoutes() []route {
	const tag = "webhooks"
	return []route{
		{
			method: http.MethodGet, path: "webhooks", scope: account.Operate, name: "listWebhooks", tag: tag,
			summary: "List the organization's webhooks, oldest first", out: endpointList{}, do: a.listEndpoints,
		},
		{
			method: http.MethodPost, path: "webhooks", scope: account.Operate, name: "createWebhook", tag: tag,
			summary: "Add a webhook", more: "It receives events from now on. console/webhook/EVENTS.md describes events and signatures.",
			in: webhook.EndpointConfig{}, example: `{"url": "https://shop.example.com/hooks/proofline", "events": ["room.ended"], "rooms": [], "description": "The shop"}`,
			out: madeEndpoint{}, status: http.StatusCreated, key: keySecret, do: a.createEndpoint,
		},
		{
			method: http.MethodGet, path: "webhooks/{webhook}", scope: account.Operate, name: "showWebhook", tag: tag,
			summary: "Show a webhook", out: webhook.Endpoint{},
			do: a.byID("webhook", func(c *call, id uuid.UUID) (any, error) { return a.Webhooks.Endpoint(c, c.actor, id) }),
		},
		{
			method: http.MethodPatch, path: "webhooks/{webhook}", scope: account.Operate, name: "changeWebhook", tag: tag,
			summary: "Change a webhook", more: "A disabled webhook receives nothing, and its pending deliveries are dropped.",
			in: webhook.EndpointChange{}, example: `{"description": "The new shop"}`, out: webhook.Endpoint{},
			do: a.byID("webhook", a.changeEndpoint),
		},
		{
			method: http.MethodDelete, path: "webhooks/{webhook}", scope: account.Operate, name: "deleteWebhook", tag: tag,
			summary: "Remove a webhook", more: "The delivery log stays.", status: http.StatusNoContent,
			do: a.onID("webhook", func(c *call, id uuid.UUID) error { return a.Webhooks.DeleteEndpoint(c, c.actor, id) }),
		},
		{
			method: http.MethodPost, path: "webhooks/{webhook}/rotate-secret", scope: account.Operate, name: "rotateWebhookSecret", tag: tag,
			summary: "Rotate the secret of a webhook", out: secretJSON{}, key: keySecret, do: a.byID("webhook", a.rotateSecret),
		},
		{
			method: http.MethodPost, path: "webhooks/{webhook}/ping", scope: account.Operate, name: "pingWebhook", tag: tag,
			summary: "Send a test.ping", out: webhook.Delivery{}, status: http.StatusAccepted, key: keyKept,
			do: a.byID("webhook", func(c *call, id uuid.UUID) (any, error) { return a.Webhooks.Ping(c, c.actor, id) }),
		},
		{
			method: http.MethodGet, path: "deliveries", scope: account.Operate, name: "listDeliveries", tag: tag,
			summary: "List deliveries, newest first; they are kept for 30 days",
			query: append(paged(maxDeliveries),
				parameter{name: "webhook", about: "Only deliveries to this webhook; the zero UUID selects mail.", schema: schema{"type": "string", "format": "uuid"}},
				parameter{name: "state", about: "Only deliveries in this state.", schema: enum(webhook.Waiting, webhook.Delivered, webhook.Failed)},
				parameter{name: "type", about: "Only events of this type.", schema: schema{"type": "string"}},
				parameter{name: "room", about: "Only events of this room.", schema: schema{"type": "string"}}),
			out: deliveryList{}, do: a.listDeliveries,
		},
		{
			method: http.MethodGet, path: "deliveries/{delivery}", scope: account.Operate, name: "showDelivery", tag: tag,
			summary: "Show a delivery and all its attempts", out: webhook.DeliveryDetail{},
			do: a.byID("delivery", func(c *call, id uuid.UUID) (any, error) { return a.Webhooks.Delivery(c, c.actor, id) }),
		},
		{
			method: http.MethodPost, path: "deliveries/{delivery}/redeliver", scope: account.Operate, name: "redeliver", tag: tag,
			summary: "Repeat a delivery", more: "It keeps its ID, and has all retries again.", status: http.StatusNoContent, key: keyKept,
			do: a.onID("delivery", func(c *call, id uuid.UUID) error { return a.Webhooks.Redeliver(c, c.actor, id) }),
		},
	}
}

func (a *API) alertRoutes() []route {
	const tag = "alerts"
	return []route{
		{
			method: http.MethodGet, path: "alerts", scope: account.Operate, name: "showAlerts", tag: tag,
			summary: "Show the recipients of alerts", out: webhook.AlertSettings{}, do: a.showAlerts,
		},
		{
			method: http.MethodPut, path: "alerts", scope: account.Operate, name: "setAlerts", tag: tag,
			summary: "Set the recipients of alerts", in: webhook.AlertSettings{},
			example: `{"emails": [], "endpoints": [], "kinds": ["beacon_late", "no_shows"], "no_show_percent": 30}`, out: webhook.AlertSettings{}, do: a.setAlerts,
		},
		{
			method: http.MethodPost, path: "alerts/test", scope: account.Operate, name: "testAlerts", tag: tag,
			summary: "Send a test alert to all recipients", more: "At most once a minute. 404: there are no recipients.", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.Webhooks.TestAlert(c, c.actor) },
		},
	}
}

// byID returns the handler of an operation on the object whose UUID is in the path. It answers with a
// body.
func (a *API) byID(name string, do func(*call, uuid.UUID) (any, error)) func(*call) (reply, error) {
	return func(c *call) (reply, error) {
		id, err := c.id(name)
		if err != nil {
			return reply{}, err
		}
		body, err := do(c, id)
		if err != nil {
			return reply{}, err
		}
		return answer(body)
	}
}

func (a *API) listEndpoints(c *call) (reply, error) {
	list, err := a.Webhooks.Endpoints(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	return answer(endpointList{list})
}

func (a *API) createEndpoint(c *call) (reply, error) {
	in, err := decode[webhook.EndpointConfig](c)
	if err != nil {
		return reply{}, err
	}
	e, secret, err := a.Webhooks.CreateEndpoint(c, c.actor, in)
	if err != nil {
		return reply{}, err
	}
	return reply{body: madeEndpoint{e, secret}, location: a.location("webhooks", e.ID.String())}, nil
}

func (a *API) changeEndpoint(c *call, id uuid.UUID) (any, error) {
	in, err := decode[webhook.EndpointChange](c)
	if err != nil {
		return nil, err
	}
	return a.Webhooks.UpdateEndpoint(c, c.actor, id, in)
}

func (a *API) rotateSecret(c *call, id uuid.UUID) (any, error) {
	secret, err := a.Webhooks.RotateSecret(c, c.actor, id)
	return secretJSON{secret}, err
}

func (a *API) listDeliveries(c *call) (reply, error) {
	most, err := c.limit(maxDeliveries)
	if err != nil {
		return reply{}, err
	}
	f := webhook.DeliveryFilter{State: webhook.DeliveryState(c.query("state")), Type: webhook.EventKind(c.query("type")), Room: c.query("room"), After: c.query("cursor"), Limit: most}
	if text := c.query("webhook"); text != "" {
		id, err := uuid.Parse(text)
		if err != nil {
			return reply{}, invalid.Field("webhook", "must be the id of a webhook")
		}
		f.Endpoint = &id
	}
	page, err := a.Webhooks.Deliveries(c, c.actor, f)
	if err != nil {
		return reply{}, err
	}
	out := deliveryList{page.Deliveries, cursorOf(page.Next)}
	return reply{body: out, next: out.Next}, nil
}

func (a *API) showAlerts(c *call) (reply, error) {
	s, err := a.Webhooks.Alerts(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	return answer(s)
}

func (a *API) setAlerts(c *call) (reply, error) {
	in, err := decode[webhook.AlertSettings](c)
	if err != nil {
		return reply{}, err
	}
	if err := a.Webhooks.SetAlerts(c, c.actor, in); err != nil {
		return reply{}, err
	}
	return a.showAlerts(c)
}
