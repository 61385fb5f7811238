package issuer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPasskeys keeps passkeys across a restart, and a limit for each account. The file tells neither accounts nor ids.
func TestPasskeys(t *testing.T) {
	dir := t.TempDir()
	open := func() (*Issuer, *Store) { return openIssuer(t, dir) }
	i, store := open()
	now := time.Unix(1_800_000_000, 0)
	anna := Passkey{Account: "mail\x1fanna@example.org", Address: "anna@example.org", Credential: []byte(`{"id":"a"}`)}
	for n := range MaxPasskeys {
		if err := i.KeepPasskey(fmt.Append(nil, "id ", n), anna, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.KeepPasskey([]byte("one more"), anna, now); !errors.Is(err, ErrPasskeys) {
		t.Error(err)
	}
	ben := Passkey{Account: "mail\x1fben@example.org", Credential: []byte(`{"id":"b"}`)}
	if err := i.KeepPasskey([]byte("id 0"), ben, now); !errors.Is(err, ErrNoPasskey) {
		t.Errorf("an id of two accounts: %v", err)
	}
	if err := i.KeepPasskey([]byte("of ben"), ben, now); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, "passkeys.log")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "anna") || strings.Contains(string(text), "id 0") || bytes.Count(text, []byte("\n")) != MaxPasskeys+1 {
		t.Errorf("%s", text)
	}
	if err := os.WriteFile(path, text[:len(text)-3], 0o600); err != nil { // a crash in the last line
		t.Fatal(err)
	}
	i, store = open()
	got, err := i.Passkey([]byte("id 3"))
	if err != nil || got.Account != anna.Account || got.Address != anna.Address || string(got.Credential) != string(anna.Credential) {
		t.Error(got, err)
	}
	if _, err := i.Passkey([]byte("of ben")); !errors.Is(err, ErrNoPasskey) {
		t.Error(err)
	}
	if err := i.KeepPasskey([]byte("one more"), anna, now); !errors.Is(err, ErrPasskeys) {
		t.Error(err)
	}
	if err := i.KeepPasskey([]byte("of ben"), ben, now); err != nil {
		t.Error(err)
	}
	other, err := New(bytes.Repeat([]byte{8}, SecretSize), store)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Passkey([]byte("id 3")); !errors.Is(err, ErrNoPasskey) {
		t.Errorf("another secret: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("damaged\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i, store = open()
	if _, err := i.Passkey([]byte("id 3")); !errors.Is(err, ErrStore) {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzPasskey reads lines of the file. Each has one spelling.
func FuzzPasskey(f *testing.F) {
	f.Add(passkeyLine([hashSize]byte{1}, keptPasskey{[hashSize]byte{2}, 20_000, []byte("sealed")}))
	f.Add([]byte("x\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if id, p, ok := parsePasskey(line); ok && !bytes.Equal(passkeyLine(id, p), line) {
			t.Errorf("%q", line)
		}
	})
}

// TestForgetPasskeys deletes passkeys that have not been used for long, and no others.
func TestForgetPasskeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() (*Issuer, *Store) { return openIssuer(t, dir) }
	i, store := open()
	const day = 24 * time.Hour
	saved := time.Unix(1_800_000_000, 0)
	for n := range 3 {
		if err := i.KeepPasskey(fmt.Append(nil, "id ", n), Passkey{Account: "mail\x1fanna@example.org"}, saved); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second one writes nothing
		if err := i.UsedPasskey([]byte("id 1"), saved.Add(50*day)); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.UsedPasskey([]byte("unknown"), saved.Add(50*day)); err != nil {
		t.Error(err)
	}
	lines := func() int {
		text, err := os.ReadFile(filepath.Join(dir, "passkeys.log"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(text, []byte("\n"))
	}
	if n := lines(); n != 4 {
		t.Errorf("%d lines, want 4", n)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	i, store = open()
	if n, err := store.ForgetPasskeys(saved); err != nil || n != 0 || lines() != 4 {
		t.Errorf("%d passkeys deleted too early, %v", n, err)
	}
	if n, err := store.ForgetPasskeys(saved.Add(50 * day)); err != nil || n != 2 || lines() != 1 {
		t.Errorf("%d passkeys deleted, want 2; %d lines, %v", n, lines(), err)
	}
	check := func() {
		t.Helper()
		for n, want := range []error{ErrNoPasskey, nil, ErrNoPasskey} {
			if _, err := i.Passkey(fmt.Append(nil, "id ", n)); !errors.Is(err, want) {
				t.Errorf("passkey %d: %v, want %v", n, err, want)
			}
		}
	}
	check()
	for n := range MaxPasskeys - 1 { // the account has one
		if err := i.KeepPasskey(fmt.Append(nil, "new ", n), Passkey{Account: "mail\x1fanna@example.org"}, saved); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	i, store = open()
	check()
	for _, want := range []int{MaxPasskeys, 0} {
		if n, err := store.ForgetPasskeys(saved.Add(51 * day)); err != nil || n != want || lines() != 0 {
			t.Errorf("%d passkeys deleted, want %d; %d lines, %v", n, want, lines(), err)
		}
	}
	if err := i.KeepPasskey([]byte("later"), Passkey{Account: "mail\x1fanna@example.org"}, saved); err != nil || lines() != 1 {
		t.Errorf("afterwards: %d lines, %v", lines(), err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
