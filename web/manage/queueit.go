package manage

import (
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/queueit"
)

// queueIt serves the compatibility of rooms with Queue-it connectors.
type queueIt struct{ control *control.Rooms }

func (a queueIt) routes() []route {
	const tag, path = "rooms", "rooms/{slug}/queue-it"
	return []route{
		{
			method: http.MethodGet, path: path, scope: account.Read, name: "showQueueIt", tag: tag,
			summary: "Show a room's settings for Queue-it connectors", out: wire.QueueIt{},
			do: func(c *call) (reply, error) { return queueItOf(a.control.Room(c, c.actor, c.param("slug"))) },
		},
		{
			method: http.MethodPut, path: path, scope: account.Operate, name: "setQueueIt", tag: tag,
			summary: "Make a room compatible with Queue-it connectors",
			more:    "Admitted visitors are redirected to the target with a queueittoken that KnownUser V3 accepts. web/QUEUE-IT.md describes this.",
			in:      wire.QueueItInput{},
			example: `{"customer_id": "arena", "secret_key": "a-key-that-nobody-else-knows-of-72-characters-as-those-of-queue-it-are"}`,
			out:     wire.QueueIt{}, do: a.setQueueIt,
		},
		{
			method: http.MethodDelete, path: path, scope: account.Operate, name: "clearQueueIt", tag: tag,
			summary: "End the compatibility with Queue-it connectors, and delete the secret key",
			status:  http.StatusNoContent,
			do: func(c *call) (reply, error) {
				return reply{}, a.control.ClearQueueIt(c, c.actor, c.param("slug"))
			},
		},
	}
}

func queueItOf(r *room.Room, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	q, ok := r.QueueIt.Config()
	return answer(wire.QueueIt{Enabled: ok, CustomerID: q.CustomerID, Extend: q.Extend, WithPass: q.WithPass})
}

func (a queueIt) setQueueIt(c *call) (reply, error) {
	in, err := decode[wire.QueueItInput](c)
	if err != nil {
		return reply{}, err
	}
	q := queueit.Config{CustomerID: in.CustomerID, Extend: in.Extend, WithPass: in.WithPass}
	return queueItOf(a.control.SetQueueIt(c, c.actor, c.param("slug"), q, in.SecretKey))
}
