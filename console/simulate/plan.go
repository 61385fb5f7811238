package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
)

// MaxVisitors is the maximum number of visitors of a simulated sale. Each takes about 250 bytes of
// memory.
const MaxVisitors = 2_000_000

// longest is the maximum time of an event after the opening.
const longest = Duration(31 * 24 * time.Hour)

// Plan describes a sale to simulate: the room, the tickets and the crowd.
type Plan struct {
	Room     Room     `json:"room"`
	Visitors int      `json:"visitors"` // number of visitors who join, including bots; 1 to [MaxVisitors]
	Tickets  int      `json:"tickets"`  // number of tickets on sale; 0: no limit
	Arrivals Arrivals `json:"arrivals"`
	People   People   `json:"people"`
	Bots     Bots     `json:"bots"`
	Door     Door     `json:"door"`
	Seed     uint64   `json:"seed"` // seed of the crowd and the draws
}

// Room is the part of a room's policy that determines the line.
type Room struct {
	Starts  Duration     `json:"starts"`           // time at which calls begin
	Closes  *Duration    `json:"closes,omitempty"` // time at which joins end; nil: never
	Windows []WindowRule `json:"windows"`          // empty: one window until Starts, then one per minute
	Slots   Duration     `json:"slots,omitempty"`  // length of the slots that cut the first window; 0: none
	Outflow Outflow      `json:"outflow"`
	Claim   Duration     `json:"claim"`   // time that a called visitor has to claim
	Session Duration     `json:"session"` // lifetime of a pass
	Draw    Duration     `json:"draw"`    // time from the end of a window until its places are known
}

// WindowRule defines windows of one length from a given time on.
type WindowRule struct {
	From   Duration `json:"from"`
	Length Duration `json:"length"`
}

// Outflow limits admissions.
type Outflow struct {
	PerMinute uint32 `json:"per_minute"`
	MaxActive uint32 `json:"max_active"` // 0: no limit
}

// Shape is the distribution of arrivals over time.
type Shape string

// The shapes of a crowd.
const (
	// Burst: a share of the crowd waits for the opening, the rest arrives at a rate that halves with
	// every half-life.
	Burst Shape = "burst"
	// Steady: arrivals have a constant rate for some time.
	Steady Shape = "steady"
	// Early: a share arrives at any time between opening and start, the rest in a burst at the start.
	Early Shape = "early"
	// Recorded: arrivals follow a recording of another sale.
	Recorded Shape = "recorded"
)

// Arrivals describes the arrivals of people.
type Arrivals struct {
	Shape    Shape    `json:"shape"`
	HalfLife Duration `json:"half_life"` // time in which the rate of a burst halves
	Ready    float64  `json:"ready"`     // share of a burst that waits for the opening or start and reacts to it
	Over     Duration `json:"over"`      // duration of a steady stream
	Early    float64  `json:"early"`     // share that arrives before the start
	Buckets  []Bucket `json:"buckets,omitempty"`
}

// Bucket is a number of arrivals from a given time on.
type Bucket struct {
	At    Duration `json:"at"`
	Count int      `json:"count"`
}

// People describes the behaviour of human visitors. Delays are log-normal; the fields give their
// medians.
type People struct {
	Reaction     Duration `json:"reaction"`      // delay after the opening or the start
	Fast         float64  `json:"fast"`          // share of people with a fast connection and quick reactions
	FastReaction Duration `json:"fast_reaction"` // delay of the fast share
	Claims       Duration `json:"claims"`        // delay from the call to the claim
	NoShow       float64  `json:"no_show"`       // share that never claims
	Leave        float64  `json:"leave"`         // share of people in line who give up their place per hour
	Buys         float64  `json:"buys"`          // share of admitted people who buy
	// time from admission until the site releases the pass; 0: lifetime of the pass
	Stay Duration `json:"stay"`
}

// Bots describes the bots, which join at the opening, claim at once, and always buy.
type Bots struct {
	Count       int      `json:"count"`   // number of bots among the visitors
	Latency     Duration `json:"latency"` // median delay of a request, log-normal
	PerOperator int      `json:"per_operator"`
}

// Default returns a sale of 5,000 tickets to 50,000 visitors, 5,000 of them bots, in a room with Proofline's
// defaults and 600 admissions a minute.
func Default() Plan {
	return Plan{
		Room: Room{
			Outflow: Outflow{PerMinute: 600},
			Claim:   Duration(5 * time.Minute), Session: Duration(15 * time.Minute), Draw: Duration(6 * time.Second),
		},
		Visitors: 50_000, Tickets: 5_000,
		Arrivals: Arrivals{Shape: Burst, HalfLife: Duration(time.Minute), Ready: 0.4, Over: Duration(time.Hour),
			Early: 0.5},
		People: People{
			Reaction: Duration(2 * time.Second), Fast: 0.1, FastReaction: Duration(400 * time.Millisecond),
			Claims: Duration(15 * time.Second), NoShow: 0.1, Leave: 0.1, Buys: 0.9, Stay: Duration(4 * time.Minute),
		},
		Bots: Bots{Count: 5_000, Latency: Duration(20 * time.Millisecond), PerOperator: 100},
		Door: defaultDoor(), Seed: 1,
	}
}

// Rules returns the windows of the room, or the default windows.
func (r *Room) Rules() []WindowRule {
	switch {
	case len(r.Windows) > 0:
		return r.Windows
	case r.Starts.millis() < fairness.MinWindow:
		return []WindowRule{{0, Duration(time.Minute)}}
	}
	return []WindowRule{{0, r.Starts}, {r.Starts, Duration(time.Minute)}}
}

// Slotted returns the number of slots of the first window; 1: it has none.
func (r *Room) Slotted() int {
	p := r.policy()
	return p.SlotsIn(0)
}

// policy returns the policy of the room with its door.
func (p *Plan) policy() fairness.Policy {
	policy := p.Room.policy()
	p.Door.methods(&policy)
	return policy
}

// policy converts the room to a fairness policy. The room opens at 0 and has no beacon, because the
// plan states the duration of draws.
func (r *Room) policy() fairness.Policy {
	p := fairness.Policy{
		Origin: "simulation", LogKey: "simulation+", VRFKey: [fairness.PublicKeySize]byte{2},
		Lanes:  []fairness.LaneRule{{Name: fairness.General, Weight: 1}},
		Starts: r.Starts.after(), Closes: fairness.Never, Notice: fairness.MinNotice,
		Outflow: fairness.Outflow(r.Outflow), Claim: r.Claim.millis(), Grace: fairness.MaxGrace,
		Session: r.Session.millis(), Slots: r.Slots.millis(),
	}
	if r.Closes != nil {
		p.Closes = r.Closes.after()
	}
	for _, w := range r.Rules() {
		p.Windows = append(p.Windows, fairness.WindowRule{From: w.From.after(), Length: w.Length.millis()})
	}
	return p
}

// Problems returns all problems of the plan, or nil.
func (p *Plan) Problems() invalid.List {
	var c checks
	c.room(&p.Room)
	c.Check(p.Visitors >= 1 && p.Visitors <= MaxVisitors, "visitors",
		fmt.Sprintf("must be between 1 and %d", MaxVisitors))
	c.Check(p.Tickets >= 0, "tickets", "must be 0 or more; 0 means no limit")
	c.arrivals(&p.Arrivals)
	c.share(p.People.Fast, "people.fast")
	c.share(p.People.NoShow, "people.no_show")
	c.share(p.People.Leave, "people.leave")
	c.share(p.People.Buys, "people.buys")
	c.within(p.People.Reaction, 0, time.Hour, "people.reaction")
	c.within(p.People.FastReaction, 0, time.Hour, "people.fast_reaction")
	c.within(p.People.Claims, 0, 24*time.Hour, "people.claims")
	c.within(p.People.Stay, 0, 24*time.Hour, "people.stay")
	c.Check(p.Bots.Count >= 0 && p.Bots.Count <= p.Visitors, "bots.count",
		"must be between 0 and the number of visitors")
	c.within(p.Bots.Latency, 0, time.Minute, "bots.latency")
	c.Check(p.Bots.PerOperator >= 1, "bots.per_operator", "must be 1 or more")
	c.door(&p.Door)
	return c.List
}

// checks collects the problems of a plan.
type checks struct{ invalid.List }

func (c *checks) share(x float64, field string) {
	c.Check(x >= 0 && x <= 1, field, "must be a share from 0 to 1, such as 0.1 for 10%")
}

func (c *checks) within(d Duration, lo, hi time.Duration, field string) {
	c.Check(time.Duration(d) >= lo && time.Duration(d) <= hi, field,
		fmt.Sprintf("must be between %s and %s", Duration(lo), Duration(hi)))
}

// names reports whether a problem of the field has been found.
func (c *checks) names(field string) bool {
	return slices.ContainsFunc(c.List, func(p invalid.Problem) bool { return p.Field == field })
}

// room validates the policy with the rules of package fairness. Since a plan has no field for the
// opening, problems with times before it are reported for other fields.
func (c *checks) room(r *Room) {
	c.within(r.Starts, 0, time.Duration(longest), "room.starts")
	c.within(r.Draw, 0, time.Hour, "room.draw")
	p := r.policy()
	for _, problem := range p.Problems() {
		switch problem.Field {
		case "windows[0].from":
			problem.Detail = "must be 0s: the first windows begin with the opening"
		case "starts":
			continue // reported by the check of room.starts
		}
		field := "room." + problem.Field
		c.Check(c.names(field), field, problem.Detail)
	}
}

func (c *checks) arrivals(a *Arrivals) {
	shapes := []Shape{Burst, Steady, Early, Recorded}
	c.Check(slices.Contains(shapes, a.Shape), "arrivals.shape", "must be burst, steady, early or recorded")
	c.within(a.HalfLife, time.Millisecond, 24*time.Hour, "arrivals.half_life")
	c.within(a.Over, time.Second, time.Duration(longest), "arrivals.over")
	c.share(a.Ready, "arrivals.ready")
	c.share(a.Early, "arrivals.early")
	if a.Shape != Recorded {
		c.Check(len(a.Buckets) == 0, "arrivals.buckets", `must be empty unless the shape is "recorded"`)
		return
	}
	c.Check(len(a.Buckets) > 0, "arrivals.buckets", `must be a list of {"at": duration, "count": number}`)
	for i, b := range a.Buckets {
		at := fmt.Sprintf("arrivals.buckets[%d]", i)
		ok := b.Count >= 0 && b.Count <= MaxVisitors && b.At >= 0 && b.At <= longest &&
			(i == 0 || b.At > a.Buckets[i-1].At)
		c.Check(ok, at, fmt.Sprintf("must be later than the one before, at most %s after the opening, "+
			"with a count from 0 to %d", longest, MaxVisitors))
		if !ok {
			return
		}
	}
	c.Check(len(a.Buckets) == 0 || total(a.Buckets) > 0, "arrivals.buckets", "must have arrivals")
}
