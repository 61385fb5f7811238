package manage

import (
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/quota"
)

// quotas serves what organizations may use.
type quotas struct{ quotas *control.Quotas }

func (a quotas) routes() []route {
	const tag = "organizations"
	return []route{
		{
			method: http.MethodGet, path: "quota", scope: account.Read, name: "showQuota", tag: tag,
			summary: "Show the quota of the organization, and its use", out: wire.QuotaUsage{},
			do: func(c *call) (reply, error) { return shownUsage(a.quotas.Usage(c, c.actor)) },
		},
		{
			method: http.MethodPut, path: "quota", scope: account.Admin, server: true, name: "setQuota", tag: tag,
			summary: "Set the quota of the organization",
			more:    "Only with the server's token. Members that are missing or 0 limit nothing. What exceeds a new quota stays: rooms go on, and visitors keep their places.",
			in:      wire.QuotaInput{}, example: `{"rooms": 20, "waiting": 100000}`, out: wire.QuotaUsage{},
			do: func(c *call) (reply, error) {
				in, err := decode[wire.QuotaInput](c)
				if err != nil {
					return reply{}, err
				}
				for name, most := range map[string]uint64{
					"rooms": in.Rooms, "waiting": in.Waiting, "streams": in.Streams, "entries": in.Entries,
				} {
					if most > wire.MaxQuota {
						return reply{}, invalid.Field(name, "must be at most 1000000000000")
					}
				}
				return shownUsage(a.quotas.Set(c, c.actor, pgroom.Quota(in)))
			},
		},
	}
}

func shownUsage(u quota.Usage, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return answer(wire.QuotaUsage{
		Rooms: wire.Use{Used: u.OpenRooms, Most: u.Rooms}, Waiting: wire.Use{Used: u.InLine, Most: u.Waiting},
		Streams: wire.Use{Used: u.Open, Most: u.Streams}, Entries: wire.Use{Used: u.Stored, Most: u.Entries},
	})
}
