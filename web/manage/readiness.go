package manage

import (
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/ready"
	"github.com/proofline/proofline/internal/wire"
)

// readiness serves what has to be right before a sale.
type readiness struct{ ready *ready.Ready }

func (a readiness) routes() []route {
	if a.ready == nil {
		return nil
	}
	return []route{{
		method: http.MethodGet, path: "ready", scope: account.Operate, name: "checkReady", tag: "server",
		summary: "Check what has to be right before a sale",
		more: "The server's own settings are checked for those who act in the first organization; everyone gets the checks of " +
			"their rooms and of what these need. It takes up to eight seconds.",
		out: wire.Readiness{}, do: a.check,
	}}
}

func (a readiness) check(c *call) (reply, error) {
	checks, err := a.ready.Checks(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := wire.Readiness{State: string(ready.Worst(checks)), Checks: make([]wire.Check, len(checks))}
	for i, found := range checks {
		out.Checks[i] = wire.Check{Name: found.Name, State: string(found.State), Text: found.Text, Do: found.Do}
	}
	return answer(out)
}
