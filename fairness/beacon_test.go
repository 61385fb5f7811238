package fairness

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/local"
)

func quicknet() *Beacon { return &Beacon{beacon.Quicknet(), MinMargin} }

// witnessed adds a beacon and n witnesses to a policy.
func witnessed(p *Policy, n int, quorum uint32) {
	p.Beacon, p.Quorum = quicknet(), quorum
	for i := range n {
		p.Witnesses = append(p.Witnesses, fmt.Sprintf("witness%d.example.org+0000%04x+BAEC%04d", i, i, i))
	}
}

// newChain returns a chain whose rounds are all known in advance.
func newChain(t testing.TB) *local.Beacon {
	t.Helper()
	key, err := local.ParseKey(fmt.Sprintf("%064x", 7))
	if err != nil {
		t.Fatal(err)
	}
	b, err := local.New(key, local.Config{
		ID: "test", Genesis: int64(base/1000) - 1000, Period: 3,
		Now: func() time.Time { return time.UnixMilli(int64(base) + 1_000_000_000) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withBeacon returns a room whose first window, with three arrivals, is frozen five seconds late, and its
// chain.
func withBeacon(t testing.TB, witnesses int, quorum uint32) (*script, *local.Beacon) {
	chain := newChain(t)
	p := testPolicy()
	if witnesses > 0 {
		witnessed(&p, witnesses, quorum)
	}
	p.Beacon = &Beacon{chain.Chain(), 5000}
	r := newScript(t, p)
	r.join(base, 3)
	r.must(r.freeze(base + minute + 5*second))
	return r, chain
}

// TestRuleRound: the round follows from the policy, the window and the freeze.
func TestRuleRound(t *testing.T) {
	r, chain := withBeacon(t, 0, 0)
	w := &r.windows.all[0]
	frozen, emitted := base+minute+5*second, Time(chain.Chain().Emitted(w.round))
	if emitted <= frozen+5000 || emitted > frozen+5000+3000 {
		t.Errorf("round %d appears %d ms after the freeze, want more than 5000 and at most 8000", w.round, emitted-frozen)
	}
	r.join(base+minute+6*second, 1)
	good := r.freeze(base + 70*second)
	for _, round := range []uint64{0, 1, good.Round - 1, good.Round + 1, w.round, 1<<63 - 1} {
		bad := *good
		bad.Round = round
		r.refuse(RuleFreeze, &bad)
	}
	late := r.freeze(base + 100*second)
	if late.Round != good.Round+10 {
		t.Errorf("frozen 30 s later the round is %d, want ten after %d", late.Round, good.Round)
	}
	late.Round = good.Round // a late operator gets the round of a punctual one
	r.refuse(RuleFreeze, late)
	r.must(good)
	want := []Pending{
		{Window: 0, Frozen: frozen, Size: 5, Round: w.round, Due: emitted},
		{Window: 1, Frozen: good.Time, Size: 7, Round: good.Round, Due: Time(chain.Chain().Emitted(good.Round))},
	}
	if p := r.Pending(); !slices.Equal(p, want) {
		t.Errorf("pending %+v", p)
	}
}

func TestRuleBeacon(t *testing.T) {
	r, chain := withBeacon(t, 0, 0)
	pending := r.Pending()[0]
	signature, err := chain.Sign(pending.Round)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.NextDraw(pending.Due-1, signature); ok {
		t.Error("a draw before its round")
	}
	good, ok := r.NextDraw(pending.Due, signature)
	if !ok {
		t.Fatal("no draw with the round")
	}
	w := &r.windows.all[0]
	with := func(sig []byte) *Draw {
		bad := *good
		bad.Signature, bad.Seed = sig, NewSeed(w.alpha, w.beta, w.round, sig)
		return &bad
	}
	r.refuse(RuleBeacon, with(nil))                                                   // none
	r.refuse(RuleBeacon, with([]byte{}))                                              // empty
	r.refuse(RuleBeacon, with(signature[:47]))                                        // cut
	r.refuse(RuleBeacon, with(append(slices.Clone(signature), 0)))                    // with more data after it
	r.refuse(RuleBeacon, with(append(slices.Clone(signature[:47]), signature[47]^1))) // forged
	for _, round := range []uint64{1, pending.Round - 1, pending.Round + 1} {
		other, _ := chain.Sign(round)
		r.refuse(RuleBeacon, with(other)) // chosen
	}
	early := *good
	early.Time--
	r.refuse(RuleBeacon, &early)
	r.must(good)
	if good.Seed == NewSeed(w.alpha, w.beta, w.round, nil) {
		t.Error("the seed does not depend on the beacon")
	}
}

func TestRuleWitness(t *testing.T) {
	r, chain := withBeacon(t, 3, 2)
	pending := r.Pending()[0]
	signature, _ := chain.Sign(pending.Round)
	root := r.oracle.root // of the tree that ends with the freeze
	cosign := func(witness int, at Time) Cosignature {
		return fakeCosignature(r.policy.Witnesses[witness], pending.Size, root, at)
	}
	a, b, c := cosign(0, pending.Due-3000), cosign(1, pending.Frozen-2999), cosign(2, pending.Frozen)
	r.join(base+minute+6*second, 2) // the tree grows
	r.over(base + 70*second)
	with := func(list ...Cosignature) *Draw {
		e, ok := r.NextDraw(pending.Due, signature, list...)
		if !ok {
			t.Fatal("no draw")
		}
		return e
	}
	stranger := fakeCosignature("stranger.example.org+00000000+BAEC", pending.Size, root, pending.Frozen)
	for name, bad := range map[string]*Draw{
		"by a stranger":        with(stranger),
		"by a stranger too":    with(a, stranger),
		"twice":                with(a, a),
		"not in order":         with(b, a),
		"of the tree before":   with(fakeCosignature(r.policy.Witnesses[0], pending.Size-1, root, pending.Frozen)),
		"of the tree now":      with(fakeCosignature(r.policy.Witnesses[0], r.size, r.oracle.root, pending.Frozen)),
		"of another root":      with(fakeCosignature(r.policy.Witnesses[0], pending.Size, hash1, pending.Frozen)),
		"when the round comes": with(cosign(0, pending.Due)),
		"in the slack before":  with(cosign(0, pending.Due-2999)),
		"before the freeze":    with(cosign(0, pending.Frozen-3000)),
		"long before":          with(a, cosign(1, base)),
		"long after":           with(a, cosign(1, pending.Due+minute)),
		"of zeros":             with(Cosignature{}),
		"one too many":         with(a, b, c, c),
	} {
		t.Run(name, func(*testing.T) { r.refuse(RuleWitness, bad) })
	}
	for _, list := range [][]Cosignature{nil, {a}, {c}, {a, c}, {b, c}, {a, b, c}} { // fewer than the quorum
		twin := r.State
		if err := with(list...).checkCosignatures(twin, &r.windows.all[0], &r.oracle); err != nil {
			t.Errorf("%d cosignatures: %v", len(list), err)
		}
	}
	r.must(with(a, c))
}

// TestCosignedAtOnce: the draw may be the entry after the freeze.
func TestCosignedAtOnce(t *testing.T) {
	r, chain := withBeacon(t, 1, 1)
	pending := r.Pending()[0]
	signature, _ := chain.Sign(pending.Round)
	e, _ := r.NextDraw(pending.Due, signature, fakeCosignature(r.policy.Witnesses[0], pending.Size, r.oracle.root, pending.Frozen))
	r.must(e)
}

// TestDraws checks the times at which a draw is due, before and after its freeze.
func TestDraws(t *testing.T) {
	r, chain := withBeacon(t, 0, 0)
	r.join(base+minute+6*second, 1)
	frozen, open := r.Windows(2)[0], r.Windows(2)[1]
	if due := r.Pending()[0]; frozen.Draws != due.Due {
		t.Errorf("frozen: drawn at %d, want %d", frozen.Draws, due.Due)
	}
	if want := Time(chain.Chain().Emitted(r.policy.Beacon.Round(open.To))); open.Draws != want || want <= open.To {
		t.Errorf("open: drawn at %d, want %d", open.Draws, want)
	}
	plain := inMinute(t)
	if w := plain.Windows(1)[0]; w.Draws != w.To {
		t.Errorf("without a beacon: drawn at %d, want %d", w.Draws, w.To)
	}
}

// TestPolicyIsNotKept: changing an entry after it was applied does not change the room.
func TestPolicyIsNotKept(t *testing.T) {
	p := testPolicy()
	witnessed(&p, 2, 2)
	r := newScript(t, p)
	want := p.Witnesses[0]
	e := &Room{p}
	var s State
	if err := s.Apply(e, &r.oracle); err != nil {
		t.Fatal(err)
	}
	e.Witnesses[0], e.Beacon.Margin, e.Beacon.PublicKey[1] = "other", 9999, 0xff
	if got := s.Policy(); got.Witnesses[0] != want || got.Beacon.Margin != MinMargin || got.Beacon.PublicKey[1] == 0xff {
		t.Errorf("the policy is now of %q with a margin of %d", got.Witnesses[0], got.Beacon.Margin)
	}
}
