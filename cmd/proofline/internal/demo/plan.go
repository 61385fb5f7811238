package demo

import (
	"math/rand/v2"
	"time"

	"github.com/proofline/proofline/console/simulate"
)

// The timetable of the sale.
const (
	lead     = 3 * time.Second  // from the room's creation to its opening: the proxy starts meanwhile
	early    = 5 * time.Second  // pre-queue, from opening to start
	short    = 2 * time.Second  // length of the windows after the pre-queue
	late     = 8 * time.Second  // from the start to the last arrival
	serving  = 16 * time.Second // for all calls, at the outflow
	margin   = time.Second      // from a freeze to the beacon's round
	claim    = 8 * time.Second
	session  = 10 * time.Minute
	pauseAt  = 5 * time.Second // after the start
	pauseFor = 1500 * time.Millisecond
)

// plan has the times of the sale. Server and visitors share a clock.
type plan struct {
	opens, starts, lastJoin time.Time
	perMinute               int
}

func newPlan(visitors int) plan {
	opens := time.Now().Add(lead).Truncate(time.Millisecond)
	starts := opens.Add(early)
	perMinute := max(1, int(float64(visitors)*float64(time.Minute)/float64(serving)))
	return plan{opens, starts, starts.Add(late), perMinute}
}

// room returns the configuration of the sale's room without the slug.
func (p *plan) room() map[string]any {
	return map[string]any{
		"title": "Demo sale", "signed_return": true, "opens": p.opens, "starts": p.starts,
		"windows": []map[string]any{
			{"from": p.opens, "length": early.String()}, {"from": p.starts, "length": short.String()},
		},
		"outflow": map[string]any{"per_minute": p.perMinute, "max_active": 0},
		"claim":   claim.String(), "session": session.String(), "margin": margin.String(), "quorum": len(witnessNames),
	}
}

// guests draws n visitors, who come soon after the opening, or some time before the start, or after
// it in a crowd that fades.
func (p *plan) guests(n int) []simulate.Guest {
	const atOpening, beforeStart = 0.35, 0.25 // shares of the visitors
	rush := int(atOpening * float64(n))
	list := append(draw(rush, simulate.Arrivals{Shape: simulate.Burst, HalfLife: halfSecond}),
		draw(n-rush, simulate.Arrivals{
			Shape: simulate.Early, Early: beforeStart / (1 - atOpening), HalfLife: 3 * halfSecond,
		})...)
	simulate.Compress(list, simulate.Duration(early), simulate.Duration(late-edge))
	return list
}

const (
	halfSecond = simulate.Duration(500 * time.Millisecond)
	edge       = 50 * time.Millisecond // between the opening and the first arrival
)

// draw draws n visitors who wait, claim at once, and keep their pass.
func draw(n int, a simulate.Arrivals) []simulate.Guest {
	crowd := simulate.Default()
	crowd.Room.Starts = simulate.Duration(early)
	crowd.Visitors, crowd.Bots.Count, crowd.Seed = n, 0, rand.Uint64() //nolint:gosec // arrivals, no secrets
	crowd.Arrivals, crowd.People = a, simulate.People{Reaction: halfSecond / 10}
	list := crowd.Guests()
	for i := range list {
		list[i].Arrives += simulate.Duration(edge)
		list[i].Stay = simulate.Forever
	}
	return list
}
