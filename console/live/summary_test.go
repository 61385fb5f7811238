package live

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

// TestDigest simulates a room and computes its summary a second way, from lists of all events.
func TestDigest(t *testing.T) {
	t.Parallel()
	keys, err := roomtest.NewKeys("example.com/r/digest", "digest")
	if err != nil {
		t.Fatal(err)
	}
	policy := keys.Policy()
	policy.Outflow.PerMinute = 60_000
	r := roomtest.Open(keys, policy)
	random := rand.New(rand.NewPCG(1, 2))
	opens := roomtest.Opens
	joined := map[fairness.Ticket]fairness.Time{}
	come := func(at fairness.Time, n int) {
		for _, ticket := range r.Join(at, n) {
			joined[ticket] = at
		}
	}
	for second := range fairness.Time(50) {
		come(opens+1000*second+100, 1+random.IntN(4))
	}
	come(opens+50_999, 30) // the peak: one second, with the arrivals at 51.0
	come(opens+51_000, 35)
	r.Settle(opens + 60_000)
	first := r.State().Counts().Arrivals
	come(opens+61_000, 20)
	r.Append(&fairness.Amend{Time: opens + 62_000, Change: fairness.ChangeMessage, Message: [32]byte{1}})
	r.Settle(opens + 70_000)
	type settled struct {
		what fairness.Reason
		wait fairness.Time
	}
	toCall, outcomes := map[fairness.Ticket]fairness.Time{}, map[fairness.Ticket]settled{}
	leave := r.At(5)
	r.Skip(opens+70_500, leave, fairness.Left)
	outcomes[leave] = settled{fairness.Left, 0}
	called := fairness.Position(0)
	for now := opens + 71_000; called+9 <= fairness.Position(first)+20; now += 500 {
		r.Call(now, called+9)
		for p := called + 1; p <= called+9; p++ {
			ticket := r.At(p)
			if _, gone := outcomes[ticket]; gone {
				continue
			}
			toCall[ticket] = now - joined[ticket]
			if p%4 == 0 {
				r.Skip(now+1, ticket, []fairness.Reason{fairness.Revoked, fairness.RevokedBot}[p/4%2])
				outcomes[ticket] = settled{fairness.Revoked, 0}
			} else if p%7 != 0 {
				r.Admit(now+1, ticket)
				outcomes[ticket] = settled{"", now + 1 - joined[ticket]}
			}
		}
		called += 9
	}
	r.End(opens + 200_000)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	d := newDigest()
	for _, text := range r.Entries() {
		e, err := fairness.ParseEntry(text)
		if err == nil {
			err = d.add(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got := d.finish("digest")
	n := r.State().Counts()
	if got.Arrivals != n.Arrivals || got.Drawn != n.Drawn || got.Called != n.Called || got.Admitted != n.Admitted ||
		got.NoShows != 0 ||
		got.Left != 1 || got.Revoked != n.Revoked || got.Draws != 2 || got.Changes != 1 || got.Duration != 200 ||
		got.Entries != uint64(len(r.Entries())) {
		t.Errorf("summary %+v, want as in %+v", got, n)
	}
	if want := (Peak{time.UnixMilli(int64(opens) + 51_000).UTC(), 35}); got.Peak != want {
		t.Errorf("peak %+v, want %+v", got.Peak, want)
	}
	cutOff := uint64(0)
	for ticket := range toCall {
		if _, ok := outcomes[ticket]; !ok {
			cutOff++
		}
	}
	if got.CutOff != cutOff || cutOff == 0 {
		t.Errorf("%d could still claim at the end, want %d", got.CutOff, cutOff)
	}
	waits := func(in func(fairness.Time) bool) (calls, admissions []float64) {
		for ticket, at := range joined {
			if w, ok := toCall[ticket]; ok && in(at) {
				calls = append(calls, float64(w)/1000)
			}
			if s, ok := outcomes[ticket]; ok && s.what == "" && in(at) {
				admissions = append(admissions, float64(s.wait)/1000)
			}
		}
		return calls, admissions
	}
	compare := func(what string, calls, admissions Percentiles, in func(fairness.Time) bool) {
		t.Helper()
		c, a := waits(in)
		if diff := cmp.Diff([]Percentiles{slow(c), slow(a)}, []Percentiles{calls, admissions}); diff != "" ||
			len(c) == 0 || len(a) == 0 {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	compare("all", got.ToCall, got.ToAdmission, func(fairness.Time) bool { return true })
	if len(got.Windows) != 2 || got.Windows[0].Arrivals != first || got.Windows[1].Arrivals != 20 ||
		!got.Windows[1].From.Equal(moment(opens+60_000)) || !got.Windows[1].To.Equal(moment(opens+70_000)) {
		t.Fatalf("windows %+v", got.Windows)
	}
	compare("first window", got.Windows[0].ToCall, got.Windows[0].ToAdmission,
		func(at fairness.Time) bool { return at < opens+60_000 })
	compare("second window", got.Windows[1].ToCall, got.Windows[1].ToAdmission,
		func(at fairness.Time) bool { return at >= opens+60_000 })
	if len(d.people) != int(n.Arrivals-n.Admitted-n.Left) {
		t.Errorf("%d people are still held", len(d.people))
	}
}

// TestDigestOfLateAssignments has calls, admissions and skips before the places are assigned, as
// they require only the draw.
func TestDigestOfLateAssignments(t *testing.T) {
	t.Parallel()
	keys, err := roomtest.NewKeys("example.com/r/late", "late")
	if err != nil {
		t.Fatal(err)
	}
	policy := keys.Policy()
	policy.Outflow.PerMinute = 60_000
	r := roomtest.Open(keys, policy)
	opens := roomtest.Opens
	tickets := r.Join(opens+1000, 10)
	r.Freeze(opens + 60_000)
	r.Draw(opens + 60_000)
	line := map[fairness.Position]fairness.Ticket{}
	for _, ticket := range tickets {
		st, _ := r.State().Standing(ticket, r.State().Size(), opens+60_000)
		line[st.Position] = ticket
	}
	r.Skip(opens+60_100, line[1], fairness.Left) // before the call
	r.Call(opens+61_000, 3)
	r.Admit(opens+61_500, line[2])
	r.Skip(opens+61_600, line[3], fairness.Revoked) // after the call
	r.Assign(4)
	r.Call(opens+71_000, 6)
	r.Admit(opens+72_000, line[4])
	r.Assign(6)
	r.Call(opens+81_000, 7)
	r.End(opens + 90_000)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	d := newDigest()
	for _, text := range r.Entries() {
		e, err := fairness.ParseEntry(text)
		if err == nil {
			err = d.add(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got := d.finish("late")
	// Places 2 and 3 were called first, then 4, 5 and 6, then 7.
	if diff := cmp.Diff(slow([]float64{60, 60, 70, 70, 70, 80}), got.ToCall); diff != "" {
		t.Errorf("waits for the call (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(slow([]float64{60.5, 71}), got.ToAdmission); diff != "" {
		t.Errorf("waits for the admission (-want +got)\n%s", diff)
	}
	if len(d.people) != 7 || len(d.lanes[0].calls) != 0 {
		t.Errorf("%d people and %d calls are held, want 7 and none", len(d.people), len(d.lanes[0].calls))
	}
}

// slow computes percentiles by counting, for each wait, the waits that are not longer.
func slow(waits []float64) Percentiles {
	p := Percentiles{People: len(waits)}
	if len(waits) == 0 {
		return p
	}
	sort.Float64s(waits)
	of := func(percent float64) *float64 {
		for i, w := range waits {
			if float64(i+1) >= percent/100*float64(len(waits))-1e-9 {
				return &w
			}
		}
		return nil
	}
	p.P50, p.P90, p.P99, p.Max = of(50), of(90), of(99), of(100)
	return p
}

// TestDigestOfRestored: a restored visitor does not count as revoked, and may be admitted.
func TestDigestOfRestored(t *testing.T) {
	keys, err := roomtest.NewKeys("queue.example.com/r/digest", "restored")
	if err != nil {
		t.Fatal(err)
	}
	r := roomtest.Open(keys, keys.Policy())
	opens := roomtest.Opens
	r.Join(opens, 6)
	r.Settle(opens + 60_000)
	line := make([]fairness.Ticket, 4)
	for i := range line {
		line[i] = r.At(fairness.Position(i + 1))
	}
	r.Call(opens+61_000, 3)
	for _, i := range []int{0, 1, 3} {
		r.Skip(opens+62_000, line[i], fairness.Revoked)
	}
	for _, i := range []int{0, 3} {
		r.Append(&fairness.Restore{Time: opens + 63_000, Ticket: line[i]})
	}
	r.Admit(opens+64_000, line[0])
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	d := newDigest()
	for _, text := range r.Entries() {
		e, err := fairness.ParseEntry(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.add(e); err != nil {
			t.Fatal(err)
		}
	}
	got := d.finish("digest")
	if got.Revoked != 1 || got.Admitted != 1 || got.Windows[0].Revoked != 1 || got.Windows[0].Admitted != 1 {
		t.Errorf("%+v", got)
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 250 {
		waits, seconds := make([]uint32, n), make([]float64, n)
		for i := range waits {
			waits[i] = random.Uint32N(uint32(1 + n/2)) //nolint:gosec // few
			seconds[i] = float64(waits[i]) / 1000
		}
		if diff := cmp.Diff(slow(seconds), percentiles(waits)); diff != "" {
			t.Fatalf("of %d (-want +got)\n%s", n, diff)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from, to fairness.Time
		want     uint32
	}{{0, 0, 0}, {5, 4, 0}, {5, 1005, 1000}, {0, 1 << 40, math.MaxUint32}} {
		if got := wait(test.from, test.to); got != test.want {
			t.Errorf("%s: %d, want %d", fmt.Sprint(test.from, " to ", test.to), got, test.want)
		}
	}
}

// TestDigestOfGaps has places that are nobody's: it counts visitors.
func TestDigestOfGaps(t *testing.T) {
	t.Parallel()
	keys, err := roomtest.NewKeys("example.com/r/gaps", "gaps")
	if err != nil {
		t.Fatal(err)
	}
	policy := keys.Policy()
	policy.Slots, policy.Outflow.PerMinute = policy.Windows[0].Length/4, 60_000
	r := roomtest.Open(keys, policy)
	r.Join(policy.Opens, 12)
	r.Join(policy.Opens+fairness.Time(policy.Slots), 1)
	now := policy.Opens + fairness.Time(policy.Windows[0].Length)
	if policy.Beacon != nil {
		now += 60_000
	}
	r.Settle(now)
	now = max(now, policy.Starts, r.State().Now())
	for r.State().Counts().Ready > 0 && r.Err() == nil {
		now += 1000
		call, _ := r.State().NextCall(now, 3)
		r.Append(call)
	}
	r.End(now)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	d := newDigest()
	for _, text := range r.Entries() {
		e, err := fairness.ParseEntry(text)
		if err == nil {
			err = d.add(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got := d.finish("gaps")
	if got.Called != 13 || got.ToCall.People != 13 || r.State().Counts().Called <= 13 || fairness.Passed(r.State())[0] != 13 {
		t.Errorf("%d called, %d waits, of %+v", got.Called, got.ToCall.People, r.State().Counts())
	}
}
