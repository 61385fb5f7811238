package simulate

import (
	"math"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Result is the result of a simulated sale.
type Result struct {
	Visitors  int `json:"visitors"`  // number of visitors that came, including bots
	Bots      int `json:"bots"`      // number of bots among them
	Operators int `json:"operators"` // number of the bots' operators
	Away      int `json:"away"`      // number of visitors that arrived when the room was closed
	Tickets   int `json:"tickets"`   // number on sale; 0: no limit
	Sold      int `json:"sold"`
	Called    int `json:"called"`
	Admitted  int `json:"admitted"`
	NoShows   int `json:"no_shows"`
	Left      int `json:"left"`    // number of visitors that gave up before their call
	InVain    int `json:"in_vain"` // number of visitors in line when the last ticket was sold, called or not
	Late      int `json:"late"`    // number of visitors that arrived after that
	Windows   int `json:"windows" doc:"Number of windows with arrivals."`

	// Ends is when the last ticket was sold, or all visitors were settled.
	Ends     Duration `json:"ends"`
	SoldOut  bool     `json:"sold_out"`
	Finished bool     `json:"finished"` // false: people were still in line two weeks after the last arrival
	// Idle is the unused share of the published outflow between start and end.
	Idle float64 `json:"idle"`
	Peak int     `json:"peak"` // maximum number of people in line at once
	// Front is the number of first places that groups are compared by: as many as there are tickets, or as were drawn.
	Front int `json:"front"`
	// Order is the share of pairs of places in which the earlier arrival has the earlier place: 1 is
	// strictly first come, first served, 0.5 is one draw for all.
	Order float64 `json:"order"`

	Wait    Wait     `json:"wait"` // waits of called people
	Groups  []Group  `json:"groups"`
	Buckets []Span   `json:"buckets"` // people by time of arrival
	Line    []Moment `json:"line"`    // state of the room over time
}

// Wait summarizes the times from arrival to call; zero if no visitor was called.
type Wait struct {
	Called int      `json:"called"`
	P10    Duration `json:"p10"`
	Median Duration `json:"median"`
	P90    Duration `json:"p90"`
}

// Name is the name of a group.
type Name string

// The groups. Slow and fast people add up to all people, and so do the thirds by arrival. If no
// person is fast, Slow is empty.
const (
	Humans   Name = "people"
	Slow     Name = "slow"
	Fast     Name = "fast"
	Machines Name = "bots"
	First    Name = "early"
	Middle   Name = "middle"
	Last     Name = "late"
)

var names = [...]Name{Humans, Slow, Fast, First, Middle, Last, Machines}

// Group is the result for a group of visitors.
type Group struct {
	Name     Name    `json:"name"`
	Visitors int     `json:"visitors"`
	Sold     int     `json:"sold"`
	Chance   float64 `json:"chance"` // probability that a visitor gets a ticket
	// Advantage is the group's share of the tickets sold divided by its share of the visitors: 1 is
	// the fair share.
	Advantage float64 `json:"advantage"`
	// Turn is the probability of being called before the end, and Head the advantage in calls. The
	// room decides only about turns: visitors that are called have had theirs, whether they show up
	// and buy or not.
	Turn   float64 `json:"turn"`
	Head   float64 `json:"head_start"`
	Wait   Wait    `json:"wait"`   // waits of the called visitors
	Places int     `json:"places"` // number of visitors that joined
	Barred int     `json:"barred"` // number of visitors that the rules refused: they showed nothing, or what was used
	Front  int     `json:"front"`  // number of visitors with one of the first places
	Share  float64 `json:"share"`  // share of the tickets sold
	Cost   Cost    `json:"cost"`
}

// Cost is what the places of a group cost at the door.
type Cost struct {
	Shown int      `json:"shown"` // accounts or codes
	Work  Duration `json:"work"`  // computing time: of people on a phone, of bots on one core
}

// Span is the result for the people that arrived in a span of time.
type Span struct {
	From     Duration `json:"from"`
	To       Duration `json:"to"`
	Visitors int      `json:"visitors"`
	Sold     int      `json:"sold"`
	Chance   float64  `json:"chance"`
	Wait     Wait     `json:"wait"`
}

// Moment is the state of the room at one time.
type Moment struct {
	At       Duration `json:"at"`
	Waiting  int      `json:"waiting"`  // visitors in line and not called
	Called   int      `json:"called"`   // total so far
	Admitted int      `json:"admitted"` // total so far
}

// Group returns a group by name; false if it is empty.
func (r *Result) Group(name Name) (Group, bool) {
	i := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Name == name })
	if i < 0 || r.Groups[i].Visitors == 0 {
		return Group{}, false
	}
	return r.Groups[i], true
}

func (s *sale) result() *Result {
	c := s.state.Counts()
	r := &Result{
		Visitors: len(s.crowd) - s.away, Away: s.away, Tickets: s.plan.Tickets, Sold: s.sold,
		Called: s.called, Admitted: int(c.Admitted), NoShows: int(c.NoShows), Left: int(c.Left),
		Windows: int(c.Windows),
		Ends:    since(s.now), SoldOut: s.soldOut, Peak: s.peak,
	}
	r.Front = len(s.line)
	if s.plan.Tickets > 0 {
		r.Front = min(r.Front, s.plan.Tickets)
	}
	unsettled := int(c.Unsettled()) //nolint:gosec // at most fairness.MaxArrivals
	if r.Finished = s.soldOut || unsettled == 0; s.soldOut {
		r.InVain, r.Late = unsettled, len(s.crowd)-s.next
	}
	if open := s.now - s.plan.Room.Starts.after(); open > 0 {
		most := float64(open) / 60_000 * float64(s.plan.Room.Outflow.PerMinute)
		r.Idle = max(0, 1-float64(r.Admitted)/most)
	}
	s.group(r)
	r.Order = s.order()
	s.timeline(r)
	return r
}

// tally accumulates the result of a group.
type tally struct {
	visitors, sold int
	barred, places int
	waits          []fairness.Millis
	positions      []fairness.Position // of those that are drawn
}

func (t *tally) add(v *visitor) {
	t.visitors++
	switch v.status {
	case barred:
		t.barred++
	case inLine, summoned, admitted, noShow, left:
		t.places++
	case away, refused:
	}
	if v.position > 0 {
		t.positions = append(t.positions, v.position)
	}
	if v.bought {
		t.sold++
	}
	if v.status >= summoned && v.status != left {
		t.waits = append(t.waits, fairness.Millis(v.called-v.arrives))
	}
}

func (t *tally) chance() float64 {
	if t.visitors == 0 {
		return 0
	}
	return float64(t.sold) / float64(t.visitors)
}

func (t *tally) turn() float64 {
	if t.visitors == 0 {
		return 0
	}
	return float64(len(t.waits)) / float64(t.visitors)
}

// front returns how many have one of the first n places.
func (t *tally) front(n int) (count int) {
	for _, p := range t.positions {
		if p <= fairness.Position(n) { //nolint:gosec // not negative
			count++
		}
	}
	return count
}

// wait sorts and summarizes the waits.
func (t *tally) wait() Wait {
	n := len(t.waits)
	if n == 0 {
		return Wait{}
	}
	slices.Sort(t.waits)
	at := func(q float64) Duration {
		return since(fairness.Time(t.waits[int(math.Round(q*float64(n-1)))]))
	}
	return Wait{Called: n, P10: at(0.1), Median: at(0.5), P90: at(0.9)}
}

// group computes the groups, and the people by arrival.
func (s *sale) group(r *Result) {
	var all tally
	groups := map[Name]*tally{}
	for _, name := range names {
		groups[name] = &tally{}
	}
	people := s.people()
	spans := newSpans(people)
	for i, v := range people {
		third := names[3+3*i/len(people)]
		speed := [...]Name{slow: Slow, fast: Fast}[v.kind]
		for _, name := range []Name{Humans, speed, third} {
			groups[name].add(v)
		}
		spans.add(v)
	}
	for i := range s.crowd {
		v := &s.crowd[i]
		if v.status == refused {
			continue
		}
		all.add(v)
		if v.kind == bot {
			groups[Machines].add(v)
		}
	}
	if groups[Fast].visitors == 0 {
		groups[Slow] = &tally{}
	}
	for _, name := range names {
		t := groups[name]
		g := Group{Name: name, Visitors: t.visitors, Sold: t.sold, Chance: t.chance(), Wait: t.wait()}
		if all.sold > 0 {
			g.Advantage = g.Chance / all.chance()
			g.Share = float64(t.sold) / float64(all.sold)
		}
		g.Places, g.Barred, g.Front = t.places, t.barred, t.front(r.Front)
		g.Cost = s.plan.Door.cost(name, t.places)
		if len(all.waits) > 0 {
			g.Turn = t.turn()
			g.Head = g.Turn / all.turn()
		}
		r.Groups = append(r.Groups, g)
	}
	r.Bots = groups[Machines].visitors
	r.Operators = s.plan.operators()
	r.Wait = groups[Humans].wait()
	r.Buckets = spans.list()
}

// people returns the human visitors that were not refused, in the order of arrival. It includes those that arrive
// after the last ticket, because the windows determine what being late costs.
func (s *sale) people() []*visitor {
	var list []*visitor
	for i := range s.crowd {
		if v := &s.crowd[i]; v.kind != bot && v.status != refused {
			list = append(list, v)
		}
	}
	return list
}

// order returns the share of pairs of places that are in the order of arrival.
func (s *sale) order() float64 {
	places := make([]fairness.Position, 0, len(s.line))
	for _, n := range s.joined {
		if p := s.crowd[n].position; p > 0 {
			places = append(places, p)
		}
	}
	n := float64(len(places))
	if n < 2 {
		return 1
	}
	return 1 - float64(inversions(places, make([]fairness.Position, len(places))))/(n*(n-1)/2)
}

// inversions sorts a list and returns how many of its pairs were out of order.
func inversions(list, spare []fairness.Position) (n int) {
	if len(list) < 2 {
		return 0
	}
	half := len(list) / 2
	n = inversions(list[:half], spare[:half]) + inversions(list[half:], spare[half:])
	copy(spare, list)
	a, b := spare[:half], spare[half:]
	for i := range list {
		if len(b) == 0 || len(a) > 0 && a[0] < b[0] {
			list[i], a = a[0], a[1:]
		} else {
			n += len(a)
			list[i], b = b[0], b[1:]
		}
	}
	return n
}

// Maximum numbers of reported spans and moments.
const (
	maxSpans   = 40
	maxMoments = 120
)

// steps are the widths that read well.
var steps = []Duration{
	Duration(100 * time.Millisecond), Duration(200 * time.Millisecond), Duration(500 * time.Millisecond),
	Duration(time.Second), Duration(2 * time.Second), Duration(5 * time.Second), Duration(10 * time.Second),
	Duration(15 * time.Second), Duration(30 * time.Second),
	Duration(time.Minute), Duration(2 * time.Minute), Duration(5 * time.Minute), Duration(10 * time.Minute),
	Duration(15 * time.Minute), Duration(30 * time.Minute),
	Duration(time.Hour), Duration(2 * time.Hour), Duration(6 * time.Hour), Duration(12 * time.Hour),
	Duration(24 * time.Hour), Duration(48 * time.Hour), Duration(7 * 24 * time.Hour),
}

// stepFor returns the smallest width with which a number of steps cover a length.
func stepFor(length fairness.Time, most int) fairness.Time {
	for _, d := range steps {
		if d.after()*fairness.Time(most) >= length {
			return d.after()
		}
	}
	return (length + fairness.Time(most) - 1) / fairness.Time(most)
}

// spans groups people by arrival, in steps of one width from the first arrival. The last span also
// includes the few who arrive much later.
type spans struct {
	from, width fairness.Time
	last        fairness.Time // latest arrival
	tallies     []tally
}

func newSpans(people []*visitor) *spans {
	if len(people) == 0 {
		return &spans{}
	}
	first, most := people[0].arrives, people[int(0.95*float64(len(people)-1))].arrives
	width := stepFor(most-first+1, maxSpans-1)
	first -= first % width
	n := int((most-first)/width) + 1
	last := people[len(people)-1].arrives
	if last >= first+fairness.Time(n)*width {
		n++
	}
	return &spans{from: first, width: width, last: last, tallies: make([]tally, n)}
}

func (s *spans) add(v *visitor) {
	s.tallies[min(int((v.arrives-s.from)/s.width), len(s.tallies)-1)].add(v)
}

func (s *spans) list() []Span {
	var list []Span
	for i := range s.tallies {
		t := &s.tallies[i]
		from := s.from + fairness.Time(i)*s.width
		to := from + s.width
		if i == len(s.tallies)-1 {
			to = max(to, s.last+1)
		}
		list = append(list, Span{since(from), since(to), t.visitors, t.sold, t.chance(), t.wait()})
	}
	return list
}

// timeline computes the state of the room over time from the results of the visitors.
func (s *sale) timeline(r *Result) {
	width := stepFor(s.now+1, maxMoments)
	bins := make([]Moment, s.now/width+2)
	bin := func(t fairness.Time) *Moment { return &bins[(t+width-1)/width] }
	for _, n := range s.joined {
		v := &s.crowd[n]
		bin(v.arrives).Waiting++
		gone := v.called
		if v.status == left {
			gone = v.gone
		}
		if v.status == inLine {
			continue
		}
		bin(gone).Waiting--
		if v.status != left {
			bin(gone).Called++
		}
		if v.status == admitted {
			bin(v.gone).Admitted++
		}
	}
	for i := range bins {
		bins[i].At = since(min(fairness.Time(i)*width, s.now))
		if i > 0 {
			bins[i].Waiting += bins[i-1].Waiting
			bins[i].Called += bins[i-1].Called
			bins[i].Admitted += bins[i-1].Admitted
		}
	}
	if bins[len(bins)-2].At == bins[len(bins)-1].At {
		bins = bins[:len(bins)-1]
	}
	r.Line = bins
}
