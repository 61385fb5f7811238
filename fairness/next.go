package fairness

import (
	"github.com/proofline/proofline/fairness/credential"
)

// This file computes the entries that the rules allow or require next. The server builds its
// entries with it; an auditor does not need it, and the verifier compiles without it. Callers never
// pass a time before [State.Now], and nothing may follow the end of a room.

// NextArrive returns the arrive entry of a new ticket that joins a lane now, for one seat; false if no
// window is open, if there is no such lane, or if the room is full or has ended.
func (s *State) NextArrive(now Time, t Ticket, name Lane) (Arrive, bool) {
	lane, known := s.lanes.index(name)
	if !known || s.ended || s.lanes.wanted() >= MaxArrivals {
		return Arrive{}, false
	}
	w, ok := s.schedule.At(now)
	if !ok {
		return Arrive{}, false
	}
	seq := s.windows.nextSeq(w, s.lanes.drum(s.policy.SlotOf(w.Index, now), lane))
	return Arrive{Time: now, Window: w.Index, Seq: seq, Ticket: t, Lane: name}, true
}

// NextFreeze returns the freeze entry that is due, without its proof, and the VRF input to prove;
// false if no freeze is due.
func (s *State) NextFreeze(now Time, root [HashSize]byte) (*Freeze, []byte, bool) {
	if due, ok := s.FreezeDue(); !ok || now < due || s.ended {
		return nil, nil, false
	}
	w := &s.windows.all[s.windows.frozen]
	e := &Freeze{Time: now, Window: w.Index, Lots: w.freezes(), Size: s.size, Root: root}
	if b := s.policy.Beacon; b != nil {
		e.Round = b.Round(now)
	}
	return e, Alpha(s.roomHash, e), true
}

// Pending describes a window that is frozen but not drawn.
type Pending struct {
	Window WindowIndex
	Frozen Time   // time of the freeze
	Size   uint64 // size of the checkpoint for witnesses to cosign
	Round  uint64 // beacon round to wait for; 0 without a beacon
	Due    Time   // when the round appears; 0 without a beacon
}

// Pending returns the windows that are frozen but not drawn, in drawing order; nil once the room
// has ended.
func (s *State) Pending() []Pending {
	if s.ended || s.windows.drawn == s.windows.frozen {
		return nil
	}
	var list []Pending
	for _, w := range s.windows.all[s.windows.drawn:s.windows.frozen] {
		p := Pending{Window: w.Index, Frozen: w.frozen, Size: w.size, Round: w.round}
		if b := s.policy.Beacon; b != nil {
			p.Due = Time(b.Emitted(w.round))
		}
		list = append(list, p)
	}
	return list
}

// NextDraw returns the draw of the first pending window with the given beacon signature and
// cosignatures; false if no window is pending or its round has not appeared.
func (s *State) NextDraw(now Time, signature []byte, cosignatures ...Cosignature) (*Draw, bool) {
	pending := s.Pending()
	if len(pending) == 0 || now < pending[0].Due {
		return nil, false
	}
	w := &s.windows.all[s.windows.drawn]
	seed := NewSeed(w.alpha, w.beta, w.round, signature)
	return &Draw{Time: now, Window: w.Index, Signature: signature, Seed: seed, Cosignatures: cosignatures}, true
}

// NextCall returns the call of as many visitors as may be called now, but at most capacity, and
// their number; nil if none may be called. A party that does not fit holds up those behind it.
func (s *State) NextCall(now Time, capacity uint64) (*Call, uint64) {
	if s.pace.paused || s.ended || s.size == 0 || now < s.policy.Starts {
		return nil, 0
	}
	t, seats := newTurns(s), min(uint64(s.pace.at(now).credit/creditPerCall), s.seatsLeft())
	for t.people < capacity {
		lane, number, ok := t.peek()
		if !ok || t.seats+s.arrivals.seatsOf(number) > seats {
			break
		}
		t.serve(lane, number)
	}
	if t.people == 0 {
		return nil, 0
	}
	e := &Call{Time: now, UpTo: make([]Position, len(s.lanes.all))}
	for i := range e.UpTo {
		e.UpTo[i] = t.lanes[i].upTo
	}
	return e, t.people
}

// Scan is how far [State.NoShows] has come: everything before is settled, or replaced. The zero value is the beginning.
type Scan struct {
	lanes  []Position // by lane
	claims uint32     // number in arrivals.claims
}

// NoShows returns at most limit tickets that may be skipped as no-shows, which the caller must skip, and where to go
// on next time: at the first ones that may still be claimed, or are not called.
func (s *State) NoShows(from Scan, now Time, limit int) (late []Ticket, next Scan) {
	next = Scan{make([]Position, len(s.lanes.all)), from.claims}
	copy(next.lanes, from.lanes)
	for i := range s.lanes.all {
		p, l := max(next.lanes[i], 1), &s.lanes.all[i]
		for ; len(late) < limit && !s.ended && p <= l.called(); p++ {
			number, ok := l.holder(&s.arrivals, p)
			if !ok || s.arrivals.At(number).settled != 0 || s.arrivals.hasOwnClaim(number) {
				continue
			}
			if c := s.claimOf(number, 0); c.left(s.clockAt(now)) > 0 {
				break
			}
			late = append(late, s.arrivals.At(number).ticket)
		}
		next.lanes[i] = p
	}
	for i := from.claims; len(late) < limit && !s.ended && i < s.arrivals.claims.Len(); i++ {
		c := s.arrivals.claims.At(i)
		a := s.arrivals.At(c.arrival)
		switch isOld := a.settled != 0 || c.ends == 0 || s.arrivals.claimed[c.arrival] != i+1; {
		case isOld:
		case c.left(s.clockAt(now)) > 0: // those behind may end earlier
			continue
		default:
			late = append(late, a.ticket)
		}
		if i == next.claims {
			next.claims++
		}
	}
	return late, next
}

// Door answers what a server asks about credentials before it proposes an entry.
type Door struct{ state *State }

// DoorOf returns the door of a room with a policy, as of its latest entry.
func DoorOf(s *State) Door { return Door{s} }

// AwaitsWorkRound returns the beacon round that work is done for, and when it appears, until the transcript has it;
// false if no method is work, or once the room has ended.
func (d Door) AwaitsWorkRound() (round uint64, due Time, ok bool) {
	s := d.state
	if s.size == 0 || s.ended || s.door.round != nil {
		return 0, 0, false
	}
	if round, ok = s.policy.WorkRound(); ok {
		due = Time(s.policy.Beacon.Emitted(round))
	}
	return round, due, ok
}

// Verifier returns the verifier of a method of the policy; nil if it has no such method.
func (d Door) Verifier(method string) *credential.Verifier {
	if i := d.state.door.method(method); i >= 0 {
		return d.state.door.methods[i].verifier
	}
	return nil
}

// IsUsed reports whether a method of the policy has taken a nullifier.
func (d Door) IsUsed(method string, value []byte) bool {
	_, used := d.Holder(method, value)
	return used
}

// Holder returns the ticket that has shown a nullifier of a method of the policy; false if none has.
func (d Door) Holder(method string, value []byte) (Ticket, bool) {
	door := &d.state.door
	n := nullifier{method: uint8(door.method(method))}
	if copy(n.value[:], value) == 0 {
		return Ticket{}, false
	}
	number, ok := door.index.Find(n.value[:], func(number uint32) bool { return door.taken.At(number).nullifier == n })
	if !ok {
		return Ticket{}, false
	}
	return d.state.arrivals.At(door.taken.At(number).arrival).ticket, true
}

// Holders returns at most limit tickets that have shown a method of the policy, in the order of their arrivals from the
// one with number from on, and the number to go on with; 0: there are no more.
func (d Door) Holders(method string, from uint32, limit int) (list []Ticket, next uint32) {
	door := &d.state.door
	i := door.method(method)
	for ; i >= 0 && from < door.shown.Len(); from++ {
		if *door.shown.At(from)&(1<<i) == 0 {
			continue
		}
		if len(list) == limit {
			return list, from
		}
		list = append(list, d.state.arrivals.At(from).ticket)
	}
	return list, 0
}

// HasShown reports whether a ticket has shown a method of the policy.
func (d Door) HasShown(t Ticket, method string) bool {
	number, ok := d.state.arrivals.find(t)
	i := d.state.door.method(method)
	return ok && i >= 0 && *d.state.door.shown.At(number)&(1<<i) != 0
}

// NextMerit returns the entry of a credential that a ticket shows now; false if its window is over, or if it has not
// joined.
func (d Door) NextMerit(now Time, t Ticket, c credential.Credential) (Merit, bool) {
	s := d.state
	number, ok := s.arrivals.find(t)
	if !ok || s.ended || now >= s.windows.of(number).To {
		return Merit{}, false
	}
	seq := s.windows.nextSeq(s.windows.of(number).Window, s.arrivals.drumOf(number, &s.lanes))
	return Merit{Time: now, Ticket: t, Seq: seq, Credential: c}, true
}

// hasOwnClaim reports whether the claim of an arrival is not that of the call that reached its place.
func (l *arrivals) hasOwnClaim(number uint32) bool {
	own := l.claimed[number]
	return own > 0 && l.claims.At(own-1).ends > 0
}

// Foresee prepares for entries that will be applied soon, such as the next few hundred. A replay of a large room mostly
// waits for memory: Foresee loads the slots of all their tickets at once into the processor's cache.
func (s *State) Foresee(entries []Entry) {
	var array [512]*uint64
	slots := array[:0]
	for _, e := range entries {
		switch e := e.(type) {
		case *Arrive:
			slots = s.arrivals.index.AppendSlots(slots, e.Ticket[:])
		case *Admit:
			slots = s.arrivals.index.AppendSlots(slots, e.Ticket[:])
		case *Skip:
			slots = s.arrivals.index.AppendSlots(slots, e.Ticket[:])
		}
	}
	s.arrivals.index.Load(slots)
}

// TooLarge returns the ticket that may be skipped as a party too large for the seats left; false if there is none.
func (s *State) TooLarge() (Ticket, bool) {
	if s.seats == 0 || s.ended {
		return Ticket{}, false
	}
	t := newTurns(s)
	_, number, ok := t.peek()
	if !ok || !s.isTooLarge(number) {
		return Ticket{}, false
	}
	return s.arrivals.At(number).ticket, true
}

// Places returns the number of places of all lanes that are called by now.
func (e *Call) Places() (n Position) {
	for _, p := range e.UpTo {
		n += p
	}
	return n
}
