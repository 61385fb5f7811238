package projection

import (
	"slices"
	"testing"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
)

// TestVouch gives the oracle a verdict that is wrong, to see when it relies on it: for the same credential of the same
// subject under the same key alone.
func TestVouch(t *testing.T) {
	t.Parallel()
	verifierOf := func(i *issuertest.Issuer) *credential.Verifier {
		v, err := credential.NewVerifier(i.Method)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	club := issuertest.Signed("club", 0)
	v, s := verifierOf(club), credential.Subject{Lane: "members", Round: []byte{1}}
	bad := club.Show(s, 1)
	bad.Evidence[0] ^= 1
	if _, err := Verify(v, s, bad); err == nil {
		t.Fatal("the credential is good")
	}
	p := New(nil, nil)
	p.Vouch([]Verified{{v, s, club.Show(s, 2)}, {v, s, bad}})
	if err := p.oracle.VerifyCredential(v, s, bad); err != nil {
		t.Errorf("the verdict is not used: %v", err)
	}
	for name, change := range map[string]func(v **credential.Verifier, s *credential.Subject, c *credential.Credential){
		"another verifier":  func(v **credential.Verifier, _ *credential.Subject, _ *credential.Credential) { *v = verifierOf(club) },
		"another room":      func(_ **credential.Verifier, s *credential.Subject, _ *credential.Credential) { s.Room[0]++ },
		"another lane":      func(_ **credential.Verifier, s *credential.Subject, _ *credential.Credential) { s.Lane = "general" },
		"another ticket":    func(_ **credential.Verifier, s *credential.Subject, _ *credential.Credential) { s.Ticket[0]++ },
		"another round":     func(_ **credential.Verifier, s *credential.Subject, _ *credential.Credential) { s.Round = nil },
		"another method":    func(_ **credential.Verifier, _ *credential.Subject, c *credential.Credential) { c.Method = "fans" },
		"another nullifier": func(_ **credential.Verifier, _ *credential.Subject, c *credential.Credential) { c.Nullifier[0]++ },
		"another signature": func(_ **credential.Verifier, _ *credential.Subject, c *credential.Credential) { c.Evidence[1]++ },
	} {
		v, s, c := v, s, bad
		c.Nullifier, c.Evidence = slices.Clone(bad.Nullifier), slices.Clone(bad.Evidence)
		change(&v, &s, &c)
		if p.oracle.VerifyCredential(v, s, c) == nil {
			t.Errorf("%s: the verdict on another credential is used", name)
		}
	}
	p.Vouch(nil)
	if p.oracle.VerifyCredential(v, s, bad) == nil {
		t.Error("the verdict is used after the next call")
	}
}
