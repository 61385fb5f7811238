package projection

import (
	"slices"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/roomtest"
)

// TestWithdrawn lists the latest tickets that the organizer revoked, and no others that were skipped.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	var p Projection
	var want []string
	for i := range byte(maxWithdrawn + 5) {
		ticket := fairness.NewTicket("x", [fairness.SecretSize]byte{i})
		p.noteWithdrawn(&fairness.Skip{Ticket: ticket, Reason: fairness.RevokedBot})
		p.noteWithdrawn(&fairness.Skip{Ticket: fairness.NewTicket("y", [fairness.SecretSize]byte{i}), Reason: fairness.Left})
		want = append(want, ticket.String()[:8])
	}
	if want = want[5:]; !slices.Equal(p.withdrawn, want) {
		t.Errorf("withdrawn are %v, want %v", p.withdrawn, want)
	}
}

// TestMerits finds what each ticket has shown, up to a size, and forgets what is undone.
func TestMerits(t *testing.T) {
	t.Parallel()
	p := New(nil, nil)
	p.Policy().Methods = []credential.Method{{Name: "club"}, {Name: "phone"}}
	a, b := fairness.NewTicket("x", [fairness.SecretSize]byte{1}), fairness.NewTicket("x", [fairness.SecretSize]byte{2})
	note := func(ticket fairness.Ticket, method string, index uint64) {
		e := &fairness.Merit{Ticket: ticket, Credential: credential.Credential{Method: method}}
		p.merits.note(e, p.Policy(), index)
	}
	note(a, "phone", 5)
	note(b, "club", 6)
	mark := p.Mark()
	note(a, "club", 7)
	note(fairness.Ticket{}, "club", 8)
	if got, want := p.Merits(a, 9), []Merit{{"phone", 5}, {"club", 7}}; !slices.Equal(got, want) {
		t.Errorf("merits %v, want %v", got, want)
	}
	if got := p.Merits(a, 7); len(got) != 1 {
		t.Errorf("merits %v of 7 entries", got)
	}
	p.merits.undo(mark.merits)
	if got := p.Merits(a, 9); !slices.Equal(got, []Merit{{"phone", 5}}) || len(p.merits.latest) != 2 || len(p.Merits(b, 9)) != 1 {
		t.Errorf("merits %v after the undo, of %v", got, p.merits.latest)
	}
}

// TestCosignedMost: only the latest draws are kept, and what a reader holds does not change.
func TestCosignedMost(t *testing.T) {
	t.Parallel()
	p := New(nil, nil)
	p.Policy().Witnesses = []string{"w"}
	var held [][]uint32
	for i := range 25 {
		var e fairness.Draw
		if i%2 == 0 {
			e.Cosignatures = []fairness.Cosignature{{3: byte(i)}}
		}
		p.noteCosigned(&e)
		if i == 4 {
			held = p.cosigned
		}
	}
	if len(p.cosigned) != maxDraws || p.cosigned[9][0] != 24 || len(p.cosigned[8]) != 0 {
		t.Errorf("of 25 draws %v are remembered", p.cosigned)
	}
	if len(held) != 5 || held[0][0] != 0 || held[4][0] != 4 {
		t.Errorf("a reader's list became %v", held)
	}
}

// TestFreed counts the places that become free, and not those that are taken.
func TestFreed(t *testing.T) {
	t.Parallel()
	var f Freed
	add := func(at fairness.Time, people int64) {
		f.samples = append(f.samples, sample{at, people})
	}
	if got := f.PerMinute(); got != 0 {
		t.Errorf("of no samples %v", got)
	}
	add(0, 10)
	add(50_000, 100)
	if got := f.PerMinute(); got != 0 {
		t.Errorf("of less than a minute %v", got)
	}
	add(120_000, 40)
	if got := f.PerMinute(); got != 15 {
		t.Errorf("of two minutes %v, want 15", got)
	}
	add(240_000, 0) // sessions were touched
	if got := f.PerMinute(); got != 0 {
		t.Errorf("when fewer are free than before: %v", got)
	}
}

// TestFreedSamples: the samples of the last five minutes are kept.
func TestFreedSamples(t *testing.T) {
	t.Parallel()
	var f Freed
	p := open(t, fairness.Policy{Outflow: fairness.Outflow{PerMinute: 60, MaxActive: 3}}, nil)
	for i := range fairness.Time(100) {
		f.Note(p.Now()+i*sampleInterval/2, p)
	}
	if n := len(f.samples); n != maxSamples+1 || f.samples[n-1].at-f.samples[0].at != maxSamples*sampleInterval {
		t.Errorf("%d samples are kept", n)
	}
}

// created is the time at which the room of these tests is created and opens.
const created = fairness.Time(1_900_000_000_000)

// open returns the projection of a room with its first entry.
func open(t *testing.T, policy fairness.Policy, controls *Controls) *Projection {
	t.Helper()
	policy.Origin, policy.LogKey, policy.VRFKey = "x", "x+", [fairness.PublicKeySize]byte{2}
	policy.Created, policy.Opens, policy.Closes = created, created, fairness.Never
	if policy.Starts == 0 {
		policy.Starts = created
	}
	policy.Lanes = []fairness.LaneRule{{Name: fairness.General, Weight: 1}}
	policy.Windows = []fairness.WindowRule{{From: created, Length: 200}}
	policy.Claim, policy.Session = 60_000, 900_000
	policy.Notice, policy.Grace = fairness.MinNotice, fairness.MinGrace
	p := New(controls, nil)
	apply(t, p, &fairness.Room{Policy: policy})
	return p
}

func apply(t *testing.T, p *Projection, e fairness.Entry) {
	t.Helper()
	if err := p.Apply(e, func() audit.Hash { return audit.Hash{} }); err != nil {
		t.Fatal(err)
	}
}

// TestNextSwitch asks a room about times that no test could wait for.
func TestNextSwitch(t *testing.T) {
	t.Parallel()
	const starts = created + 3_600_000
	quiet := UnqueuedCounts{Nodes: 3}
	switched := gateHistory{used: true, since: starts}
	for name, c := range map[string]struct {
		isOpen  bool
		gate    gateHistory
		counts  UnqueuedCounts
		busy    fairness.Time // after the start
		away    bool
		age     fairness.Time // of the counts
		after   fairness.Time // the start
		pause   bool
		pull    bool
		want    fairness.Change
		isEarly bool
	}{
		"the first time":             {counts: quiet, want: fairness.ChangeOpen},
		"not begun":                  {counts: quiet, isEarly: true},
		"no connector":               {},
		"full already":               {counts: UnqueuedCounts{Nodes: 1, Started: 100}},
		"counts are old":             {counts: quiet, age: maxCountAge + 1},
		"counts are not quite old":   {counts: quiet, age: maxCountAge, want: fairness.ChangeOpen},
		"in a pause":                 {counts: quiet, pause: true},
		"open":                       {isOpen: true, gate: switched, counts: UnqueuedCounts{Nodes: 3, Started: 99, Active: 49}},
		"open, and the rate is used": {isOpen: true, gate: switched, counts: UnqueuedCounts{Nodes: 3, Started: 100}, want: fairness.ChangeShut},
		"open, and it is full":       {isOpen: true, gate: switched, counts: UnqueuedCounts{Nodes: 3, Active: 50}, want: fairness.ChangeShut},
		"turned away":                {isOpen: true, gate: switched, counts: UnqueuedCounts{Nodes: 3, Started: 98}, away: true, want: fairness.ChangeShut},
		"open, in a pause":           {isOpen: true, gate: switched, counts: quiet, pause: true, want: fairness.ChangeShut},
		"a backend calls":            {counts: quiet, pull: true},
		"open, and a backend calls":  {isOpen: true, gate: switched, counts: quiet, pull: true, want: fairness.ChangeShut},
		"shut a minute ago":          {gate: switched, counts: quiet, after: calmFor, want: fairness.ChangeOpen},
		"shut not quite so long":     {gate: switched, counts: quiet, after: calmFor - 1},
		"hot half a minute ago":      {gate: switched, counts: quiet, busy: 30_000, after: calmFor},
		"hot a minute ago":           {gate: switched, counts: quiet, busy: 30_000, after: 30_000 + calmFor, want: fairness.ChangeOpen},
		"visitors waited just now":   {gate: gateHistory{used: true, since: starts, lined: starts + 1}, counts: quiet, after: calmFor},
		"visitors waited before":     {gate: gateHistory{used: true, since: starts, lined: starts + 1}, counts: quiet, after: calmFor + 1, want: fairness.ChangeOpen},
	} {
		now := starts + c.after
		if c.isEarly {
			now = starts - 1
		}
		controls := &Controls{}
		p := open(t, fairness.Policy{Starts: starts, Outflow: fairness.Outflow{PerMinute: 100, MaxActive: 50}}, controls)
		if c.isOpen {
			apply(t, p, &fairness.Amend{Time: starts - 1, Change: fairness.ChangeOpen})
		}
		if c.pause {
			apply(t, p, &fairness.Amend{Time: starts - 1, Change: fairness.ChangePause})
		}
		p.gate = c.gate
		controls.Pull.Set(c.pull)
		controls.Unqueued.take(c.counts, now-c.age, AnyReads)
		controls.Unqueued.busy, controls.Unqueued.isTurnedAway = starts+c.busy, c.away
		got, ok := p.NextSwitch(now)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: %q, %t, want %q", name, got, ok, c.want)
		}
	}
}

// TestBusy: a gate with much traffic does not open soon.
func TestBusy(t *testing.T) {
	t.Parallel()
	controls := &Controls{}
	p := open(t, fairness.Policy{Outflow: fairness.Outflow{PerMinute: 10, MaxActive: 5}}, controls)
	for _, c := range []struct {
		counts UnqueuedCounts
		want   bool
	}{
		{UnqueuedCounts{}, false}, {UnqueuedCounts{Started: 8, Active: 4}, false}, {UnqueuedCounts{Started: 9}, true}, {UnqueuedCounts{Active: 5}, true},
	} {
		controls.Unqueued.take(c.counts, 1, AnyReads)
		if got := p.isBusy(c.counts, p.Now()); got != c.want {
			t.Errorf("%+v: %t", c.counts, got)
		}
	}
}

// TestOverfull: when the number of sessions exceeds what can be counted, no session may begin.
func TestOverfull(t *testing.T) {
	t.Parallel()
	p := open(t, fairness.Policy{Outflow: fairness.Outflow{PerMinute: 600_000}}, nil)
	for c, want := range map[UnqueuedCounts]bool{
		{}: true, {Active: maxUnqueued - 1}: true, {Active: maxUnqueued}: false, {Started: maxUnqueued + 1}: false,
	} {
		if left := p.unqueuedLeft(c, p.Now()); (left > 0) != want || c.IsOverfull() == want {
			t.Errorf("%+v: %d left", c, left)
		}
	}
}

// TestTouchUnread: a node that does not know yet whether a session was touched keeps its place, even if it
// would be over.
func TestTouchUnread(t *testing.T) {
	t.Parallel()
	const session, admitted = 60_000, fairness.Time(1_000_000)
	const ends = admitted + session
	for name, c := range map[string]struct {
		read  fairness.Time // what is known about the session
		shift int64
		now   fairness.Time
		want  uint64
	}{
		"goes on":                       {ends - 100, 0, ends - 1, 1},
		"may have been touched since":   {ends - 100, 0, ends + 10*sessionLag, 1},
		"was not touched":               {ends, 0, ends + sessionLag, 0},
		"was touched":                   {ends, 1, ends + sessionLag, 1},
		"was released":                  {ends - 100, -1, ends + 10*sessionLag, 0},
		"not touched, and a while read": {ends + 100, 0, ends + sessionLag - 1, 1},
	} {
		controls := &Controls{}
		p := New(controls, nil)
		p.admissions = []fairness.Time{admitted}
		p.Policy().Session = session // shorter than RedeemWithin
		controls.Sessions.Set(c.shift, c.read)
		if got := p.Active(c.now); got != c.want {
			t.Errorf("%s: %d visitors are present, want %d", name, got, c.want)
		}
	}
}

// TestAdmissionsForgotten: one visitor per second is admitted for ten minutes, and sessions last one minute.
// Only the admissions whose session may be active are remembered.
func TestAdmissionsForgotten(t *testing.T) {
	t.Parallel()
	const visitors, second = 600, fairness.Time(1000)
	keys, err := roomtest.NewKeys("example.com/r/forget", "operator")
	if err != nil {
		t.Fatal(err)
	}
	policy := keys.Policy()
	policy.Outflow = fairness.Outflow{PerMinute: 60_000, MaxActive: visitors}
	r := roomtest.Open(keys, policy)
	r.Join(policy.Opens, visitors)
	start := policy.Opens + 60*second
	r.Settle(start)
	for i := range fairness.Time(visitors) {
		r.Call(start+i*second, fairness.Position(i+1))
		r.Admit(start+i*second, r.At(fairness.Position(i+1)))
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	for name, c := range map[string]struct {
		read fairness.Time // time up to which ended sessions are known
		want int           // admissions remembered at the end
	}{
		"sessions known":             {fairness.Never - sessionLag, 61}, // those of a minute and sessionLag
		"unknown from the 300th on":  {start + 300*second, 600 - 241},
		"unknown for a third of one": {start + 579*second, 600 - 520},
	} {
		controls := &Controls{}
		controls.Sessions.Set(0, c.read)
		p, log := New(controls, nil), roomtest.NewLog(roomtest.Files{})
		for _, text := range r.Entries() {
			if err := p.Read(text, log.Root); err != nil {
				t.Fatal(err)
			}
			if err := log.Append(text); err != nil {
				t.Fatal(err)
			}
			if n := len(p.admissions); n > c.want {
				t.Fatalf("%s: %d admissions are remembered at %d", name, n, p.Now())
			}
		}
		if got := len(p.admissions); got != c.want {
			t.Errorf("%s: %d admissions are remembered, want %d", name, got, c.want)
		}
		if got := p.Active(p.Now()); got != uint64(c.want) {
			t.Errorf("%s: %d visitors are active, want %d", name, got, c.want)
		}
	}
}
