package rehearse

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// Bounds of a crowd.
const (
	LeastVisitors   = 10
	MostVisitors    = 2_000
	DefaultVisitors = 200
)

// latest is when the last visitor comes, after the start: those of longer plans
// come in proportion.
const latest = 5 * time.Minute

// mostStay is how long a synthetic visitor keeps a place at the site.
const mostStay = 30 * time.Second

// Plan is who comes to a rehearsal.
type Plan struct {
	Visitors int // from [LeastVisitors] to [MostVisitors]; 0 for [DefaultVisitors]
	// Crowd says when they come, how they behave, and how large a share are
	// bots; its other fields do not matter. nil for people who come half of
	// them before the start, and leave or do not come now and then.
	Crowd *simulate.Plan
	// Before is the most time between opening and start, and Window the
	// longest window after it; 0 for a minute, and 30 seconds.
	Before, Window time.Duration
}

func (p Plan) withDefaults() Plan {
	p.Visitors = cmp.Or(p.Visitors, DefaultVisitors)
	p.Before, p.Window = cmp.Or(p.Before, mostBefore), cmp.Or(p.Window, mostWindow)
	return p
}

// problems lists what is wrong with a plan.
func (p Plan) problems() (list []fairness.Problem) {
	if p.Visitors < LeastVisitors || p.Visitors > MostVisitors {
		list = append(list, fairness.Problem{Field: "visitors", Detail: "must be between 10 and 2000"})
	}
	if p.Before < 0 || p.Before > lasts/2 {
		list = append(list, fairness.Problem{Field: "before", Detail: "must be between 0s and 15m"})
	}
	if p.Window < minWindow || p.Window > lasts/2 {
		list = append(list, fairness.Problem{Field: "window", Detail: "must be between 100ms and 15m"})
	}
	if p.Crowd != nil {
		for _, problem := range p.Crowd.Problems() {
			list = append(list, fairness.Problem{Field: "crowd." + problem.Field, Detail: problem.Detail})
		}
	}
	return list
}

// guests draws who comes to a copy.
func (p Plan) guests(c room.Config) []simulate.Guest {
	crowd := simulate.Default()
	crowd.Visitors, crowd.Bots.Count, crowd.Seed = p.Visitors, p.Visitors/20, rand.Uint64()
	crowd.Arrivals.Shape, crowd.Arrivals.HalfLife = simulate.Early, simulate.Duration(15*time.Second)
	crowd.People.Claims, crowd.People.Leave = simulate.Duration(5*time.Second), 0.6
	if given := p.Crowd; given != nil {
		crowd.Arrivals, crowd.People, crowd.Seed = given.Arrivals, given.People, given.Seed
		crowd.Bots = given.Bots
		crowd.Bots.Count = int(int64(given.Bots.Count) * int64(p.Visitors) / int64(given.Visitors))
	}
	crowd.Room = SimulatedRoom(c)
	list := crowd.Guests()
	starts := crowd.Room.Starts
	most := simulate.Duration(latest)
	last := slices.MaxFunc(list, func(a, b simulate.Guest) int { return cmp.Compare(a.Arrives, b.Arrives) }).Arrives - starts
	for i := range list {
		g := &list[i]
		if g.Arrives > starts && last > most {
			g.Arrives = starts + simulate.Duration(float64(g.Arrives-starts)/float64(last)*float64(most))
		}
		g.Stay = min(g.Stay, simulate.Duration(mostStay))
	}
	return list
}
