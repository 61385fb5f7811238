package counted

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issued"
	"github.com/proofline/proofline/verifier"
)

func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(n byte) ed25519.PublicKey { return testKey(n).Public().(ed25519.PublicKey) }

// TestBlind compares methods whose keys verify no count: those of an issuer whose key the policy names for another
// method, or whose key the reader trusts.
func TestBlind(t *testing.T) {
	entry := sha256.Sum256([]byte("a room"))
	club := verifier.Method{Method: credential.Method{Name: "club", Kind: credential.Signed, Key: hex.EncodeToString(public(1))}, Shown: 2}
	phone := verifier.Method{Method: credential.Method{Name: "phone", Kind: credential.Blind, Key: "ab"}, Shown: 3}
	count, err := (&issued.Count{By: "club.example.org", Offers: []issued.Offer{{Name: "a", Method: "phone", Room: entry, Accounts: 2},
		{Name: "b", Method: "club", Room: entry, Accounts: 2}}}).Sign(testKey(1))
	if err != nil {
		t.Fatal(err)
	}
	both := &verifier.Report{Methods: []verifier.Method{club, phone}}
	list, err := Compare(count, both, entry, nil)
	if err != nil || len(list) != 2 || list[0].Contradicts() || !list[1].Contradicts() {
		t.Errorf("%+v, %v", list, err)
	}
	alone := &verifier.Report{Methods: []verifier.Method{phone}}
	if _, err := Compare(count, alone, entry, []ed25519.PublicKey{public(2)}); !errors.Is(err, issued.ErrKey) {
		t.Errorf("a key that did not sign: %v", err)
	}
	list, err = Compare(count, alone, entry, []ed25519.PublicKey{public(2), public(1)})
	if err != nil || len(list) != 1 || list[0].Method != "phone" || !list[0].Contradicts() {
		t.Errorf("a key of the reader: %+v, %v", list, err)
	}
	if _, err := Compare(count, alone, sha256.Sum256(nil), []ed25519.PublicKey{public(1)}); !errors.Is(err, ErrRoom) {
		t.Errorf("another room: %v", err)
	}
}

func FuzzParseKey(f *testing.F) {
	good, err := issued.VerifierKey("club.example.org", public(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("club.example.org+1+x")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseKey(text)
		if text == good && !bytes.Equal(key, public(1)) {
			t.Errorf("%x, %v", key, err)
		}
		if err == nil && len(key) != ed25519.PublicKeySize || err != nil && !errors.Is(err, ErrKey) {
			t.Errorf("%q: %x, %v", text, key, err)
		}
	})
}
