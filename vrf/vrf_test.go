package vrf_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/proofline/proofline/vrf"
)

func privateKey(tb testing.TB, b []byte) *vrf.PrivateKey {
	tb.Helper()
	k, err := vrf.NewPrivateKey(b)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// refused fails the test unless Verify returns the error, and no output with it.
func refused(tb testing.TB, k *vrf.PublicKey, alpha, proof []byte, want error) {
	tb.Helper()
	beta, err := k.Verify(alpha, proof)
	if !errors.Is(err, want) || beta != ([vrf.OutputSize]byte{}) {
		tb.Errorf("Verify(%x, %x) = %x, %v; want %v", alpha, proof, beta, err, want)
	}
}

func TestRFCExamples(t *testing.T) {
	for _, e := range vrf.Vectors(t, vrf.Suite) {
		t.Run(fmt.Sprint("example ", e.Example), func(t *testing.T) {
			k := privateKey(t, e.SK)
			if got := k.PublicKey().Bytes(); !bytes.Equal(got, e.PK) {
				t.Fatalf("public key %x, want %x", got, e.PK)
			}
			proof, beta := k.Prove(e.Alpha)
			if !bytes.Equal(proof, e.Pi) || !bytes.Equal(beta[:], e.Beta) {
				t.Fatalf("Prove = %x, %x; want %x, %x", proof, beta, e.Pi, e.Beta)
			}
			pk, err := vrf.NewPublicKey(e.PK)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := pk.Verify(e.Alpha, e.Pi); err != nil || got != beta {
				t.Errorf("Verify = %x, %v; want %x", got, err, beta)
			}
			if got, err := vrf.ProofToHash(e.Pi); err != nil || got != beta {
				t.Errorf("ProofToHash = %x, %v; want %x", got, err, beta)
			}
			if refProof, refBeta := refProve(new(big.Int).SetBytes(e.SK), e.Alpha, nil); !bytes.Equal(refProof, proof) || refBeta != beta {
				t.Errorf("reference proves %x, %x", refProof, refBeta)
			}
		})
	}
}

// TestOtherSuite gives Verify the RFC's proofs of suite 0x01: the same key, input and form, but another hash
// to the curve.
func TestOtherSuite(t *testing.T) {
	for _, e := range vrf.Vectors(t, "ECVRF-P256-SHA256-TAI") {
		k := privateKey(t, e.SK)
		refused(t, k.PublicKey(), e.Alpha, e.Pi, vrf.ErrVerify)
	}
}

// TestReference compares with the independent arithmetic, both ways.
func TestReference(t *testing.T) {
	keys := []*big.Int{
		big.NewInt(1), big.NewInt(2), big.NewInt(255),
		new(big.Int).Lsh(big.NewInt(1), 128),
		new(big.Int).Sub(refQ, big.NewInt(1)),
		new(big.Int).Rsh(refQ, 1),
	}
	for range 18 {
		x, err := rand.Int(rand.Reader, refQ)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, x)
	}
	for i, x := range keys {
		t.Run(fmt.Sprintf("%x", x), func(t *testing.T) {
			t.Parallel()
			alpha := make([]byte, i*i*3)
			if _, err := rand.Read(alpha); err != nil {
				t.Fatal(err)
			}
			k := privateKey(t, refBytes(x))
			if got, want := k.PublicKey().Bytes(), refG.mul(x).bytes(); !bytes.Equal(got, want) {
				t.Fatalf("public key %x, want %x", got, want)
			}
			proof, beta := k.Prove(alpha)
			if want, wantBeta := refProve(x, alpha, nil); !bytes.Equal(proof, want) || beta != wantBeta {
				t.Fatalf("Prove(%x) = %x, %x; want %x, %x", alpha, proof, beta, want, wantBeta)
			}
			if got, ok := refVerify(k.PublicKey().Bytes(), alpha, proof); !ok || got != beta {
				t.Errorf("reference refuses the proof for %x", alpha)
			}
			// A proof with another nonce is equally valid and has the same output.
			nonce := new(big.Int).Add(big.NewInt(1e9), x)
			other, _ := refProve(x, alpha, nonce.Mod(nonce, refQ))
			if got, err := k.PublicKey().Verify(alpha, other); err != nil || got != beta || bytes.Equal(other, proof) {
				t.Errorf("Verify with another nonce = %x, %v; want %x", got, err, beta)
			}
		})
	}
}

// TestZeroNonce fixes a case in which implementations may differ. A key holder who uses the nonce 0
// discloses the key, but the RFC's verifier accepts: U and V are the identity, which SEC 1 encodes
// as one byte 0x00.
func TestZeroNonce(t *testing.T) {
	x, alpha := big.NewInt(0xc0ffee), []byte("sample")
	k := privateKey(t, refBytes(x))
	_, beta := k.Prove(alpha)
	proof, _ := refProve(x, alpha, new(big.Int))
	if got, err := k.PublicKey().Verify(alpha, proof); err != nil || got != beta {
		t.Errorf("Verify = %x, %v; want %x", got, err, beta)
	}
	refused(t, k.PublicKey(), []byte("other"), proof, vrf.ErrVerify)
}

// TestEveryBit flips each bit of the proof, the input, the public and the private key.
func TestEveryBit(t *testing.T) {
	e := vrf.Vectors(t, vrf.Suite)[2]
	alpha, proof, pk, sk := e.Alpha, e.Pi, e.PK, e.SK
	k := privateKey(t, sk)
	if _, err := k.PublicKey().Verify(alpha, proof); err != nil {
		t.Fatal(err)
	}
	eachFlip := func(b []byte, f func(flipped []byte)) {
		for i := range 8 * len(b) {
			flipped := bytes.Clone(b)
			flipped[i/8] ^= 1 << (i % 8)
			f(flipped)
		}
	}
	malformed := 0
	eachFlip(proof, func(flipped []byte) {
		want := vrf.ErrVerify
		if _, err := vrf.ProofToHash(flipped); err != nil {
			want = vrf.ErrProof
			malformed++
		}
		refused(t, k.PublicKey(), alpha, flipped, want)
	})
	// About half of all x have no point, and 7 of 8 prefixes are invalid.
	if malformed < 100 || malformed > 200 {
		t.Errorf("%d flips of the proof are malformed", malformed)
	}
	eachFlip(alpha, func(flipped []byte) {
		refused(t, k.PublicKey(), flipped, proof, vrf.ErrVerify)
	})
	valid := 0
	eachFlip(pk, func(flipped []byte) {
		other, err := vrf.NewPublicKey(flipped)
		if err != nil {
			return
		}
		valid++
		refused(t, other, alpha, proof, vrf.ErrVerify)
	})
	if valid < 90 || valid > 170 {
		t.Errorf("%d flips of the public key are valid keys", valid)
	}
	eachFlip(sk, func(flipped []byte) {
		other := privateKey(t, flipped)
		refused(t, other.PublicKey(), alpha, proof, vrf.ErrVerify)
		theirs, _ := other.Prove(alpha)
		refused(t, k.PublicKey(), alpha, theirs, vrf.ErrVerify)
	})
}

func TestInputLength(t *testing.T) {
	e := vrf.Vectors(t, vrf.Suite)[0]
	k := privateKey(t, e.SK)
	alpha, proof := e.Alpha, e.Pi
	for n := range alpha {
		refused(t, k.PublicKey(), alpha[:n], proof, vrf.ErrVerify)
	}
	refused(t, k.PublicKey(), append(bytes.Clone(alpha), 0), proof, vrf.ErrVerify)
	refused(t, k.PublicKey(), append([]byte{0}, alpha...), proof, vrf.ErrVerify)
}

func TestEmptyInput(t *testing.T) {
	k := privateKey(t, refBytes(big.NewInt(7)))
	proof, beta := k.Prove(nil)
	if got, err := k.PublicKey().Verify([]byte{}, proof); err != nil || got != beta {
		t.Errorf("Verify = %x, %v; want %x", got, err, beta)
	}
}

func TestProofLength(t *testing.T) {
	e := vrf.Vectors(t, vrf.Suite)[0]
	k := privateKey(t, e.SK)
	alpha, long := e.Alpha, append(bytes.Clone(e.Pi), make([]byte, 100)...)
	for n := range long {
		if n == vrf.ProofSize {
			continue
		}
		refused(t, k.PublicKey(), alpha, long[:n], vrf.ErrProof)
		if _, err := vrf.ProofToHash(long[:n]); !errors.Is(err, vrf.ErrProof) {
			t.Errorf("ProofToHash of %d bytes: %v", n, err)
		}
	}
	refused(t, k.PublicKey(), alpha, nil, vrf.ErrProof)
}

// badPoints returns encodings that name a point, or look as if they did, and must be refused.
func badPoints(tb testing.TB) map[string][]byte {
	tb.Helper()
	p := refG.mul(big.NewInt(5))
	x, y := refBytes(p.x), refBytes(p.y)
	noPoint := new(big.Int)
	for big.Jacobi(refCurve(noPoint), refP) != -1 {
		noPoint.Add(noPoint, big.NewInt(1))
	}
	bad := map[string][]byte{
		"nil":                     nil,
		"identity":                {0},
		"identity, padded":        make([]byte, 33),
		"uncompressed identity":   append([]byte{4}, make([]byte, 64)...),
		"uncompressed":            bytes.Join([][]byte{{4}, x, y}, nil),
		"hybrid":                  bytes.Join([][]byte{{6 + byte(p.y.Bit(0))}, x, y}, nil),
		"no prefix":               x,
		"truncated":               p.bytes()[:32],
		"trailing byte":           append(p.bytes(), 0),
		"not on the curve":        append([]byte{2}, refBytes(noPoint)...),
		"x = p":                   append([]byte{2}, refBytes(refP)...),
		"x = 2^256-1":             append([]byte{3}, bytes.Repeat([]byte{0xff}, 32)...),
		"uncompressed, cut to 33": append([]byte{4}, x...),
	}
	for prefix := range 256 {
		if prefix != 2 && prefix != 3 {
			bad[fmt.Sprintf("prefix %#02x", prefix)] = append([]byte{byte(prefix)}, x...)
		}
	}
	// Points with small x, written as x + p.
	for n, found := int64(0), 0; found < 8; n++ {
		small := big.NewInt(n)
		if big.Jacobi(refCurve(small), refP) == -1 {
			continue
		}
		found++
		for _, prefix := range []byte{2, 3} {
			good := append([]byte{prefix}, refBytes(small)...)
			if _, err := vrf.NewPublicKey(good); err != nil {
				tb.Errorf("NewPublicKey(%x): %v", good, err)
			}
			bad[fmt.Sprintf("x = p+%d, prefix %d", n, prefix)] = append([]byte{prefix}, refBytes(new(big.Int).Add(small, refP))...)
		}
	}
	return bad
}

func TestNewPublicKeyRefuses(t *testing.T) {
	for name, b := range badPoints(t) {
		if k, err := vrf.NewPublicKey(b); !errors.Is(err, vrf.ErrPublicKey) || k != nil {
			t.Errorf("%s: NewPublicKey(%x) = %v, %v", name, b, k, err)
		}
	}
}

// TestGammaRefused puts each bad point into an otherwise valid proof.
func TestGammaRefused(t *testing.T) {
	e := vrf.Vectors(t, vrf.Suite)[0]
	k := privateKey(t, e.SK)
	alpha, rest := e.Alpha, e.Pi[33:]
	for name, b := range badPoints(t) {
		proof := append(bytes.Clone(b), rest...)
		if _, err := vrf.ProofToHash(proof); !errors.Is(err, vrf.ErrProof) {
			t.Errorf("%s: ProofToHash(%x): %v", name, proof, err)
		}
		refused(t, k.PublicKey(), alpha, proof, vrf.ErrProof)
	}
}

// TestIdentityGamma forges a proof with Gamma = identity that satisfies the equation: the secret 0, whose
// public key is the identity, "proves" every input.
func TestIdentityGamma(t *testing.T) {
	alpha := []byte("sample")
	for name, gamma := range map[string][]byte{"short": {0}, "padded": make([]byte, 33)} {
		short, _ := refProve(new(big.Int), alpha, big.NewInt(5))
		proof := append(bytes.Clone(gamma), short[1:]...)
		refused(t, new(vrf.PublicKey), alpha, proof, vrf.ErrProof)
		if _, err := vrf.ProofToHash(proof); !errors.Is(err, vrf.ErrProof) {
			t.Errorf("%s: ProofToHash: %v", name, err)
		}
	}
	k := privateKey(t, refBytes(big.NewInt(7)))
	proof, _ := k.Prove(alpha)
	refused(t, new(vrf.PublicKey), alpha, proof, vrf.ErrVerify)
}

func TestScalarRange(t *testing.T) {
	e := vrf.Vectors(t, vrf.Suite)[0]
	k := privateKey(t, e.SK)
	alpha, proof := e.Alpha, e.Pi
	with := func(n *big.Int) []byte { return append(bytes.Clone(proof[:49]), refBytes(n)...) }
	top := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	below := new(big.Int).Sub(refQ, big.NewInt(1))
	for _, s := range []*big.Int{refQ, new(big.Int).Add(refQ, big.NewInt(1)), top} {
		refused(t, k.PublicKey(), alpha, with(s), vrf.ErrProof)
		if _, err := vrf.NewPrivateKey(refBytes(s)); !errors.Is(err, vrf.ErrPrivateKey) {
			t.Errorf("NewPrivateKey(%x): %v", s, err)
		}
	}
	for _, s := range []*big.Int{new(big.Int), big.NewInt(1), below} {
		refused(t, k.PublicKey(), alpha, with(s), vrf.ErrVerify)
	}
	// c = 0 and c = 2^128-1 are in range, whatever the points.
	for _, c := range []byte{0, 0xff} {
		other := bytes.Join([][]byte{proof[:33], bytes.Repeat([]byte{c}, 16), proof[49:]}, nil)
		refused(t, k.PublicKey(), alpha, other, vrf.ErrVerify)
	}
}

func TestNewPrivateKeyRefuses(t *testing.T) {
	for n := range 100 {
		if n == vrf.PrivateKeySize {
			continue
		}
		if k, err := vrf.NewPrivateKey(bytes.Repeat([]byte{1}, n)); !errors.Is(err, vrf.ErrPrivateKey) || k != nil {
			t.Errorf("NewPrivateKey of %d bytes = %v, %v", n, k, err)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, vrf.PrivateKeySize)} {
		if k, err := vrf.NewPrivateKey(b); !errors.Is(err, vrf.ErrPrivateKey) || k != nil {
			t.Errorf("NewPrivateKey(%x) = %v, %v", b, k, err)
		}
	}
}

func TestGenerateKey(t *testing.T) {
	for _, random := range []io.Reader{nil, rand.Reader} {
		a, err := vrf.GenerateKey(random)
		if err != nil {
			t.Fatal(err)
		}
		b, err := vrf.GenerateKey(random)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatalf("two keys are %x", a.Bytes())
		}
		alpha := []byte("sample")
		proof, beta := a.Prove(alpha)
		if got, err := a.PublicKey().Verify(alpha, proof); err != nil || got != beta {
			t.Errorf("Verify = %x, %v; want %x", got, err, beta)
		}
		refused(t, b.PublicKey(), alpha, proof, vrf.ErrVerify)
	}
}

// TestGenerateKeyReader checks how the reader's bytes are used.
func TestGenerateKeyReader(t *testing.T) {
	zero, high := strings.Repeat("\x00", 32), strings.Repeat("\xff", 32)
	good := strings.Repeat("\x01", 32)
	for _, stream := range []string{good, zero + good, high + zero + good} {
		k, err := vrf.GenerateKey(iotest.OneByteReader(strings.NewReader(stream + high)))
		if err != nil || string(k.Bytes()) != good {
			t.Errorf("GenerateKey(%x) = %v, %v", stream, k, err)
		}
	}
	broken := errors.New("broken")
	for _, tc := range []struct {
		reader io.Reader
		want   error
	}{
		{iotest.ErrReader(broken), broken},
		{strings.NewReader(""), io.EOF},
		{strings.NewReader(good[:31]), io.ErrUnexpectedEOF},
		{strings.NewReader(high + good[:31]), io.ErrUnexpectedEOF},
	} {
		if k, err := vrf.GenerateKey(tc.reader); !errors.Is(err, tc.want) || k != nil {
			t.Errorf("GenerateKey = %v, %v; want %v", k, err, tc.want)
		}
	}
	for _, stuck := range []string{zero, high} {
		if k, err := vrf.GenerateKey(strings.NewReader(strings.Repeat(stuck, 100))); err == nil || errors.Is(err, io.EOF) || k != nil {
			t.Errorf("GenerateKey from a stuck reader = %v, %v", k, err)
		}
	}
}

// TestKeysAreImmutable writes to all inputs and outputs.
func TestKeysAreImmutable(t *testing.T) {
	sk := refBytes(big.NewInt(12345))
	k := privateKey(t, sk)
	encoded := k.PublicKey().Bytes()
	pk, err := vrf.NewPublicKey(encoded)
	if err != nil {
		t.Fatal(err)
	}
	wantSK, wantPK := k.Bytes(), pk.Bytes()
	// Spare capacity would reveal an append into the caller's array.
	backing := []byte("sample, and what follows it")
	alpha := backing[:6]
	proof, beta := k.Prove(alpha)
	kept := bytes.Clone(proof)
	for range 2 {
		for _, b := range [][]byte{sk, encoded, k.Bytes(), pk.Bytes(), k.PublicKey().Bytes()} {
			clear(b)
		}
		if again, _ := k.Prove(alpha); !bytes.Equal(again, proof) {
			t.Fatalf("Prove = %x, was %x", again, proof)
		}
		for _, key := range []*vrf.PublicKey{pk, k.PublicKey()} {
			if got, err := key.Verify(alpha, proof); err != nil || got != beta {
				t.Fatalf("Verify = %x, %v; want %x", got, err, beta)
			}
		}
	}
	if !bytes.Equal(k.Bytes(), wantSK) || !bytes.Equal(pk.Bytes(), wantPK) || !bytes.Equal(k.PublicKey().Bytes(), wantPK) {
		t.Error("a key changed")
	}
	if !bytes.Equal(proof, kept) || string(backing) != "sample, and what follows it" {
		t.Error("an argument changed")
	}
}

// TestConcurrentUse shares keys between goroutines; it is most useful with -race.
func TestConcurrentUse(t *testing.T) {
	k := privateKey(t, refBytes(big.NewInt(12345)))
	pk, err := vrf.NewPublicKey(k.PublicKey().Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want, beta := k.Prove([]byte("sample"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				proof, got := k.Prove([]byte("sample"))
				if !bytes.Equal(proof, want) || got != beta {
					t.Errorf("Prove = %x, %x", proof, got)
				}
				for _, key := range []*vrf.PublicKey{pk, k.PublicKey()} {
					if got, err := key.Verify([]byte("sample"), proof); err != nil || got != beta {
						t.Errorf("Verify = %x, %v", got, err)
					}
				}
				if !bytes.Equal(pk.Bytes(), k.PublicKey().Bytes()) || len(k.Bytes()) != vrf.PrivateKeySize {
					t.Error("encodings differ")
				}
			}
		})
	}
	wg.Wait()
}

// TestPrintingKeepsTheSecret prints a key with every verb, as mistaken logging would.
func TestPrintingKeepsTheSecret(t *testing.T) {
	k := privateKey(t, bytes.Repeat([]byte{0xab}, 32))
	want := fmt.Sprintf("vrf.PrivateKey of %x", k.PublicKey().Bytes())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, arg := range []any{k, *k} {
			if got := fmt.Sprintf(verb, arg); got != want {
				t.Errorf("%s of %T prints %q", verb, arg, got)
			}
		}
	}
}

func Example() {
	key, err := vrf.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	proof, output := key.Prove([]byte("window 7"))

	// Elsewhere, with the public key alone:
	public, err := vrf.NewPublicKey(key.PublicKey().Bytes())
	if err != nil {
		panic(err)
	}
	verified, err := public.Verify([]byte("window 7"), proof)
	fmt.Println(err, verified == output, len(proof))
	_, err = public.Verify([]byte("window 8"), proof)
	fmt.Println(err)
	// Output:
	// <nil> true 81
	// vrf: proof does not verify
}

func BenchmarkProve(b *testing.B) {
	k, alpha := privateKey(b, refBytes(big.NewInt(12345))), make([]byte, 128)
	b.ReportAllocs()
	for b.Loop() {
		k.Prove(alpha)
	}
}

func BenchmarkVerify(b *testing.B) {
	k, alpha := privateKey(b, refBytes(big.NewInt(12345))), make([]byte, 128)
	proof, _ := k.Prove(alpha)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.PublicKey().Verify(alpha, proof); err != nil {
			b.Fatal(err)
		}
	}
}
