package manage

import (
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
)

// queueItJSON is how a room speaks to connectors of queue-it.
type queueItJSON struct {
	Enabled    bool   `json:"enabled"`
	CustomerID string `json:"customer_id" doc:"Whose links lead to the room."`
	Extend     bool   `json:"extend" doc:"The site's configuration says how long visitors stay; else they stay as long as their passes are valid."`
	WithPass   bool   `json:"with_pass" doc:"Visitors come with a pass as well."`
}

// queueItInput is how it should.
type queueItInput struct {
	CustomerID string `json:"customer_id" need:"true" doc:"Whose links lead to the room: 1 to 63 of A-Z, a-z, 0-9 and -."`
	SecretKey  string `json:"secret_key" doc:"Signs tokens; the same as in the site's connector, 32 to 200 visible characters of ASCII. It is sealed and never shown. Without it, that of before stays."`
	Extend     bool   `json:"extend" doc:"Leave it to the site's configuration how long visitors stay. Default: they stay as long as their passes are valid."`
	WithPass   bool   `json:"with_pass" doc:"Give visitors a pass as well, for a site that moves to a connector of ours."`
}

func (a *API) queueItRoutes() []route {
	const tag, path = "rooms", "rooms/{slug}/queue-it"
	return []route{
		{
			method: http.MethodGet, path: path, scope: account.Read, name: "showQueueIt", tag: tag,
			summary: "Show how a room speaks to connectors of queue-it", out: queueItJSON{},
			do: func(c *call) (reply, error) { return queueItOf(a.Desk.Room(c, c.actor, c.param("slug"))) },
		},
		{
			method: http.MethodPut, path: path, scope: account.Operate, name: "setQueueIt", tag: tag,
			summary: "Have a room speak to connectors of queue-it",
			more:    "Admitted visitors are led to the target with a queueittoken that KnownUser V3 takes. QUEUE-IT.md in web says what that means.",
			in:      queueItInput{}, example: `{"customer_id": "arena", "secret_key": "a-key-that-nobody-else-knows-of-72-characters-as-those-of-queue-it-are"}`,
			out: queueItJSON{}, do: a.setQueueIt,
		},
		{
			method: http.MethodDelete, path: path, scope: account.Operate, name: "clearQueueIt", tag: tag,
			summary: "End that, and forget the secret key", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.Desk.ClearQueueIt(c, c.actor, c.param("slug")) },
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
	return queueItOf(a.Desk.SetQueueIt(c, c.actor, c.param("slug"), q, in.SecretKey))
}
