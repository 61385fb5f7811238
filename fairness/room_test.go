package fairness

import (
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
)

// recount recomputes a transcript's results independently and slowly, from valid entries. [State.Standing],
// [State.Counts] and [State.Windows] must agree with it.
type recount struct {
	policy  Policy
	tickets map[Ticket]*Standing
	order   []Ticket          // of arrival
	lines   map[Lane][]Ticket // of the calls; zero where nobody has the place
	drums   map[drumKey][]Ticket
	called  map[Lane]uint64
	clocks  map[Ticket]Time
	stopped map[Ticket]Time // clocks at which called tickets were skipped
	longer  map[Ticket]bool // tickets that were extended
	windows []WindowSum
	counts  Counts
}

// drumKey names a drum.
type drumKey struct {
	window WindowIndex
	slot   int
	lane   Lane
}

// draws returns the time at which the round for a window that ends at to appears, or of the round after it.
func (c *recount) draws(round uint64, to Time) Time {
	b := c.policy.Beacon
	switch {
	case b == nil:
		return to
	case round == 0:
		round = 1
		for period := Time(b.Period) * 1000; Time(b.Genesis)*1000+Time(round-1)*period <= to+Time(b.Margin); {
			round++
		}
	}
	return 1000 * (Time(b.Genesis) + Time(b.Period)*Time(round-1))
}

// recountOf parses entries. It computes the claim clock, which stands still in a pause and in long gaps, from all of
// them, even from later ones.
func recountOf(entries, all []Entry, now Time) *recount {
	c := &recount{tickets: map[Ticket]*Standing{}, lines: map[Lane][]Ticket{}, drums: map[drumKey][]Ticket{}, called: map[Lane]uint64{}, clocks: map[Ticket]Time{}, stopped: map[Ticket]Time{}, longer: map[Ticket]bool{}}
	clock := func(at Time) (running Time) {
		since, paused, grace := Time(0), true, Time(0)
		reach := func(t Time) {
			if !paused {
				running += min(t-since, grace)
			}
			since = t
		}
		for _, e := range all {
			if _, timeless := e.(*Assign); timeless || timeOf(e) > at {
				continue
			}
			reach(timeOf(e))
			switch e := e.(type) {
			case *Room:
				paused, grace = false, Time(e.Grace)
			case *Amend:
				paused = e.Change == ChangePause || paused && e.Change != ChangeResume
			}
		}
		reach(at)
		return running
	}
	var schedule []Entry // room entry, and amendments of windows
	for i, e := range entries {
		index := EntryIndex(i)
		switch e := e.(type) {
		case *Room:
			c.policy = e.Policy
			schedule = append(schedule, e)
		case *Arrive:
			c.arrive(e, index, schedule)
		case *Merit:
			c.put(c.tickets[e.Ticket], e.Credential)
		case *Freeze:
			for k := range c.windows {
				if c.windows[k].Index == e.Window {
					c.windows[k].Frozen, c.windows[k].Draws = true, c.draws(e.Round, c.windows[k].To)
				}
			}
		case *Draw:
			c.draw(e)
		case *Assign:
			c.counts.Assigned++
			if c.lines[e.Lane][e.Position-1] != e.Ticket {
				panic("an assignment that is not the shuffle's")
			}
		case *Call:
			for i, lane := range c.policy.Lanes {
				for _, ticket := range c.lines[lane.Name][c.called[lane.Name]:e.UpTo[i]] {
					c.clocks[ticket] = clock(e.Time)
					if st := c.tickets[ticket]; st != nil && st.Status == StatusDrawn {
						st.Status = StatusCalled
						c.counts.Waiting++
						c.counts.Held += uint64(st.Seats)
					}
				}
				c.called[lane.Name] = uint64(e.UpTo[i])
			}
			c.counts.Called = uint64(e.Places())
		case *Restore:
			c.restore(e.Ticket, clock(e.Time))
		case *Extend:
			c.clocks[e.Ticket] += Time(c.policy.Extend)
			c.longer[e.Ticket] = true
		case *Admit:
			c.settle(e.Ticket, StatusAdmitted, "", e.Time, index, &c.counts.Admitted)
		case *Skip:
			sum := map[Reason]*uint64{NoShow: &c.counts.NoShows, Left: &c.counts.Left, Revoked: &c.counts.Revoked, TooLarge: &c.counts.TooLarge}[e.Reason]
			if c.tickets[e.Ticket].Status == StatusCalled {
				c.stopped[e.Ticket] = clock(e.Time)
			}
			c.settle(e.Ticket, StatusSkipped, e.Reason, e.Time, index, sum)
		case *Amend:
			c.counts.Amends++
			if e.Change == ChangeWindows {
				schedule = append(schedule, e)
			}
		}
	}
	for _, st := range c.tickets {
		if st.Status == StatusWaiting || st.Status == StatusDrawn {
			c.counts.InLine++
		}
	}
	for name, line := range c.lines {
		for place, ticket := range line {
			st := c.tickets[ticket]
			if st == nil {
				continue
			}
			if st.Status == StatusDrawn {
				st.AheadMin = uint64(place) - c.called[name]
				st.AheadMax = st.AheadMin
				c.counts.Ready++
			}
			if st.Status == StatusCalled {
				st.Left = max(0, c.policy.Claim-Millis(clock(now)-c.clocks[ticket]))
				st.Extended = c.longer[ticket]
			}
		}
	}
	for _, ticket := range c.order {
		if st := c.tickets[ticket]; st.Status == StatusWaiting {
			before, own := uint64(len(c.lines[st.Lane])), uint64(0)
			for _, w := range c.windows {
				switch {
				case w.Drawn:
				case w.Index < st.Window.Index:
					before += uint64(c.places(w.Window, st.Lane))
				case w.Index == st.Window.Index:
					own = uint64(c.places(w.Window, st.Lane))
				}
			}
			st.AheadMin = before - c.called[st.Lane]
			st.AheadMax = st.AheadMin + own - 1
		}
	}
	return c
}

// arrive finds the window of an arrival by listing all windows.
func (c *recount) arrive(e *Arrive, index EntryIndex, schedule []Entry) {
	var rules []WindowRule
	closes := Never
	for _, s := range schedule {
		add, from := []WindowRule(nil), Time(0)
		switch s := s.(type) {
		case *Room:
			add, closes = s.Windows, s.Closes
		case *Amend:
			add, closes = s.Windows, s.Closes
		}
		kept := []WindowRule(nil)
		if len(add) > 0 {
			from = add[0].From
		}
		for i, r := range rules {
			if (len(add) == 0 || r.From < from) && (i == 0 || r.From < closes) {
				kept = append(kept, r)
			}
		}
		rules = append(kept, add...)
	}
	w := Window{Index: 1 << 63}
	for _, laid := range laidOut(rules, min(closes, e.Time+1_000_000)) {
		if e.Time >= laid.From && e.Time < laid.To {
			w = laid
		}
	}
	if n := len(c.windows); n == 0 || c.windows[n-1].Index != w.Index {
		c.windows = append(c.windows, WindowSum{Window: w, Draws: c.draws(0, w.To), Lots: make([]uint32, c.slots(w)*len(c.policy.Lanes))})
		c.counts.Windows++
	}
	last := &c.windows[len(c.windows)-1]
	seq := uint32(len(c.drums[drumKey{w.Index, c.slot(w, e.Time), e.Lane}]))
	c.counts.Seats += uint64(max(e.Seats, 1))
	c.tickets[e.Ticket] = &Standing{
		Seats: max(e.Seats, 1), Ticket: e.Ticket, Index: index, Joined: e.Time, Window: w, Slot: c.slot(w, e.Time), Seq: seq, Lane: e.Lane, Status: StatusWaiting,
	}
	c.order = append(c.order, e.Ticket)
	last.Arrivals++
	c.counts.Arrivals++
	c.put(c.tickets[e.Ticket], append([]credential.Credential{{}}, e.Credentials...)...)
}

// put puts a lot into the drum of a ticket for each credential that gives one; one without a method is the first.
func (c *recount) put(st *Standing, list ...credential.Credential) {
	for _, one := range list {
		if one.Method != "" && !slices.Contains(c.policy.Lots, one.Method) {
			continue
		}
		slot, last := c.slot(st.Window, st.Joined), &c.windows[len(c.windows)-1]
		key := drumKey{st.Window.Index, slot, st.Lane}
		c.drums[key] = append(c.drums[key], st.Ticket)
		lane := slices.IndexFunc(c.policy.Lanes, func(l LaneRule) bool { return l.Name == st.Lane })
		last.Lots[slot*len(c.policy.Lanes)+lane]++
	}
}

// slots returns the number of slots of a window.
func (c *recount) slots(w Window) (n int) {
	if c.policy.Slots == 0 || w.From != c.policy.Opens {
		return 1
	}
	for from := w.From; from < w.To; from += Time(c.policy.Slots) {
		n++
	}
	return n
}

func (c *recount) slot(w Window, t Time) (n int) {
	if c.slots(w) == 1 {
		return 0
	}
	for w.From+Time(n+1)*Time(c.policy.Slots) <= t {
		n++
	}
	return n
}

// filled returns the numbers of lots of a lane in the slots of a window, with empty ones.
func (c *recount) filled(w Window, lane Lane) (sizes []int) {
	total, half := 0, 0
	for slot := range c.slots(w) {
		sizes = append(sizes, len(c.drums[drumKey{w.Index, slot, lane}]))
		total += sizes[slot]
	}
	for 2*half*len(sizes) < total {
		half++
	}
	for slot := range sizes {
		sizes[slot] = max(sizes[slot], half)
	}
	return sizes
}

func (c *recount) places(w Window, lane Lane) (n int) {
	for _, size := range c.filled(w, lane) {
		n += size
	}
	return n
}

func (c *recount) draw(e *Draw) {
	for k := range c.windows {
		w := &c.windows[k]
		if w.Index == e.Window {
			w.Drawn, w.First = true, 1
			for _, line := range c.lines {
				w.First += Position(len(line))
			}
			for _, lane := range c.policy.Lanes {
				c.drawLane(w.Window, lane.Name, e.Seed)
			}
		}
	}
}

// drawLane finds the place of each lot without dealing: from its number in the order of its slot.
func (c *recount) drawLane(w Window, lane Lane, seed Seed) {
	sizes := c.filled(w, lane)
	line, turns := make([]Ticket, c.places(w, lane)), []uint32{0}
	name := func(slot int) Lane { return lane }
	if len(sizes) > 1 {
		name = func(slot int) Lane { return lane + "/" + Lane(strconv.Itoa(slot)) }
		turns = newReference(seed, lane+"/").shuffle(len(sizes))
	}
	for slot, size := range sizes {
		drum := c.drums[drumKey{w.Index, slot, lane}]
		for rank, seq := range newReference(seed, name(slot)).shuffle(size) {
			place, own := 0, slices.Index(turns, uint32(slot))
			for other, size := range sizes {
				place += min(size, rank)
				if size > rank && slices.Index(turns, uint32(other)) < own {
					place++
				}
			}
			if int(seq) < len(drum) {
				line[place] = drum[seq]
			}
		}
	}
	for _, ticket := range line {
		st := c.tickets[ticket]
		if st == nil || st.Position > 0 {
			c.lines[lane] = append(c.lines[lane], Ticket{})
			continue
		}
		c.lines[lane] = append(c.lines[lane], ticket)
		st.Position = Position(len(c.lines[lane]))
		if st.Status == StatusWaiting {
			st.Status = StatusDrawn
		}
		c.counts.Drawn++
	}
}

// restore takes a skip back, at a time of the claim clock.
func (c *recount) restore(t Ticket, clock Time) {
	st := c.tickets[t]
	st.Restored = true
	c.counts.Revoked--
	st.Reason, st.Settled, st.SettledIndex = "", 0, 0
	switch {
	case st.Position == 0:
		st.Status = StatusWaiting
	case uint64(st.Position) > c.called[st.Lane]:
		st.Status = StatusDrawn
	default:
		st.Status = StatusCalled
		c.counts.Waiting++
		c.counts.Held += uint64(st.Seats)
		if stopped, ok := c.stopped[t]; ok {
			c.clocks[t] += clock - stopped
		} else {
			c.clocks[t] = clock
		}
	}
}

func (c *recount) settle(t Ticket, status Status, reason Reason, at Time, index EntryIndex, sum *uint64) {
	st := c.tickets[t]
	if st.Status == StatusCalled {
		c.counts.Waiting--
		c.counts.Held -= uint64(st.Seats)
	}
	if status == StatusAdmitted {
		c.counts.Sold += uint64(st.Seats)
	}
	st.Status, st.Reason, st.Settled, st.SettledIndex = status, reason, at, index
	*sum++
}

// check compares a state with the recount of its entries, and the standing of tickets at an earlier size with
// the recount of the entries up to there.
func (c *recount) check(t *testing.T, s *State, size uint64, now Time) {
	t.Helper()
	for _, ticket := range c.order {
		want := *c.tickets[ticket]
		got, ok := s.Standing(ticket, size, now)
		gaps := s.policy.HasGaps() // places ahead may be nobody's
		if !gaps && (got.BeforeMin < got.AheadMin || got.BeforeMax < got.AheadMax) || got.BeforeMax < got.BeforeMin || s.lanes.isPlain && got.BeforeMax != got.AheadMax {
			t.Fatalf("ticket %v: %d to %d ahead, and %d to %d before", ticket, got.AheadMin, got.AheadMax, got.BeforeMin, got.BeforeMax)
		}
		if got.TicketsMin > got.AheadMin || got.TicketsMax > got.AheadMax || !gaps && (got.TicketsMin != got.AheadMin || got.TicketsMax != got.AheadMax) {
			t.Fatalf("ticket %v: %d to %d places ahead, and %d to %d tickets", ticket, got.AheadMin, got.AheadMax, got.TicketsMin, got.TicketsMax)
		}
		want.TicketsMin, want.TicketsMax = got.TicketsMin, got.TicketsMax
		want.BeforeMin, want.BeforeMax = got.BeforeMin, got.BeforeMax
		if size < s.Size() && len(c.policy.Lots) > 0 && got.Status == StatusWaiting {
			want.AheadMax = max(want.AheadMax, got.AheadMax) // may count lots that tickets got since
		}
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Fatalf("ticket %v at size %d of %d (-recount +got):\n%s", ticket, size, s.Size(), diff)
		}
	}
	if size != s.Size() {
		return
	}
	if diff := cmp.Diff(c.counts, s.Counts()); diff != "" {
		t.Fatalf("counts (-recount +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.windows, s.Windows(math.MaxInt)); len(c.windows) > 0 && diff != "" {
		t.Fatalf("windows (-recount +got):\n%s", diff)
	}
}

// walk plays a room determined by bytes: with entries that must be accepted because the state proposed them,
// entries that must be refused, and any in between.
type walk struct {
	t       *testing.T
	data    []byte
	s       State
	oracle  fakeOracle
	entries []Entry // accepted
	tickets []Ticket
	now     Time
	noShows Scan
	club    *issuertest.Issuer
	account int
}

// pick returns a number from 0 to n-1; without bytes left, 0.
func (w *walk) pick(n int) int {
	if len(w.data) == 0 {
		return 0
	}
	v := int(w.data[0])
	w.data = w.data[1:]
	return v % n
}

// try applies an entry. An entry that cannot be parsed again must not be accepted.
func (w *walk) try(e Entry) error {
	w.t.Helper()
	text := AppendEntry(nil, e)
	parsed, unreadable := ParseEntry(text)
	size, counts := w.s.Size(), w.s.Counts()
	if err := w.s.Apply(e, &w.oracle); err != nil {
		if w.s.Size() != size || w.s.Counts() != counts {
			w.t.Fatalf("refused %q, and the state changed", text)
		}
		return err
	}
	if unreadable != nil {
		w.t.Fatalf("accepted %q: %v", text, unreadable)
	}
	if w.s.Size() != size+1 {
		w.t.Fatalf("accepted %q, and the size is %d after %d", text, w.s.Size(), size)
	}
	if arrive, ok := e.(*Arrive); ok {
		w.tickets = append(w.tickets, arrive.Ticket)
	}
	w.entries = append(w.entries, parsed)
	w.oracle.root = sha256.Sum256(append(w.oracle.root[:], text...))
	return nil
}

func (w *walk) lane() Lane { return w.s.lanes.all[w.pick(len(w.s.lanes.all))].name }

func (w *walk) must(e Entry) {
	w.t.Helper()
	if err := w.try(e); err != nil {
		w.t.Fatalf("%q: %v", AppendEntry(nil, e), err)
	}
}

func (w *walk) never(e Entry) {
	w.t.Helper()
	if w.try(e) == nil {
		w.t.Fatalf("accepted %q", AppendEntry(nil, e))
	}
}

func (w *walk) ticket() Ticket {
	if len(w.tickets) == 0 {
		return ticket1
	}
	return w.tickets[w.pick(len(w.tickets))]
}

// detour takes steps, and undoes them.
func (w *walk) detour(steps int) {
	mark, before := w.s.Mark(), *w
	for range steps {
		w.step()
	}
	w.s.Undo(mark)
	w.entries, w.tickets, w.oracle, w.now, w.noShows = before.entries, before.tickets, before.oracle, before.now, before.noShows
}

// step does one thing, and also tries the opposite of what the state proposes.
func (w *walk) step() {
	s := &w.s
	if due, ok := s.FreezeDue(); ok && w.now >= due {
		w.never(&Amend{Time: w.now, Change: ChangeMessage})
		if s.Ended() || w.pick(50) == 0 {
			_ = w.try(&End{w.now})
			return
		}
		w.freeze()
	}
	switch w.pick(20) {
	case 18:
		w.merit()
	case 19:
		w.join()
	case 16:
		w.extend()
	case 17:
		w.restore()
	case 0, 1:
		w.now += Time(w.pick(256)) * 7
	case 2:
		w.now += Time(w.pick(256)) * 400
	case 3, 4, 5:
		w.join()
	case 6:
		if e, ok := s.NextArrive(w.now, w.ticket(), w.lane()); ok && s.Knows(e.Ticket) {
			w.never(&e)
		}
	case 7:
		w.freeze()
	case 8:
		if e, ok := s.NextDraw(w.now, nil); ok {
			w.must(e)
		} else if s.windows.drawn < len(s.windows.all) {
			win := &s.windows.all[s.windows.drawn]
			w.never(&Draw{Time: w.now, Window: win.Index, Seed: NewSeed(win.alpha, win.beta, 0, nil)})
		}
	case 9:
		for range 1 + w.pick(8) {
			if e, ok := s.NextAssign(); ok {
				w.must(&e)
			} else {
				w.never(&Assign{0, w.lane(), Position(s.Counts().Assigned + 1), w.ticket()})
			}
		}
	case 10:
		w.call()
	case 11:
		e := &Admit{Time: w.now, Ticket: w.ticket()}
		e.Pass = NewPassID(s.policy.Origin, e.Ticket)
		st, ok := s.Standing(e.Ticket, s.Size(), w.now)
		w.expect(e, ok && st.Status == StatusCalled && st.Left > 0 && !s.InForce().ClaimsPaused)
	case 12:
		e := &Skip{w.now, w.ticket(), []Reason{NoShow, Left, Revoked, TooLarge}[w.pick(4)]}
		st, ok := s.Standing(e.Ticket, s.Size(), w.now)
		unsettled := ok && st.Status != StatusAdmitted && st.Status != StatusSkipped && (e.Reason != Revoked || !s.AwaitsDraw(e.Ticket))
		if e.Reason == TooLarge {
			ticket, ok := s.TooLarge()
			w.expect(e, ok && ticket == e.Ticket)
			return
		}
		w.expect(e, unsettled && (e.Reason != NoShow || st.Status == StatusCalled && st.Left == 0))
	case 13:
		w.late()
	case 14:
		w.amend()
	case 15:
		w.anything()
	}
}

// expect applies an entry, which must be accepted or refused as given.
func (w *walk) expect(e Entry, allowed bool) {
	w.t.Helper()
	if allowed && !w.s.Ended() {
		w.must(e)
	} else {
		w.never(e)
	}
}

func (w *walk) restore() {
	var revoked []Ticket
	for _, t := range w.tickets {
		if st, ok := w.s.Standing(t, w.s.Size(), w.now); ok && st.Reason == Revoked {
			revoked = append(revoked, t)
		}
	}
	e := &Restore{w.now, w.ticket()}
	if len(revoked) > 0 {
		e.Ticket = revoked[w.pick(len(revoked))]
	}
	isFirst := !slices.ContainsFunc(w.entries, func(other Entry) bool {
		before, ok := other.(*Restore)
		return ok && before.Ticket == e.Ticket
	})
	st, _ := w.s.Standing(e.Ticket, w.s.Size(), w.now)
	allowed := slices.Contains(revoked, e.Ticket) && isFirst && !w.s.AwaitsDraw(e.Ticket)
	lane, _ := w.s.lanes.index(st.Lane)
	if st.Position > 0 && st.Position <= w.s.lanes.all[max(lane, 0)].called() {
		n := w.s.Counts()
		isAffordable := int64(st.Seats)*60_000 <= w.s.pace.at(w.now).credit
		allowed = allowed && !w.s.InForce().Paused && isAffordable && (w.s.seats == 0 || n.Held+n.Sold+uint64(st.Seats) <= uint64(w.s.seats))
	}
	w.expect(e, allowed)
}

func (w *walk) extend() {
	e := &Extend{w.now, w.ticket()}
	st, ok := w.s.Standing(e.Ticket, w.s.Size(), w.now)
	isFirst := !slices.ContainsFunc(w.entries, func(other Entry) bool {
		before, ok := other.(*Extend)
		return ok && before.Ticket == e.Ticket
	})
	w.expect(e, ok && st.Status == StatusCalled && st.Left > 0 && !w.s.InForce().ClaimsPaused && isFirst && w.s.policy.Extend > 0)
}

func (w *walk) join() {
	ticket := numbered(uint64(len(w.tickets)))
	lane := w.lane()
	e, ok := w.s.NextArrive(w.now, ticket, lane)
	if !ok {
		win, _ := w.s.Schedule().At(w.now)
		w.never(&Arrive{w.now, win.Index, uint32(w.pick(4)), ticket, lane, 0, nil})
		return
	}
	e.Credentials = w.show(lane, ticket)
	if party := w.s.policy.Party; party > 0 {
		e.Seats = uint32(w.pick(int(party) + 2))
		w.expect(&e, e.Seats != 1 && e.Seats <= party)
		return
	}
	w.must(&e)
}

// show returns a credential, now and then.
func (w *walk) show(lane Lane, t Ticket) []credential.Credential {
	if len(w.s.policy.Methods) == 0 || w.pick(3) == 0 {
		return nil
	}
	w.account++
	return []credential.Credential{w.club.Show(w.s.Subject(lane, t), w.account)}
}

// merit shows what a ticket has not shown at its arrival.
func (w *walk) merit() {
	t := w.ticket()
	st, ok := w.s.Standing(t, w.s.Size(), w.now)
	for _, c := range w.show(st.Lane, t) {
		isLate := w.now >= st.Window.To || st.Settled > 0
		e := w.s.merit(w.now, t, c)
		w.expect(e, ok && !isLate && !DoorOf(&w.s).HasShown(t, c.Method))
		e.Seq++
		w.never(e)
	}
}

func (w *walk) freeze() {
	s := &w.s
	e, alpha, ok := s.NextFreeze(w.now, w.oracle.root)
	if !ok {
		if s.windows.frozen < len(s.windows.all) {
			win := &s.windows.all[s.windows.frozen]
			e = &Freeze{Time: w.now, Window: win.Index, Lots: win.freezes(), Size: s.size, Root: w.oracle.root}
			e.Proof = fakeProof(s.policy.VRFKey, Alpha(s.roomHash, e))
			w.never(e)
		}
		return
	}
	e.Proof = fakeProof(s.policy.VRFKey, alpha)
	w.must(e)
}

func (w *walk) call() {
	s := &w.s
	other := &Call{w.now, make([]Position, len(s.lanes.all))} // another than that of the rules
	for i := range s.lanes.all {
		other.UpTo[i] = s.lanes.all[i].called()
	}
	if e, _ := s.NextCall(w.now, uint64(w.pick(4))); e != nil {
		w.must(e)
		other = e
	}
	if e, _ := s.NextCall(w.now, math.MaxUint64); e != nil {
		w.must(e)
		other = e
	}
	w.never(other)
	other.UpTo[w.pick(len(other.UpTo))]++
	_ = w.try(other) // may be a party less than what the credit allows
	if ticket, ok := s.TooLarge(); ok {
		w.must(&Skip{w.now, ticket, TooLarge})
	}
}

func (w *walk) late() {
	s := &w.s
	tickets, next := s.NoShows(w.noShows, w.now, 1+w.pick(5))
	for _, t := range tickets {
		w.must(&Skip{w.now, t, NoShow})
	}
	w.noShows = next
	all, end := s.NoShows(Scan{}, w.now, math.MaxInt)
	for _, t := range all {
		w.must(&Skip{w.now, t, NoShow})
	}
	if more, _ := s.NoShows(Scan{}, w.now, math.MaxInt); len(more) > 0 {
		w.t.Fatalf("%d no-shows are left after all were skipped", len(more))
	}
	for i := range s.lanes.all {
		l := &s.lanes.all[i]
		if end.lanes[i] > l.places {
			continue
		}
		if number, ok := l.holder(&s.arrivals, end.lanes[i]); ok {
			w.never(&Skip{w.now, s.arrivals.At(number).ticket, NoShow})
		}
	}
}

func (w *walk) amend() {
	e := &Amend{Time: w.now}
	switch w.pick(12) {
	case 11:
		c := w.s.Counts()
		e.Change, e.Seats = ChangeSeats, uint32(c.Held+c.Sold)+uint32(w.pick(20))-2
		isWhole := w.s.windows.frozen == w.s.windows.drawn
		w.expect(e, w.s.seats > 0 && e.Seats > 0 && int64(e.Seats) >= int64(c.Held+c.Sold) && isWhole)
		return
	case 8, 9:
		e.Change = []Change{ChangeOpen, ChangeShut}[w.pick(2)]
		isInLine := func(t Ticket) bool {
			st, _ := w.s.Standing(t, w.s.Size(), w.now)
			return st.Status == StatusWaiting || st.Status == StatusDrawn
		}
		w.expect(e, w.s.InForce().Open == (e.Change == ChangeShut) && (w.s.InForce().Open || !w.s.InForce().Paused && !slices.ContainsFunc(w.tickets, isInLine)))
		return
	case 10:
		w.expect(&Tell{Time: w.now, Subject: TellUnguarded, From: w.now, Until: w.now + 1 - Time(w.pick(4)), Count: uint64(w.pick(256))}, true)
		return
	case 0:
		e.Change, e.Outflow = ChangeOutflow, Outflow{PerMinute: []uint32{0, 1, 60, 6000, MaxRate, MaxRate + 1}[w.pick(6)]}
	case 1, 2:
		e.Change, e.Claims = ChangePause, w.pick(2) == 0
		w.expect(e, !w.s.InForce().Paused || w.s.InForce().ClaimsPaused != e.Claims)
		return
	case 3, 4:
		e.Change = ChangeResume
		w.expect(e, w.s.InForce().Paused)
		return
	case 5:
		e.Change, e.Message = ChangeMessage, hash1
	default:
		e.Change, e.Closes = ChangeWindows, Never
		if w.pick(2) == 0 {
			e.Closes = w.now + Time(MinNotice) + Time(w.pick(256))*1000
		}
		from := w.now + Time(MinNotice) - 1
		if last, ok := w.s.Schedule().At(from); ok {
			from = last.To
		}
		from += Time(w.pick(5)-1) * 500
		for range w.pick(3) {
			e.Windows = append(e.Windows, WindowRule{from, Millis(100 * w.pick(60))})
			from += Time(w.pick(256)) * 100
		}
	}
	_ = w.try(e)
}

// anything returns an entry that is nearly right.
func (w *walk) anything() {
	at := w.now + Time(w.pick(3)-1)
	places := make([]Position, len(w.s.lanes.all))
	for i := range places {
		places[i] = w.s.lanes.all[i].called() + Position(w.pick(3))
	}
	lane, place := w.lane(), places[0]+Position(w.pick(3))-1
	window := WindowIndex(w.pick(4))
	for _, e := range []Entry{
		&Room{w.s.policy}, &Merit{Time: at, Ticket: w.ticket()}, &Beat{Time: at}, &End{at},
		&Arrive{at, window, uint32(w.pick(4)), ticket1, lane, uint32(w.pick(3)), nil},
		&Freeze{Time: at, Window: window, Lots: []uint32{uint32(w.pick(4))}, Size: w.s.size, Root: w.oracle.root},
		&Draw{Time: at, Window: window}, &Assign{window, lane, place, w.ticket()},
		&Call{at, places}, &Admit{Time: at, Ticket: w.ticket()},
		&Skip{at, w.ticket(), Left}, &Skip{at, w.ticket(), "gone"},
	} {
		if _, end := e.(*End); w.pick(3) == 0 && (!end || w.pick(20) == 0) {
			if w.try(e) == nil && timeOf(e) > w.now {
				w.now = timeOf(e)
			}
		}
	}
}

// walkThrough plays the bytes and checks the result.
func walkThrough(t *testing.T, data []byte) *walk {
	w := &walk{t: t, data: data, now: base - second, club: issuertest.Signed("club", 0)}
	p := testPolicy()
	p.Windows[0].Length = Millis(100 * (1 + w.pick(256)))
	p.Windows[1].Length = Millis(100 * (1 + w.pick(256)))
	p.Starts = base + Time(w.pick(256))*500
	p.Outflow.PerMinute = []uint32{1, 60, 600, MaxRate}[w.pick(4)]
	p.Claim = Millis(1000 * (1 + w.pick(60)))
	p.Grace = []Millis{MinGrace, 10_000, MaxGrace}[w.pick(3)]
	p.Extend = []Millis{0, MinClaim, 20_000}[w.pick(3)]
	if w.pick(2) == 0 {
		p.Closes = Never
	}
	p.Lanes = lanesOf(1 + w.pick(3))
	for i := range p.Lanes {
		p.Lanes[i].Weight = uint32(1 + w.pick(int(MaxWeight)))
	}
	p.Party = uint32([]int{0, 0, 2, 5}[w.pick(4)])
	p.Seats = uint32([]int{0, 2, 5, 12}[w.pick(4)])
	if w.pick(2) == 0 {
		p.Methods = []credential.Method{w.club.Method}
		if w.pick(3) > 0 {
			p.Lots = []string{w.club.Method.Name}
		}
	}
	if w.pick(2) == 0 {
		p.Slots = p.Windows[0].Length / Millis(2+w.pick(6))
	}
	w.must(&Room{p})
	for len(w.data) > 0 {
		if w.pick(16) == 0 {
			w.detour(w.pick(12))
		}
		w.step()
	}

	// The accepted entries alone determine the state.
	var again State
	oracle := fakeOracle{}
	for i, e := range w.entries {
		if err := again.Apply(e, &oracle); err != nil {
			t.Fatalf("entry %d again: %v", i, err)
		}
		oracle.root = sha256.Sum256(append(oracle.root[:], AppendEntry(nil, e)...))
	}
	if diff := diffState(&again, &w.s); diff != "" {
		t.Fatalf("the accepted entries alone make another state (-again +got):\n%s", diff)
	}
	now := w.s.Now() + 1234
	for _, part := range []uint64{1, 4, 5, 6, 7, 8} {
		size := 1 + (w.s.Size()-1)*part/8
		recountOf(w.entries[:size], w.entries, now).check(t, &w.s, size, now)
	}
	type place struct {
		lane     Lane
		position Position
	}
	places := map[place]bool{}
	for _, ticket := range w.tickets {
		if st, ok := w.s.Standing(ticket, w.s.Size(), now); ok && st.Position > 0 {
			places[place{st.Lane, st.Position}] = true
		}
	}
	for i, n := range w.s.LaneCounts() {
		for p := range n.Drawn * uint64(1-min(1, len(w.s.policy.Lots)+int(w.s.policy.Slots))) { // others have gaps
			if !places[place{w.s.lanes.all[i].name, Position(p + 1)}] {
				t.Fatalf("place %d of lane %d has no ticket", p+1, i)
			}
		}
	}
	if len(places) != int(w.s.Counts().Drawn) {
		t.Fatalf("%d places, want %d", len(places), w.s.Counts().Drawn)
	}
	return w
}

// TestRandomRooms walks many rooms, and checks that the walks reach all kinds of entries.
func TestRandomRooms(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var sum Counts
	kinds := map[Kind]int{}
	for range 600 {
		data := make([]byte, 100+r.IntN(1500))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		w := walkThrough(t, data)
		c := w.s.Counts()
		total, one := reflect.ValueOf(&sum).Elem(), reflect.ValueOf(c)
		for i := range one.NumField() {
			total.Field(i).SetUint(total.Field(i).Uint() + one.Field(i).Uint())
		}
		for _, e := range w.entries {
			kinds[KindOf(e)]++
		}
	}
	for i := range reflect.TypeFor[Counts]().NumField() {
		if reflect.ValueOf(sum).Field(i).Uint() < 30 {
			t.Errorf("the walks hardly reach %s: %+v", reflect.TypeFor[Counts]().Field(i).Name, sum)
		}
	}
	for _, kind := range []Kind{KindMerit, KindFreeze, KindDraw, KindAssign, KindCall, KindExtend, KindRestore, KindAmend, KindTell, KindEnd} {
		if kinds[kind] < 20 {
			t.Errorf("the walks hardly have a %s: %v", kind, kinds)
		}
	}
}

func FuzzApply(f *testing.F) {
	seed := rand.New(rand.NewPCG(6, 6)) // rooms in which tickets are extended and restored
	for range 5 {
		data := make([]byte, 1500)
		for i := range data {
			data[i] = byte(seed.Uint32())
		}
		f.Add(data)
	}
	f.Add([]byte{9, 99, 1, 2, 3, 1, 2, 9, 3, 3, 3, 2, 200, 7, 8, 9, 7, 10, 3, 11, 0, 12, 1, 2, 13, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			data = data[:2000]
		}
		walkThrough(t, data)
	})
}

// TestRoomOfAllTime opens in 1970 with the shortest windows and lasts until the largest time: no sum of
// times, windows or credit may overflow on the way.
func TestRoomOfAllTime(t *testing.T) {
	const last = Never - 1
	p := testPolicy()
	p.Created, p.Opens, p.Starts, p.Closes = 0, 0, 0, Never
	p.Windows = []WindowRule{{0, MinWindow}, {last, MaxWindow}}
	p.Outflow.PerMinute = MaxRate
	p.Claim = MaxClaim
	r := newScript(t, p)
	r.join(0, 3)
	r.settleWindows(100)
	r.call(100, 1)
	r.must(pause(200))
	r.join(last-1, 2)
	r.must(resume(last - 1))
	r.must(r.admission(last-1, r.ticketAt(1))) // paused for all of time
	r.settleWindows(last)
	r.join(last, 1)
	if st, _ := r.Standing(numbered(3), r.size, last); st.Window != (Window{90_071_992_547_409, last - 90, last}) || st.Position < 4 {
		t.Errorf("in the last of the short windows: %+v", st)
	}
	if due, ok := r.FreezeDue(); !ok || due != Never {
		t.Errorf("the last window is over at %d, %v", due, ok)
	}
	r.call(last, 5)
	late, _ := r.NoShows(Scan{}, last, 10)
	if len(late) != 0 {
		t.Errorf("no-shows %v", late)
	}
	r.refuse(RuleAmend, &Amend{Time: last, Change: ChangeWindows, Closes: Never, Windows: []WindowRule{{Never, MinWindow}}})
	r.refuse(RuleFreeze, r.freezeUnchecked(last)) // its end is not a time that an entry can have
	r.must(&End{last})
}

// timeOf returns the time of an entry that has one.
func timeOf(e Entry) Time {
	_, t := e.head()
	return t
}
