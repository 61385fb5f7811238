package fairness

import (
	"slices"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/table"
)

// This file holds what tickets show about their holders: credentials of the policy's methods. They decide who may
// join a lane, and how many lots a ticket has.

// methodSet has a bit for each method of a policy, by index.
type methodSet uint16

// door holds the methods of a room, and the credentials that it has taken.
type door struct {
	methods []method
	lots    methodSet             // those that give a ticket one more lot
	round   []byte                // signature of the beacon round that work is done for; nil: not in the transcript yet
	shown   table.List[methodSet] // by arrival; empty in a room without methods
	taken   table.List[taken]
	index   table.Index // of taken, by nullifier
}

// method is a method of the policy.
type method struct {
	credential.Method
	verifier *credential.Verifier
	taken    uint32 // credentials so far
}

// taken is a credential that was taken.
type taken struct {
	nullifier nullifier
	unique    bool // reports whether it has a nullifier, which must not come again
	arrival   uint32
}

// nullifier is a value that a method takes once; the credentials of most kinds have none.
type nullifier struct {
	method uint8
	value  [credential.NullifierSize]byte
}

func newDoor(p *Policy) door {
	var d door
	d.lots, _ = p.methodSet(p.Lots)
	for _, m := range p.Methods {
		v, _ := credential.NewVerifier(m) // the policy is valid
		d.methods = append(d.methods, method{Method: m, verifier: v})
	}
	return d
}

// methodSet returns the methods with these names; false if they are not methods of the policy, each once and in its
// order.
func (p *Policy) methodSet(names []string) (set methodSet, ok bool) {
	next := 0
	for _, name := range names {
		i := slices.IndexFunc(p.Methods[next:], func(m credential.Method) bool { return m.Name == name })
		if i < 0 {
			return 0, false
		}
		set |= 1 << (next + i)
		next += i + 1
	}
	return set, true
}

// method returns the index of a method; -1 if no method has that name.
func (d *door) method(name string) int {
	return slices.IndexFunc(d.methods, func(m method) bool { return m.Name == name })
}

// lotsFor returns how many lots credentials give.
func (d *door) lotsFor(list []credential.Credential) (n int) {
	for _, c := range list {
		i := d.method(c.Method)
		n += int(d.lots >> i & 1)
	}
	return n
}

// used reports whether a nullifier was used.
func (d *door) used(n *nullifier) bool {
	_, used := d.index.Find(n.value[:], func(number uint32) bool { return d.taken.At(number).nullifier == *n })
	return used
}

// Subject returns what the credentials of a ticket in a lane are good for.
func (s *State) Subject(lane Lane, t Ticket) credential.Subject {
	return credential.Subject{Room: s.roomHash, Lane: string(lane), Ticket: t, Round: s.door.round}
}

// check checks the credentials that a ticket shows in a lane, in addition to methods that it has shown before.
func (s *State) check(list []credential.Credential, before methodSet, lane int, t Ticket, oracle Oracle) error {
	l, next := &s.lanes.all[lane], 0
	subject := s.Subject(l.name, t)
	for _, c := range list {
		i := s.door.method(c.Method)
		if i < next || before&(1<<i) != 0 {
			return violation(RuleCredential, "method %q is not one of the policy, in its order, each once", c.Method)
		}
		m, n := &s.door.methods[i], nullifier{method: uint8(i)}
		copy(n.value[:], c.Nullifier)
		if m.Limit > 0 && m.taken >= m.Limit {
			return violation(RuleNullifier, "method %q has taken %d credentials, its limit", c.Method, m.taken)
		}
		if len(c.Nullifier) > 0 && s.door.used(&n) {
			return violation(RuleNullifier, "nullifier %x of method %q was used before", c.Nullifier, c.Method)
		}
		if err := oracle.VerifyCredential(m.verifier, subject, c); err != nil {
			return violation(RuleCredential, "%v", err)
		}
		next, before = i+1, before|1<<i
	}
	for i, m := range s.door.methods {
		if missing := l.needs &^ before; missing&(1<<i) != 0 {
			return violation(RuleCredential, "lane %q needs method %q", l.name, m.Name)
		}
	}
	return nil
}

// take records the credentials of an arrival.
func (d *door) take(arrival uint32, list []credential.Credential) {
	if len(d.methods) > 0 && arrival == d.shown.Len() {
		d.shown.Add(0)
	}
	for _, c := range list {
		i := d.method(c.Method)
		n := nullifier{method: uint8(i)}
		unique := copy(n.value[:], c.Nullifier) > 0
		if unique {
			d.index.Add(n.value[:], d.taken.Len())
		}
		d.methods[i].taken++
		*d.shown.At(arrival) |= 1 << i
		d.taken.Add(taken{n, unique, arrival})
	}
}

func (e *Merit) apply(s *State, oracle Oracle) error {
	number, ok := s.arrivals.find(e.Ticket)
	switch {
	case !ok:
		return violation(RuleMerit, "ticket %v has not joined", e.Ticket)
	case s.arrivals.At(number).settled != 0:
		return violation(RuleMerit, "ticket %v is settled", e.Ticket)
	case e.Time >= s.windows.of(number).To:
		return violation(RuleMerit, "time %d, but the ticket's window ended at %d", e.Time, s.windows.of(number).To)
	case len(s.door.methods) == 0:
		return violation(RuleCredential, "the policy has no methods")
	}
	w, drum := s.windows.of(number), s.arrivals.drumOf(number, &s.lanes)
	if next := s.windows.nextSeq(w.Window, drum); e.Seq != next {
		return violation(RuleMerit, "seq %d, but %d comes next", e.Seq, next)
	}
	list := []credential.Credential{e.Credential}
	err := s.check(list, *s.door.shown.At(number), s.arrivals.laneOf(number), e.Ticket, oracle)
	if err == nil {
		s.door.take(number, list)
		w.put(number, drum, s.door.lotsFor(list))
	}
	return err
}

// apply takes the signature of the round that work is done for, if the entry has one.
func (e *Beat) apply(s *State, oracle Oracle) error {
	if len(e.Signature) == 0 {
		return nil
	}
	round, ok := s.policy.WorkRound()
	if !ok || s.door.round != nil {
		return violation(RuleBeacon, "a beacon signature that no method waits for")
	}
	if err := checkRound(s.policy.Beacon, round, e.Time, e.Signature, oracle); err != nil {
		return err
	}
	s.door.round = slices.Clone(e.Signature)
	return nil
}

// WorkRound returns the beacon round that work is done for: the first one that appears after the room opens, so
// that nothing is computed before. It returns false if no method of the policy is work.
func (p *Policy) WorkRound() (round uint64, ok bool) {
	if !slices.ContainsFunc(p.Methods, func(m credential.Method) bool { return m.Kind == credential.Work }) {
		return 0, false
	}
	return p.Beacon.After(int64(p.Opens)), true
}

// Shown returns how many tickets have shown each method, in the order of the policy.
func (s *State) Shown() []uint32 {
	list := make([]uint32, len(s.door.methods))
	for i := range list {
		list[i] = s.door.methods[i].taken
	}
	return list
}
