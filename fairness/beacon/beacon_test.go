package beacon_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cloudflare/circl/ecc/bls12381"
	"github.com/cloudflare/circl/sign/bls"
	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness/beacon"
)

// chainVector is a chain in testdata.
type chainVector struct {
	Hash      hexBytes `json:"chain_hash"`
	PublicKey hexBytes `json:"public_key"`
	Seed      hexBytes
	ID        string `json:"beacon_id"`
	Genesis   int64
	Period    uint32 `json:"period_seconds"`
	Rounds    []struct {
		Round                 uint64
		Signature, Randomness hexBytes
	}
}

func (v chainVector) chain() beacon.Chain {
	return beacon.Chain{ID: v.ID, PublicKey: [96]byte(v.PublicKey), Genesis: v.Genesis, Period: v.Period, GroupHash: [32]byte(v.Seed)}
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// vectors returns the chains in testdata, quicknet first.
func vectors(t testing.TB) []chainVector {
	t.Helper()
	var quicknet chainVector
	var more struct{ Chains []chainVector }
	for name, into := range map[string]any{"drand-quicknet.json": &quicknet, "drand-rounds.json": &more} {
		text, err := os.ReadFile("testdata/" + name)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return append([]chainVector{quicknet}, more.Chains...)
}

// round42 is a round of quicknet.
func round42(t testing.TB) []byte { return vectors(t)[0].Rounds[0].Signature }

func TestVectors(t *testing.T) {
	rounds := 0
	for _, v := range vectors(t) {
		c := v.chain()
		if err := c.Valid(); err != nil {
			t.Errorf("%s: %v", v.ID, err)
		}
		if got := c.Hash(); string(got[:]) != string(v.Hash) {
			t.Errorf("%s has the hash %x, want %x", v.ID, got, v.Hash)
		}
		for _, r := range v.Rounds {
			if err := c.Verify(r.Round, r.Signature); err != nil {
				t.Errorf("%s: %v", v.ID, err)
			}
			if got := sha256.Sum256(r.Signature); r.Randomness != nil && string(got[:]) != string(r.Randomness) {
				t.Errorf("%s, round %d: randomness %x, want %x", v.ID, r.Round, got, r.Randomness)
			}
			rounds++
		}
	}
	if rounds != 5 {
		t.Errorf("%d rounds, want 5", rounds)
	}
}

func TestQuicknet(t *testing.T) {
	if diff := cmp.Diff(vectors(t)[0].chain(), beacon.Quicknet()); diff != "" {
		t.Error(diff)
	}
}

// TestHashCoversEveryField changes every field but the id of the default chain, which existed before drand
// had ids.
func TestHashCoversEveryField(t *testing.T) {
	base := beacon.Quicknet()
	seen := map[[32]byte]string{base.Hash(): "nothing"}
	for name, change := range map[string]func(*beacon.Chain){
		"id": func(c *beacon.Chain) { c.ID = "quicknets" }, "no id": func(c *beacon.Chain) { c.ID = "" },
		"key": func(c *beacon.Chain) { c.PublicKey[95] ^= 1 }, "genesis": func(c *beacon.Chain) { c.Genesis++ },
		"period": func(c *beacon.Chain) { c.Period++ }, "group": func(c *beacon.Chain) { c.GroupHash[0] ^= 1 },
	} {
		c := base
		change(&c)
		if other, ok := seen[c.Hash()]; ok {
			t.Errorf("changing %s gives the same hash as changing %s", name, other)
		}
		seen[c.Hash()] = name
	}
	unnamed, named := base, base
	unnamed.ID, named.ID = "", "default"
	if unnamed.Hash() != named.Hash() {
		t.Error("the default chain has two hashes")
	}
}

func TestValidRefuses(t *testing.T) {
	for name, change := range map[string]func(*beacon.Chain){
		"space in id": func(c *beacon.Chain) { c.ID = "quick net" }, "newline in id": func(c *beacon.Chain) { c.ID = "quicknet\n" },
		"id not ASCII": func(c *beacon.Chain) { c.ID = "quicknét" }, "id not UTF-8": func(c *beacon.Chain) { c.ID = "\xff" },
		"id of 65 bytes":     func(c *beacon.Chain) { c.ID = fmt.Sprintf("%065d", 0) },
		"genesis before":     func(c *beacon.Chain) { c.Genesis = -1 },
		"genesis in 100,000": func(c *beacon.Chain) { c.Genesis = math.MaxInt64 },
		"no period":          func(c *beacon.Chain) { c.Period = 0 },
		"period of a century": func(c *beacon.Chain) {
			c.Period = math.MaxUint32
		},
		"no key":        func(c *beacon.Chain) { c.PublicKey = [96]byte{} },
		"identity key":  func(c *beacon.Chain) { c.PublicKey = [96]byte{0: 0xc0} },
		"key off curve": func(c *beacon.Chain) { c.PublicKey = [96]byte{0: 0x80, 95: offCurveG2} },
		"key oracle":    func(c *beacon.Chain) { c.PublicKey = [96]byte{0: 0x80, 95: outsideG2} },
		"x of key too large": func(c *beacon.Chain) {
			c.PublicKey = [96]byte{}
			prime.FillBytes(c.PublicKey[:48])
			c.PublicKey[0] |= 0x80
			c.PublicKey[95] = 1
		},
	} {
		c := beacon.Quicknet()
		change(&c)
		if err := c.Valid(); !errors.Is(err, beacon.ErrChain) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []string{"", "default", fmt.Sprintf("%064d", 0), "!~"} {
		c := beacon.Quicknet()
		c.ID = id
		if err := c.Valid(); err != nil {
			t.Errorf("id %q: %v", id, err)
		}
	}
}

// Points with small x; the tests below prove their properties.
const (
	outsideG1, offCurveG1 = 4, 1
	outsideG2, offCurveG2 = 2, 1
)

var prime, _ = new(big.Int).SetString("1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab", 16)

// TestSmallPoints checks which of the points used in attacks are on their curves: y^2 = x^3 + 4 over Fp, and
// y^2 = x^3 + 4 + 4i over Fp[i], where a number is a square if its norm is a square in Fp.
func TestSmallPoints(t *testing.T) {
	rhs := func(x int64) *big.Int { return big.NewInt(x*x*x + 4) }
	norm := func(x int64) *big.Int {
		a := rhs(x)
		return a.Add(a.Mul(a, a), big.NewInt(16))
	}
	for _, p := range []struct {
		name string
		n    *big.Int
		want int
	}{
		{"outsideG1", rhs(outsideG1), 1}, {"offCurveG1", rhs(offCurveG1), -1},
		{"outsideG2", norm(outsideG2), 1}, {"offCurveG2", norm(offCurveG2), -1},
	} {
		if got := big.Jacobi(p.n, prime); got != p.want {
			t.Errorf("%s: %d, want %d", p.name, got, p.want)
		}
	}
}

// signer is a chain with a known key.
func signer(t testing.TB) (beacon.Chain, *bls.PrivateKey[bls.KeyG2SigG1]) {
	t.Helper()
	key, err := bls.KeyGen[bls.KeyG2SigG1](make([]byte, 32), nil, []byte("fairness/beacon test"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return beacon.Chain{ID: "test", PublicKey: [96]byte(public), Genesis: 1, Period: 1}, key
}

func sign(key *bls.PrivateKey[bls.KeyG2SigG1], round uint64) []byte {
	message := sha256.Sum256(binary.BigEndian.AppendUint64(nil, round))
	return bls.Sign(key, message[:])
}

func refused(t *testing.T, c beacon.Chain, round uint64, signature []byte) {
	t.Helper()
	if err := c.Verify(round, signature); !errors.Is(err, beacon.ErrSignature) {
		t.Errorf("round %d, signature %x: %v", round, signature, err)
	}
}

func TestVerifyRefusesOtherRound(t *testing.T) {
	for _, round := range []uint64{0, 1, 41, 43, 42 << 8, 42 << 56, math.MaxUint64} {
		refused(t, beacon.Quicknet(), round, round42(t))
	}
	for _, v := range vectors(t) {
		for _, r := range v.Rounds {
			refused(t, v.chain(), r.Round^1, r.Signature)
		}
	}
}

// TestVerifyRefusesRoundZero checks that round 0 is refused, although a key can sign it.
func TestVerifyRefusesRoundZero(t *testing.T) {
	c, key := signer(t)
	if err := c.Verify(1, sign(key, 1)); err != nil {
		t.Error(err)
	}
	refused(t, c, 0, sign(key, 0))
}

func TestVerifyRefusesFlippedBit(t *testing.T) {
	good := round42(t)
	for i := range 8 * len(good) {
		if testing.Short() && i%16 != 0 {
			continue
		}
		b := append([]byte(nil), good...)
		b[i/8] ^= 1 << (i % 8)
		refused(t, beacon.Quicknet(), 42, b)
	}
}

func TestVerifyRefusesOtherLength(t *testing.T) {
	good := round42(t)
	for _, b := range [][]byte{nil, {}, good[:47], append(good[:48:48], 0), append(good[:48:48], good...), make([]byte, 96)} {
		refused(t, beacon.Quicknet(), 42, b)
	}
}

// TestVerifyRefusesUncompressed checks that uncompressed encodings of the same point are refused, which circl
// accepts.
func TestVerifyRefusesUncompressed(t *testing.T) {
	var point bls12381.G1
	if err := point.SetBytes(round42(t)); err != nil {
		t.Fatal(err)
	}
	c, long := beacon.Quicknet(), point.Bytes()
	refused(t, c, 42, long)
	refused(t, c, 42, long[:48])
	key := new(bls.PublicKey[bls.KeyG2SigG1])
	if err := key.UnmarshalBinary(c.PublicKey[:]); err != nil {
		t.Fatal(err)
	}
	message := sha256.Sum256(binary.BigEndian.AppendUint64(nil, 42))
	if !bls.Verify(key, message[:], long) {
		t.Error("circl refuses it by itself: this test shows nothing")
	}
}

func TestVerifyRefusesIdentity(t *testing.T) {
	for _, first := range []byte{0xc0, 0xe0, 0x40, 0x00} {
		refused(t, beacon.Quicknet(), 42, append([]byte{first}, make([]byte, 47)...))
	}
}

func TestVerifyRefusesNegated(t *testing.T) {
	b := append([]byte(nil), round42(t)...)
	b[0] ^= 0x20
	if err := new(bls12381.G1).SetBytes(b); err != nil {
		t.Fatal(err) // it is in the group
	}
	refused(t, beacon.Quicknet(), 42, b)
}

func TestVerifyRefusesOutsideSubgroup(t *testing.T) {
	for _, x := range []byte{outsideG1, offCurveG1} {
		refused(t, beacon.Quicknet(), 42, append(append([]byte{0x80}, make([]byte, 46)...), x))
	}
}

// TestVerifyRefusesTorsion adds a point of small order, which some pairings ignore, to a signature (h*Q has
// an order that divides r; r*Q has an order that divides h).
func TestVerifyRefusesTorsion(t *testing.T) {
	good := affine(t, round42(t))
	order := new(big.Int).SetBytes(bls12381.Order())
	oracle := affine(t, append(append([]byte{0x80}, make([]byte, 46)...), outsideG1))
	small := oracle.mul(order)
	if small == nil {
		t.Fatal("the point is in the subgroup")
	}
	refused(t, beacon.Quicknet(), 42, good.add(small).compressed())
	if err := beacon.Quicknet().Verify(42, good.compressed()); err != nil {
		t.Error(err) // checks this test's own arithmetic
	}
}

// TestVerifyRefusesLargeX encodes the same point with x + p instead of x.
func TestVerifyRefusesLargeX(t *testing.T) {
	c, key := signer(t)
	limit := new(big.Int).Lsh(big.NewInt(1), 381)
	for round := uint64(1); ; round++ {
		b := sign(key, round)
		x := new(big.Int).SetBytes(append([]byte{b[0] & 0x1f}, b[1:]...))
		if x.Add(x, prime).Cmp(limit) >= 0 {
			continue
		}
		if err := c.Verify(round, b); err != nil {
			t.Error(err)
		}
		flags := b[0] & 0xe0
		x.FillBytes(b)
		b[0] |= flags
		refused(t, c, round, b)
		return
	}
}

func TestVerifyRefusesOtherChain(t *testing.T) {
	c, key := signer(t)
	refused(t, c, 42, round42(t))
	refused(t, beacon.Quicknet(), 42, sign(key, 42))
	for _, v := range vectors(t) {
		if v.ID == "quicknet-t" {
			refused(t, v.chain(), 42, round42(t))
		}
	}
}

// TestVerifyRefusesWeakKey: with the identity as the key, the identity would verify as every signature.
func TestVerifyRefusesWeakKey(t *testing.T) {
	for _, key := range [][96]byte{{}, {0: 0xc0}, {0: 0x80, 95: outsideG2}} {
		c := beacon.Quicknet()
		c.PublicKey = key
		for _, b := range [][]byte{round42(t), append([]byte{0xc0}, make([]byte, 47)...)} {
			if err := c.Verify(42, b); !errors.Is(err, beacon.ErrChain) {
				t.Errorf("key %x: %v", key, err)
			}
		}
	}
}

func TestTimes(t *testing.T) {
	c := beacon.Quicknet()
	genesis := c.Genesis * 1000
	for ms, want := range map[int64]uint64{
		math.MinInt64: 1, -1: 1, 0: 1, genesis - 1: 1, genesis: 2, genesis + 2999: 2, genesis + 3000: 3, genesis + 3001: 3,
		1776643199999: 27946612, 1776643200000: 27946613, // 2026-04-20T00:00:00Z
		math.MaxInt64: uint64(math.MaxInt64-genesis)/3000 + 2,
	} {
		if got := c.After(ms); got != want {
			t.Errorf("After(%d) = %d, want %d", ms, got, want)
		}
	}
	for round, want := range map[uint64]int64{
		0: genesis, 1: genesis, 2: genesis + 3000, 1000: genesis + 999*3000, 27946612: 1776643200000, 1 << 62: math.MaxInt64, math.MaxUint64: math.MaxInt64,
	} {
		if got := c.Emitted(round); got != want {
			t.Errorf("Emitted(%d) = %d, want %d", round, got, want)
		}
	}
}

// TestTimesInvert tries random chains and times: the round after a time is later than it, and the one before
// that is not.
func TestTimesInvert(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		c := beacon.Chain{Genesis: random.Int64N(1 << 42), Period: 1 + random.Uint32N(31*24*3600)}
		ms := random.Int64N(1 << 53)
		if random.IntN(2) == 0 { // the time of a round, or close to it
			ms = min(c.Emitted(1+random.Uint64N(1<<21))+random.Int64N(3)-1, 1<<53)
		}
		next := c.After(ms)
		if c.Emitted(next) <= ms || next > 1 && c.Emitted(next-1) > ms {
			t.Fatalf("%+v: after %d comes round %d at %d", c, ms, next, c.Emitted(next))
		}
	}
}

// FuzzEmitted compares with numbers that do not overflow.
func FuzzEmitted(f *testing.F) {
	f.Add(int64(1692803367), uint32(3), uint64(42))
	f.Add(int64(1<<42), uint32(31*24*3600), uint64(1<<63))
	f.Fuzz(func(t *testing.T, genesis int64, period uint32, round uint64) {
		genesis, period = genesis&(1<<42-1), max(period%(31*24*3600), 1)
		want := new(big.Int).SetUint64(max(round, 1) - 1)
		want.Add(want.Mul(want, big.NewInt(int64(period))), big.NewInt(genesis))
		if want.Mul(want, big.NewInt(1000)); !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if got := (beacon.Chain{Genesis: genesis, Period: period}).Emitted(round); got != want.Int64() {
			t.Errorf("round %d from %d every %d: %d, want %d", round, genesis, period, got, want)
		}
	})
}

// FuzzVerify must find no other signature of round 42, and none that verifies under another key.
func FuzzVerify(f *testing.F) {
	good := round42(f)
	key := beacon.Quicknet().PublicKey
	f.Add(uint64(42), good, key[:])
	f.Add(uint64(0), []byte{0xc0}, []byte{0xc0})
	f.Add(uint64(42), append([]byte{0x80}, make([]byte, 47)...), make([]byte, 96))
	f.Fuzz(func(t *testing.T, round uint64, signature, public []byte) {
		c := beacon.Quicknet()
		if err := c.Verify(round, signature); (err == nil) != (round == 42 && string(signature) == string(good)) {
			if round == 42 { // it may find signatures of other rounds, if it can
				t.Errorf("round %d, %x: %v", round, signature, err)
			}
		}
		copy(c.PublicKey[:], public)
		err := c.Verify(round, signature)
		if c.PublicKey != key && err == nil {
			t.Errorf("%x verifies under %x", signature, c.PublicKey)
		}
		if err != nil && !errors.Is(err, beacon.ErrSignature) && !errors.Is(err, beacon.ErrChain) {
			t.Error(err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	c, signature := beacon.Quicknet(), round42(b)
	for b.Loop() {
		if err := c.Verify(42, signature); err != nil {
			b.Fatal(err)
		}
	}
}
