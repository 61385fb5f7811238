package issuer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPasskeys keeps passkeys across a restart, and a limit for each account. The file tells neither accounts nor ids.
func TestPasskeys(t *testing.T) {
	dir := t.TempDir()
	open := func() (*Issuer, *Store) {
		t.Helper()
		store, err := OpenStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		i, err := New(bytes.Repeat([]byte{7}, SecretSize), store)
		if err != nil {
			t.Fatal(err)
		}
		return i, store
	}
	i, store := open()
	anna := Passkey{Account: "mail\x1fanna@example.org", Address: "anna@example.org", Credential: []byte(`{"id":"a"}`)}
	for n := range MaxPasskeys {
		if err := i.KeepPasskey(fmt.Append(nil, "id ", n), anna); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.KeepPasskey([]byte("one more"), anna); !errors.Is(err, ErrPasskeys) {
		t.Error(err)
	}
	ben := Passkey{Account: "mail\x1fben@example.org", Credential: []byte(`{"id":"b"}`)}
	if err := i.KeepPasskey([]byte("id 0"), ben); !errors.Is(err, ErrNoPasskey) {
		t.Errorf("an id of two accounts: %v", err)
	}
	if err := i.KeepPasskey([]byte("of ben"), ben); err != nil {
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
	if err := i.KeepPasskey([]byte("one more"), anna); !errors.Is(err, ErrPasskeys) {
		t.Error(err)
	}
	if err := i.KeepPasskey([]byte("of ben"), ben); err != nil {
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
	f.Add(passkeyLine([hashSize]byte{1}, [hashSize]byte{2}, []byte("sealed")))
	f.Add([]byte("x\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if id, account, sealed, ok := parsePasskey(line); ok && !bytes.Equal(passkeyLine(id, account, sealed), line) {
			t.Errorf("%q", line)
		}
	})
}
