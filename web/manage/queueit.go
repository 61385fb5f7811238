package manage

import (
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
)

// queueItJSON is a room's compatibility with Queue-it connectors.
type queueItJSON struct {
	Enabled    bool   `json:"enabled"`
	CustomerID string `json:"customer_id" doc:"Customer ID of links that open the room."`
	Extend     bool   `json:"extend" doc:"Whether the site's configuration determines how long visitors stay; if not, they stay as long as their passes are valid."`
	WithPass   bool   `json:"with_pass" doc:"Whether visitors get a pass as well."`
}

// queueItInput changes it.
type queueItInput struct {
	CustomerID string `json:"customer_id" need:"true" doc:"Customer ID of links that open the room: 1 to 63 of A-Z, a-z, 0-9 and -."`
	SecretKey  string `json:"secret_key" doc:"Key that signs tokens, the same as in the site's connector: 32 to 200 visible ASCII characters. It is stored sealed and never shown. If it is missing, the previous key stays."`
	Extend     bool   `json:"extend" doc:"Let the site's configuration determine how long visitors stay. Default: they stay as long as their passes are valid."`
	WithPass   bool   `json:"with_pass" doc:"Give visitors a pass as well, for a site that is moving to a Proofline connector."`
}

func (a *API) queueItRoutes() []route {
	const tag, path = "rooms", "rooms/{slug}/queue-it"
	return []route{
		{
			method: http.MethodGet, path: path, scope: account.Read, name: "showQueueIt", tag: tag,
			summary: "Show a room's settings for Queue-it connectors", out: queueItJSON{},
			do: func(c *call) (reply, error) { return queueItOf(a.Control.Room(c, c.actor, c.param("slug"))) },
		},
		{
			method: http.MethodPut, path: path, scope: account.Operate, name: "setQueueIt", tag: tag,
			summary: "Make a room compatible with Queue-it connectors",
			more:    "Admitted visitors are redirected to the target with a queueittoken that KnownUser V3 accepts. web/QUEUE-IT.md describes this.",
			in:      queueItInput{}, example: `{"customer_id": "arena", "secret_key": "a-key-that-nobody-else-knows-of-72-characters-as-those-of-queue-it-are"}`,
			out: queueItJSON{}, do: a.setQueueIt,
		},
		{
			method: http.MethodDelete, path: path, scope: account.Operate, name: "clearQueueIt", tag: tag,
			summary: "End the compatibility with Queue-it connectors, and delete the secret key", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.Control.ClearQueueIt(c, c.actor, c.param("slug")) },
		},
	}
}

func queueItOf(r *room.Room, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	q, ok := r.QueueIt()
	return answer(queueItJSON{ok, q.CustomerID, q.Extend, q.WithPass})
}

func (a *API) setQueueIt(c *call) (reply, error) {
	in, err := decode[queueItInput](c)
	if err != nil {
		return reply{}, err
	}
	q := room.QueueIt{CustomerID: in.CustomerID, Extend: in.Extend, WithPass: in.WithPass}
	return queueItOf(a.Control.SetQueueIt(c, c.actor, c.param("slug"), q, in.SecretKey))
}
