package fairness

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
)

var outageSeed = flag.Uint64("outage-seed", 0, "first room of TestOutages; 0: any")

// mechanism is something that a room may have.
type mechanism struct {
	name   string
	policy func(r *rand.Rand, p *Policy) // nil: every room has it
	act    func(o *outages)              // what visitors or the operator do about it now and then; nil: nothing
}

// mechanisms are all that rooms may have, in the order in which a policy gets them.
var mechanisms = []mechanism{
	{"lanes", func(r *rand.Rand, p *Policy) {
		p.Lanes = lanesOf(2 + r.IntN(3))
		for i := range p.Lanes {
			p.Lanes[i].Weight = uint32(1 + r.IntN(int(MaxWeight)))
		}
	}, nil},
	{"party", func(r *rand.Rand, p *Policy) { p.Party = uint32(2 + r.IntN(5)) }, nil},
	{"seats", func(r *rand.Rand, p *Policy) { p.Seats = uint32(10 + r.IntN(60)) }, (*outages).amendSeats},
	{"beacon", func(r *rand.Rand, p *Policy) {
		chain := beacon.Quicknet()
		chain.Genesis, chain.Period = int64(base/1000)-1000, uint32(1+r.IntN(5))
		p.Beacon = &Beacon{chain, MinMargin + Millis(r.IntN(5000))}
	}, nil},
	{"witnesses", func(r *rand.Rand, p *Policy) {
		if p.Beacon != nil {
			for i := range 1 + r.IntN(3) {
				p.Witnesses = append(p.Witnesses, fmt.Sprintf("witness%d.example.org+0000%04x+BAEC%04d", i, i, i))
			}
			p.Quorum = uint32(len(p.Witnesses)/2 + 1)
		}
	}, nil},
	{"work", func(_ *rand.Rand, p *Policy) {
		if p.Beacon != nil {
			addMethod(p, outageIssuers["task"], 0)
		}
	}, nil},
	{"accounts", func(_ *rand.Rand, p *Policy) { addMethod(p, outageIssuers["club"], len(p.Lanes)-1) }, (*outages).showLater},
	{"lots", func(_ *rand.Rand, p *Policy) { // with the accounts, if the room has them
		if slices.ContainsFunc(p.Methods, func(m credential.Method) bool { return m.Name == "club" }) {
			p.Lots = []string{"club"}
		}
	}, nil},
	{"slots", func(r *rand.Rand, p *Policy) {
		if first := p.Windows[0].Length; p.Closes >= p.Opens+Time(first) {
			p.Slots = max(1, first/Millis(2+r.IntN(20)))
		}
	}, nil},
	{"extend", func(r *rand.Rand, p *Policy) { p.Extend = MinClaim + Millis(r.IntN(20_000)) }, (*outages).extend},
	{"restore", nil, (*outages).restore},
	{"pauses", nil, (*outages).pause},
	{"pace", nil, (*outages).amendPace},
	{"schedule", nil, (*outages).amendWindows},
	{"gate", nil, (*outages).gate},
	{"claims", nil, (*outages).claim},
	{"departures", nil, (*outages).depart},
}

var outageIssuers = map[string]*issuertest.Issuer{"task": issuertest.Work("task", 2), "club": issuertest.Signed("club", 0)}

// addMethod adds a method that a lane needs.
func addMethod(p *Policy, of *issuertest.Issuer, lane int) {
	p.Methods = append(p.Methods, of.Method)
	p.Lanes[lane].Needs = append(p.Lanes[lane].Needs, of.Method.Name)
}

// outages is a room whose server, beacon and witnesses fail at random. What the server writes comes from the functions
// of next.go, in the order in which a server writes it.
type outages struct {
	*fair
	names []string            // of the mechanisms that the room has
	acts  []func(*outages)    // of the mechanisms
	late  Scan                // how far no-shows have been looked for
	roots map[uint64][32]byte // roots that end with a freeze, by size

	noRounds, noWitnesses Time // until when the beacon and the witnesses are away
	claims                map[Ticket]Millis
	gaps                  int // outages of the server while visitors could claim
}

func newOutages(t *testing.T, seed uint64) *outages {
	random := rand.New(rand.NewPCG(seed, 46))
	p := testPolicy()
	p.Claim, p.Grace = MinClaim+Millis(random.IntN(40_000)), MinGrace+Millis(random.IntN(20_000))
	p.Outflow.PerMinute = []uint32{20, 60, 600, 6000}[random.IntN(4)]
	p.Starts = p.Opens + Time(random.IntN(60_000))
	p.Windows = []WindowRule{{p.Opens, MinWindow + Millis(random.IntN(30_000))}}
	p.Closes = p.Opens + 60*second + Time(random.IntN(200_000))
	if random.IntN(4) == 0 {
		p.Closes = Never
	}
	o := &outages{fair: &fair{random: random, now: base, seen: map[Ticket]Standing{}}, roots: map[uint64][32]byte{},
		claims: map[Ticket]Millis{}}
	for _, m := range mechanisms {
		if m.policy != nil && random.IntN(2) == 0 {
			continue
		}
		if m.policy != nil {
			m.policy(random, &p)
		}
		if o.names = append(o.names, m.name); m.act != nil {
			o.acts = append(o.acts, m.act)
		}
	}
	o.script = &script{TB: t, State: &State{}, oracle: fakeOracle{fakesRounds: true}}
	o.must(&Room{Policy: p})
	return o
}

// try applies an entry that the rules may refuse, for one of these reasons.
func (o *outages) try(e Entry, reasons ...Rule) bool {
	o.Helper()
	mark := o.Mark()
	if err := o.State.Apply(e, &o.oracle); err != nil {
		if v := (*Violation)(nil); !errors.As(err, &v) || !slices.Contains(reasons, v.Rule) {
			o.Fatalf("apply %q: %v", AppendEntry(nil, e), err)
		}
		return false
	}
	o.Undo(mark)
	o.must(e)
	return true
}

// append writes what is due. Sometimes the database fails first, and the server takes back what it has not stored.
func (o *outages) append() {
	o.Helper()
	if o.random.IntN(10) == 0 {
		mark, twin := o.Mark(), o.twin.Mark()
		texts, root, joined, late := len(o.texts), o.oracle.root, o.joined, o.late
		o.write()
		o.Undo(mark)
		o.twin.Undo(twin)
		o.texts, o.oracle.root, o.joined, o.late = o.texts[:texts], root, joined, late
	}
	o.write()
}

// write writes what is due, in the order in which a server does.
func (o *outages) write() {
	o.Helper()
	if o.Ended() {
		return
	}
	if due, ok := o.FreezeDue(); ok && due <= o.now {
		o.must(o.freeze(o.now))
		o.roots[o.size] = o.oracle.root
	}
	for pending := o.Pending(); len(pending) > 0; pending = o.Pending() {
		signature, cosignatures, ok := o.evidence(pending[0])
		if !ok {
			break
		}
		e, ok := o.NextDraw(o.now, signature, cosignatures...)
		if !ok {
			o.Fatalf("window %d cannot be drawn with its round", pending[0].Window)
		}
		o.must(e)
	}
	if round, due, ok := DoorOf(o.State).AwaitsWorkRound(); ok && o.hasRound(due) {
		o.must(&Beat{o.now, fakeRound(round)})
	}
	o.visitorsJoin()
	for range min(2, len(o.acts)) {
		o.acts[o.random.IntN(len(o.acts))](o)
	}
	var late []Ticket
	if late, o.late = o.NoShows(o.late, o.now, math.MaxInt); len(late) > 0 {
		for _, t := range late {
			o.must(&Skip{o.now, t, NoShow})
		}
	}
	for t, ok := o.TooLarge(); ok; t, ok = o.TooLarge() {
		o.must(&Skip{o.now, t, TooLarge})
	}
	if e, _ := o.NextCall(o.now, 1+o.random.Uint64N(30)); e != nil {
		o.must(e)
	}
	if o.Waiting() > 0 && !o.InForce().Paused && o.now-o.State.now >= Time(o.policy.Grace)/2 {
		o.must(&Beat{Time: o.now})
	}
	for n := o.random.IntN(200); n > 0; n-- {
		if e, ok := o.NextAssign(); ok {
			o.must(&e)
		}
	}
}

// hasRound reports whether the beacon has published a round that appears at a time.
func (o *outages) hasRound(due Time) bool { return o.now >= due && o.now >= o.noRounds }

// evidence returns what a pending draw needs; false: its round is not known.
func (o *outages) evidence(p Pending) (signature []byte, list []Cosignature, ok bool) {
	if o.policy.Beacon == nil {
		return nil, nil, true
	}
	if !o.hasRound(p.Due) {
		return nil, nil, false
	}
	for _, key := range o.policy.Witnesses {
		if at := p.Due - 3000; at >= o.noWitnesses && o.random.IntN(3) > 0 {
			list = append(list, fakeCosignature(key, p.Size, o.roots[p.Size], at))
		}
	}
	return fakeRound(p.Round), list, true
}

// visitorsJoin lets some visitors join, with what their lanes need.
func (o *outages) visitorsJoin() {
	o.Helper()
	for range o.random.IntN(4) {
		lane := o.policy.Lanes[o.random.IntN(len(o.policy.Lanes))]
		ticket := numbered(o.joined)
		e, ok := o.NextArrive(o.now, ticket, lane.Name)
		_, _, awaitsRound := DoorOf(o.State).AwaitsWorkRound()
		if !ok || awaitsRound && slices.Contains(lane.Needs, "task") {
			continue
		}
		for _, name := range lane.Needs {
			e.Credentials = append(e.Credentials, o.show(name, lane.Name, ticket))
		}
		if seats := 1 + o.random.IntN(int(max(o.policy.Party, 1))); seats > 1 {
			e.Seats = uint32(seats)
		}
		o.joined++
		o.must(&e)
	}
}

// show returns a credential of the account that a ticket belongs to.
func (o *outages) show(method string, lane Lane, t Ticket) credential.Credential {
	return outageIssuers[method].Show(o.Subject(lane, t), int(binary.BigEndian.Uint64(t[8:])&0xffff_ffff))
}

// any returns a ticket that may have joined, and where it stands.
func (o *outages) any() (Ticket, Standing, bool) {
	t := numbered(o.random.Uint64N(o.joined + 1))
	st, ok := o.Standing(t, o.size, o.now)
	return t, st, ok
}

// called returns a called ticket, if a few that are looked at include one.
func (o *outages) called() (Ticket, bool) {
	for range 20 {
		if t, st, ok := o.any(); ok && st.Status == StatusCalled && st.Left > 0 {
			return t, true
		}
	}
	return Ticket{}, false
}

func (o *outages) claim() {
	for range o.random.IntN(5) {
		if t, ok := o.called(); ok {
			if isPaused := o.InForce().ClaimsPaused; o.try(&Admit{o.now, t, NewPassID(o.policy.Origin, t)}, RuleAdmission) == isPaused {
				o.Fatalf("a called ticket is admitted: %t, claims are paused: %t", !isPaused, isPaused)
			}
		}
	}
}

func (o *outages) extend() {
	if t, ok := o.called(); ok {
		o.try(&Extend{o.now, t}, RuleExtend)
	}
}

func (o *outages) depart() {
	if t, st, ok := o.any(); ok && st.Settled == 0 {
		reason := []Reason{Left, Revoked, RevokedBot}[o.random.IntN(3)]
		if !reason.IsRevoked() || !o.AwaitsDraw(t) {
			o.must(&Skip{o.now, t, reason})
		}
	}
}

func (o *outages) restore() {
	for range 10 {
		t, st, ok := o.any()
		if !ok || !st.Reason.IsRevoked() {
			continue
		}
		waiting := o.Waiting()
		if o.try(&Restore{o.now, t}, RuleRestore, RuleOutflow, RuleSeats) && o.Waiting() > waiting {
			for t, st := range o.seen { // its lane pays for the call, so others may be called before those behind it
				st.BeforeMax = math.MaxUint64
				o.seen[t] = st
			}
		}
		return
	}
	o.depart()
}

func (o *outages) showLater() {
	t := numbered(o.joined - min(o.joined, o.random.Uint64N(8))) // one of the latest
	st, ok := o.Standing(t, o.size, o.now)
	if ok && st.Settled == 0 && o.now < st.Window.To && !DoorOf(o.State).HasShown(t, "club") {
		o.must(o.merit(o.now, t, o.show("club", st.Lane, t)))
	}
}

func (o *outages) pause() {
	e := &Amend{Time: o.now, Change: ChangeResume}
	if o.random.IntN(2) == 0 {
		e.Change, e.Claims = ChangePause, o.random.IntN(2) == 0
	}
	o.try(e, RuleAmend)
}

func (o *outages) amendPace() {
	o.must(&Amend{Time: o.now, Change: ChangeOutflow, Outflow: Outflow{PerMinute: 1 + o.random.Uint32N(6000)}})
}

func (o *outages) amendSeats() {
	o.try(&Amend{Time: o.now, Change: ChangeSeats, Seats: 1 + o.random.Uint32N(200)}, RuleAmend)
}

func (o *outages) amendWindows() {
	from := o.now + Time(o.policy.Notice) + Time(o.random.IntN(20_000))
	if w, ok := o.schedule.At(from); ok {
		from = w.To
	}
	e := &Amend{Time: o.now, Change: ChangeWindows, Closes: from + Time(o.random.IntN(120_000))}
	if o.random.IntN(2) == 0 {
		e.Windows = []WindowRule{{from, MinWindow + Millis(o.random.IntN(30_000))}}
	}
	o.try(e, RuleAmend)
}

func (o *outages) gate() {
	o.try(&Amend{Time: o.now, Change: []Change{ChangeOpen, ChangeShut}[o.random.IntN(2)]}, RuleAmend)
}

// pass lets time pass. If the server is down, nothing is written in it, and a part of the time up to the grace counts
// for called visitors. Otherwise all of it does.
func (o *outages) pass(by Time) {
	o.Helper()
	before := o.left()
	o.now += by
	ran := Millis(min(o.now-o.State.now, Time(o.policy.Grace))) - Millis(min(o.now-by-o.State.now, Time(o.policy.Grace)))
	if o.InForce().Paused {
		ran = 0
	}
	if len(before) > 0 && ran < Millis(by) && !o.InForce().Paused {
		o.gaps++
	}
	for t, was := range before {
		st, _ := o.Standing(t, o.size, o.now)
		if st.Left != max(0, was-ran) {
			o.Fatalf("in %d ms a called ticket has %d ms left, after %d: want %d ms less", by, st.Left, was, ran)
		}
		isLate := was <= ran
		skip := &Skip{o.now, t, NoShow}
		if due, ok := o.FreezeDue(); ok && due <= o.now {
			continue // the freeze comes first
		}
		mark := o.Mark()
		err := o.State.Apply(skip, &o.oracle)
		if (err == nil) != isLate {
			o.Fatalf("after %d ms, of which %d count, a called ticket that had %d ms left is skipped: %v", by, ran, was, err)
		}
		if err == nil {
			o.Undo(mark)
		}
	}
}

// left returns the time left of all called tickets.
func (o *outages) left() map[Ticket]Millis {
	clear(o.claims)
	for n := range o.joined {
		if st, _ := o.Standing(numbered(n), o.size, o.now); st.Status == StatusCalled {
			o.claims[numbered(n)] = st.Left
		}
	}
	return o.claims
}

// mayEnd checks that the room can end at any time.
func (o *outages) mayEnd() {
	o.Helper()
	mark := o.Mark()
	if err := o.State.Apply(&End{o.now}, &o.oracle); err != nil {
		o.Fatalf("the room cannot end: %v", err)
	}
	o.Undo(mark)
}

// isSettled checks that nothing is due after a write, except for draws whose round is not known.
func (o *outages) isSettled() {
	o.Helper()
	if due, ok := o.FreezeDue(); ok && due <= o.now {
		o.Fatalf("the window that ended at %d is not frozen at %d", due, o.now)
	}
	if p := o.Pending(); len(p) > 0 && (o.policy.Beacon == nil || o.hasRound(p[0].Due)) {
		o.Fatalf("window %d is not drawn", p[0].Window)
	}
}

// drain lets the room go on without outages and without new acts, until everybody is admitted or skipped, and then ends
// it: by its schedule, as a server does.
func (o *outages) drain() {
	o.Helper()
	o.acts, o.noRounds = nil, 0
	if o.InForce().Paused {
		o.write()
		o.must(&Amend{Time: o.now, Change: ChangeResume})
	}
	o.must(&Amend{Time: o.now, Change: ChangeOutflow, Outflow: Outflow{PerMinute: 60_000}})
	for range 10_000 {
		o.pass(Time(o.policy.Grace) / 2)
		o.write()
		if o.seats > 0 && o.seats < math.MaxUint32 {
			o.try(&Amend{Time: o.now, Change: ChangeSeats, Seats: math.MaxUint32}, RuleAmend)
		}
		if o.schedule.Closes() > o.now+Time(o.policy.Notice) {
			w, _ := o.schedule.At(o.now + Time(o.policy.Notice) - 1)
			o.try(&Amend{Time: o.now, Change: ChangeWindows, Closes: max(w.To, o.now+Time(o.policy.Notice))}, RuleAmend)
		}
		c := o.Counts()
		if o.now >= o.schedule.Closes() && c.InLine == 0 && c.Waiting == 0 && c.Assigned == c.Arrivals {
			o.must(&End{o.now})
			return
		}
	}
	o.Fatalf("the room never ends: %+v", o.Counts())
}

// play plays a room.
func (o *outages) play() {
	o.Helper()
	for range 80 + o.random.IntN(80) {
		switch o.random.IntN(20) {
		case 0: // the server is down
			o.pass(Time(o.random.Int64N(int64(o.policy.Claim+o.policy.Grace) * 3)))
			o.mayEnd()
		case 1:
			o.noRounds = o.now + Time(o.random.IntN(60_000))
		case 2:
			o.noWitnesses = o.now + Time(o.random.IntN(60_000))
		default:
			o.pass(Time(o.random.IntN(int(o.policy.Grace) / 2)))
		}
		o.append()
		o.isSettled()
		o.look()
	}
	o.drain()
	o.look()
}

// TestOutages plays rooms with any of the mechanisms while the server, the beacon and the witnesses are away at random.
// Each room can always go on or end, and does end; no place gets worse; an outage takes no more than the grace off a
// called visitor's time, and nothing else does but time in which entries are written. With PROOFLINE_ROOMS=N there are N
// rooms.
func TestOutages(t *testing.T) {
	t.Parallel()
	const comparisons = 20 // in one of so many rooms, because a comparison takes as long as a room
	rooms, first := uint64(200), *outageSeed
	if n, err := strconv.ParseUint(os.Getenv("PROOFLINE_ROOMS"), 10, 32); err == nil {
		rooms = n
	}
	if first == 0 {
		first = rand.Uint64()
	}
	had, kinds, gaps := map[string]int{}, map[string]int{}, 0
	t.Logf("%d rooms from -outage-seed %d", rooms, first)
	defer func() { t.Logf("%d outages while visitors were called, entries: %v", gaps, kinds) }()
	for seed := first; seed != first+rooms; seed++ {
		o := newOutages(t, seed)
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("the room of -outage-seed %d with %s:\n%s", seed, strings.Join(o.names, ", "), o.texts[0])
				}
			}()
			o.play()
			if (seed-first)%comparisons > 0 {
				return
			}
			if diff := diffState(o.replayed(), o.State); diff != "" {
				t.Fatalf("a replay of the entries gives another state (-replay +room):\n%s", diff)
			}
		}()
		for _, text := range o.texts {
			kind, _, _ := strings.Cut(text, " ")
			kinds[kind]++
		}
		for _, name := range o.names {
			had[name]++
		}
		gaps += o.gaps
	}
	for _, m := range mechanisms {
		if had[m.name] < int(rooms)/3 {
			t.Errorf("only %d of %d rooms have %s", had[m.name], rooms, m.name)
		}
	}
	for _, kind := range []Kind{KindArrive, KindMerit, KindFreeze, KindDraw, KindAssign, KindCall, KindExtend, KindRestore, KindAdmit,
		KindSkip, KindAmend, KindBeat, KindEnd} {
		if kinds[string(kind)] < int(rooms)/3 {
			t.Errorf("only %d entries in %d rooms are %s", kinds[string(kind)], rooms, kind)
		}
	}
	if gaps < int(rooms) {
		t.Errorf("only %d outages while visitors were called", gaps)
	}
}

// replayed returns the state that the entries give.
func (o *outages) replayed() *State {
	s, oracle := &State{}, fakeOracle{fakesRounds: true}
	for _, text := range o.texts {
		e, err := ParseEntry([]byte(text))
		if err == nil {
			err = s.Apply(e, &oracle)
		}
		if err != nil {
			o.Fatalf("replay %q: %v", text, err)
		}
		oracle.root = sha256.Sum256(append(oracle.root[:], text...))
	}
	return s
}

// fakeRound returns the signature that [fakeOracle] takes for a round, if it fakes rounds.
func fakeRound(round uint64) []byte {
	sum := sha512.Sum384(binary.BigEndian.AppendUint64(nil, round))
	return sum[:]
}

func isFakeRound(round uint64, signature []byte) error {
	if !bytes.Equal(signature, fakeRound(round)) {
		return errors.New("not the signature of this round")
	}
	return nil
}
