package vrf

import (
	"bytes"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestIntermediates checks the intermediate values that the RFC gives for a proof.
func TestIntermediates(t *testing.T) {
	for _, v := range Vectors(t, Suite) {
		t.Run(fmt.Sprint("example ", v.Example), func(t *testing.T) {
			k, err := NewPrivateKey(v.SK)
			if err != nil {
				t.Fatal(err)
			}
			check := func(name string, got, want []byte) {
				t.Helper()
				if !bytes.Equal(got, want) {
					t.Errorf("%s = %x, want %x", name, got, want)
				}
			}
			h := encodeToCurve(v.PK, v.Alpha)
			hString := encodePoint(h.Copy())
			check("H", hString, v.H)
			nonce := generateNonce(k.scalar, hString)
			check("k", encodeScalar(nonce), v.K)
			check("prover's U", encodePoint(curve.NewElement().MulGen(nonce)), v.U)
			check("prover's V", encodePoint(curve.NewElement().Mul(h, nonce)), v.V)

			p, err := decodeProof(v.Pi)
			if err != nil {
				t.Fatal(err)
			}
			uPoint, vPoint := commitments(k.public.point, h, p)
			check("verifier's U", encodePoint(uPoint), v.U)
			check("verifier's V", encodePoint(vPoint), v.V)
		})
	}
}

// TestNonceRFC6979 checks the nonces of RFC 6979, A.2.5, P-256 with SHA-256.
// https://www.rfc-editor.org/rfc/rfc6979.html#appendix-A.2.5
func TestNonceRFC6979(t *testing.T) {
	k, err := NewPrivateKey(Vectors(t, Suite)[0].SK) // the RFCs use the same key
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{
		"sample": "a6e3c57dd01abe90086538398355dd4c3b17aa873382b0f24d6129493d8aad60",
		"test":   "d16b6ae827f17175e040871a1c7ec3500192c4c92677336ec2537acaee0008e0",
	} {
		if got := hex.EncodeToString(encodeScalar(generateNonce(k.scalar, []byte(message)))); got != want {
			t.Errorf("nonce for %q = %s, want %s", message, got, want)
		}
	}
}

// TestNonceAfterRefusal checks the second and third try, which no input that one can find makes necessary in
// generateNonce: the probability is 2^-32.
func TestNonceAfterRefusal(t *testing.T) {
	mac := func(key []byte, data ...[]byte) []byte {
		m := hmac.New(sha256.New, key)
		m.Write(bytes.Join(data, nil))
		return m.Sum(nil)
	}
	x, h1 := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{9}, 32)
	k, v := make([]byte, 32), bytes.Repeat([]byte{1}, 32)
	k = mac(k, v, []byte{0}, x, h1)
	v = mac(k, v)
	k = mac(k, v, []byte{1}, x, h1)
	v = mac(k, v)

	g := newNonceStream(x, h1)
	for try := range 3 {
		v = mac(k, v)
		if got := g.next(); !bytes.Equal(got, v) {
			t.Fatalf("try %d = %x, want %x", try, got, v)
		}
		k = mac(k, v, []byte{0})
		v = mac(k, v)
	}
}

// TestBitsToOctets covers hashes above the order, which also have a probability of 2^-32.
func TestBitsToOctets(t *testing.T) {
	q := elliptic.P256().Params().N
	top := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	for _, tc := range []struct{ in, want *big.Int }{
		{big.NewInt(0), big.NewInt(0)},
		{big.NewInt(5), big.NewInt(5)},
		{new(big.Int).Sub(q, big.NewInt(1)), new(big.Int).Sub(q, big.NewInt(1))},
		{q, big.NewInt(0)},
		{new(big.Int).Add(q, big.NewInt(5)), big.NewInt(5)},
		{top, new(big.Int).Sub(top, q)},
	} {
		var h [32]byte
		tc.in.FillBytes(h[:])
		if got := bitsToOctets(h); !bytes.Equal(got, tc.want.FillBytes(make([]byte, 32))) {
			t.Errorf("bitsToOctets(%x) = %x, want %x", h, got, tc.want)
		}
	}
}

// TestCirclTraps checks that the code does not use the functions of circl that alias or change their
// arguments, or panic on untrusted input, and that only one place calls the encoders, which write to their
// receiver.
func TestCirclTraps(t *testing.T) {
	allowedIn := map[string]string{
		"Generator":             "", // aliases the parameters of the curve
		"SetBigInt":             "", // reduces its argument in place
		"RandomElement":         "", // panics if the reader fails
		"RandomScalar":          "", // panics if the reader fails
		"RandomNonZeroScalar":   "", // panics if the reader fails
		"MarshalBinaryCompress": "encodePoint",
		"MarshalBinary":         "encodeScalar",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	seen := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			var in string
			if f, ok := decl.(*ast.FuncDecl); ok {
				in = f.Name.Name
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					seen[sel.Sel.Name] = true
					if want, trap := allowedIn[sel.Sel.Name]; trap && want != in {
						t.Errorf("%s: %s uses %s", name, in, sel.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if !seen["MarshalBinaryCompress"] || !seen["MulGen"] {
		t.Error("the test no longer reads the sources")
	}
}

// TestCurveParametersStay runs the whole API, and checks that the values that Generator and the curve share
// with all other packages of the process do not change.
func TestCurveParametersStay(t *testing.T) {
	snapshot := func() string {
		p := elliptic.P256().Params()
		return fmt.Sprintf("%x %x %x %x %x", p.P, p.N, p.B, p.Gx, p.Gy)
	}
	before := snapshot()
	one := make([]byte, PrivateKeySize)
	one[PrivateKeySize-1] = 1
	k, err := NewPrivateKey(one) // Y is the generator itself
	if err != nil {
		t.Fatal(err)
	}
	pk, err := NewPublicKey(k.PublicKey().Bytes())
	if err != nil {
		t.Fatal(err)
	}
	proof, _ := k.Prove(nil)
	if _, err := pk.Verify(nil, proof); err != nil {
		t.Fatal(err)
	}
	if _, err := k.PublicKey().Verify([]byte("other"), proof); err == nil {
		t.Fatal("proof verifies for another input")
	}
	if after := snapshot(); after != before {
		t.Errorf("curve parameters are %s, were %s", after, before)
	}
	if got := elliptic.MarshalCompressed(elliptic.P256(), elliptic.P256().Params().Gx, elliptic.P256().Params().Gy); !bytes.Equal(got, pk.Bytes()) {
		t.Errorf("public key of 1 = %x, want the generator %x", pk.Bytes(), got)
	}
}

func FuzzNewPrivateKey(f *testing.F) {
	q := elliptic.P256().Params().N
	for _, n := range []*big.Int{big.NewInt(0), big.NewInt(1), new(big.Int).Sub(q, big.NewInt(1)), q} {
		f.Add(n.FillBytes(make([]byte, PrivateKeySize)))
	}
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := new(big.Int).SetBytes(b)
		want := len(b) == PrivateKeySize && n.Sign() > 0 && n.Cmp(q) < 0
		k, err := NewPrivateKey(b)
		if (err == nil) != want {
			t.Fatalf("NewPrivateKey(%x): %v, want valid %t", b, err, want)
		}
		if err == nil && !bytes.Equal(k.Bytes(), b) {
			t.Fatalf("NewPrivateKey(%x).Bytes() = %x", b, k.Bytes())
		}
	})
}

func FuzzNewPublicKey(f *testing.F) {
	for _, v := range Vectors(f, Suite) {
		f.Add([]byte(v.PK))
		f.Add([]byte(v.U))
	}
	f.Add([]byte{0})
	f.Add(make([]byte, PublicKeySize))
	f.Add(append([]byte{4}, make([]byte, 64)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := NewPublicKey(b)
		if err != nil {
			return
		}
		if !bytes.Equal(k.Bytes(), b) {
			t.Fatalf("NewPublicKey(%x).Bytes() = %x", b, k.Bytes())
		}
		if again := encodePoint(k.point.Copy()); !bytes.Equal(again, b) {
			t.Fatalf("the point of %x encodes as %x", b, again)
		}
	})
}

// FuzzVerify tries arbitrary proofs with a fixed key: a proof that can be decoded encodes to the same bytes,
// and one that verifies has the only output of key and input.
func FuzzVerify(f *testing.F) {
	vectors := Vectors(f, Suite)
	k, err := NewPrivateKey(vectors[0].SK)
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range vectors {
		f.Add([]byte(v.Alpha), []byte(v.Pi))
	}
	f.Add([]byte{}, make([]byte, ProofSize))
	f.Fuzz(func(t *testing.T, alpha, pi []byte) {
		output, hashErr := ProofToHash(pi)
		p, err := decodeProof(pi)
		if (err == nil) != (hashErr == nil) {
			t.Fatalf("decodeProof: %v, but ProofToHash: %v", err, hashErr)
		}
		if err == nil {
			again := slices.Concat(encodePoint(p.gamma), p.c[:], encodeScalar(p.s))
			if !bytes.Equal(again, pi) {
				t.Fatalf("proof %x encodes as %x", pi, again)
			}
		}
		beta, err := k.PublicKey().Verify(alpha, pi)
		if err != nil {
			if beta != ([OutputSize]byte{}) {
				t.Fatalf("Verify returns %x with %v", beta, err)
			}
			return
		}
		if _, want := k.Prove(alpha); beta != want || output != want {
			t.Fatalf("outputs %x (Verify), %x (ProofToHash), want %x", beta, output, want)
		}
	})
}
