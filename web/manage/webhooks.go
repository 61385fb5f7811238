package manage

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/wire"
)

// webhooks serves webhooks.
type webhooks struct {
	endpoints *webhook.Endpoints
	links     links
}

func (a webhooks) routes() []route {
	const tag = "webhooks"
	return []route{
		{
			method: http.MethodGet, path: "webhooks", scope: account.Operate, name: "listWebhooks", tag: tag,
			summary: "List the organization's webhooks, oldest first", out: wire.EndpointList{}, do: a.listEndpoints,
		},
		{
			method: http.MethodPost, path: "webhooks", scope: account.Operate, name: "createWebhook", tag: tag,
			summary: "Add a webhook",
			more:    "It receives events from now on. console/webhook/EVENTS.md describes events and signatures.",
			in:      webhook.EndpointConfig{},
			example: `{"url": "https://shop.example.com/hooks/proofline", "events": ["room.ended"], "rooms": [], "description": "The shop"}`,
			out:     wire.MadeEndpoint{}, status: http.StatusCreated, key: keySecret, do: a.createEndpoint,
		},
		{
			method: http.MethodGet, path: "webhooks/{webhook}", scope: account.Operate, name: "showWebhook", tag: tag,
			summary: "Show a webhook", out: webhook.Endpoint{},
			do: byID("webhook", func(c *call, id uuid.UUID) (any, error) { return a.endpoints.Get(c, c.actor, id) }),
		},
		{
			method: http.MethodPatch, path: "webhooks/{webhook}", scope: account.Operate, name: "changeWebhook",
			tag:     tag,
			summary: "Change a webhook",
			more:    "A disabled webhook receives nothing, and its pending deliveries are dropped.",
			in:      webhook.EndpointChange{}, example: `{"description": "The new shop"}`, out: webhook.Endpoint{},
			do: byID("webhook", a.changeEndpoint),
		},
		{
			method: http.MethodDelete, path: "webhooks/{webhook}", scope: account.Operate, name: "deleteWebhook",
			tag:     tag,
			summary: "Remove a webhook", more: "The delivery log stays.", status: http.StatusNoContent,
			do: onID("webhook", func(c *call, id uuid.UUID) error { return a.endpoints.Delete(c, c.actor, id) }),
		},
		{
			method: http.MethodPost, path: "webhooks/{webhook}/rotate-secret", scope: account.Operate,
			name: "rotateWebhookSecret", tag: tag,
			summary: "Rotate the secret of a webhook", out: wire.Secret{}, key: keySecret,
			do: byID("webhook", a.rotateSecret),
		},
		{
			method: http.MethodPost, path: "webhooks/{webhook}/ping", scope: account.Operate, name: "pingWebhook",
			tag:     tag,
			summary: "Send a test.ping", out: webhook.Delivery{}, status: http.StatusAccepted, key: keyKept,
			do: byID("webhook", func(c *call, id uuid.UUID) (any, error) { return a.endpoints.Ping(c, c.actor, id) }),
		},
	}
}

// alerts serves the recipients of alerts.
type alerts struct{ alerts *webhook.Alerts }

func (a alerts) routes() []route {
	const tag = "alerts"
	return []route{
		{
			method: http.MethodGet, path: "alerts", scope: account.Operate, name: "showAlerts", tag: tag,
			summary: "Show the recipients of alerts", out: webhook.AlertSettings{}, do: a.showAlerts,
		},
		{
			method: http.MethodPut, path: "alerts", scope: account.Operate, name: "setAlerts", tag: tag,
			summary: "Set the recipients of alerts", in: webhook.AlertSettings{},
			example: `{"emails": [], "endpoints": [], "kinds": ["beacon_late", "no_shows"], "no_show_percent": 30}`,
			out:     webhook.AlertSettings{}, do: a.setAlerts,
		},
		{
			method: http.MethodPost, path: "alerts/test", scope: account.Operate, name: "testAlerts", tag: tag,
			summary: "Send a test alert to all recipients",
			more:    "At most once a minute. 404: there are no recipients.", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.alerts.Test(c, c.actor) },
		},
	}
}

func (a webhooks) listEndpoints(c *call) (reply, error) {
	list, err := a.endpoints.List(c, c.actor)
	return reply{body: wire.EndpointList{Endpoints: list}}, err
}

func (a webhooks) createEndpoint(c *call) (reply, error) {
	in, err := decode[webhook.EndpointConfig](c)
	if err != nil {
		return reply{}, err
	}
	e, secret, err := a.endpoints.Create(c, c.actor, in)
	if err != nil {
		return reply{}, err
	}
	body := wire.MadeEndpoint{Endpoint: e, Secret: secret}
	return reply{body: body, location: a.links.to("webhooks", e.ID.String())}, nil
}

func (a webhooks) changeEndpoint(c *call, id uuid.UUID) (any, error) {
	in, err := decode[webhook.EndpointChange](c)
	if err != nil {
		return nil, err
	}
	return a.endpoints.Update(c, c.actor, id, in)
}

func (a webhooks) rotateSecret(c *call, id uuid.UUID) (any, error) {
	secret, err := a.endpoints.RotateSecret(c, c.actor, id)
	return wire.Secret{Secret: secret}, err
}

func (a alerts) showAlerts(c *call) (reply, error) {
	s, err := a.alerts.Settings(c, c.actor)
	return reply{body: s}, err
}

func (a alerts) setAlerts(c *call) (reply, error) {
	in, err := decode[webhook.AlertSettings](c)
	if err != nil {
		return reply{}, err
	}
	if err := a.alerts.SetSettings(c, c.actor, in); err != nil {
		return reply{}, err
	}
	return a.showAlerts(c)
}
