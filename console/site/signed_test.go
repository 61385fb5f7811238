package site_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site"
)

// verify verifies a note as a connector does.
func verify(text []byte, key string) (string, error) {
	v, err := note.NewVerifier(key)
	if err != nil {
		return "", err
	}
	n, err := note.Open(text, note.VerifierList(v))
	if err != nil {
		return "", err
	}
	return n.Text, nil
}

// TestSigned checks that a note has the current rules, and that altered notes are rejected.
func TestSigned(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx := t.Context()
	document := "{\r\n\t\"version\": 1,\r\n\r\n\t\"hosts\": [\"shop.example.com\"]\r\n}\r\n\r\n"
	s.create(owner, "shop", document)
	key, err := s.Key(ctx, viewer)
	if err != nil || !strings.HasPrefix(key, "queue.example.com/o/main+") {
		t.Fatalf("key %q, %v", key, err)
	}
	first, err := s.Signed(ctx, connector, "shop")
	if err != nil {
		t.Fatal(err)
	}
	text, err := verify(first.Note, key)
	if want := "proofline-rules/v1\nshop\n1\n{\n  \"version\": 1,\n\n  \"hosts\": [\"shop.example.com\"]\n}\n"; err != nil || text != want || first.Version != 1 {
		t.Errorf("text %q, %v, want %q", text, err, want)
	}
	passed := 0
	for i := range first.Note { // every byte matters, except unused bits of base64
		bad := bytes.Clone(first.Note)
		bad[i] ^= 1
		if got, err := verify(bad, key); err == nil && got == text {
			passed++
		} else if err == nil {
			t.Errorf("note with another byte %d is accepted: %q", i, got)
		}
	}
	if passed > 1 {
		t.Errorf("%d bytes can be altered", passed)
	}
	again, err := s.Signed(ctx, connector, "shop")
	if err != nil || again.ETag != first.ETag || &again.Note[0] != &first.Note[0] {
		t.Errorf("signed again: %v", err)
	}
	elsewhere, err := s.again().Signed(ctx, connector, "shop")
	if err != nil || !bytes.Equal(elsewhere.Note, first.Note) || elsewhere.ETag != first.ETag {
		t.Errorf("another node signs another note: %v\n%s", err, elsewhere.Note)
	}
	if _, err := s.Update(ctx, owner, "shop", 0, []byte(open)); err != nil {
		t.Fatal(err)
	}
	next, err := s.Signed(ctx, connector, "shop")
	text, verr := verify(next.Note, key)
	if err != nil || verr != nil || next.ETag == first.ETag || text != "proofline-rules/v1\nshop\n2\n"+open+"\n" {
		t.Errorf("next %q, %v, %v", text, err, verr)
	}
}

// TestKeys checks that each organization has one permanent key, and that notes verify with no other.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	nodes := []*site.Sites{s.Sites, s.again(), s.again(), s.again()}
	keys := make([]string, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes { // concurrently: one of them creates it
		all.Go(func() {
			var err error
			if keys[i], err = n.Key(t.Context(), owner); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range keys {
		if k != keys[0] || k == "" {
			t.Errorf("keys %q", keys)
		}
	}
	theirs, err := s.Key(t.Context(), another)
	if err != nil || !strings.HasPrefix(theirs, "queue.example.com/o/another+") {
		t.Errorf("their key %q, %v", theirs, err)
	}
	s.create(another, "shop", open)
	signed, err := s.Signed(t.Context(), account.Actor{Kind: account.Token, Org: another.Org, Scopes: account.Connect}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify(signed.Note, keys[0]); err == nil {
		t.Error("rules of another organization verify")
	}
	if _, err := verify(signed.Note, theirs); err != nil {
		t.Error(err)
	}
	// A sealed key cannot be opened for another organization.
	if _, err := s.pool.Exec(t.Context(), `insert into site_keys (org_id, name, sealed) select $1, name, sealed from site_keys where org_id = $2`, stranger.Org, owner.Org); err != nil {
		t.Fatal(err)
	}
	if k, err := s.Key(t.Context(), stranger); err == nil {
		t.Errorf("another's key opens as %s", k)
	}
}
