// Package sourcetest signs rules as a server does, for tests of code that reads them.
package sourcetest

import (
	"crypto/rand"
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

// Blocking returns rules that block all paths with a prefix.
func Blocking(path string) string {
	return `{"version":1,"rooms":{},"rules":[{"name":"a","when":{"path":{"prefix":"/` + path + `"}},"action":"block"}]}`
}

// Signer signs the rules of an organization's sites.
type Signer struct {
	Key string // the site key

	t      testing.TB
	signer note.Signer
}

// NewSigner returns a signer with a new key.
func NewSigner(t testing.TB) *Signer {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, "queue.example.com/o/main")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return &Signer{public, t, signer}
}

// Sign returns a signed note.
func (s *Signer) Sign(text string) string {
	s.t.Helper()
	signed, err := note.Sign(&note.Note{Text: text}, s.signer)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(signed)
}

// Rules returns signed rules of a site that block one path.
func (s *Signer) Rules(site string, version int, path string) string {
	s.t.Helper()
	return s.Sign(fmt.Sprintf("proofline-rules/v1\n%s\n%d\n%s\n", site, version, Blocking(path)))
}
