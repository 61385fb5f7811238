package beacon_test

import (
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/cloudflare/circl/ecc/bls12381"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/local"
)

// signedRounds returns the chain of a new key, and its first n rounds.
func signedRounds(t testing.TB, n int) (beacon.Chain, []beacon.Signed) {
	t.Helper()
	b, err := local.New(local.NewKey(), local.Config{Genesis: time.Now().Unix() - 3600, Period: 1})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]beacon.Signed, n)
	for i := range list {
		list[i].Round = uint64(i + 1)
		signature, err := b.Sign(list[i].Round)
		if err != nil {
			t.Fatal(err)
		}
		copy(list[i].Signature[:], signature)
	}
	return b.Chain(), list
}

// TestVerifyAll checks that batches of all sizes verify, and that one wrong signature is found
// wherever it is.
func TestVerifyAll(t *testing.T) {
	t.Parallel()
	chain, all := signedRounds(t, 9)
	for n := range len(all) + 1 {
		if err := chain.VerifyAll(all[:n]); err != nil {
			t.Errorf("%d rounds: %v", n, err)
		}
	}
	twice := append(append([]beacon.Signed(nil), all...), all...)
	if err := chain.VerifyAll(twice); err != nil {
		t.Errorf("each round twice: %v", err)
	}
	for i := range all {
		for name, change := range map[string]func(s *beacon.Signed){
			"another round":   func(s *beacon.Signed) { s.Round += 100 },
			"round 0":         func(s *beacon.Signed) { s.Round = 0 },
			"another's":       func(s *beacon.Signed) { s.Signature = all[(i+1)%len(all)].Signature },
			"the negative":    func(s *beacon.Signed) { s.Signature[0] ^= 0x20 },
			"the identity":    func(s *beacon.Signed) { s.Signature = [48]byte{0xc0} },
			"no point":        func(s *beacon.Signed) { s.Signature = [48]byte{} },
			"outside of G1":   func(s *beacon.Signed) { s.Signature = outside(t) },
			"a flipped bit":   func(s *beacon.Signed) { s.Signature[40] ^= 1 },
			"an uncompressed": func(s *beacon.Signed) { s.Signature[0] &^= 0x80 },
		} {
			list := append([]beacon.Signed(nil), all...)
			change(&list[i])
			if err := chain.VerifyAll(list); !errors.Is(err, beacon.ErrSignature) {
				t.Errorf("%s in place of signature %d: %v", name, i, err)
			}
		}
	}
	many := slices.Concat(all, all, all, all)
	if err := chain.VerifyAll(many); err != nil {
		t.Errorf("%d rounds: %v", len(many), err)
	}
	many[30].Round++
	if err := chain.VerifyAll(many); !errors.Is(err, beacon.ErrSignature) {
		t.Errorf("one of %d rounds is wrong: %v", len(many), err)
	}
	chain.PublicKey = [96]byte{0xc0}
	if err := chain.VerifyAll(all); !errors.Is(err, beacon.ErrChain) {
		t.Errorf("the identity as public key: %v", err)
	}
}

// TestVerifyAllCancel checks that signatures do not verify if their errors cancel each other in a sum without
// coefficients.
func TestVerifyAllCancel(t *testing.T) {
	t.Parallel()
	chain, list := signedRounds(t, 4)
	var plus, minus, p bls12381.G1
	plus.Hash([]byte("an error"), nil)
	minus = plus
	minus.Neg()
	for i, by := range map[int]*bls12381.G1{0: &plus, 1: &minus} {
		if err := p.SetBytes(list[i].Signature[:]); err != nil {
			t.Fatal(err)
		}
		p.Add(&p, by)
		copy(list[i].Signature[:], p.BytesCompressed())
	}
	if err := chain.VerifyAll(list); !errors.Is(err, beacon.ErrSignature) {
		t.Errorf("errors that cancel: %v", err)
	}
	list[0].Round, list[2].Round = list[2].Round, list[0].Round
	if err := chain.VerifyAll(list[2:]); !errors.Is(err, beacon.ErrSignature) {
		t.Errorf("rounds that are swapped: %v", err)
	}
}

// TestVerifyAllAgrees compares the batch with single verifications, on real rounds of quicknet.
func TestVerifyAllAgrees(t *testing.T) {
	t.Parallel()
	s := beacon.Signed{Round: 42}
	copy(s.Signature[:], round42(t))
	for _, round := range []uint64{41, 42, 43} {
		s.Round = round
		one, all := beacon.Quicknet().Verify(round, s.Signature[:]), beacon.Quicknet().VerifyAll([]beacon.Signed{s, s})
		if (one == nil) != (all == nil) {
			t.Errorf("round %d: %v alone, %v in a batch", round, one, all)
		}
	}
}

// outside returns a point of the curve that is not in the subgroup.
func outside(t *testing.T) (encoded [48]byte) {
	t.Helper()
	for x := int64(1); ; x++ {
		y := new(big.Int).Exp(big.NewInt(x), big.NewInt(3), prime)
		if y.ModSqrt(y.Add(y, big.NewInt(4)), prime) != nil {
			return [48]byte((&g1{big.NewInt(x), y}).compressed())
		}
	}
}

func BenchmarkVerifyAll(b *testing.B) {
	chain, list := signedRounds(b, 64)
	for b.Loop() {
		if err := chain.VerifyAll(list); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(list)), "us/round")
}
