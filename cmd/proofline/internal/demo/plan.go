package demo

import (
	"math/rand/v2"
	"time"

	"github.com/proofline/proofline/console/simulate"
)

// The timetable of the sale.
const (
	lead     = 3 * time.Second  // from the room's creation to its opening, while the proxy starts
	early    = 5 * time.Second  // pre-queue, from opening to start
	short    = 2 * time.Second  // length of the windows after the pre-queue
	late     = 8 * time.Second  // from the start to the last arrival
	serving  = 16 * time.Second // time for all calls, which determines the outflow
	margin   = 5 * time.Second  // from a freeze to the beacon's round
	claim    = 8 * time.Second
	session  = 10 * time.Minute
	pauseAt  = 9 * time.Second // from the start to the pause
	pauseFor = 1500 * time.Millisecond
	edge     = 50 * time.Millisecond // from the opening to the first arrival
)

// plan holds the times of the sale. Server and visitors share a clock.
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

// guests draws n visitors, who wait, claim at once and keep their pass. Many arrive at the opening, some before
// the start, and the rest after it, fewer and fewer.
func guests(n int) []simulate.Guest {
	crowd := simulate.Default()
	crowd.Room.Starts, crowd.Visitors, crowd.Seed = simulate.Duration(early), n, rand.Uint64() //nolint:gosec // no secret
	crowd.Bots = simulate.Bots{Count: n * 35 / 100, Latency: simulate.Duration(700 * time.Millisecond)}
	crowd.Arrivals = simulate.Arrivals{Shape: simulate.Early, Early: 0.385,
		HalfLife: simulate.Duration(2 * time.Second)}
	crowd.People = simulate.People{}
	list := crowd.Guests()
	simulate.Compress(list, simulate.Duration(early), simulate.Duration(late-2*edge))
	for i := range list {
		list[i].Claims, list[i].Stay = 0, simulate.Forever
	}
	return list
}
