package manage

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
)

// Limits of simulations, which run on the machine that serves visitors.
const (
	maxSimulating   = 1       // number of simulations running at once
	maxCrowd        = 200_000 // total visitors of all runs of a request
	simulateTimeout = 12 * time.Second
)

// simulations runs simulations, one at a time.
type simulations struct {
	control *control.Rooms
	running chan struct{} // holds one value per running simulation
}

func newSimulations(r *control.Rooms) simulations {
	return simulations{r, make(chan struct{}, maxSimulating)}
}

func (a simulations) routes() []route {
	return []route{{
		method: http.MethodPost, path: "simulations", scope: account.Read, name: "simulate", tag: "simulations",
		summary: "Simulate a sale before it is published",
		more:    fmt.Sprintf("Missing fields of the plan have defaults. All runs of a request together have at most %d visitors; `proofline simulate` allows more. The same plan always gives the same result.", maxCrowd),
		query: []parameter{{name: "compare",
			about:  "Whether to simulate windows of other lengths as well, each in another run.",
			schema: schema{"type": "boolean"}}},
		in:      simulate.Plan{},
		example: `{"visitors": 2000, "tickets": 200, "room": {"outflow": {"per_minute": 100}}, "bots": {"count": 100}}`,
		out:     wire.Simulation{}, do: a.simulate,
	}}
}

func (a simulations) simulate(c *call) (reply, error) {
	plan, err := simulate.ParsePlan(c.body)
	if err != nil {
		return reply{}, err
	}
	compare, err := c.flag("compare")
	if err != nil {
		return reply{}, err
	}
	runs := 1
	if compare {
		runs += len(simulate.Lengths()) + 1
	}
	if plan.Visitors*runs > maxCrowd {
		return reply{}, invalid.Field("visitors",
			fmt.Sprintf("must be at most %d here: run larger plans with proofline simulate", maxCrowd/runs))
	}
	select {
	case a.running <- struct{}{}:
		defer func() { <-a.running }()
	default:
		return reply{}, ErrSimulating
	}
	ctx, cancel := context.WithTimeout(c, simulateTimeout)
	defer cancel()
	out := wire.Simulation{Comparison: []simulate.Row{}}
	var rest simulate.Progress
	if a.control.IsServing() {
		rest = control.Rests()
	}
	if compare {
		progress := func(int, int, string) simulate.Progress { return rest }
		if out.Comparison, err = simulate.Compare(ctx, plan, simulate.Lengths(), progress); err != nil {
			return reply{}, err
		}
		out.Result = out.Comparison[0].Result
	} else if out.Result, err = simulate.Run(ctx, plan, rest); err != nil {
		return reply{}, err
	}
	out.Findings = simulate.Findings(&plan, out.Result, out.Comparison)
	return answer(out)
}
