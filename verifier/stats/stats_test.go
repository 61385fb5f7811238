package stats

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

// collect adds entries in their text form.
func collect(t testing.TB, lists Lists, entries [][]byte) *Result {
	t.Helper()
	c := New(lists)
	var parser fairness.Parser
	for _, text := range entries {
		e, err := parser.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Add(e); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	r, err := c.Result()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func small(t testing.TB) *roomtest.Room {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, "honest")
	if err != nil {
		t.Fatal(err)
	}
	r := roomtest.Small(keys, keys.Policy())
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSmallRoomIsDescribed(t *testing.T) {
	r := collect(t, Lists{Own: []fairness.Ticket{roomtest.Ticket(origin, 0), roomtest.Ticket("elsewhere", 0)}}, small(t).Entries())
	const opens = roomtest.Opens
	want := Room{
		Arrivals: 14, Windows: 3, Empty: 4, Draws: 3, Tested: 14, Admissions: 5, NoShows: 2, Left: 1, Revoked: 1,
		Peak:   Moment{Time: opens + 1000, Arrivals: 5},
		Bursts: []Moment{}, LateFreezes: []Window{}, Many: []Window{}, Few: []Window{},
		Amends: 5,
		Amendments: []Amendment{
			{opens - 60_000, fairness.ChangeMessage}, {opens + 67_000, fairness.ChangeOutflow}, {opens + 68_000, FreezeClaims},
			{opens + 69_000, fairness.ChangeResume}, {opens + 75_000, fairness.ChangeWindows},
		},
		Series: Series{From: opens, Step: 1000, Counts: make([]uint64, 108)},
	}
	want.Series.Counts[1], want.Series.Counts[59], want.Series.Counts[62], want.Series.Counts[107] = 5, 3, 2, 4
	if diff := cmp.Diff(want, r.Room); diff != "" {
		t.Errorf("room (-want +got):\n%s", diff)
	}
	if r.Verdict != TooFew || r.Grid != nil || len(r.Power) != 0 {
		t.Errorf("verdict %q, grid %v, power %v", r.Verdict, r.Grid, r.Power)
	}
	if diff := cmp.Diff(&List{Tickets: 2, Arrived: 1, Placed: 1}, r.Own); diff != "" || r.Group != nil {
		t.Errorf("own (-want +got):\n%s\ngroup %v", diff, r.Group)
	}
	for _, test := range r.Tests {
		if test.Made || test.P != 1 || test.Finding == "" {
			t.Errorf("%+v", test)
		}
	}
}

// Every prefix of a transcript has a result, and only windows whose places are all published are tested.
func TestEveryPrefix(t *testing.T) {
	c, room := New(Lists{}), newRoom("prefix", 3, 40, fair)
	var tested uint64
	room.play(func(e fairness.Entry) {
		if err := c.Add(e); err != nil {
			t.Fatal(err)
		}
		r, err := c.Result()
		if err != nil {
			t.Fatal(err)
		}
		if r.Room.Tested%40 != 0 || r.Room.Tested < tested || r.Room.Arrivals < r.Room.Tested {
			t.Fatalf("%d of %d arrivals tested, %d before", r.Room.Tested, r.Room.Arrivals, tested)
		}
		tested = r.Room.Tested
		said := strings.Contains(strings.Join(r.CannotSee, "\n"), "not all places of their windows")
		if said != (r.Room.Arrivals > tested) {
			t.Fatalf("%d of %d arrivals tested, and it says %q", tested, r.Room.Arrivals, r.CannotSee)
		}
	})
	if tested != 120 || len(c.pending) != 0 {
		t.Errorf("%d tested, %d windows kept", tested, len(c.pending))
	}
}

func TestListedTickets(t *testing.T) {
	r := newRoom("lists", 3, 50, fair)
	for seq := range 4 {
		r.lists.Own = append(r.lists.Own, r.ticket(0, seq))
	}
	if got := r.result(t).test(t, testOwn); got.Made || !strings.Contains(got.Finding, "4 of 4 have one") {
		t.Errorf("four tickets: %+v", got)
	}
	r.lists.Own = append(r.lists.Own, r.ticket(1, 1), r.ticket(1, 1))
	result := r.result(t)
	if got := result.test(t, testOwn); !got.Made || result.Own.Tickets != 5 || result.Own.Placed != 5 {
		t.Errorf("five tickets, one twice: %+v, %+v", got, result.Own)
	}
	for w := range 3 {
		for seq := range 50 {
			r.lists.Group = append(r.lists.Group, r.ticket(w, seq))
		}
	}
	if got := r.result(t).test(t, testGroup); got.Made || !strings.Contains(got.Finding, "No other visitor") {
		t.Errorf("all: %+v", got)
	}
}

func TestResultJSON(t *testing.T) {
	r := newRoom("json", 2, 300, fair)
	r.lists.Group = friends(r, 10)
	b, err := json.Marshal(r.result(t))
	if err != nil {
		t.Fatal(err)
	}
	var again Result
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.result(t), &again); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sum := uint64(0)
	for i, row := range again.Grid.Counts {
		if len(row) != again.Grid.Side || len(again.Grid.Expected[i]) != again.Grid.Side {
			t.Fatalf("%+v", again.Grid)
		}
		for _, n := range row {
			sum += n
		}
	}
	if sum != 600 || again.Grid.Arrivals != 600 || strings.Contains(string(b), "null") && again.Own != nil {
		t.Errorf("grid of %d: %+v", sum, again.Grid)
	}
	for _, p := range again.Power {
		if p.Probability < 0 || p.Probability > 1 || math.IsNaN(p.Probability) || p.Cheat == "" || p.Basis == "" {
			t.Errorf("%+v", p)
		}
	}
	if len(again.Power) != 4 {
		t.Errorf("power: %+v", again.Power)
	}
}

// The README for auditors explains every test, and no others.
func TestREADMEExplainsEveryTest(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## Statistics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	tests := newRoom("readme", 1, 1, fair).result(t).Tests
	for _, test := range tests {
		if !strings.Contains(section, "\n| `"+test.ID+"` | ") {
			t.Errorf("README.md lacks test %s", test.ID)
		}
	}
	if n := strings.Count(section, "\n| `"); n != len(tests) {
		t.Errorf("README.md has %d tests, a result %d", n, len(tests))
	}
}

// Entries that no audited room can have are refused permanently.
func TestUnaudited(t *testing.T) {
	p := policy
	arrive := func(w, seq int, ticket uint64) *fairness.Arrive {
		return &fairness.Arrive{Time: p.Opens + fairness.Time(w)*10_000, Window: fairness.WindowIndex(w), Seq: uint32(seq), Ticket: roomtest.Ticket(origin, ticket), Lane: fairness.General}
	}
	assign := func(w int, place, ticket uint64) *fairness.Assign {
		return &fairness.Assign{Window: fairness.WindowIndex(w), Lane: fairness.General, Position: fairness.Position(place), Ticket: roomtest.Ticket(origin, ticket)}
	}
	freeze := func(w int) *fairness.Freeze {
		return &fairness.Freeze{Time: p.Opens + 10_000, Window: fairness.WindowIndex(w)}
	}
	room := &fairness.Room{Policy: p}
	bad := &fairness.Room{Policy: p}
	bad.Outflow.PerMinute = 0
	amend := func(rules ...fairness.WindowRule) *fairness.Amend {
		return &fairness.Amend{Time: p.Opens, Change: fairness.ChangeWindows, Closes: fairness.Never, Windows: rules}
	}
	for name, entries := range map[string][]fairness.Entry{
		"no room":                    {arrive(0, 0, 0)},
		"a second room":              {room, room},
		"a bad policy":               {bad},
		"another window":             {room, &fairness.Arrive{Time: p.Opens, Window: 1}},
		"before opening":             {room, &fairness.Arrive{Time: p.Opens - 1}},
		"a gap":                      {room, arrive(0, 0, 0), arrive(0, 2, 1)},
		"a ticket twice":             {room, arrive(0, 0, 0), arrive(0, 1, 0)},
		"late arrival":               {room, arrive(0, 0, 0), freeze(0), arrive(0, 1, 1)},
		"freeze of nothing":          {room, freeze(0)},
		"frozen twice":               {room, arrive(0, 0, 0), freeze(0), freeze(0)},
		"another freeze":             {room, arrive(0, 0, 0), freeze(1)},
		"place before freeze":        {room, arrive(0, 0, 0), assign(0, 1, 0)},
		"place of an unknown ticket": {room, arrive(0, 0, 0), freeze(0), assign(0, 1, 7)},
		"two places":                 {room, arrive(0, 0, 0), arrive(0, 1, 1), freeze(0), assign(0, 1, 0), assign(0, 2, 0)},
		"place in other window":      {room, arrive(0, 0, 0), arrive(1, 0, 1), freeze(0), freeze(1), assign(1, 1, 1)},
		"windows of no length":       {room, amend(fairness.WindowRule{From: p.Opens + 10_000})},
		"windows backwards":          {room, amend(fairness.WindowRule{From: p.Opens + 10_000, Length: 1000}, fairness.WindowRule{From: p.Opens + 10_000, Length: 1000})},
	} {
		c := New(Lists{})
		for i, e := range entries {
			if err := c.Add(e); (err != nil) != (i == len(entries)-1) || err != nil && !errors.Is(err, ErrUnaudited) {
				t.Errorf("%s: entry %d: %v", name, i, err)
			}
		}
		if err := c.Add(room); !errors.Is(err, ErrUnaudited) {
			t.Errorf("%s: goes on: %v", name, err)
		}
		if r, err := c.Result(); r != nil || !errors.Is(err, ErrUnaudited) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

// Windows have the ends of the schedule in force: a freeze is late against
// those.
func TestAmendedWindows(t *testing.T) {
	p := policy
	c := New(Lists{})
	for _, e := range []fairness.Entry{
		&fairness.Room{Policy: p},
		&fairness.Amend{Time: p.Opens, Change: fairness.ChangeWindows, Closes: p.Opens + 95_000, Windows: []fairness.WindowRule{{From: p.Opens + 20_000, Length: 30_000}}},
		&fairness.Arrive{Time: p.Opens + 49_999, Window: 2, Ticket: roomtest.Ticket(origin, 0)},
		&fairness.Freeze{Time: p.Opens + 60_001, Window: 2},
		&fairness.Arrive{Time: p.Opens + 80_000, Window: 4, Ticket: roomtest.Ticket(origin, 1)},
		&fairness.Freeze{Time: p.Opens + 105_000, Window: 4},
		&fairness.Amend{Time: p.Opens + 85_000, Change: fairness.ChangeWindows, Closes: p.Opens + 200_000, Windows: []fairness.WindowRule{{From: p.Opens + 95_000, Length: 30_000}}},
	} {
		if err := c.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.Result()
	if err != nil {
		t.Fatal(err)
	}
	want := []Window{{Index: 2, From: p.Opens + 20_000, To: p.Opens + 50_000, Arrivals: 1, Late: 10_001}}
	if diff := cmp.Diff(want, r.Room.LateFreezes); diff != "" || r.Room.Late != 1 || r.Room.Empty != 1 {
		t.Errorf("late %d, empty %d (-want +got):\n%s", r.Room.Late, r.Room.Empty, diff)
	}
	if got := c.state.Schedule().Closes(); got != p.Opens+200_000 {
		t.Errorf("closes %d", got)
	}
}

// FuzzCollector: no text makes the collector panic, and accepted entries have a result.
func FuzzCollector(f *testing.F) {
	keys, err := roomtest.NewKeys(origin, "honest")
	if err != nil {
		f.Fatal(err)
	}
	entries := roomtest.Small(keys, keys.Policy()).Entries()
	whole := []byte{}
	for _, e := range entries {
		whole = append(append(whole, e...), ';')
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, text []byte) {
		c := New(Lists{Own: []fairness.Ticket{roomtest.Ticket(origin, 0)}, Group: []fairness.Ticket{roomtest.Ticket(origin, 1)}})
		var parser fairness.Parser
		for line := range strings.SplitSeq(string(text), ";") {
			if e, err := parser.Parse([]byte(line)); err == nil && c.Add(e) != nil {
				break
			}
		}
		r, err := c.Result()
		if (err == nil) != (r != nil) {
			t.Fatal(r, err)
		}
		if _, err := json.Marshal(r); err != nil { // no NaN
			t.Fatal(err)
		}
	})
}
