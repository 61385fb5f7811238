package issuer

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRecords tells what the issuer has signed from what another holder of its key could sign.
func TestRecords(t *testing.T) {
	dir := t.TempDir()
	i, _ := openIssuer(t, dir)
	o := club()
	o.Once = true
	read := func() *Records {
		t.Helper()
		rs, err := i.ReadRecords(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return rs
	}
	if read().Has([]byte("a nullifier"), ask(1)) {
		t.Error("a record before anything was issued")
	}
	first, err := i.Issue(o, "code 1", ask(1))
	if err != nil {
		t.Fatal(err)
	}
	other := ask(1)
	other.Lane = "members"
	for _, c := range []struct {
		what      string
		nullifier []byte
		request   Request
		once      bool
		want      bool
	}{
		{"what was issued", first.Nullifier, ask(1), true, true},
		{"the code for another ticket", first.Nullifier, ask(2), true, false},
		{"the code for another lane", first.Nullifier, other, true, false},
		{"an account for another ticket", first.Nullifier, ask(2), false, true},
		{"an account that does not exist", []byte("a nullifier"), ask(1), false, false},
	} {
		o.Once = c.once
		if got := read().Has(c.nullifier, c.request); got != c.want {
			t.Errorf("%s: %t, want %t", c.what, got, c.want)
		}
	}
	elsewhere := club()
	elsewhere.Room = room("final")
	if rs, err := i.ReadRecords(dir, elsewhere); err != nil || rs.Has(first.Nullifier, ask(1)) {
		t.Errorf("another room has the record, %v", err)
	}

	path := filepath.Join(dir, "issued", ledgerName(o))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(append(text, "0123"...)) // being written
	if !read().Has(first.Nullifier, ask(1)) {
		t.Error("part of a last line hides the others")
	}
	write([]byte("x\n"))
	if _, err := i.ReadRecords(dir, o); err == nil {
		t.Error("a damaged file has records")
	}
}
