package manage

import (
	"context"
	"net/http"

	"github.com/proofline/proofline/console/account"
)

// clocks confirms the database's clock.
type clocks struct{ rooms clockConfirmer }

// clockConfirmer makes all servers follow the database's clock again.
type clockConfirmer interface {
	ConfirmClock(ctx context.Context) error
}

func (a clocks) routes() []route {
	return []route{{
		method: http.MethodPost, path: "clock/confirm", scope: account.Admin, server: true, name: "confirmClock",
		tag:     "server",
		summary: "Confirm the database's clock after a jump",
		more:    "Only with the server's token. All servers of the database follow that clock within a second; without a jump nothing happens.",
		status:  http.StatusNoContent, key: keyKept,
		do: func(c *call) (reply, error) { return reply{}, a.rooms.ConfirmClock(c) },
	}}
}
