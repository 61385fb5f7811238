package witness

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/proofline/proofline/audit"
)

// Key is the private key of a witness.
type Key struct {
	audit.Witness
	private ed25519.PrivateKey
}

// NewKey returns the key with the given name and 32-byte seed (RFC 8032). It fails with
// [audit.ErrKey] on a seed of another length, and on a name with spaces, plus signs or control
// characters.
func NewKey(name string, seed []byte) (Key, error) {
	if len(seed) != ed25519.SeedSize {
		return Key{}, fmt.Errorf("seed of %d bytes: %w", len(seed), audit.ErrKey)
	}
	private := ed25519.NewKeyFromSeed(seed)
	w, err := audit.NewWitness(name, private.Public().(ed25519.PublicKey))
	return Key{w, private}, err
}

// Parts of a private key's text: the beginning, and the type byte before the seed.
const (
	privatePrefix = "PRIVATE+KEY+"
	keyType       = "\x04"
)

// Marshal returns the private key as text, in the form of golang.org/x/mod/sumdb/note:
//
//	"PRIVATE+KEY+" name "+" hex(key ID) "+" base64(0x04 || seed)
func (k Key) Marshal() string {
	secret := base64.StdEncoding.EncodeToString(append([]byte(keyType), k.private.Seed()...))
	return fmt.Sprintf("%s%s+%08x+%s", privatePrefix, k.Name(), k.KeyHash(), secret)
}

// ParseKey reads the output of [Key.Marshal]. The error is [audit.ErrKey]; it does not show the
// text.
func ParseKey(text string) (Key, error) {
	rest, ok := strings.CutPrefix(text, privatePrefix)
	name, rest, _ := strings.Cut(rest, "+")
	_, secret, _ := strings.Cut(rest, "+")
	b, err := base64.StdEncoding.DecodeString(secret)
	if !ok || err != nil || len(b) != len(keyType)+ed25519.SeedSize {
		return Key{}, fmt.Errorf("private key of a witness: %w", audit.ErrKey)
	}
	k, err := NewKey(name, b[len(keyType):])
	if err != nil || k.Marshal() != text {
		return Key{}, fmt.Errorf("private key of a witness: %w", audit.ErrKey)
	}
	return k, nil
}

// String returns the public key, so that the private key is not printed by accident.
func (k Key) String() string { return k.Witness.String() }

// GoString does what String does, for %#v.
func (k Key) GoString() string { return k.String() }

func (k Key) cosign(text string, time int64) audit.Cosignature {
	return k.Cosign(k.private, text, time)
}
