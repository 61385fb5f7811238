package fairness

import (
	"crypto/sha256"
	"slices"

	"github.com/proofline/proofline/fairness/credential"
)

// Oracle supplies facts that the rules need but the transcript's text does not contain.
type Oracle interface {
	// Root returns the Merkle root of the entries applied so far.
	Root() [HashSize]byte
	// VerifyProof returns the VRF output of a proof over alpha under a public key, or an error if the
	// proof does not verify.
	VerifyProof(key [PublicKeySize]byte, alpha []byte, proof [ProofSize]byte) ([BetaSize]byte, error)
	// VerifyCosignature returns when a witness, given by its verifier key, cosigned the room's
	// checkpoint of that size and root, or an error if the cosignature does not verify.
	VerifyCosignature(witness string, size uint64, root [HashSize]byte, c Cosignature) (Time, error)
	// VerifyRound returns nil if the signature is that of a chain's round, as [Beacon.Verify] does.
	VerifyRound(b *Beacon, round uint64, signature []byte) error
	// VerifyCredential returns nil if the credential is good for the subject, as [credential.Verifier.Verify] does.
	VerifyCredential(v *credential.Verifier, subject credential.Subject, c credential.Credential) error
}

// State is the state of a room after the entries applied so far. The zero value has no entries. It
// is not safe for concurrent use.
type State struct {
	size     uint64 // entries applied
	now      Time   // time of the latest entry with one
	clock    Time   // claim clock at that time
	roomHash [HashSize]byte
	policy   Policy
	schedule *Schedule

	arrivals arrivals
	windows  windows
	lanes    lanes
	door     door
	assigned uint64 // assign entries so far

	pace         pace
	amends       uint64
	seats        uint32 // seats in force; 0: any number
	message      [HashSize]byte
	isOpen       bool
	claimsPaused bool // during a pause: called tickets cannot be admitted
	ended        bool
}

// Apply applies the next entry completely, or returns a [*Violation] and changes nothing. It does
// not retain the entry.
func (s *State) Apply(e Entry, oracle Oracle) error {
	kind, t := e.head()
	if kind == KindAssign {
		t = s.now
	}
	if err := s.admissible(kind, t); err != nil {
		return err
	}
	last := s.windows.frozen - 1
	sealed := last >= 0 && s.windows.all[last].size == s.size // the previous entry is a freeze
	var root [HashSize]byte
	if sealed {
		root = oracle.Root()
	}
	clock := s.clockAt(t)
	if err := e.apply(s, oracle); err != nil {
		return err
	}
	if sealed {
		s.windows.all[last].root = root
	}
	s.now, s.clock = t, clock
	s.size++
	return nil
}

// admissible checks the rules that every entry must follow.
func (s *State) admissible(kind Kind, t Time) error {
	isRoom := kind == KindRoom
	switch {
	case s.ended:
		return violation(RuleEnd, "%s after the end of the room", kind)
	case s.size == 0 && !isRoom:
		return violation(RulePolicy, "the first entry is %s, not room", kind)
	case s.size > 0 && isRoom:
		return violation(RulePolicy, "a second room entry")
	case t < s.now:
		return violation(RuleTime, "time %d is before %d, the time of an earlier entry", t, s.now)
	case t >= Never:
		return violation(RuleTime, "time %d is not below 2^53-1", t)
	}
	if due, ok := s.FreezeDue(); ok && t >= due && kind != KindFreeze && kind != KindEnd {
		return violation(RuleFreeze, "%s at %d, but the window that ended at %d is not frozen", kind, t, due)
	}
	return nil
}

func (e *Room) apply(s *State, _ Oracle) error {
	if err := complaints(e.Problems()).violation(RulePolicy); err != nil {
		return err
	}
	text := AppendEntry(nil, e)
	var own Room // shares nothing with e
	own.fields(&codec{in: text[len(KindRoom)+1:], reading: true})
	s.policy = own.Policy
	s.schedule = NewSchedule(&s.policy)
	s.roomHash = sha256.Sum256(text)
	s.lanes, s.door = newLanes(&s.policy), newDoor(&s.policy)
	s.pace, s.seats = newPace(&s.policy), s.policy.Seats
	return nil
}

func (e *Arrive) apply(s *State, oracle Oracle) error {
	w, ok := s.schedule.At(e.Time)
	lane, known := s.lanes.index(e.Lane)
	drum := s.lanes.drum(s.policy.SlotOf(w.Index, e.Time), lane)
	_, joined := s.arrivals.find(e.Ticket)
	switch {
	case !ok:
		return violation(RuleArrival, "time %d is in no window", e.Time)
	case w.Index != e.Window:
		return violation(RuleArrival, "time %d is in window %d, not %d", e.Time, w.Index, e.Window)
	case !known:
		return violation(RuleLane, "the policy has no lane %q", e.Lane)
	case e.Seq != s.windows.nextSeq(w, drum):
		return violation(RuleArrival, "seq %d, but %d comes next", e.Seq, s.windows.nextSeq(w, drum))
	case s.lanes.wanted()+uint64(max(e.Seats, 1)) > MaxArrivals:
		return violation(RuleArrival, "the room is full")
	case e.Seats == 1 || e.Seats > s.policy.Party:
		return violation(RuleArrival, "a party of %d, but the policy allows %d", e.Seats, max(s.policy.Party, 1))
	case !isUUID8(e.Ticket):
		return violation(RuleTicket, "ticket %v is not a UUID of version 8", e.Ticket)
	case joined:
		return violation(RuleTicket, "ticket %v joined before", e.Ticket)
	}
	if err := s.check(e.Credentials, 0, lane, e.Ticket, oracle); err != nil {
		return err
	}
	s.door.take(s.arrivals.Len(), e.Credentials)
	s.join(w, lane, max(e.Seats, 1), 1+s.door.lotsFor(e.Credentials),
		arrival{ticket: e.Ticket, index: EntryIndex(s.size), time: e.Time})
	return nil
}

// join adds an arrival to a window and a lane, with so many lots.
func (s *State) join(w Window, lane int, seats uint32, lots int, a arrival) {
	in := s.windows.enter(w, s.arrivals.Len())
	if !s.lanes.isPlain {
		if in.lots == nil {
			drums := s.policy.SlotsIn(w.Index) * len(s.lanes.all)
			in.lots, in.drums = make([]uint32, drums), make([][]uint32, drums)
		}
		slot := s.policy.SlotOf(w.Index, a.time)
		drum := s.lanes.drum(slot, lane)
		s.arrivals.details.Add(detail{in.lots[drum], uint8(lane), uint8(slot), uint8(seats)})
		in.put(s.arrivals.Len(), drum, lots)
	}
	in.count++
	s.lanes.all[lane].arrivals++
	s.lanes.all[lane].seats += uint64(seats)
	s.arrivals.join(a)
}

func (e *Freeze) apply(s *State, oracle Oracle) error {
	if s.windows.frozen == len(s.windows.all) {
		return violation(RuleFreeze, "no window has arrivals to freeze")
	}
	w := &s.windows.all[s.windows.frozen]
	round := uint64(0)
	if b := s.policy.Beacon; b != nil {
		round = b.Round(e.Time)
	}
	switch root := oracle.Root(); {
	case e.Window != w.Index:
		return violation(RuleFreeze, "window %d, but window %d comes first", e.Window, w.Index)
	case e.Time < w.To:
		return violation(RuleFreeze, "time %d, but the window is open until %d", e.Time, w.To)
	case !slices.Equal(e.Lots, w.freezes()):
		return violation(RuleFreeze, "%d lots, but the window has %d", e.Lots, w.freezes())
	case e.Size != s.size:
		return violation(RuleFreeze, "size %d, but %d entries come before", e.Size, s.size)
	case e.Root != root:
		return violation(RuleFreeze, "root %x, but the entries before have root %x", e.Root, root)
	case e.Round != round:
		return violation(RuleFreeze, "beacon round %d, but the policy requires %d", e.Round, round)
	}
	alpha := Alpha(s.roomHash, e)
	beta, err := oracle.VerifyProof(s.policy.VRFKey, alpha, e.Proof)
	if err != nil {
		return violation(RuleProof, "the proof of window %d: %v", e.Window, err)
	}
	w.alpha, w.beta, w.frozen, w.round, w.size = alpha, beta, e.Time, e.Round, s.size+1
	s.windows.frozen++
	return nil
}

func (e *Draw) apply(s *State, oracle Oracle) error {
	if s.windows.drawn == s.windows.frozen {
		return violation(RuleDraw, "no frozen window is left to draw")
	}
	w := &s.windows.all[s.windows.drawn]
	if e.Window != w.Index {
		return violation(RuleDraw, "window %d, but %d comes next", e.Window, w.Index)
	}
	if err := checkRound(s.policy.Beacon, w.round, e.Time, e.Signature, oracle); err != nil {
		return err
	}
	if err := e.checkCosignatures(s, w, oracle); err != nil {
		return err
	}
	if seed := NewSeed(w.alpha, w.beta, w.round, e.Signature); e.Seed != seed {
		return violation(RuleSeed, "seed %x, but the proof gives %x", e.Seed, seed)
	}
	w.drawn = EntryIndex(s.size)
	s.line(s.windows.drawn, e.Seed)
	s.windows.drawn++
	return nil
}

// checkRound checks the public randomness: the round has appeared, and the chain signed it.
func checkRound(b *Beacon, round uint64, t Time, signature []byte, oracle Oracle) error {
	switch {
	case b == nil && len(signature) == 0:
		return nil
	case b == nil:
		return violation(RuleBeacon, "a beacon signature in a room without a beacon")
	case int64(t) < b.Emitted(round):
		return violation(RuleBeacon, "time %d, but round %d appears at %d", t, round, b.Emitted(round))
	}
	if err := oracle.VerifyRound(b, round, signature); err != nil {
		return violation(RuleBeacon, "%v", err)
	}
	return nil
}

// checkCosignatures checks that each cosignature is by a different witness, signs the checkpoint
// that ends with the freeze, and is dated between the freeze and the round. Fewer cosignatures than the quorum are
// allowed, so that a room can continue without its witnesses; the verifier then does not count the
// draw as witnessed.
func (e *Draw) checkCosignatures(s *State, w *window, oracle Oracle) error {
	p := &s.policy
	next, root := 0, w.root // index in p.Witnesses; root of the checkpoint
	if w.size == s.size {
		root = oracle.Root()
	}
	for i, c := range e.Cosignatures {
		at, err := Time(0), error(nil)
		for ; next < len(p.Witnesses); next++ {
			if at, err = oracle.VerifyCosignature(p.Witnesses[next], w.size, root, c); err == nil {
				break
			}
		}
		switch {
		case next == len(p.Witnesses):
			return violation(RuleWitness,
				"cosignature %d does not sign the freeze with the key of a further witness", i)
		case !p.Beacon.CosignedInTime(at, w.frozen, w.round):
			return violation(RuleWitness, "cosignature %d is from %d, not between the freeze at %d and its round %d",
				i, at, w.frozen, w.round)
		}
		next++
	}
	return nil
}

func (e *Assign) apply(s *State, _ Oracle) error {
	want, ok := s.NextAssign()
	lane, known := s.lanes.index(e.Lane)
	switch {
	case !ok:
		return violation(RuleAssign, "every drawn place is already assigned")
	case !known:
		return violation(RuleLane, "the policy has no lane %q", e.Lane)
	case *e != want:
		return violation(RuleAssign,
			"place %d of lane %q in window %d is %v, but the shuffle gives place %d of lane %q in window %d to %v",
			e.Position, e.Lane, e.Window, e.Ticket, want.Position, want.Lane, want.Window, want.Ticket)
	}
	s.lanes.all[lane].assigned++
	s.lanes.all[lane].stated++
	s.lanes.all[lane].pass(&s.arrivals)
	s.assigned++
	return nil
}

func (e *End) apply(s *State, _ Oracle) error {
	s.ended = true
	return nil
}
