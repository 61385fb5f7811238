package ticket

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/internal/roomtest"
)

// chained is a stage with a beacon and witnesses.
type chained struct {
	*stage
	draw  *fairness.Draw
	first *fairness.Draw // of the previous window
	sign  func(round uint64) []byte
}

// publicRounds opens a room at a time at which the draws of [newChained] use the known rounds of quicknet, 42
// and 123.
const publicRounds fairness.Time = 1_692_803_423_000

// newChained writes a room with a beacon, and a freeze for each of two windows, which these witnesses cosign.
func newChained(t testing.TB, keys *roomtest.Keys, p fairness.Policy, opens fairness.Time, sign func(uint64) []byte, by ...roomtest.Witness) *chained {
	t.Helper()
	at := func(seconds int) fairness.Time { return opens + fairness.Time(seconds)*1000 }
	p.Created, p.Opens, p.Starts, p.Closes = at(-60), at(0), at(60), at(3600)
	p.Windows = []fairness.WindowRule{{From: at(0), Length: 60_000}, {From: at(60), Length: 240_000}, {From: at(300), Length: 20_000}}
	r := roomtest.Open(keys, p)
	freezeAndDraw := func(freeze, between int) {
		r.Freeze(at(freeze))
		root := r.Root()
		r.Join(at(between), 2)
		pending := r.State().Pending()
		if len(pending) == 0 {
			t.Fatal(r.Err())
		}
		var list []fairness.Cosignature
		for _, w := range by {
			list = append(list, cosign(keys, w, pending[0].Size, root, int64(pending[0].Due)/1000-3))
		}
		draw, _ := r.State().NextDraw(pending[0].Due, sign(pending[0].Round), list...)
		r.Append(draw)
	}
	r.Join(at(5), 7)
	freezeAndDraw(60, 61)
	r.Assign(3)
	r.Join(at(70), 4)
	r.Assign(-1)
	r.Join(at(299), 4)
	freezeAndDraw(303, 304)
	r.Assign(3)
	r.Join(at(310), 2)
	r.Assign(-1)
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	c := &chained{stage: stageOf(t, keys, r), sign: sign}
	c.draw = c.entries[c.drawAt].(*fairness.Draw)
	c.first = c.entries[must(find(c.entries, 0, fairness.KindDraw, 0))].(*fairness.Draw)
	return c
}

// newPublic returns a stage whose beacon is quicknet.
func newPublic(t testing.TB, keys *roomtest.Keys, by ...roomtest.Witness) *chained {
	t.Helper()
	p := keys.Witnessed()
	p.Beacon.Chain = beacon.Quicknet()
	return newChained(t, keys, p, publicRounds, quicknet(t), by...)
}

// newOwn returns a stage with a self-hosted beacon.
func newOwn(t testing.TB, keys *roomtest.Keys, by ...roomtest.Witness) *chained {
	t.Helper()
	return newChained(t, keys, keys.Witnessed(), roomtest.Opens, ownRounds(t, keys), by...)
}

func ownRounds(t testing.TB, keys *roomtest.Keys) func(uint64) []byte {
	t.Helper()
	return func(round uint64) []byte {
		signature, err := keys.Chain.Sign(round)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
}

// quicknet returns the public rounds.
func quicknet(t testing.TB) func(uint64) []byte {
	t.Helper()
	content, err := os.ReadFile("../../fairness/beacon/testdata/drand-quicknet.json")
	if err != nil {
		t.Fatal(err)
	}
	var known struct {
		Rounds []struct {
			Round     uint64
			Signature string
		}
	}
	if err := json.Unmarshal(content, &known); err != nil {
		t.Fatal(err)
	}
	return func(round uint64) []byte {
		for _, r := range known.Rounds {
			if signature, err := hex.DecodeString(r.Signature); r.Round == round && err == nil {
				return signature
			}
		}
		t.Fatalf("round %d is unknown", round)
		return nil
	}
}

func cosign(keys *roomtest.Keys, w roomtest.Witness, size uint64, root audit.Hash, seconds int64) fairness.Cosignature {
	text := audit.Checkpoint{Origin: keys.Origin, Size: size, Root: root}.Marshal()
	return fairness.Cosignature(w.Cosign(w.Private, text, seconds))
}

// cosigned returns a cosignature of the second freeze, at a time (s) after its round.
func (c *chained) cosigned(w roomtest.Witness, after int64) fairness.Cosignature {
	appears := int64(c.draw.Time) / 1000
	return cosign(c.keys, w, c.freezeAt+1, c.log.node(0, c.freezeAt+1), appears+after)
}

// redrawn returns the file of an operator who knows the beacon's key: with a wrong freeze, drawn and cosigned
// as if it were right.
func (c *chained) redrawn(change func(*fairness.Freeze)) *Bundle {
	return c.tampered(func(all []fairness.Entry) []fairness.Entry {
		f, d := all[c.freezeAt].(*fairness.Freeze), all[c.drawAt].(*fairness.Draw)
		change(f)
		alpha := fairness.Alpha(hashOf(c.log.entries[0]), f)
		proof, beta := c.keys.VRF.Prove(alpha)
		f.Proof = [fairness.ProofSize]byte(proof)
		d.Time, d.Signature = fairness.Time(c.keys.Chain.Chain().Emitted(f.Round)), c.sign(max(f.Round, 1))
		d.Seed, d.Cosignatures = fairness.NewSeed(alpha, beta, f.Round, d.Signature), nil
		return all
	})
}

func (c *chained) drawn(change func(*fairness.Draw)) *Bundle {
	return entry(c.stage, c.drawAt, change)
}

func chanceCases(s *stage) []testCase {
	keys := s.keys
	w := keys.Witnesses
	all := [4]Reason{Included, Closed, Witnessed, Exact}
	but := func(r Reason) [4]Reason { return [4]Reason{Included, Closed, r, Exact} }
	c := newPublic(s, keys, w...)
	own := newOwn(s, keys, w...)
	alone := keys.Witnessed()
	alone.Beacon.Chain, alone.Witnesses, alone.Quorum = beacon.Quicknet(), nil, 0
	odd := keys.Witnessed()
	odd.Beacon.Chain, odd.Witnesses[0] = beacon.Quicknet(), "invalid+00000000+x"
	earlier := c.entries[1].(*fairness.Arrive)
	return slices.Concat([]testCase{
		{"a public beacon, and all witnesses signed", c.bundle(), all},
		{"a visitor of the group before", c.log.gather(s, c.log.receipt(s, 1, 3), earlier.Ticket, 1), all},
		{"just enough witnesses", newPublic(s, keys, w[0], w[2]).bundle(), all},
		{"too few witnesses", newPublic(s, keys, w[1]).bundle(), but(Unpredictable)},
		{"no witness signed", newPublic(s, keys).bundle(), but(Unpredictable)},
		{"no witnesses at all", newChained(s, keys, alone, publicRounds, quicknet(s)).bundle(), but(Unpredictable)},
		{"a witness with an invalid key", newChained(s, keys, odd, publicRounds, quicknet(s), w[1:]...).bundle(), all},
		{"a private beacon", own.bundle(), but(OwnBeacon)},
		{"a private beacon, and no witness signed", newOwn(s, keys).bundle(), but(OwnBeacon)},
		{"closed, and the round is not there yet", c.cut(c.drawAt), [4]Reason{Included, Closed, Pending, Unchecked}},
	}, c.policyCases(), c.roundCases(own), c.beaconCases(own), c.witnessCases())
}

func (c *chained) policyCases() []testCase {
	policy := func(name string, change func(*fairness.Room)) testCase {
		return testCase{name, entry(c.stage, 0, change), [4]Reason{NoRoom, Unchecked, Unchecked, Unchecked}}
	}
	return []testCase{
		policy("a beacon's key that is no point", func(r *fairness.Room) { r.Beacon.PublicKey[20] ^= 1 }),
		policy("a beacon's key that is the identity", func(r *fairness.Room) { r.Beacon.PublicKey = [96]byte{0xc0} }),
		policy("a beacon's key that is not compressed", func(r *fairness.Room) { r.Beacon.PublicKey[0] &= 0x1f }),
		policy("a beacon's name too long", func(r *fairness.Room) { r.Beacon.ID = strings.Repeat("x", 65) }),
		policy("a beacon that begins too late", func(r *fairness.Room) { r.Beacon.Genesis = 1<<42 + 1 }),
		policy("a beacon without a period", func(r *fairness.Room) { r.Beacon.Period = 0 }),
		policy("a beacon with a period too long", func(r *fairness.Room) { r.Beacon.Period = 2_678_401 }),
		policy("a margin too short", func(r *fairness.Room) { r.Beacon.Margin = 4999 }),
		policy("a margin too long", func(r *fairness.Room) { r.Beacon.Margin = 3_600_001 }),
		policy("witnesses without a beacon", func(r *fairness.Room) { r.Beacon = nil }),
		policy("no witness wanted", func(r *fairness.Room) { r.Quorum = 0 }),
		policy("more witnesses wanted than there are", func(r *fairness.Room) { r.Quorum = 4 }),
		policy("a witness without a key", func(r *fairness.Room) { r.Witnesses[2] = "witness2.example.org+00000000" }),
		policy("a witness under two names", func(r *fairness.Room) {
			parts := strings.SplitN(r.Witnesses[1], "+", 3)
			r.Witnesses[2] = "other.example.org+00000000+" + parts[2]
		}),
		policy("more than 16 witnesses", func(r *fairness.Room) {
			for i := range 14 {
				r.Witnesses = append(r.Witnesses, fmt.Sprintf("witness.example.net+00000000+%d", i))
			}
		}),
	}
}

func (c *chained) roundCases(own *chained) []testCase {
	round := func(name string, b *Bundle) testCase {
		return testCase{name, b, [4]Reason{Included, Closed, OtherRound, Unchecked}}
	}
	freeze := func(s *chained, change func(*fairness.Freeze)) *Bundle { return entry(s.stage, s.freezeAt, change) }
	moved := func(by fairness.Time) func(*fairness.Freeze) {
		return func(f *fairness.Freeze) {
			f.Time += by
			f.Round = own.entries[0].(*fairness.Room).Beacon.Round(f.Time)
		}
	}
	return []testCase{
		round("a later round", freeze(c, func(f *fairness.Freeze) { f.Round++ })),
		round("an earlier round", freeze(c, func(f *fairness.Freeze) { f.Round-- })),
		round("no round", freeze(c, func(f *fairness.Freeze) { f.Round = 0 })),
		round("the last round there can be", freeze(c, func(f *fairness.Freeze) { f.Round = 1<<63 - 1 })),
		round("a freeze said to be later", freeze(c, func(f *fairness.Freeze) { f.Time += 2000 })),
		round("another round, drawn with it", own.redrawn(func(f *fairness.Freeze) { f.Round += 5 })),
		round("no round, drawn without one", own.redrawn(func(f *fairness.Freeze) { f.Round = 0 })),
		{"a later freeze, drawn by its round", own.redrawn(moved(6000)), [4]Reason{Included, Closed, OwnBeacon, OtherTicket}},
		{"a freeze before the window is over, drawn by its round", own.redrawn(moved(-4000)), [4]Reason{Included, OffSchedule, OwnBeacon, OtherTicket}},
	}
}

func (c *chained) beaconCases(own *chained) []testCase {
	only := func(name string, r Reason, b *Bundle) testCase {
		return testCase{name, b, [4]Reason{Included, Closed, r, Unchecked}}
	}
	signed := func(name string, change func(signature []byte) []byte) testCase {
		return only(name, BadBeacon, c.drawn(func(d *fairness.Draw) { d.Signature = change(d.Signature) }))
	}
	set := func(at int, to byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = to; return b }
	}
	identity := make([]byte, beacon.SignatureSize)
	identity[0] = 0xc0
	tooLarge := slices.Repeat([]byte{0xff}, beacon.SignatureSize)
	tooLarge[0] = 0x9f
	cases := []testCase{
		only("a draw a millisecond before its round", TooSoon, c.drawn(func(d *fairness.Draw) { d.Time-- })),
		only("a draw at the freeze", TooSoon, c.drawn(func(d *fairness.Draw) { d.Time = c.freeze.Time })),
		{"a draw long after its round", c.drawn(func(d *fairness.Draw) { d.Time += 3_600_000 }), [4]Reason{Included, Closed, Witnessed, Exact}},
		signed("no signature", func([]byte) []byte { return nil }),
		signed("the signature of another round", func([]byte) []byte { return c.first.Signature }),
		signed("the signature of another beacon", func([]byte) []byte { return own.draw.Signature }),
		signed("a signature with the other sign", func(b []byte) []byte { b[0] ^= 0x20; return b }),
		signed("a signature that is no point", func(b []byte) []byte { return set(47, b[47]^1)(b) }),
		signed("a signature that is the identity", func([]byte) []byte { return identity }),
		signed("a signature above the prime", func([]byte) []byte { return tooLarge }),
		signed("a signature that is not compressed", func(b []byte) []byte { return set(0, b[0]&0x7f)(b) }),
		signed("a signature too short", func(b []byte) []byte { return b[:47] }),
		signed("a signature too long", func(b []byte) []byte { return append(b, 0) }),
		only("the seed of another window", OtherSeed, c.drawn(func(d *fairness.Draw) { d.Seed = c.first.Seed })),
	}
	// The operator chooses the draw, and all later entries agree with it.
	chosen := own.sign
	own.sign = func(round uint64) []byte { return chosen(round + 1) }
	cases = append(cases, only("a draw by another round's signature", BadBeacon, own.redrawn(func(*fairness.Freeze) {})))
	own.sign = chosen
	return append(cases, outsideSubgroup(c))
}

// outsideSubgroup has the signature (0, 2): on the curve, of order 3.
func outsideSubgroup(c *chained) testCase {
	b := c.drawn(func(d *fairness.Draw) {
		d.Signature = make([]byte, beacon.SignatureSize)
		d.Signature[0] = 0x80
	})
	return testCase{"a signature outside of the subgroup", b, [4]Reason{Included, Closed, BadBeacon, Unchecked}}
}

func (c *chained) witnessCases() []testCase {
	w, rival := c.keys.Witnesses, newKeys(c, "rival").Witnesses
	of := func(list ...fairness.Cosignature) *Bundle {
		return c.drawn(func(d *fairness.Draw) { d.Cosignatures = list })
	}
	bad := func(name string, list ...fairness.Cosignature) testCase {
		return testCase{name, of(list...), [4]Reason{Included, Closed, BadWitness, Unchecked}}
	}
	good := func(name string, r Reason, list ...fairness.Cosignature) testCase {
		return testCase{name, of(list...), [4]Reason{Included, Closed, r, Exact}}
	}
	list := c.draw.Cosignatures
	changed := func(at int) fairness.Cosignature {
		one := list[2]
		one[at] ^= 1
		return one
	}
	size, root := c.freezeAt+1, c.log.node(0, c.freezeAt+1)
	elsewhere := *c.keys
	elsewhere.Origin += "/other"
	return []testCase{
		good("cosigned three seconds before the round", Unpredictable, c.cosigned(w[0], -3)),
		good("cosigned before the freeze, by slow clocks", Witnessed, c.cosigned(w[0], -9), c.cosigned(w[1], -9)),
		bad("cosigned long before the freeze", list[0], c.cosigned(w[1], -10)),
		bad("cosigned a second before the round", list[0], c.cosigned(w[1], -2)),
		bad("cosigned when the round appeared", list[0], c.cosigned(w[1], 0)),
		bad("cosigned long after the round", c.cosigned(w[1], 4000)),
		bad("cosigned at no time", cosign(c.keys, w[0], size, root, 0)),
		bad("cosigned at a time too large to count in milliseconds", cosign(c.keys, w[0], size, root, 1<<62)),
		bad("cosigned at a time below zero", cosign(c.keys, w[0], size, root, -5)),
		bad("a cosignature of the freeze before", list[0], c.first.Cosignatures[1]),
		bad("a cosignature of one entry less", cosign(c.keys, w[0], c.freezeAt, c.freeze.Root, 1_692_803_700)),
		bad("a cosignature of another history", cosign(c.keys, w[0], size, c.freeze.Root, 1_692_803_700)),
		bad("a cosignature of another room", cosign(&elsewhere, w[0], size, root, 1_692_803_700)),
		bad("a cosignature twice", list[0], list[0]),
		bad("cosignatures in another order", list[1], list[0]),
		bad("a cosignature by an unknown key", list[0], c.cosigned(rival[1], -1)),
		bad("a cosignature with another key id", changed(0)),
		bad("a cosignature with another time", changed(11)),
		bad("a cosignature with another signature", changed(75)),
	}
}

// TestTrustInOthers passes hashes and keys to the check: a given hash makes a beacon public, and only the
// given witnesses count.
func TestTrustInOthers(t *testing.T) {
	keys := newKeys(t, "honest")
	w := keys.Witnesses
	public, own := newPublic(t, keys, w[0], w[1]).bundle(), newOwn(t, keys, w[0], w[1]).bundle()
	none := newStage(t).bundle()
	hash := keys.Chain.Chain().Hash()
	for name, c := range map[string]struct {
		bundle *Bundle
		trust  Trust
		want   Reason
		known  string
	}{
		"nothing, public beacon":        {public, Trust{}, Witnessed, ""},
		"nothing, own beacon":           {own, Trust{}, OwnBeacon, ""},
		"the beacon":                    {own, Trust{Beacons: [][32]byte{{1}, hash}}, Witnessed, ""},
		"another beacon":                {own, Trust{Beacons: [][32]byte{{1}}}, OwnBeacon, ""},
		"both witnesses":                {public, Trust{Witnesses: []string{w[1].String(), w[0].String()}}, Witnessed, "2"},
		"one of them":                   {public, Trust{Witnesses: []string{w[1].String(), w[2].String()}}, Unpredictable, "1"},
		"without a witness that signed": {public, Trust{Witnesses: []string{w[2].String()}}, Unpredictable, "0"},
		"witnesses, not the beacon":     {own, Trust{Witnesses: []string{w[0].String(), w[1].String()}}, OwnBeacon, "2"},
		"a transcript without a beacon": {none, Trust{Beacons: [][32]byte{hash}, Witnesses: []string{w[0].String()}}, NoBeacon, ""},
	} {
		line := Check(c.bundle, c.trust)[2]
		if line.Reason != c.want || line.Facts["known"] != c.known {
			t.Errorf("%s: %+v", name, line)
		}
	}
}

// TestRootEnding compares the root of every tree with the one computed from a larger tree's path to its last
// entry.
func TestRootEnding(t *testing.T) {
	var entries [][]byte
	keys := newKeys(t, "roots")
	for size := uint64(1); size <= 40; size++ {
		entries = append(entries, fmt.Appendf(nil, "entry %d", size))
		log := newTree(keys, entries)
		for last := range size {
			if log.prove(last).rootEnding(size) != log.node(0, last+1) {
				t.Fatalf("entry %d of %d", last, size)
			}
		}
	}
}
