package issuer

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestForget deletes the records of an offer that is over, open or not, and leaves those of others.
func TestForget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i, store := openIssuer(t, dir)
	over := &Offer{Name: "derby.club", Method: "club", Lanes: []string{"general"}, Once: true}
	on := &Offer{Name: "derby-2.club", Method: "club", Lanes: []string{"general"}, Once: true}
	for n, account := range []string{"anna", "ben"} {
		for _, o := range []*Offer{over, on} {
			if _, err := i.Issue(o, account, Request{Lane: "general", Ticket: [16]byte{byte(n)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	isOver := func(offer string) bool { return offer == "derby.club" }
	for _, isChecked := range []bool{true, false} {
		if n, err := store.Forget(isOver, isChecked); err != nil || n != 2 {
			t.Errorf("%d records, %v", n, err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "issued", "*.log"))
		want := map[bool]int{true: 2, false: 1}[isChecked]
		if err != nil || len(files) != want {
			t.Errorf("files %q, want %d, %v", files, want, err)
		}
	}
	if n, err := store.Forget(isOver, false); err != nil || n != 0 {
		t.Errorf("again: %d records, %v", n, err)
	}
	if n, err := store.count(on); err != nil || n != 2 {
		t.Errorf("%d records of another offer, %v", n, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	_, store = openIssuer(t, dir) // which has no ledger open
	if n, err := store.Forget(func(offer string) bool { return strings.HasPrefix(offer, "derby") }, false); err != nil || n != 2 {
		t.Errorf("%d records, %v", n, err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestForgetOpen deletes a ledger that a request has found before: it can record nothing more.
func TestForgetOpen(t *testing.T) {
	t.Parallel()
	store, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := &Offer{Name: "derby", Method: "club"}
	l, err := store.ledger(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Forget(func(string) bool { return true }, false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.add([hashSize]byte{1}, [hashSize]byte{2}, true, 0); !errors.Is(err, ErrForgotten) {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestForgotten has an offer go on whose records were deleted, as when a clock was ahead for a moment: it issues nothing
// more, to anyone, also after a restart, while the count and other offers go on.
func TestForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	offer := &Offer{Name: "derby", Method: "club", Lanes: []string{"general"}}
	other := &Offer{Name: "final", Method: "club", Lanes: []string{"general"}}
	for _, isRestarted := range []bool{false, true} {
		store, err := OpenStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		i, err := New(bytes.Repeat([]byte{7}, SecretSize), store)
		if err != nil {
			t.Fatal(err)
		}
		if !isRestarted {
			if _, err := i.Issue(offer, "anna", Request{Lane: "general"}); err != nil {
				t.Fatal(err)
			}
			if n, err := store.Forget(func(name string) bool { return name == "derby" }, false); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		for _, account := range []string{"anna", "ben"} {
			if _, err := i.Issue(offer, account, Request{Lane: "general", Ticket: [16]byte{1}}); !errors.Is(err, ErrForgotten) {
				t.Errorf("%s, restarted %t: %v", account, isRestarted, err)
			}
		}
		if _, err := i.Issue(other, "anna", Request{Lane: "general"}); err != nil {
			t.Error(err)
		}
		if _, err := i.ReadRecords(dir, offer); !errors.Is(err, ErrForgotten) {
			t.Errorf("records: %v", err)
		}
		text, err := i.Count("club.example.org", []*Offer{offer, other}, 1)
		if err != nil || bytes.Contains(text, []byte("derby")) || !bytes.Contains(text, []byte("final club")) {
			t.Errorf("count %s, %v", text, err)
		}
		if n, err := store.Forget(func(name string) bool { return name == "derby" }, false); n != 0 || err != nil {
			t.Errorf("again: %d, %v", n, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOfferOf reads names of ledgers as they are written, and no others.
func TestOfferOf(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"derby", "a-b", "sale.club", "a-0011223344556677"} {
		if got, ok := offerOf(ledgerName(&Offer{Name: name})); !ok || got != name {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
	for _, file := range []string{"", ".log", "derby.log", "derby-00.log", "derby-0011223344556677", "lock"} {
		if got, ok := offerOf(file); ok {
			t.Errorf("%s: %q", file, got)
		}
	}
}
