package fairness

import (
	"crypto/sha256"
	"slices"
)

// Outside answers what the rules need and the transcript's own text does not
// say.
type Outside interface {
	// Root returns the Merkle root of the entries applied so far.
	Root() [HashSize]byte
	// VerifyProof returns the VRF output of a proof over alpha under a
	// public key, or an error if the proof is not the key's.
	VerifyProof(key [PublicKeySize]byte, alpha []byte, proof [ProofSize]byte) ([BetaSize]byte, error)
	// VerifyCosignature returns when a witness, given by its verifier key,
	// cosigned the room's checkpoint of a size and root, or an error if the
	// cosignature is not that.
	VerifyCosignature(witness string, size uint64, root [HashSize]byte, c Cosignature) (Time, error)
}

// State is a room as its transcript has made it so far. The zero value is a
// room without entries. It is not safe for concurrent use.
type State struct {
	size     uint64 // entries applied
	now      Time   // of the latest entry with a time
	roomHash [HashSize]byte
	policy   Policy
	schedule *Schedule

	arrivals arrivals          // in order of arrival
	tickets  map[Ticket]uint32 // into arrivals
	windows  []window          // those with arrivals, in order
	frozen   int               // windows[:frozen] are frozen
	drawn    int               // windows[:drawn] are drawn
	places   Position          // drawn so far
	assigned Position          // stated by assign entries so far

	calls   []call
	pace    pace
	waiting uint64               // called places neither admitted nor skipped
	settled [len(reasons)]uint64 // arrivals by outcome
	amends  uint64
	message [HashSize]byte
	isOpen  bool
	isHeld  bool // in a pause: called tickets cannot be admitted
	ended   bool
}

// arrival is one ticket's record, 64 bytes.
type arrival struct {
	ticket    Ticket
	index     EntryIndex // of the arrive entry
	time      Time
	position  Position   // 0 before the draw
	settled   EntryIndex // of the admit or skip entry; 0 for neither
	settledAt Time
	window    uint32 // into State.windows
	outcome   outcome
}

// arrivals is a list that grows without moving what it holds, in pieces of
// [pieceSize]: copying millions would hold up a room's lock.
type arrivals struct {
	count  uint32
	pieces [][]arrival
}

const pieceSize = 4096

func (l *arrivals) at(number uint32) *arrival { return &l.pieces[number/pieceSize][number%pieceSize] }

func (l *arrivals) add(a arrival) {
	if l.count%pieceSize == 0 {
		l.pieces = append(l.pieces, make([]arrival, pieceSize))
	}
	*l.at(l.count) = a
	l.count++
}

// outcome is how an arrival was settled, in a byte for there are millions.
type outcome uint8

const (
	open outcome = iota
	admitted
	noShow
	left
	revoked // and the classes of it
)

// reasons are those of the outcomes that are skips.
var reasons = [...]Reason{noShow: NoShow, left: Left, revoked: Revoked, RevokedBot, RevokedDuplicate, RevokedFraud, RevokedRequest}

func (o outcome) skipped() bool { return reasons[o] != "" }

// window is what became of one window with arrivals.
type window struct {
	Window
	base  uint32 // into State.arrivals: the window's first one
	count uint32 // its arrivals

	alpha []byte // of its freeze
	beta  [BetaSize]byte
	round uint64
	size  uint64 // of the tree that ends with the freeze
	root  [HashSize]byte

	drawn EntryIndex // of the draw entry; 0 before it
	first Position   // of the window's first place
	order []uint32   // place - first → seq
}

// call is one move of the serving pointer.
type call struct {
	index EntryIndex
	clock Time // of the pace, which stands still in a pause
	upTo  Position
}

// Apply takes the next entry: it either takes its whole effect, or returns a
// [*Violation] and changes nothing. The entry is not kept.
func (s *State) Apply(e Entry, outside Outside) error {
	t := e.moment(s)
	if err := s.admissible(e, t); err != nil {
		return err
	}
	last := s.frozen - 1
	sealed := last >= 0 && s.windows[last].size == s.size // by a freeze, the entry before this one
	var root [HashSize]byte
	if sealed {
		root = outside.Root()
	}
	if err := e.apply(s, outside); err != nil {
		return err
	}
	if sealed {
		s.windows[last].root = root
	}
	s.now = t
	s.size++
	return nil
}

// admissible checks what holds for every entry.
func (s *State) admissible(e Entry, t Time) error {
	_, isRoom := e.(*Room)
	switch {
	case s.ended:
		return violation(RuleEnd, "the room has ended, and %s follows", e.Kind())
	case s.size == 0 && !isRoom:
		return violation(RulePolicy, "the first entry is %s, not room", e.Kind())
	case s.size > 0 && isRoom:
		return violation(RulePolicy, "a second room entry")
	case t < s.now:
		return violation(RuleTime, "time %d is before %d, the time of an earlier entry", t, s.now)
	case t >= Never:
		return violation(RuleTime, "time %d is not below 2^53-1", t)
	}
	return nil
}

func (e *Room) apply(s *State, _ Outside) error {
	if err := complaints(e.Problems()).violation(RulePolicy); err != nil {
		return err
	}
	s.policy = e.Policy
	s.policy.Lanes, s.policy.Windows, s.policy.Witnesses = slices.Clone(e.Lanes), slices.Clone(e.Windows), slices.Clone(e.Witnesses)
	if e.Beacon != nil {
		b := *e.Beacon
		s.policy.Beacon = &b
	}
	s.schedule = NewSchedule(&e.Policy)
	s.roomHash = sha256.Sum256(e.AppendEntry(nil))
	s.tickets = map[Ticket]uint32{}
	s.pace = newPace(e.Outflow, e.Starts)
	return nil
}

func (e *Arrive) apply(s *State, _ Outside) error {
	w, ok := s.schedule.At(e.Time)
	switch {
	case !ok:
		return violation(RuleArrival, "time %d is in no window", e.Time)
	case w.Index != e.Window:
		return violation(RuleArrival, "time %d is in window %d, not %d", e.Time, w.Index, e.Window)
	case e.Lane != General:
		return violation(RuleLane, "lane %q is not open", e.Lane)
	case e.Seq != s.NextSeq(w):
		return violation(RuleArrival, "seq %d where %d comes next", e.Seq, s.NextSeq(w))
	case s.arrivals.count == MaxArrivals:
		return violation(RuleArrival, "the room is full")
	case !isUUID8(e.Ticket):
		return violation(RuleTicket, "ticket %v is no UUID of version 8", e.Ticket)
	case s.Knows(e.Ticket):
		return violation(RuleTicket, "ticket %v joined before", e.Ticket)
	}
	if e.Seq == 0 {
		s.windows = append(s.windows, window{Window: w, base: s.arrivals.count})
	}
	s.windows[len(s.windows)-1].count++
	s.tickets[e.Ticket] = s.arrivals.count
	s.arrivals.add(arrival{ticket: e.Ticket, index: EntryIndex(s.size), time: e.Time, window: uint32(len(s.windows) - 1)})
	return nil
}

func (e *Merit) apply(*State, Outside) error {
	return violation(RuleMerit, "the policy gives no extra lots")
}

func (e *Freeze) apply(s *State, outside Outside) error {
	if s.frozen == len(s.windows) {
		return violation(RuleFreeze, "no window has arrivals to freeze")
	}
	w := &s.windows[s.frozen]
	round := uint64(0)
	if b := s.policy.Beacon; b != nil {
		round = b.Round(w.To, e.Time)
	}
	switch root := outside.Root(); {
	case e.Window != w.Index:
		return violation(RuleFreeze, "window %d, where %d has arrivals and comes first", e.Window, w.Index)
	case e.Time < w.To:
		return violation(RuleFreeze, "time %d, and the window is open until %d", e.Time, w.To)
	case e.Lots != w.count:
		return violation(RuleFreeze, "%d lots, and the window has %d", e.Lots, w.count)
	case e.Size != s.size:
		return violation(RuleFreeze, "size %d, and %d entries come before", e.Size, s.size)
	case e.Root != root:
		return violation(RuleFreeze, "root %x, and the entries before have %x", e.Root, root)
	case e.Round != round:
		return violation(RuleFreeze, "beacon round %d, and the policy gives %d", e.Round, round)
	}
	alpha := Alpha(s.roomHash, e)
	beta, err := outside.VerifyProof(s.policy.VRFKey, alpha, e.Proof)
	if err != nil {
		return violation(RuleProof, "the proof of window %d: %v", e.Window, err)
	}
	w.alpha, w.beta, w.round, w.size = alpha, beta, e.Round, s.size+1
	s.frozen++
	return nil
}

func (e *Draw) apply(s *State, outside Outside) error {
	if s.drawn == s.frozen {
		return violation(RuleDraw, "no window is frozen and not drawn")
	}
	w := &s.windows[s.drawn]
	if e.Window != w.Index {
		return violation(RuleDraw, "window %d, where %d comes next", e.Window, w.Index)
	}
	if err := e.checkRound(s.policy.Beacon, w.round); err != nil {
		return err
	}
	if err := e.checkCosignatures(s, w, outside); err != nil {
		return err
	}
	if seed := NewSeed(w.alpha, w.beta, w.round, e.Signature); e.Seed != seed {
		return violation(RuleSeed, "seed %x, and the proof gives %x", e.Seed, seed)
	}
	w.drawn, w.first, w.order = EntryIndex(s.size), s.places+1, Shuffle(e.Seed, General, w.count)
	for _, seq := range w.order {
		s.places++
		s.arrivals.at(w.base + seq).position = s.places
	}
	s.drawn++
	return nil
}

// checkRound checks the public randomness: its time has come, and it is what
// the chain signed.
func (e *Draw) checkRound(b *Beacon, round uint64) error {
	if b == nil && len(e.Signature) > 0 {
		return violation(RuleBeacon, "a beacon signature in a room without a beacon")
	}
	if b == nil {
		return nil
	}
	if appears := b.Emitted(round); int64(e.Time) < appears {
		return violation(RuleBeacon, "time %d, and round %d appears at %d", e.Time, round, appears)
	}
	if err := b.Verify(round, e.Signature); err != nil {
		return violation(RuleBeacon, "%v", err)
	}
	return nil
}

// checkCosignatures checks that each is of the checkpoint that ends with the
// freeze, by another witness, and from before the round. That there may be
// fewer than the quorum keeps a room going without its witnesses; then it is
// not witnessed.
func (e *Draw) checkCosignatures(s *State, w *window, outside Outside) error {
	p := &s.policy
	next, root := 0, w.root // in p.Witnesses; of the checkpoint
	if w.size == s.size {
		root = outside.Root()
	}
	for i, c := range e.Cosignatures {
		at, err := Time(0), error(nil)
		for ; next < len(p.Witnesses); next++ {
			if at, err = outside.VerifyCosignature(p.Witnesses[next], w.size, root, c); err == nil {
				break
			}
		}
		switch {
		case next == len(p.Witnesses):
			return violation(RuleWitness, "cosignature %d is not of the freeze, or by no witness that comes after the one before", i)
		case int64(at) >= p.Beacon.Emitted(w.round):
			return violation(RuleWitness, "cosignature %d is from %d, when round %d had appeared", i, at, w.round)
		}
		next++
	}
	return nil
}

func (e *Assign) apply(s *State, _ Outside) error {
	want, ok := s.NextAssign()
	switch {
	case !ok:
		return violation(RuleAssign, "no drawn place is left to state")
	case e.Lane != want.Lane:
		return violation(RuleLane, "lane %q has no places", e.Lane)
	case *e != want:
		return violation(RuleAssign, "place %d of window %d is %v, and the shuffle gives place %d of window %d to %v",
			e.Position, e.Window, e.Ticket, want.Position, want.Window, want.Ticket)
	}
	s.assigned++
	return nil
}

func (e *End) apply(s *State, _ Outside) error {
	s.ended = true
	return nil
}
