package session

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

// TestBindVectors tests the vectors that all connectors share.
func TestBindVectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/bind-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Key, Room, Origin, Pass, Subject, Proof, Thumbprint, Cookie string

		At       int64
		Families map[string]string
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	rm := NewRoom("sale", rules.Room{URL: v.Room, Origin: v.Origin, Bind: rules.BindBrowser})
	s, read := NewSigner([]byte(v.Key)), new(Session)
	if !s.Parse(v.Cookie, read) || read.Room != rm.tag || hex.EncodeToString(read.Pass[:]) != v.Pass ||
		s.Format(read) != v.Cookie {
		t.Errorf("the cookie is %+v", read)
	}
	p, ok := parseProof(v.Proof)
	key := p.thumbprint()
	if !ok || p.at != v.At || rm.Subject(read) != v.Subject || !p.isOf(v.Subject) || p.isOf("x") || key != read.Key ||
		base64.RawURLEncoding.EncodeToString(key[:]) != v.Thumbprint {
		t.Errorf("the proof is %+v", p)
	}
	for agent, want := range v.Families {
		if name := FamilyOf(agent); base64.RawURLEncoding.EncodeToString(name[:]) != want {
			t.Errorf("the family of %q is %x", agent, name)
		}
	}
}

// FuzzCookie tests that an accepted cookie is formatted like the original.
func FuzzCookie(f *testing.F) {
	own := NewSigner(testKey)
	f.Add(own.Format(&Session{Token: "eyJ"}))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var v Session
		if own.Parse(text, &v) && own.Format(&v) != text {
			t.Errorf("%q is another cookie's text", text)
		}
	})
}

// TestPassSet tests that a PassSet is bounded.
func TestPassSet(t *testing.T) {
	t.Parallel()
	var o PassSet
	for i := range maxPasses + 10 {
		id := [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}
		if o.Add(id, int64(i), 0); !o.Has(id) {
			t.Fatal("the latest is forgotten")
		}
	}
	if n := len(o.known); n > maxPasses || n < maxPasses*8/10 {
		t.Errorf("%d are kept", n)
	}
	o.shrink(maxPasses * 2)
	if len(o.known) != 0 {
		t.Errorf("%d are kept that have expired", len(o.known))
	}
	var at touchTimes
	now := time.Now()
	for i := range maxPasses + 10 {
		if id := [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}; !at.mayTouch(id, now, time.Minute) ||
			at.mayTouch(id, now, time.Minute) {
			t.Fatal("not touched once")
		}
	}
	if len(at.at) > maxPasses {
		t.Errorf("%d are kept", len(at.at))
	}
}
