package manage

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/web/manage/jsonschema"
)

// maxDeliveries is the maximum page size of the delivery log.
const maxDeliveries = 100

// deliveries serves the delivery log.
type deliveries struct{ deliveries *webhook.Deliveries }

func (a deliveries) routes() []route {
	const tag = "webhooks"
	return []route{
		{
			method: http.MethodGet, path: "deliveries", scope: account.Operate, name: "listDeliveries", tag: tag,
			summary: "List deliveries, newest first; they are kept for 30 days",
			query: append(paged(maxDeliveries),
				parameter{
					name: "webhook", about: "Only deliveries to this webhook; the zero UUID selects mail.",
					schema: schema{"type": "string", "format": "uuid"},
				},
				parameter{
					name: "state", about: "Only deliveries in this state.",
					schema: jsonschema.Enum(webhook.Waiting, webhook.Delivered, webhook.Failed),
				},
				parameter{name: "type", about: "Only events of this type.", schema: schema{"type": "string"}},
				parameter{name: "room", about: "Only events of this room.", schema: schema{"type": "string"}}),
			out: wire.DeliveryList{}, do: a.listDeliveries,
		},
		{
			method: http.MethodGet, path: "deliveries/{delivery}", scope: account.Operate, name: "showDelivery",
			tag:     tag,
			summary: "Show a delivery and all its attempts", out: webhook.DeliveryDetail{},
			do: byID("delivery", func(c *call, id uuid.UUID) (any, error) { return a.deliveries.Get(c, c.actor, id) }),
		},
		{
			method: http.MethodPost, path: "deliveries/{delivery}/redeliver", scope: account.Operate, name: "redeliver",
			tag:     tag,
			summary: "Repeat a delivery", more: "It keeps its ID, and has all retries again.",
			status: http.StatusNoContent, key: keyKept,
			do: onID("delivery", func(c *call, id uuid.UUID) error { return a.deliveries.Redeliver(c, c.actor, id) }),
		},
	}
}

func (a deliveries) listDeliveries(c *call) (reply, error) {
	most, err := c.limit(maxDeliveries)
	if err != nil {
		return reply{}, err
	}
	f := webhook.DeliveryFilter{
		State: webhook.DeliveryState(c.query("state")), Type: webhook.EventKind(c.query("type")), Room: c.query("room"),
		After: c.query("cursor"), Limit: most,
	}
	if text := c.query("webhook"); text != "" {
		id, err := uuid.Parse(text)
		if err != nil {
			return reply{}, invalid.Field("webhook", "must be the id of a webhook")
		}
		f.Endpoint = &id
	}
	page, err := a.deliveries.List(c, c.actor, f)
	if err != nil {
		return reply{}, err
	}
	out := wire.DeliveryList{Deliveries: page.Deliveries, Next: cursorOf(page.Next)}
	return reply{body: out, next: out.Next}, nil
}
