package fairness

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/proofline/proofline/vrf"
)

// called returns a room of 12 drawn tickets, the first six of which are called at a time; claims take 30 seconds, and
// may be extended by 10.
func called(t *testing.T) (r *script, at Time) {
	t.Helper()
	r = drawn(t, 12, func(p *Policy) { p.Extend = 10_000 })
	at = base + minute + second
	r.call(at, 6)
	return r, at
}

func TestRuleExtend(t *testing.T) {
	r, at := called(t)
	over := at + Time(r.policy.Claim)
	left := func(now Time, p Position) Millis {
		st, _ := r.Standing(r.ticketAt(p), r.Size(), now)
		return st.Left
	}
	r.refuse(RuleExtend, &Extend{at, numbered(99)})
	r.refuse(RuleExtend, &Extend{at, r.ticketAt(7)}) // not called
	r.must(r.admission(at, r.ticketAt(2)))
	r.must(&Skip{at, r.ticketAt(3), Left})
	r.refuse(RuleExtend, &Extend{at, r.ticketAt(2)})
	r.refuse(RuleExtend, &Extend{at, r.ticketAt(3)})
	before := r.Size()
	r.must(&Extend{at + second, r.ticketAt(1)})
	if got := left(at+second, 1); got != 39_000 {
		t.Errorf("%d ms are left, want 39,000", got)
	}
	if st, _ := r.Standing(r.ticketAt(1), before, at+second); st.Left != 29_000 {
		t.Errorf("%d ms were left before, want 29,000", st.Left)
	}
	r.refuse(RuleExtend, &Extend{at + second, r.ticketAt(1)}) // once
	r.must(hold(at + second))
	r.refuse(RuleExtend, &Extend{at + second, r.ticketAt(4)}) // may not be claimed
	r.must(resume(at + second))
	r.refuse(RuleSkip, &Skip{over - 1, r.ticketAt(5), NoShow})
	r.must(&Extend{over - 1, r.ticketAt(5)}) // at the last moment
	r.refuse(RuleExtend, &Extend{over, r.ticketAt(6)})
	r.must(&Skip{over, r.ticketAt(6), NoShow})
	r.refuse(RuleSkip, &Skip{over + 9_999, r.ticketAt(1), NoShow})
	r.must(r.admission(over+9_999, r.ticketAt(1)))
	r.refuse(RuleExtend, &Extend{over + 9_999, r.ticketAt(5)})
	r.refuse(RuleAdmission, r.admission(over+10_000, r.ticketAt(5)))
	r.must(&Skip{over + 10_000, r.ticketAt(5), NoShow})
}

// TestExtendOutage: the time that an extension gives does not run in an outage, either.
func TestExtendOutage(t *testing.T) {
	r := drawn(t, 3, func(p *Policy) { p.Extend, p.Grace = 10_000, 5000 })
	at := base + minute + second
	r.call(at, 2)
	r.must(&Extend{at, r.ticketAt(1)})
	r.refuse(RuleSkip, &Skip{at + minute, r.ticketAt(1), NoShow})
	r.must(&Beat{Time: at + minute})
	if st, _ := r.Standing(r.ticketAt(1), r.Size(), at+minute); st.Left != 35_000 {
		t.Errorf("%d ms are left, want 35,000", st.Left)
	}
}

func TestNoExtensions(t *testing.T) {
	r := drawn(t, 3, func(*Policy) {})
	r.call(base+minute+second, 1)
	r.refuse(RuleExtend, &Extend{base + minute + second, r.ticketAt(1)})
}

// TestUndoExtend: an undone extension can be made again, and the one before it stays.
func TestUndoExtend(t *testing.T) {
	r, at := called(t)
	r.must(&Extend{at, r.ticketAt(1)})
	mark, before := r.Mark(), *r.State
	apply := func(p Position) {
		t.Helper()
		if err := r.Apply(&Extend{at, r.ticketAt(p)}, &r.oracle); err != nil {
			t.Fatal(err)
		}
	}
	apply(2)
	apply(3)
	r.Undo(mark)
	if diff := diffState(&before, r.State); diff != "" {
		t.Errorf("undone (-before +after):\n%s", diff)
	}
	r.refuse(RuleExtend, &Extend{at, r.ticketAt(1)})
	r.must(&Extend{at, r.ticketAt(2)})
}

func makeTurnsRoom(t *testing.T) roomVector {
	secret := sha256.Sum256([]byte("vrf key of the vectors"))
	key, err := vrf.NewPrivateKey(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, key: key}
	s.out.VRFKey = hex.EncodeToString(secret[:])
	p := vectorPolicy(t, key)
	p.Outflow.PerMinute, p.Extend, p.Grace = 600, 5000, 60_000
	broken := p
	broken.Extend = 999
	s.refuse(RulePolicy, &Room{broken})
	s.must(&Room{p})
	s.join(p.Opens, 1, 2, 3, 4, 5, 6, 7, 8)
	s.settle(p.Starts)
	s.turns(p.Starts + 1000)
	root := s.oracle.Root()
	s.out.Root, s.out.RoomHash = hex.EncodeToString(root[:]), hex.EncodeToString(s.roomHash[:])
	return s.out
}

// turns plays what happens to tickets that are called at a time.
func (s *story) turns(at Time) {
	place := func(n Position) Ticket { return s.at(&s.lanes.all[0], n).ticket }
	admit := func(at Time, n Position) *Admit {
		return &Admit{at, place(n), NewPassID(s.policy.Origin, place(n))}
	}
	s.must(&Call{at, []Position{4}})
	s.refuse(RuleExtend, &Extend{at, place(5)})
	s.must(&Extend{at + 1000, place(1)})
	s.refuse(RuleExtend, &Extend{at + 1000, place(1)})
	s.must(&Extend{at + 9999, place(2)})
	s.refuse(RuleExtend, &Extend{at + 10_000, place(3)})
	s.refuse(RuleSkip, &Skip{at + 14_999, place(1), NoShow})
	s.must(admit(at+14_999, 1))
	s.refuse(RuleExtend, &Extend{at + 14_999, place(1)})
	s.must(&Skip{at + 15_000, place(2), NoShow})
}
