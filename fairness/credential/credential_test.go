package credential

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

func newVerifier(t testing.TB, m Method) *Verifier {
	t.Helper()
	v, err := NewVerifier(m)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func signedBy(key ed25519.PrivateKey, s Subject, nullifier []byte) Credential {
	return Credential{"club", nullifier, ed25519.Sign(key, s.AppendMessage(nil, "club", nullifier))}
}

// TestRFC9474 verifies the examples of the RFC. Those with a salt are other schemes: a message would have many
// signatures.
func TestRFC9474(t *testing.T) {
	text, err := os.ReadFile("testdata/rfc9474.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Variant, N, Message, Signature string
			Accepted                       bool
		}
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Vectors) != 4 {
		t.Fatal(len(file.Vectors), err)
	}
	for _, v := range file.Vectors {
		key, err := newBlind(mustHex(t, v.N))
		if err != nil {
			t.Fatal(err)
		}
		if err := key.verify(mustHex(t, v.Message), Subject{}, mustHex(t, v.Signature)); (err == nil) != v.Accepted {
			t.Errorf("%s: %v", v.Variant, err)
		}
	}
}

// TestSignedLikeStandardLibrary compares verdicts on good and altered signatures with crypto/ed25519, which has the
// same equation.
func TestSignedLikeStandardLibrary(t *testing.T) {
	for i := range 64 {
		seed := hashOf("key " + string(rune('0'+i)))
		private := ed25519.NewKeyFromSeed(seed[:])
		public := private.Public().(ed25519.PublicKey)
		key, err := newSigned(public)
		if err != nil {
			t.Fatal(err)
		}
		message := seed[:i%32]
		signature := ed25519.Sign(private, message)
		for bit := -1; bit < 8*len(signature); bit += 7 {
			altered := slices.Clone(signature)
			if bit >= 0 {
				altered[bit/8] ^= 1 << (bit % 8)
			}
			got, want := key.verify(message, Subject{}, altered) == nil, ed25519.Verify(public, message, altered)
			if got != want || got != (bit < 0) {
				t.Errorf("key %d, bit %d: %t, crypto/ed25519 says %t", i, bit, got, want)
			}
		}
	}
}

// TestMultiples multiplies by scalars whose digits are the extremes.
func TestMultiples(t *testing.T) {
	key, err := newSigned(issuerKey[32:])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		message := big.NewInt(int64(i)).Bytes()
		if err := key.verify(message, Subject{}, ed25519.Sign(issuerKey, message)); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

// TestBlindLikeStandardLibrary has crypto/rsa accept what this package accepts.
func TestBlindLikeStandardLibrary(t *testing.T) {
	key := testKey(Exponent)
	for i := range 4 {
		s := subject
		s.Ticket[0] = byte(i)
		message := s.AppendMessage(nil, "phone", nil)
		signature := blindly(t, key, message)
		if err := newVerifier(t, blindIssuer).Verify(s, Credential{"phone", nil, signature}); err != nil {
			t.Error(err)
		}
		digest := sha512.Sum384(message)
		if err := rsa.VerifyPSS(&key.PublicKey, crypto.SHA384, digest[:], signature, nil); err != nil {
			t.Error(err)
		}
		if again := blindly(t, key, message); !bytes.Equal(again, signature) {
			t.Error("two signatures of one message differ")
		}
	}
}

// TestEachBitCounts alters each part of a credential and of its subject.
func TestEachBitCounts(t *testing.T) {
	v := newVerifier(t, issuer)
	good := signedBy(issuerKey, subject, nullifier)
	if err := v.Verify(subject, good); err != nil {
		t.Fatal(err)
	}
	for i := range 8 * 16 {
		s := subject
		s.Ticket[i/8] ^= 1 << (i % 8)
		if err := v.Verify(s, good); !errors.Is(err, ErrSignature) {
			t.Errorf("ticket bit %d: %v", i, err)
		}
	}
	for i := range 8 * len(good.Evidence) {
		c := good
		c.Evidence = slices.Clone(good.Evidence)
		c.Evidence[i/8] ^= 1 << (i % 8)
		if err := v.Verify(subject, c); !errors.Is(err, ErrSignature) && !errors.Is(err, ErrRange) {
			t.Errorf("evidence bit %d: %v", i, err)
		}
	}
	if err := v.Verify(subject, Credential{"phone", nil, good.Evidence}); !errors.Is(err, ErrSyntax) {
		t.Errorf("another method: %v", err)
	}
}

func TestVerifierIsConcurrent(t *testing.T) {
	v := newVerifier(t, issuer)
	good := signedBy(issuerKey, subject, nullifier)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := v.Verify(subject, good); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestMethodsOfConfigurations refuses methods that were not parsed, and that have fields which their kind has not.
func TestMethodsOfConfigurations(t *testing.T) {
	key := hex.EncodeToString(issuerKey[32:])
	for _, m := range []Method{
		{}, {Name: "a"}, {Name: "a", Kind: Work}, {Name: "a", Kind: Work, Bits: 5, Limit: 1}, {Name: "a", Kind: Work, Bits: 5, Key: key},
		{Name: "a", Kind: Signed, Key: key, Bits: 1}, {Name: "A", Kind: Signed, Key: key}, {Name: "a", Kind: "vdf", Key: key},
	} {
		if _, err := NewVerifier(m); !errors.Is(err, ErrMethod) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if _, err := NewVerifier(Method{Name: "a", Kind: Signed, Key: strings.ToUpper(key)}); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
}

func FuzzParseMethod(f *testing.F) {
	for _, m := range readVectors(f).Methods {
		f.Add(m.Method)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMethod(text)
		if err != nil {
			if !errors.Is(err, ErrMethod) {
				t.Error(err)
			}
			return
		}
		if again := string(m.AppendText(nil)); again != text {
			t.Errorf("%q is written as %q", text, again)
		}
		if _, err := NewVerifier(m); err != nil && !errors.Is(err, ErrMethod) && !errors.Is(err, ErrKey) {
			t.Error(err)
		}
	})
}

func FuzzCredential(f *testing.F) {
	for _, c := range readVectors(f).Credentials {
		f.Add(c.Credential)
	}
	verifiers := []*Verifier{newVerifier(f, issuer), newVerifier(f, blindIssuer), newVerifier(f, worker)}
	accepted := map[string]bool{}
	for _, c := range readVectors(f).Credentials {
		accepted[c.Credential] = accepted[c.Credential] || c.Verdict == "accepted"
	}
	f.Fuzz(func(t *testing.T, text string) {
		fields := bytes.SplitN([]byte(text), []byte(" "), 3)
		if len(fields) != 3 {
			return
		}
		c, err := Parse(fields[0], fields[1], fields[2])
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Error(err)
			}
			return
		}
		if again := string(c.AppendText(nil)); again != text {
			t.Errorf("%q is written as %q", text, again)
		}
		for _, v := range verifiers[:2] { // fuzzing may find a nonce
			if err := v.Verify(subject, c); err == nil && !accepted[text] {
				t.Errorf("a forgery: %q", text)
			} else if err != nil && strings.HasPrefix(verdictOf(err), "unknown") {
				t.Error(err)
			}
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	phone := Credential{"phone", nil, blindly(b, testKey(Exponent), subject.AppendMessage(nil, "phone", nil))}
	for _, bench := range []struct {
		name string
		m    Method
		c    Credential
	}{
		{"work", worker, Credential{"task", nil, nonce(subject, "task", 12)}},
		{"signed", issuer, signedBy(issuerKey, subject, nullifier)},
		{"blind", blindIssuer, phone},
	} {
		b.Run(bench.name, func(b *testing.B) {
			v := newVerifier(b, bench.m)
			b.ReportAllocs()
			for b.Loop() {
				if err := v.Verify(subject, bench.c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	fields := bytes.Split(signedBy(issuerKey, subject, nullifier).AppendText(nil), []byte(" "))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(fields[0], fields[1], fields[2]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewVerifier includes the tables that the first verification makes.
func BenchmarkNewVerifier(b *testing.B) {
	c := signedBy(issuerKey, subject, nullifier)
	for b.Loop() {
		if err := newVerifier(b, issuer).Verify(subject, c); err != nil {
			b.Fatal(err)
		}
	}
}
