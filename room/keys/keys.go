// Package keys generates, seals and opens the private keys of rooms.
package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/vrf"
)

// MasterKeySize is the length of the key that seals the rooms' keys, in bytes.
const MasterKeySize = 32

// ErrMasterKey is returned when a master key is malformed, or did not seal a room's keys.
var ErrMasterKey = errors.New("wrong master key")

// MasterKey seals the private keys of rooms at rest (AES-256-GCM).
type MasterKey struct{ aead cipher.AEAD }

// NewMasterKey returns a random master key in the text form that [ParseMasterKey] reads: base64 of 32 bytes.
func NewMasterKey() string {
	b := make([]byte, MasterKeySize)
	_, _ = rand.Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)
}

// ParseMasterKey parses a master key, ignoring surrounding white space.
func ParseMasterKey(text string) (*MasterKey, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != MasterKeySize {
		return nil, fmt.Errorf("%w: want base64 of %d bytes", ErrMasterKey, MasterKeySize)
	}
	block, err := aes.NewCipher(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMasterKey, err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMasterKey, err)
	}
	return &MasterKey{aead}, nil
}

// label binds a sealed key to its room and purpose.
func label(id uuid.UUID, purpose string) []byte {
	return []byte("proofline/seal/v1\x00" + id.String() + "\x00" + purpose)
}

// SealFor seals a private key of a room for a purpose, such as "pass".
func (m *MasterKey) SealFor(id uuid.UUID, purpose string, key []byte) pgroom.Key {
	nonce := make([]byte, m.aead.NonceSize(), m.aead.NonceSize()+len(key)+m.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return pgroom.Key{Purpose: purpose, Sealed: m.aead.Seal(nonce, nonce, key, label(id, purpose))}
}

// OpenFor opens a sealed private key of a room, or returns [ErrMasterKey].
func (m *MasterKey) OpenFor(id uuid.UUID, k pgroom.Key) ([]byte, error) {
	n := m.aead.NonceSize()
	if len(k.Sealed) < n {
		return nil, fmt.Errorf("%w: sealed %s key is too short", ErrMasterKey, k.Purpose)
	}
	key, err := m.aead.Open(nil, k.Sealed[:n], k.Sealed[n:], label(id, k.Purpose))
	if err != nil {
		return nil, fmt.Errorf("%w: the %s key does not open", ErrMasterKey, k.Purpose)
	}
	return key, nil
}

// sealLabel binds a secret of [MasterKey.Seal] to its purpose.
func sealLabel(purpose string) []byte { return []byte("proofline/seal/v1\x00\x00" + purpose) }

// Seal seals a secret that does not belong to a room, for a purpose such as "totp/" followed by an
// id.
func (m *MasterKey) Seal(purpose string, secret []byte) []byte {
	nonce := make([]byte, m.aead.NonceSize(), m.aead.NonceSize()+len(secret)+m.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return m.aead.Seal(nonce, nonce, secret, sealLabel(purpose))
}

// Open opens a secret that was sealed for the purpose, or returns [ErrMasterKey].
func (m *MasterKey) Open(purpose string, sealed []byte) ([]byte, error) {
	n := m.aead.NonceSize()
	if len(sealed) < n {
		return nil, fmt.Errorf("%w: the secret sealed for %s is too short", ErrMasterKey, purpose)
	}
	secret, err := m.aead.Open(nil, sealed[:n], sealed[n:], sealLabel(purpose))
	if err != nil {
		return nil, fmt.Errorf("%w: the secret sealed for %s does not open", ErrMasterKey, purpose)
	}
	return secret, nil
}

// ErrElsewhere is returned when something of an imported room is to be signed.
var ErrElsewhere = errors.New("the room was imported: only the server that created it has its key")

// Keys are the private keys of one room.
type Keys struct {
	Log  note.Signer        // of an imported room: signs nothing
	VKey string             // verifies signatures of Log
	VRF  *vrf.PrivateKey    // of an imported room: nil
	Pass ed25519.PrivateKey // the room's first pass key; rotation adds others
}

// Generate generates and seals the keys of a new room.
func Generate(m *MasterKey, id uuid.UUID) ([]pgroom.Key, error) {
	k, err := vrf.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make room keys: %w", err)
	}
	logSeed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(logSeed) // never fails
	return []pgroom.Key{m.SealFor(id, "log", logSeed), m.SealFor(id, "vrf", k.Bytes()), GeneratePass(m, id)}, nil
}

// Open opens the sealed keys of a room.
func Open(m *MasterKey, r pgroom.Room, sealed []pgroom.Key) (*Keys, error) {
	k := &Keys{}
	if r.VKey != nil {
		public, err := audit.ParseKey(*r.VKey)
		if err != nil {
			return nil, fmt.Errorf("open key of room %s: %w", r.Slug, err)
		}
		k.Log, k.VKey = elsewhere{public}, *r.VKey
	}
	for _, s := range sealed {
		key, err := m.OpenFor(r.ID, s)
		if err != nil {
			return nil, err
		}
		switch s.Purpose {
		case "log":
			k.Log, k.VKey, err = audit.NewSigner(r.Origin, key)
		case "vrf":
			k.VRF, err = vrf.NewPrivateKey(key)
		case "pass":
			k.Pass = ed25519.NewKeyFromSeed(key)
		}
		if err != nil {
			return nil, fmt.Errorf("open %s key: %w", s.Purpose, err)
		}
	}
	if k.Log == nil || k.VRF == nil && r.VKey == nil || k.Pass == nil {
		return nil, fmt.Errorf("%w: a key of room %s is missing", ErrMasterKey, r.Slug)
	}
	return k, nil
}

// elsewhere is the signer of a log whose private key another server has.
type elsewhere struct{ note.Verifier }

// Sign implements [note.Signer].
func (elsewhere) Sign([]byte) ([]byte, error) { return nil, ErrElsewhere }

// GeneratePass generates and seals the pass key of an imported room.
func GeneratePass(m *MasterKey, id uuid.UUID) pgroom.Key {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	return m.SealFor(id, "pass", seed)
}

// registerPurpose is the purpose of the sealed key of the log of rooms.
const registerPurpose = "rooms"

// GenerateRegister generates and seals the key of the log of rooms.
func GenerateRegister(m *MasterKey, origin string) pgroom.Register {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	return pgroom.Register{Origin: origin, Sealed: m.Seal(registerPurpose, seed)}
}

// OpenRegister opens the sealed key of the log of rooms.
func OpenRegister(m *MasterKey, r pgroom.Register) (signer note.Signer, vkey string, err error) {
	seed, err := m.Open(registerPurpose, r.Sealed)
	if err != nil {
		return nil, "", err
	}
	return audit.NewSigner(r.Origin, seed)
}
