package manage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/room"
)

// Bounds of simulations: they run on the machine that serves visitors.
const (
	maxSimulating   = 1       // at once
	maxCrowd        = 200_000 // visitors of all runs of a request
	simulateTimeout = 12 * time.Second
)

// simulationJSON is what became of a plan.
type simulationJSON struct {
	Result   *simulate.Result `json:"result"`
	Findings []string         `json:"findings" doc:"What it means, in sentences."`
	// Comparison is empty unless asked for.
	Comparison []simulate.Row `json:"comparison" doc:"The same crowd with windows of other lengths; empty unless asked for."`
}

func (a *API) simulationRoutes() []route {
	return []route{{
		method: http.MethodPost, path: "simulations", scope: account.Read, name: "simulate", tag: "simulations",
		summary: "Try a sale out before it is published",
		more:    fmt.Sprintf("What the plan does not say has defaults. At most %d visitors take part in all runs of a request; `proofline simulate` takes more. The same plan gives the same result everywhere.", maxCrowd),
		query:   []parameter{{name: "compare", about: "Whether windows of other lengths are tried as well: that is as many runs more.", schema: schema{"type": "boolean"}}},
		in:      simulate.Plan{}, example: `{"visitors": 2000, "tickets": 200, "room": {"outflow": {"per_minute": 100}}, "bots": {"count": 100}}`,
		out: simulationJSON{}, do: a.simulate,
	}}
}

func (a *API) simulate(c *call) (reply, error) {
	plan, err := simulate.ParsePlan(c.body)
	if err != nil {
		return reply{}, planProblems(err)
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
		return reply{}, invalid("visitors", fmt.Sprintf("must be at most %d here: run larger plans with proofline simulate", maxCrowd/runs))
	}
	select {
	case a.simulating <- struct{}{}:
		defer func() { <-a.simulating }()
	default:
		return reply{}, ErrSimulating
	}
	ctx, cancel := context.WithTimeout(c, simulateTimeout)
	defer cancel()
	out := simulationJSON{Comparison: []simulate.Row{}}
	var rest simulate.Progress
	if a.Desk.IsServing() {
		rest = desk.Rests()
	}
	if compare {
		if out.Comparison, err = simulate.Compare(ctx, plan, simulate.Lengths(), func(int, int, string) simulate.Progress { return rest }); err != nil {
			return reply{}, planProblems(err)
		}
		out.Result = out.Comparison[0].Result
	} else if out.Result, err = simulate.Run(ctx, plan, rest); err != nil {
		return reply{}, planProblems(err)
	}
	out.Findings = simulate.Findings(&plan, out.Result, out.Comparison)
	return answer(out)
}

// planProblems gives what is wrong with a plan the form of all input.
func planProblems(err error) error {
	if wrong, ok := errors.AsType[*simulate.InvalidError](err); ok {
		return &room.InvalidError{Problems: wrong.Problems}
	}
	return err
}
