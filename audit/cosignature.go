package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Witness is a witness's public key. It implements [note.Verifier] for cosignatures, for use with
// [OpenCheckpoint]. A cosignature does not cover the name, so two witnesses with one Key are one
// witness.
//
// https://c2sp.org/tlog-cosignature
type Witness struct {
	name string
	Key  [ed25519.PublicKeySize]byte
}

// Cosignature is a witness's statement that a checkpoint was the largest it had seen of the log at
// a time: key ID, uint64 Unix time in seconds, Ed25519 signature.
type Cosignature [4 + 8 + ed25519.SignatureSize]byte

// NewWitness returns the witness with a 32-byte public key. The error is ErrKey.
func NewWitness(name string, key ed25519.PublicKey) (Witness, error) {
	if len(key) != ed25519.PublicKeySize || !validOrigin(name) {
		return Witness{}, fmt.Errorf("witness %q: %w", name, ErrKey)
	}
	return Witness{name, [32]byte(key)}, nil
}

// ParseWitness reads a vkey of signature type 0x04. The error is ErrKey.
func ParseWitness(vkey string) (Witness, error) {
	name, rest, _ := strings.Cut(vkey, "+")
	_, encoded, _ := strings.Cut(rest, "+")
	key, _ := base64.StdEncoding.DecodeString(encoded)
	w, err := NewWitness(name, key[min(1, len(key)):])
	if err != nil || w.String() != vkey {
		return Witness{}, fmt.Errorf("witness key %q: %w", vkey, ErrKey)
	}
	return w, nil
}

// typed returns the key with its type byte, as it is hashed and encoded.
func (w Witness) typed() string { return "\x04" + string(w.Key[:]) }

// String returns the vkey.
func (w Witness) String() string {
	return fmt.Sprintf("%s+%08x+%s", w.name, w.KeyHash(), base64.StdEncoding.EncodeToString([]byte(w.typed())))
}

// Name implements [note.Verifier].
func (w Witness) Name() string { return w.name }

// KeyHash implements [note.Verifier].
func (w Witness) KeyHash() uint32 {
	sum := sha256.Sum256([]byte(w.name + "\n" + w.typed()))
	return binary.BigEndian.Uint32(sum[:])
}

// Verify implements [note.Verifier]; sig is a cosignature without its key ID.
func (w Witness) Verify(text, sig []byte) bool {
	b := append(binary.BigEndian.AppendUint32(nil, w.KeyHash()), sig...)
	return len(b) == len(Cosignature{}) && w.VerifyCosignature(string(text), Cosignature(b)) == nil
}

// VerifyCosignature checks a cosignature of a checkpoint's text. The error is ErrSignature.
func (w Witness) VerifyCosignature(text string, c Cosignature) error {
	known := w.name != "" && w.KeyHash() == binary.BigEndian.Uint32(c[:])
	if !known || c.Time() < 1 || !ed25519.Verify(w.Key[:], cosigned(text, c.Time()), c[12:]) {
		return fmt.Errorf("cosignature by %q: %w", w.name, ErrSignature)
	}
	return nil
}

// Cosign signs a checkpoint's text at a Unix time, which must be positive.
func (w Witness) Cosign(private ed25519.PrivateKey, text string, time int64) (c Cosignature) {
	binary.BigEndian.PutUint32(c[:], w.KeyHash())
	binary.BigEndian.PutUint64(c[4:], uint64(time))
	copy(c[12:], ed25519.Sign(private, cosigned(text, time)))
	return c
}

func cosigned(text string, time int64) []byte {
	return fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", time, text)
}

// Time returns the Unix time in seconds.
func (c Cosignature) Time() int64 { return int64(binary.BigEndian.Uint64(c[4:])) }

// Line returns the signature line to append to the signed checkpoint.
func (c Cosignature) Line(name string) string {
	return "— " + name + " " + base64.StdEncoding.EncodeToString(c[:]) + "\n"
}

// Cosignature returns this witness's cosignature from a note that [OpenCheckpoint] verified; false
// if it has none.
func (w Witness) Cosignature(n *note.Note) (c Cosignature, ok bool) {
	for _, s := range n.Sigs {
		if b, _ := base64.StdEncoding.DecodeString(s.Base64); s.Name == w.name && s.Hash == w.KeyHash() {
			return c, copy(c[:], b) == len(c)
		}
	}
	return c, false
}

// CosignedAt verifies a cosignature by the witness with the given vkey and returns its Unix time in
// seconds, at most 2^53 so that milliseconds fit. Errors are ErrKey and ErrSignature.
func (c Checkpoint) CosignedAt(vkey string, by Cosignature) (int64, error) {
	w, err := ParseWitness(vkey)
	if err != nil {
		return 0, err
	}
	return min(by.Time(), 1<<53), w.VerifyCosignature(c.Marshal(), by)
}
