package simulate

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
)

// scalper is a sale that all visitors are drawn together for: 10,000 people, and one operator with 1,000 bots.
func scalper(kind DoorKind) Plan {
	p := Default()
	p.Visitors, p.Tickets, p.Bots.Count, p.Bots.PerOperator = 11_000, 1_000, 1_000, 1_000
	p.Room.Starts = Duration(10 * time.Minute)
	p.Arrivals.Shape, p.Arrivals.Early = Early, 1
	p.Door.Kind = kind
	return p
}

func bothGroups(t *testing.T, r *Result) (robots, people Group) {
	t.Helper()
	robots, found := r.Group(Machines)
	people, also := r.Group(Humans)
	if !found || !also {
		t.Fatal("bots or people are missing")
	}
	return robots, people
}

// TestOpenDoor: with an open door, an operator's share of the first places is its share of the tickets in line. Over
// several seeds the number is hypergeometric: 90.9 of 1,000 on average, with a standard deviation of 8.7.
func TestOpenDoor(t *testing.T) {
	t.Parallel()
	const seeds, mean, deviation = 20, 1000.0 / 11, 8.67
	sum := 0
	for seed := range uint64(seeds) {
		p := scalper(Open)
		p.Seed = seed
		r, err := Run(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		robots, people := bothGroups(t, r)
		if robots.Places != 1_000 || people.Places != 10_000 || robots.Barred+people.Barred != 0 || robots.Cost != (Cost{}) {
			t.Fatalf("bots %+v, people %+v", robots, people)
		}
		if robots.Front+people.Front != 1_000 || math.Abs(float64(robots.Front)-mean) > 4.5*deviation {
			t.Errorf("seed %d: bots have %d and people %d of the first places", seed, robots.Front, people.Front)
		}
		sum += robots.Front
	}
	if got := float64(sum) / seeds; math.Abs(got-mean) > 4*deviation/math.Sqrt(seeds) {
		t.Errorf("bots have %.1f of the first places on average, want about %.1f", got, mean)
	}
}

// TestAccounts: an operator has as many places as accounts, however many bots it sends, and each person has one. It is
// the rules that refuse the others: their entries are replayed.
func TestAccounts(t *testing.T) {
	t.Parallel()
	for _, accounts := range []int{0, 1, 10, 999, 1_000, 5_000} {
		p := scalper(Accounts)
		p.Door.Accounts = accounts
		r, list := entries(t, p)
		robots, people := bothGroups(t, r)
		want := min(accounts, 1_000)
		if robots.Places != want || robots.Barred != 1_000-want || robots.Cost.Shown != want || people.Places != 10_000 {
			t.Errorf("%d accounts: bots %+v, people %+v", accounts, robots, people)
		}
		var state fairness.State
		for i, e := range list {
			if err := state.Apply(e, &oracle{seed: p.Seed}); err != nil {
				t.Fatalf("entry %d: %v", i, err)
			}
		}
		if shown := state.Shown()[0]; int(shown) != 10_000+want || state.Counts().Arrivals != uint64(shown) {
			t.Errorf("%d accounts: %d were shown by %d arrivals", accounts, shown, state.Counts().Arrivals)
		}
	}
}

// TestOperators: operators share no account.
func TestOperators(t *testing.T) {
	t.Parallel()
	p := scalper(Accounts)
	p.Bots.PerOperator = 30 // 34 operators, of whom some have 29 bots
	for accounts, want := range map[int]int{7: 34 * 7, 29: 34 * 29, 30: 1_000} {
		p.Door.Accounts = accounts
		r, err := Run(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if robots, _ := bothGroups(t, r); robots.Places != want || r.Operators != 34 {
			t.Errorf("%d accounts: %d places of %d operators, want %d", accounts, robots.Places, r.Operators, want)
		}
	}
}

// TestCodes: bots join with the codes that were sold, and people with the others.
func TestCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codes        int
		sold         float64
		bots, people int
	}{
		{0, 0, 0, 10_000}, {0, 0.05, 500, 9_500}, {0, 0.5, 1_000, 5_000}, {2_000, 0.1, 200, 1_800}, {2_000_000, 0.01, 100, 9_900},
	} {
		p := scalper(Codes)
		p.Door.Codes, p.Door.Sold = c.codes, c.sold
		r, err := Run(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		robots, people := bothGroups(t, r)
		if robots.Places != c.bots || people.Places != c.people || people.Barred != 10_000-c.people {
			t.Errorf("%+v: bots %+v, people %+v", c, robots, people)
		}
	}
}

// TestWork: no work is done before the beacon's round. Few bits stop no bot, and many limit how many joins a core
// computes during the sale; then they keep people with phones out, too.
func TestWork(t *testing.T) {
	t.Parallel()
	p := scalper(Work)
	p.Door.Cores = 1
	for bits, most := range map[int]int{20: 1_000, 28: 60} { // 2^28 tries take a core 27 s
		p.Door.Bits = bits
		r, list := entries(t, p)
		robots, people := bothGroups(t, r)
		if robots.Places > most || robots.Places < most/4 || bits == 20 && robots.Places != 1_000 {
			t.Errorf("%d bits: bots hold %d places", bits, robots.Places)
		}
		tries := math.Exp2(float64(bits))
		want := [2]Cost{{Work: seconds(tries / 1e7 * float64(robots.Places))}, {Work: seconds(tries / 25e4 * float64(people.Places))}}
		if got := [2]Cost{robots.Cost, people.Cost}; got != want {
			t.Errorf("%d bits: bots and people work for %v, want %v", bits, got, want)
		}
		beat, ok := list[1].(*fairness.Beat)
		if !ok || len(beat.Signature) == 0 || beat.Time < 1_000 {
			t.Errorf("%d bits: %+v is not the round that work is done for", bits, list[1])
		}
	}
}

// TestRefuses: the simulator's oracle takes no credential of another ticket, and no work before its round.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, kind := range []DoorKind{Accounts, Work} {
		p := scalper(kind)
		var state fairness.State
		if err := state.Apply(&fairness.Room{Policy: p.policy()}, &oracle{}); err != nil {
			t.Fatal(err)
		}
		e, _ := state.NextArrive(5_000, ticket(1), fairness.General)
		for _, of := range []uint32{2, 1} {
			e.Credentials = p.Door.show(&visitor{shows: of}, ticket(of))
			err := state.Apply(&e, &oracle{})
			v, broken := errors.AsType[*fairness.Violation](err)
			if ok := kind == Accounts && of == 1; ok != (err == nil) || broken && v.Rule != fairness.RuleCredential {
				t.Errorf("%s: a credential of ticket %d: %v", kind, of, err)
			}
		}
	}
}

// TestCompareDoors: rows are the doors, with the figures of the plan, and the sentences say what the rows do.
func TestCompareDoors(t *testing.T) {
	t.Parallel()
	p := scalper(Codes)
	rows, err := CompareDoors(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []DoorKind
	for _, row := range rows {
		kinds = append(kinds, row.Door)
	}
	own, err := Run(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(own, rows[3].Result); diff != "" || !slices.Equal(kinds, Doors) {
		t.Errorf("rows %v, and the planned door gives another result: %s", kinds, diff)
	}
	said := strings.Join(Findings(&p, own, rows), "\n")
	for _, want := range []string{
		"An open door: bots hold 1,000 places in line, ", "That costs an operator nothing.",
		"Work of 20 bits: bots hold 1,000 places in line, ", "1 minute 45 seconds of computing on one core, and a person 4.2 s on an old phone.",
		"Accounts, 10 for each operator: bots hold 10 places in line, ", "the rules refuse their other 990 joins. That takes an operator 10 accounts, and a person one.",
		"Codes, 5% of them sold on: bots hold 500 places in line, ", "The rules refuse 500 people: they were given no code, or sold it.",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
}
