package keys

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/pgroom"
)

func TestParseMasterKey(t *testing.T) {
	t.Parallel()
	key := NewMasterKey()
	if key == NewMasterKey() {
		t.Fatal("two master keys are the same")
	}
	for _, text := range []string{key, " \t" + key + "\n"} {
		if _, err := ParseMasterKey(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	wrong := []string{
		"", key[1:], key + "=", key + key, strings.ReplaceAll(key, "=", ""), key[:20] + "\n" + key[20:] + "x",
		base64.StdEncoding.EncodeToString(make([]byte, 31)), base64.StdEncoding.EncodeToString(make([]byte, 33)),
		base64.StdEncoding.EncodeToString(make([]byte, 31)) + "A", strings.Repeat("a", 64), strings.Repeat("A", 42) + "B=",
	}
	for _, text := range wrong {
		_, err := ParseMasterKey(text)
		if !errors.Is(err, ErrMasterKey) {
			t.Errorf("%q: %v, want ErrMasterKey", text, err)
		}
		if text != "" && err != nil && strings.Contains(err.Error(), strings.TrimSpace(text)) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

// TestSeal checks that a sealed key opens only for its own room and purpose.
func TestSeal(t *testing.T) {
	t.Parallel()
	m, id, secret := newMaster(t), uuid.New(), bytes.Repeat([]byte{7}, 32)
	sealed := m.SealFor(id, "log", secret)
	if key, err := m.OpenFor(id, sealed); err != nil || !bytes.Equal(key, secret) {
		t.Fatalf("opened %x, %v", key, err)
	}
	if bytes.Contains(sealed.Sealed, secret[:8]) || bytes.Equal(sealed.Sealed, m.SealFor(id, "log", secret).Sealed) {
		t.Error("the key shows, or is sealed twice alike")
	}
	for i := range sealed.Sealed {
		changed := pgroom.Key{Purpose: "log", Sealed: bytes.Clone(sealed.Sealed)}
		changed.Sealed[i] ^= 1
		if _, err := m.OpenFor(id, changed); !errors.Is(err, ErrMasterKey) {
			t.Fatalf("opened with byte %d changed: %v", i, err)
		}
	}
	for name, open := range map[string]func() ([]byte, error){
		"another room":       func() ([]byte, error) { return m.OpenFor(uuid.New(), sealed) },
		"another purpose":    func() ([]byte, error) { return m.OpenFor(id, pgroom.Key{Purpose: "pass", Sealed: sealed.Sealed}) },
		"another master key": func() ([]byte, error) { return newMaster(t).OpenFor(id, sealed) },
		"cut":                func() ([]byte, error) { return m.OpenFor(id, pgroom.Key{Purpose: "log", Sealed: sealed.Sealed[:11]}) },
		"nothing":            func() ([]byte, error) { return m.OpenFor(id, pgroom.Key{Purpose: "log"}) },
	} {
		if _, err := open(); !errors.Is(err, ErrMasterKey) {
			t.Errorf("%s: %v, want ErrMasterKey", name, err)
		}
	}
}

func TestOpenKeys(t *testing.T) {
	t.Parallel()
	m, record := newMaster(t), pgroom.Room{ID: uuid.New(), Slug: "a", Origin: "example.com/r/a"}
	sealed, err := Generate(m, record.ID)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Open(m, record, sealed)
	if err != nil || k.Log.Name() != record.Origin || !strings.HasPrefix(k.VKey, record.Origin+"+") || k.Pass == nil || k.VRF == nil {
		t.Fatalf("keys %+v, %v", k, err)
	}
	for i := range sealed {
		if _, err := Open(m, record, append(append([]pgroom.Key{}, sealed[:i]...), sealed[i+1:]...)); !errors.Is(err, ErrMasterKey) {
			t.Errorf("without the %s key: %v, want ErrMasterKey", sealed[i].Purpose, err)
		}
		swapped := append([]pgroom.Key{}, sealed...)
		swapped[i].Sealed = sealed[(i+1)%len(sealed)].Sealed
		if _, err := Open(m, record, swapped); !errors.Is(err, ErrMasterKey) {
			t.Errorf("with another key for %s: %v, want ErrMasterKey", sealed[i].Purpose, err)
		}
	}
	if _, err := Open(newMaster(t), record, sealed); !errors.Is(err, ErrMasterKey) {
		t.Errorf("another master key: %v, want ErrMasterKey", err)
	}
}

// TestSealSecret binds a secret to its key and its purpose.
func TestSealSecret(t *testing.T) {
	t.Parallel()
	key, _ := ParseMasterKey(NewMasterKey())
	other, _ := ParseMasterKey(NewMasterKey())
	sealed := key.Seal("totp/1", []byte("secret"))
	if got, err := key.Open("totp/1", sealed); err != nil || string(got) != "secret" {
		t.Errorf("opened %q, %v", got, err)
	}
	for name, try := range map[string]func() ([]byte, error){
		"purpose": func() ([]byte, error) { return key.Open("totp/2", sealed) },
		"key":     func() ([]byte, error) { return other.Open("totp/1", sealed) },
		"short":   func() ([]byte, error) { return key.Open("totp/1", sealed[:5]) },
		"flipped": func() ([]byte, error) { return key.Open("totp/1", append([]byte{sealed[0] ^ 1}, sealed[1:]...)) },
	} {
		if got, err := try(); !errors.Is(err, ErrMasterKey) {
			t.Errorf("%s: opened %q, %v", name, got, err)
		}
	}
}

func newMaster(t testing.TB) *MasterKey {
	t.Helper()
	m, err := ParseMasterKey(NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return m
}
