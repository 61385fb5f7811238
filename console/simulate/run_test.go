package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
)

// small is a sale in which everything occurs: people who leave, no-shows, people who do not buy, a
// limit of people at the site, a start after the opening, and windows of two lengths.
func small() Plan {
	p := Default()
	p.Visitors, p.Tickets, p.Bots.Count = 2_000, 300, 200
	p.Room.Starts = Duration(time.Minute)
	p.Room.Windows = []WindowRule{{0, Duration(time.Minute)}, {Duration(time.Minute), Duration(10 * time.Second)}}
	p.Room.Outflow = Outflow{PerMinute: 120, MaxActive: 150}
	p.Room.Claim = Duration(20 * time.Second)
	p.Arrivals.Shape = Early
	p.People.Leave = 0.5
	return p
}

// entries runs a plan and returns its entries.
func entries(t *testing.T, p Plan) (*Result, []fairness.Entry) {
	t.Helper()
	var list []fairness.Entry
	var parser fairness.Parser
	observe := func(e fairness.Entry) {
		again, err := parser.Parse(fairness.AppendEntry(nil, e))
		if err != nil {
			t.Fatal(err)
		}
		copied, err := fairness.ParseEntry(fairness.AppendEntry(nil, again)) // the simulation reuses its entries
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, copied)
	}
	if problems := p.Problems(); problems != nil {
		t.Fatal(problems)
	}
	r, err := run(t.Context(), &p, newCrowd(&p), nil, observe)
	if err != nil {
		t.Fatal(err)
	}
	return r, list
}

// TestRules replays the entries of a simulation as an auditor would, and compares the counts.
func TestRules(t *testing.T) {
	t.Parallel()
	p := small()
	r, list := entries(t, p)
	var state fairness.State
	kinds := map[fairness.Kind]int{}
	reasons := map[fairness.Reason]int{}
	for i, e := range list {
		if err := state.Apply(e, &oracle{seed: p.Seed}); err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
		kinds[fairness.KindOf(e)]++
		if skip, ok := e.(*fairness.Skip); ok {
			reasons[skip.Reason]++
		}
	}
	c := state.Counts()
	got := []int{r.Visitors - r.Late, r.Called, r.Admitted, r.NoShows, r.Left, r.Windows, r.InVain}
	want := []int{kinds[fairness.KindArrive], int(c.Called), kinds[fairness.KindAdmit], reasons[fairness.NoShow], reasons[fairness.Left], kinds[fairness.KindFreeze],
		int(c.Arrivals - c.Admitted - c.NoShows - c.Left)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, kind := range []fairness.Kind{fairness.KindRoom, fairness.KindArrive, fairness.KindFreeze, fairness.KindDraw, fairness.KindAssign, fairness.KindCall, fairness.KindAdmit, fairness.KindSkip, fairness.KindEnd} {
		if kinds[kind] == 0 {
			t.Errorf("the sale has no %s entry", kind)
		}
	}
	if reasons[fairness.NoShow] == 0 || reasons[fairness.Left] == 0 || !r.SoldOut || r.Sold != p.Tickets {
		t.Errorf("no-shows, leavers or tickets are missing: %v, sold %d", reasons, r.Sold)
	}
	if state.Now() != r.Ends.after() {
		t.Errorf("ends at %s, and the last entry is of %d", r.Ends, state.Now())
	}
}

// TestTimeline counts the line at every reported moment from the entries.
func TestTimeline(t *testing.T) {
	t.Parallel()
	r, list := entries(t, small())
	var state fairness.State
	var now Moment
	i := 0
	peak, settledBefore := 0, 0
	line := map[fairness.Ticket]bool{} // not called
	var order []fairness.Ticket
	called := 0
	for _, want := range r.Line {
		for ; i < len(list); i++ {
			if at := timeOf(list[i]); at > want.At.after() {
				break
			}
			if err := state.Apply(list[i], &oracle{seed: 1}); err != nil {
				t.Fatal(err)
			}
			switch e := list[i].(type) {
			case *fairness.Arrive:
				line[e.Ticket] = true
			case *fairness.Assign:
				order = append(order, e.Ticket)
			case *fairness.Skip:
				if e.Reason == fairness.Left {
					delete(line, e.Ticket)
				}
			case *fairness.Admit:
				now.Admitted++
			case *fairness.Call:
				for ; called < int(e.Places()); called++ {
					if line[order[called]] {
						now.Called++
					} else {
						settledBefore++
					}
					delete(line, order[called])
				}
			}
			peak = max(peak, len(line))
		}
		now.At, now.Waiting = want.At, len(line)
		if now != want {
			t.Fatalf("at %s: got %+v, want %+v", want.At, want, now)
		}
	}
	if r.Peak != peak || settledBefore == 0 {
		t.Errorf("peak %d, want %d; %d places were given up before their call", r.Peak, peak, settledBefore)
	}
}

// timeOf returns the time of an entry, or 0 if it has none.
func timeOf(e fairness.Entry) fairness.Time {
	switch e := e.(type) {
	case *fairness.Arrive:
		return e.Time
	case *fairness.Freeze:
		return e.Time
	case *fairness.Draw:
		return e.Time
	case *fairness.Call:
		return e.Time
	case *fairness.Admit:
		return e.Time
	case *fairness.Skip:
		return e.Time
	case *fairness.End:
		return e.Time
	}
	return 0
}

// TestMaxActive counts the people at the site, who stay as long as their pass.
func TestMaxActive(t *testing.T) {
	t.Parallel()
	p := small()
	p.Tickets, p.People.Stay, p.Room.Session = 0, 0, Duration(time.Minute)
	p.Room.Outflow = Outflow{PerMinute: 6_000, MaxActive: 70}
	r, list := entries(t, p)
	var admissions []fairness.Time
	most := 0
	for _, e := range list {
		admit, ok := e.(*fairness.Admit)
		if !ok {
			continue
		}
		for len(admissions) > 0 && admissions[0]+60_000 <= admit.Time {
			admissions = admissions[1:]
		}
		admissions = append(admissions, admit.Time)
		most = max(most, len(admissions))
	}
	if most > 70 || most < 60 {
		t.Errorf("at most %d people were at the site at once; the limit is 70", most)
	}
	last := fairness.Time(0)
	for _, e := range list[:len(list)-1] {
		last = max(last, timeOf(e))
	}
	if r.Ends.after() != last {
		t.Errorf("ends at %s, and the last entry before the end is of %d", r.Ends, last)
	}
	if !r.Finished || r.SoldOut || r.Idle < 0.5 {
		t.Errorf("finished %t, sold out %t, idle %f", r.Finished, r.SoldOut, r.Idle)
	}
}

// TestSums checks that groups, spans of arrival and totals agree.
func TestSums(t *testing.T) {
	t.Parallel()
	for _, shape := range []Shape{Burst, Steady, Early} {
		p := small()
		p.Arrivals.Shape = shape
		r, err := Run(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		group := func(n Name) Group { g, _ := r.Group(n); return g }
		people, robots := group(Humans), group(Machines)
		type sums struct{ Visitors, Sold, Called int }
		sum := func(list ...Group) (s sums) {
			for _, g := range list {
				s.Visitors += g.Visitors
				s.Sold += g.Sold
				s.Called += g.Wait.Called
			}
			return s
		}
		want := sum(people)
		var spans sums
		for _, b := range r.Buckets {
			spans.Visitors += b.Visitors
			spans.Sold += b.Sold
			spans.Called += b.Wait.Called
		}
		for what, got := range map[string]sums{
			"speed": sum(group(Slow), group(Fast)), "thirds": sum(group(First), group(Middle), group(Last)), "time of arrival": spans,
		} {
			if got != want {
				t.Errorf("%s: by %s %+v, in all %+v", shape, what, got, want)
			}
		}
		if people.Visitors+robots.Visitors != r.Visitors || people.Sold+robots.Sold != r.Sold || r.Visitors != p.Visitors {
			t.Errorf("%s: people and bots do not add up: %+v %+v %d %d", shape, people, robots, r.Visitors, r.Sold)
		}
		fair := people.Advantage*float64(people.Visitors) + robots.Advantage*float64(robots.Visitors)
		if math.Abs(fair/float64(r.Visitors)-1) > 1e-9 {
			t.Errorf("%s: advantages do not weigh out: %f", shape, fair)
		}
	}
}

// TestWindows checks the simulator's main result: speed wins with short windows, and is worth
// nothing when all visitors are drawn together.
func TestWindows(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Visitors, p.Tickets, p.Bots.Count = 20_000, 4_000, 2_000
	rows, err := Compare(t.Context(), p, Lengths(), nil)
	if err != nil {
		t.Fatal(err)
	}
	edge, order := map[string]float64{}, map[string]float64{}
	for _, row := range rows {
		robots, _ := row.Result.Group(Machines)
		people, _ := row.Result.Group(Humans)
		edge[row.Label], order[row.Label] = robots.Turn/people.Turn, row.Result.Order
		early, _ := row.Result.Group(First)
		late, _ := row.Result.Group(Last)
		if row.Label == "one draw (7 minutes)" && math.Abs(early.Turn/late.Turn-1) > 0.1 {
			t.Errorf("one draw: the early are %f times as likely to be called as the late", early.Turn/late.Turn)
		}
	}
	if e := edge["first come, first served"]; e < 5 || order["first come, first served"] < 0.99 {
		t.Errorf("first come first served: bots %f, order %f", e, order["first come, first served"])
	}
	if !(edge["windows of 1 s"] > edge["windows of 10 s"] && edge["windows of 10 s"] > edge["as planned (1 minute)"]) {
		t.Errorf("longer windows should help bots less: %v", edge)
	}
	if e := edge["one draw (7 minutes)"]; math.Abs(e-1) > 0.12 || math.Abs(order["one draw (7 minutes)"]-0.5) > 0.02 {
		t.Errorf("one draw: bots %f, order %f", e, order["one draw (7 minutes)"])
	}
	if len(rows) != 6 {
		t.Errorf("%d rows; the planned length should not be repeated", len(rows))
	}
}

func TestSameSeed(t *testing.T) {
	t.Parallel()
	text := func(seed uint64) string {
		p := small()
		p.Seed = seed
		r, err := Run(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	one := text(7)
	if one != text(7) {
		t.Error("the same plan gave two results")
	}
	if one == text(8) {
		t.Error("another seed gave the same result")
	}
}

func TestClosedRoom(t *testing.T) {
	t.Parallel()
	p := small()
	closes := Duration(70 * time.Second)
	p.Room.Closes, p.Tickets = &closes, 0
	r, err := Run(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Away == 0 || r.Visitors+r.Away != p.Visitors || !r.Finished || r.Admitted+r.NoShows+r.Left != r.Visitors {
		t.Errorf("%d away, %d visitors, %d admitted, %d no-shows, %d left", r.Away, r.Visitors, r.Admitted, r.NoShows, r.Left)
	}
}

// TestBots runs sales without people and without bots.
func TestBots(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1_000} {
		p := small()
		p.Visitors, p.Bots.Count = 1_000, count
		r, err := Run(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Bots != count || r.Sold != p.Tickets {
			t.Errorf("%d bots, %d sold", r.Bots, r.Sold)
		}
		if list := Findings(&p, r, nil); len(list) < 2 {
			t.Errorf("findings: %q", list)
		}
	}
}

// TestUnfinished simulates an outflow that is too low for its crowd.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	p := small()
	p.Room.Outflow.PerMinute, p.Tickets, p.People.Leave = 1, 0, 0
	p.Visitors, p.Bots.Count = 60_000, 0
	p.Arrivals.Shape, p.People.Stay = Steady, 0
	r, err := Run(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Finished || r.Admitted < 18_000 {
		t.Errorf("finished %t after %s, %d admitted", r.Finished, r.Ends, r.Admitted)
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	_, err := Run(ctx, small(), func(joined, settled, visitors int) {
		if told++; joined > visitors || settled > joined {
			t.Errorf("%d of %d joined, %d through", joined, visitors, settled)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) || told != 1 {
		t.Errorf("got %v after %d reports", err, told)
	}
}

func TestInversions(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		list := make([]fairness.Position, n)
		for i, p := range r.Perm(n) {
			list[i] = fairness.Position(p)
		}
		want := 0
		for i := range list {
			for _, later := range list[i:] {
				if later < list[i] {
					want++
				}
			}
		}
		if got := inversions(list, make([]fairness.Position, n)); got != want {
			t.Errorf("%d places: %d, want %d", n, got, want)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	p := Default()
	p.Visitors, p.Tickets, p.Bots.Count = 100_000, 10_000, 10_000
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Run(b.Context(), p, nil); err != nil {
			b.Fatal(err)
		}
	}
}
