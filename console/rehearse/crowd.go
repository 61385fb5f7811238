package rehearse

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// Limits on the number of visitors.
const (
	MinVisitors     = 10
	MaxVisitors     = 2_000
	DefaultVisitors = 200
)

// latest is the maximum time from the start to the last arrival. Longer plans are compressed in
// proportion.
const latest = 5 * time.Minute

// maxStay is how long a synthetic visitor stays at the site.
const maxStay = 30 * time.Second

// Plan describes the visitors of a rehearsal.
type Plan struct {
	Visitors int // from [MinVisitors] to [MaxVisitors]; 0: [DefaultVisitors]
	// Crowd sets arrival times, behaviour and the share of bots; its other fields are ignored. nil:
	// half of the visitors arrive before the start, and some leave or do not show up.
	Crowd *simulate.Plan
	// Before is the maximum time between opening and start, and Window the maximum length of a
	// window after it; 0: a minute, and 30 seconds.
	Before, Window time.Duration
	// PerMinute is the number of visitors called a minute, up to [fairness.MaxRate]; 0: as many as in the room.
	PerMinute uint32
	// Script asks for tickets in addition to the visitors, and takes the place of the crowd's bots.
	Script Script
}

func (p Plan) withDefaults() Plan {
	p.Visitors = cmp.Or(p.Visitors, DefaultVisitors)
	p.Before, p.Window = cmp.Or(p.Before, maxBefore), cmp.Or(p.Window, maxWindow)
	return p
}

// problems lists the problems with a plan.
func (p Plan) problems() (list invalid.List) {
	if p.Visitors < MinVisitors || p.Visitors > MaxVisitors {
		list.Add("visitors", "must be between 10 and 2000")
	}
	if p.Before < 0 || p.Before > lasts/2 {
		list.Add("before", "must be between 0s and 15m")
	}
	if p.Window < minWindow || p.Window > lasts/2 {
		list.Add("window", "must be between 100ms and 15m")
	}
	if p.PerMinute > fairness.MaxRate {
		list.Add("per_minute", fmt.Sprintf("must be at most %d", fairness.MaxRate))
	}
	list = append(list, p.Script.problems()...)
	if p.Crowd != nil {
		for _, problem := range p.Crowd.Problems() {
			list.Add("crowd."+problem.Field, problem.Detail)
		}
	}
	return list
}

// crowd returns the sale whose visitors come to a copy. They take the time that the work of its door takes.
func (p *Plan) crowd(c room.Config, e *Entrance) simulate.Plan {
	crowd := simulate.Default()
	crowd.Visitors, crowd.Bots.Count, crowd.Seed = p.Visitors, p.Visitors/20, rand.Uint64()
	crowd.Arrivals.Shape, crowd.Arrivals.HalfLife = simulate.Early, simulate.Duration(15*time.Second)
	crowd.People.Claims, crowd.People.Leave = simulate.Duration(5*time.Second), 0.6
	if given := p.Crowd; given != nil {
		crowd.Arrivals, crowd.People, crowd.Seed = given.Arrivals, given.People, given.Seed
		crowd.Bots = given.Bots
		crowd.Bots.Count = int(int64(given.Bots.Count) * int64(p.Visitors) / int64(given.Visitors))
	}
	if n := p.Script.Tickets; n > 0 {
		crowd.Visitors += n
		crowd.Bots.Count, crowd.Bots.PerOperator = n, n
	}
	crowd.Room, crowd.Door = SimulatedRoom(c), e.Door
	return crowd
}

// guests draws the visitors for a copy.
func (p *Plan) guests(c room.Config, e *Entrance) []simulate.Guest {
	crowd := p.crowd(c, e)
	list := crowd.Guests()
	simulate.Compress(list, crowd.Room.Starts, simulate.Duration(latest))
	for i := range list {
		list[i].Stay = min(list[i].Stay, simulate.Duration(maxStay))
	}
	return list
}
