package fairness

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/vrf"
)

// issuers of the methods of [withDoor], in the order of its policy.
type issuers struct{ task, club, phone *issuertest.Issuer }

// withDoor adds methods to a policy with a beacon: its lane general needs work, its lane members a club, which takes
// three.
func withDoor(p *Policy, chain *local.Beacon) issuers {
	i := issuers{issuertest.Work("task", 6), issuertest.Signed("club", 3), issuertest.Blind("phone", 0)}
	p.Beacon = &Beacon{chain.Chain(), 5000}
	p.Methods = []credential.Method{i.task.Method, i.club.Method, i.phone.Method}
	p.Lanes = []LaneRule{{General, 1, []string{"task"}}, {"members", 3, []string{"club"}}}
	return i
}

func (s *State) arrive(now Time, lane Lane, t Ticket, list ...credential.Credential) *Arrive {
	e, _ := s.NextArrive(now, t, lane)
	e.Credentials = list
	return &e
}

// workRound returns the beat with the round that work is done for.
func workRound(t testing.TB, p *Policy, chain *local.Beacon) *Beat {
	t.Helper()
	round, _ := p.WorkRound()
	signature, err := chain.Sign(round)
	if err != nil {
		t.Fatal(err)
	}
	return &Beat{Time(p.Beacon.Emitted(round)), signature}
}

func newDoorScript(t testing.TB) (*script, issuers) {
	chain, p := newChain(t), testPolicy()
	of := withDoor(&p, chain)
	r := newScript(t, p)
	r.must(workRound(t, &p, chain))
	return r, of
}

// TestRuleWorkRound: the first round after the opening is in the transcript once, and no work is good before.
func TestRuleWorkRound(t *testing.T) {
	chain, p := newChain(t), testPolicy()
	of := withDoor(&p, chain)
	r := newScript(t, p)
	beat := workRound(t, &p, chain)
	if at := beat.Time - base; at <= 0 || at > 3*second {
		t.Errorf("the round appears %d ms after the opening", at)
	}
	e := r.arrive(base, General, ticket1, of.task.Show(r.Subject(General, ticket1), 0))
	r.refuse(RuleCredential, e)
	r.refuse(RuleBeacon, &Beat{beat.Time - 1, beat.Signature})
	other, _ := chain.Sign(2)
	r.refuse(RuleBeacon, &Beat{beat.Time, other})
	r.must(beat)
	r.refuse(RuleBeacon, beat)
	e.Time = beat.Time
	r.refuse(RuleCredential, e) // computed before the round
	e.Credentials[0] = of.task.Show(r.Subject(General, ticket1), 0)
	r.must(e)

	plain := newScript(t, testPolicy())
	plain.refuse(RuleBeacon, &Beat{beat.Time, beat.Signature})
	plain.refuse(RuleCredential, plain.arrive(base, General, ticket1, e.Credentials...))
	plain.join(base, 1)
	plain.refuse(RuleCredential, plain.merit(base, numbered(0), e.Credentials[0]))
}

func TestRuleCredential(t *testing.T) {
	r, of := newDoorScript(t)
	now := r.now
	task := of.task.Show(r.Subject(General, ticket1), 0)
	club := of.club.Show(r.Subject(General, ticket1), 1)
	phone := of.phone.Show(r.Subject(General, ticket1), 0)
	refuse := func(list ...credential.Credential) {
		t.Helper()
		r.refuse(RuleCredential, r.arrive(now, General, ticket1, list...))
	}
	refuse()                  // the lane needs work
	refuse(club)              // something else
	refuse(club, task)        // in another order
	refuse(task, task)        // twice
	refuse(task, phone, club) // in another order
	refuse(task, club, club)  // twice
	other := club
	other.Method = "fans"
	refuse(task, other) // a method that the policy does not have
	other.Method = "phone"
	refuse(task, other) // another method of the policy
	foreign := issuertest.Signed("other", 0)
	foreign.Method.Name = "club"
	refuse(task, foreign.Show(r.Subject(General, ticket1), 1)) // another issuer
	s := r.Subject(General, ticket1)
	s.Room[0] ^= 1
	refuse(task, of.club.Show(s, 1)) // another room
	refuse(task, of.club.Show(r.Subject("members", ticket1), 1))
	refuse(task, of.club.Show(r.Subject(General, ticket2), 1))
	refuse(of.task.Show(r.Subject(General, ticket2), 0))
	refuse(of.task.Show(r.Subject("members", ticket1), 0))
	refuse(task, club, of.phone.Show(r.Subject("members", ticket1), 0))
	short := club
	short.Evidence = club.Evidence[:63]
	refuse(task, short)
	high := club
	high.Evidence = slices.Clone(club.Evidence)
	high.Evidence[63] |= 0x10 // S + 2^252, the second spelling that some verifiers accept
	refuse(task, high)
	empty := club
	empty.Nullifier = nil
	refuse(task, empty)
	r.must(r.arrive(now, General, ticket1, task, club, phone))
	if got := r.Shown(); !slices.Equal(got, []uint32{1, 1, 1}) {
		t.Errorf("shown %v", got)
	}
}

func TestRuleNullifier(t *testing.T) {
	r, of := newDoorScript(t)
	now := r.now
	join := func(n int, account int) *Arrive {
		ticket := numbered(uint64(n))
		return r.arrive(now, "members", ticket, of.club.Show(r.Subject("members", ticket), account))
	}
	r.must(join(1, 1))
	r.refuse(RuleNullifier, join(2, 1))
	r.must(&Skip{now, numbered(1), Left})
	r.refuse(RuleNullifier, join(2, 1)) // its ticket left
	r.must(join(2, 2))
	r.must(join(3, 3))
	r.refuse(RuleNullifier, join(4, 4)) // a fourth, and the method takes three
	ticket := numbered(5)
	work := of.task.Show(r.Subject(General, ticket), 0)
	r.refuse(RuleNullifier, r.arrive(now, General, ticket, work, of.club.Show(r.Subject(General, ticket), 5)))
	r.must(r.arrive(now, General, ticket, work))
	r.refuse(RuleNullifier, r.merit(now, ticket, of.club.Show(r.Subject(General, ticket), 5)))
}

func TestRuleMerit(t *testing.T) {
	r, of := newDoorScript(t)
	now, ticket := r.now, numbered(1)
	club := of.club.Show(r.Subject(General, ticket), 1)
	r.refuse(RuleMerit, r.merit(now, ticket, club)) // has not joined
	r.must(r.arrive(now, General, ticket, of.task.Show(r.Subject(General, ticket), 0)))
	r.refuse(RuleCredential, r.merit(now, ticket, of.task.Show(r.Subject(General, ticket), 0)))   // shown before
	r.refuse(RuleCredential, r.merit(now, ticket, of.club.Show(r.Subject("members", ticket), 1))) // another lane
	r.refuse(RuleFreeze, r.merit(base+minute, ticket, club))                                      // the window is over
	r.must(r.merit(now, ticket, club))
	r.refuse(RuleCredential, r.merit(now, ticket, of.club.Show(r.Subject(General, ticket), 2))) // each method once
	r.refuse(RuleNullifier, r.arrive(now, "members", ticket2, of.club.Show(r.Subject("members", ticket2), 1)))
	r.must(r.freeze(base + minute))
	r.refuse(RuleMerit, r.merit(base+minute, ticket, of.phone.Show(r.Subject(General, ticket), 0)))
	late := numbered(2)
	r.must(r.arrive(base+minute, General, late, of.task.Show(r.Subject(General, late), 0)))
	r.must(r.merit(base+69_999, late, of.phone.Show(r.Subject(General, late), 0)))
	r.must(&Skip{base + 69_999, late, Left})
	r.refuse(RuleMerit, r.merit(base+69_999, late, of.club.Show(r.Subject(General, late), 2)))
}

// TestUndoCredentials: after an undo everything can be shown again, and what was shown before cannot.
func TestUndoCredentials(t *testing.T) {
	chain, p := newChain(t), testPolicy()
	of := withDoor(&p, chain)
	r := newScript(t, p)
	mark := r.Mark()
	beat := workRound(t, &p, chain)
	if err := r.State.Apply(beat, &r.oracle); err != nil {
		t.Fatal(err)
	}
	r.State.Undo(mark)
	r.must(beat)
	first := r.arrive(r.now, "members", ticket1, of.club.Show(r.Subject("members", ticket1), 1))
	r.must(first)
	for range 3 {
		mark := r.Mark()
		ticket := numbered(7)
		entries := []Entry{
			r.merit(r.now, ticket1, of.phone.Show(r.Subject("members", ticket1), 0)),
			r.arrive(r.now, General, ticket, of.task.Show(r.Subject(General, ticket), 0), of.club.Show(r.Subject(General, ticket), 2)),
		}
		for _, e := range entries {
			if err := r.State.Apply(e, &r.oracle); err != nil {
				t.Fatal(err)
			}
		}
		r.State.Undo(mark)
		if diff := diffState(&r.twin, r.State); diff != "" {
			t.Fatalf("undone, and another state (-want +got):\n%s", diff)
		}
	}
	r.refuse(RuleNullifier, r.arrive(r.now, "members", ticket2, of.club.Show(r.Subject("members", ticket2), 1)))
}

func TestPolicyOfMethods(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Policy)
		field  string
	}{
		"one name twice":      {func(p *Policy) { p.Methods[2].Name = "club" }, "methods[2].name"},
		"named -":             {func(p *Policy) { p.Methods[2].Name = "-" }, "methods[2].name"},
		"work without beacon": {func(p *Policy) { p.Beacon = nil }, "methods[0].kind"},
		"a weak key":          {func(p *Policy) { p.Methods[1].Key = strings.Repeat("0", 64) }, "methods[1].key"},
		"too much work":       {func(p *Policy) { p.Methods[0].Bits = 41 }, "methods[0].bits"},
		"work with a limit":   {func(p *Policy) { p.Methods[0].Limit = 1 }, "methods[0].limit"},
		"work with a key":     {func(p *Policy) { p.Methods[0].Key = "00" }, "methods[0].key"},
		"a key with bits":     {func(p *Policy) { p.Methods[1].Bits = 8 }, "methods[1].bits"},
		"no work":             {func(p *Policy) { p.Methods[0].Bits = 0 }, "methods[0].bits"},
		"no key":              {func(p *Policy) { p.Methods[2].Key = "" }, "methods[2].key"},
		"no kind":             {func(p *Policy) { p.Methods[1].Kind = "" }, "methods[1].kind"},
		"no name":             {func(p *Policy) { p.Methods[1].Name, p.Lanes[1].Needs = "", nil }, "methods[1].name"},
		"a bad name":          {func(p *Policy) { p.Methods[2].Name = "Club" }, "methods[2].name"},
		"17 methods": {func(p *Policy) {
			for i := range 14 {
				p.Methods = append(p.Methods, credential.Method{Name: string(rune('a' + i)), Kind: credential.Work, Bits: 1})
			}
		}, "methods"},
		"an unknown need":    {func(p *Policy) { p.Lanes[0].Needs = []string{"fans"} }, "lanes[0].needs"},
		"a need twice":       {func(p *Policy) { p.Lanes[0].Needs = []string{"task", "task"} }, "lanes[0].needs"},
		"needs out of order": {func(p *Policy) { p.Lanes[1].Needs = []string{"phone", "club"} }, "lanes[1].needs"},
	} {
		p := testPolicy()
		withDoor(&p, newChain(t))
		if problems := p.Problems(); len(problems) > 0 {
			t.Fatal(problems)
		}
		test.change(&p)
		if problems := p.Problems(); len(problems) != 1 || problems[0].Field != test.field {
			t.Errorf("%s: problems %v, want one of %s", name, problems, test.field)
		}
		(&script{TB: t, State: &State{}}).refuse(RulePolicy, &Room{p})
	}
}

// makeDoorRoom plays the room with methods of the vectors.
func makeDoorRoom(t *testing.T) roomVector {
	secret := sha256.Sum256([]byte("vrf key of the vectors"))
	key, err := vrf.NewPrivateKey(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, key: key}
	s.out.VRFKey = hex.EncodeToString(secret[:])
	chain, p := newChain(t), vectorPolicy(t, key)
	of := withDoor(&p, chain)
	for _, broken := range []func(*Policy){
		func(p *Policy) { p.Methods[0].Bits = 0 }, func(p *Policy) { p.Methods[0].Bits = 255 },
		func(p *Policy) { p.Methods[1].Key = strings.Repeat("0", 64) }, func(p *Policy) { p.Methods[1].Key = "ff" },
		func(p *Policy) { p.Methods[2].Key += "a" }, func(p *Policy) { p.Methods[2].Name = "club" },
		func(p *Policy) { p.Methods[1].Name = "-" }, func(p *Policy) { p.Methods[1].Key = "!" }, func(p *Policy) { p.Beacon = nil },
		func(p *Policy) { p.Lanes[0].Needs = []string{"club", "task"} }, func(p *Policy) { p.Lanes[0].Needs = []string{"vip"} },
		func(p *Policy) { p.Lanes[0].Needs = []string{"task", ""} },
	} {
		bad := p
		bad.Methods, bad.Lanes = slices.Clone(p.Methods), slices.Clone(p.Lanes)
		broken(&bad)
		s.refuse(RulePolicy, &Room{bad})
	}
	s.must(&Room{p})
	ticket := func(n int) Ticket { return NewTicket(p.Origin, vectorSecret(n)) }
	show := func(i *issuertest.Issuer, lane Lane, n, account int) credential.Credential {
		return i.Show(s.Subject(lane, ticket(n)), account)
	}
	join := func(at Time, lane Lane, n int, list ...credential.Credential) *Arrive {
		return s.arrive(at, lane, ticket(n), list...)
	}
	s.refuse(RuleCredential, join(p.Opens, General, 1, show(of.task, General, 1, 0)))
	s.must(join(p.Opens, "members", 2, show(of.club, "members", 2, 1)))
	beat := workRound(t, &p, chain)
	s.refuse(RuleBeacon, &Beat{beat.Time - 1, beat.Signature})
	s.refuse(RuleBeacon, &Beat{beat.Time, beat.Signature[:47]})
	s.must(beat)
	s.refuse(RuleBeacon, beat)
	at := beat.Time
	task, club, phone := show(of.task, General, 1, 0), show(of.club, General, 1, 2), show(of.phone, General, 1, 0)
	for _, list := range [][]credential.Credential{
		{}, {club}, {club, task}, {task, task}, {task, phone, club}, {task, {Method: "vip", Evidence: []byte{1}}},
		{show(of.task, General, 3, 0)}, {show(of.task, "members", 1, 0)}, {task, show(of.club, General, 3, 2)},
		{task, show(of.phone, "members", 1, 0)}, {task, {Method: "club", Evidence: club.Evidence}},
		{{Method: "task", Nullifier: club.Nullifier, Evidence: task.Evidence}}, {task, {Method: "phone", Evidence: club.Evidence}},
	} {
		s.refuse(RuleCredential, join(at, General, 1, list...))
	}
	s.refuse(RuleNullifier, join(at, General, 1, task, show(of.club, General, 1, 1)))
	s.must(join(at, General, 1, task, club))
	s.refuse(RuleNullifier, join(at, "members", 3, show(of.club, "members", 3, 2)))
	s.must(&Skip{at, ticket(2), Left})
	s.refuse(RuleNullifier, join(at, "members", 3, show(of.club, "members", 3, 1)))
	s.refuse(RuleMerit, s.merit(at, ticket(3), show(of.club, General, 3, 3)))
	s.must(join(at, General, 3, show(of.task, General, 3, 0), show(of.phone, General, 3, 0)))
	s.refuse(RuleCredential, s.merit(at, ticket(3), show(of.phone, General, 3, 0)))
	s.refuse(RuleCredential, s.merit(at, ticket(3), show(of.club, "members", 3, 3)))
	s.must(s.merit(at+1, ticket(3), show(of.club, General, 3, 3)))
	s.refuse(RuleMerit, s.merit(at+1, ticket(2), show(of.phone, "members", 2, 0))) // has left
	s.refuse(RuleNullifier, join(at+1, "members", 4, show(of.club, "members", 4, 4)))
	s.must(s.merit(at+2, ticket(1), phone))
	s.doorDraw(p.Starts, chain)
	s.refuse(RuleMerit, s.merit(s.now, ticket(1), show(of.phone, General, 1, 0)))
	s.must(&End{s.now})
	root := s.oracle.Root()
	s.out.Root, s.out.RoomHash = hex.EncodeToString(root[:]), hex.EncodeToString(s.roomHash[:])
	return s.out
}

// doorDraw freezes and draws a window of a room with a beacon.
func (s *story) doorDraw(at Time, chain *local.Beacon) {
	s.t.Helper()
	f, alpha, _ := s.NextFreeze(at, s.oracle.Root())
	proof, beta := s.key.Prove(alpha)
	f.Proof = [ProofSize]byte(proof)
	s.must(f)
	pending := s.Pending()[0]
	signature, err := chain.Sign(pending.Round)
	if err != nil {
		s.t.Fatal(err)
	}
	d, _ := s.NextDraw(pending.Due, signature)
	s.draw(d, alpha, beta)
	for e, ok := s.NextAssign(); ok; e, ok = s.NextAssign() {
		s.assign(&e)
	}
}
