package vrf

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/cloudflare/circl/group"
)

// PrivateKey makes proofs. It is immutable and safe for concurrent use. The zero value is invalid:
// use [GenerateKey] or [NewPrivateKey].
type PrivateKey struct {
	scalar group.Scalar
	public PublicKey
}

// PublicKey verifies proofs. It is immutable and safe for concurrent use. The zero value is
// invalid: use [NewPublicKey] or [PrivateKey.PublicKey].
type PublicKey struct {
	// point is read-only: circl's Marshal functions write to their receiver, so the encoding is
	// computed once, before the key is shared.
	point   group.Element
	encoded [PublicKeySize]byte
}

// GenerateKey returns a key chosen uniformly with bytes from random, or from [crypto/rand.Reader]
// if random is nil. It returns the reader's error, or an error if the reader cannot be random.
func GenerateKey(random io.Reader) (*PrivateKey, error) {
	if random == nil {
		random = rand.Reader
	}
	// One draw of 32 bytes is out of range with a chance of 2^-32.
	for range 4 {
		var b [PrivateKeySize]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return nil, fmt.Errorf("vrf: generate key: %w", err)
		}
		if k, err := NewPrivateKey(b[:]); err == nil {
			return k, nil
		}
	}
	return nil, errors.New("vrf: generate key: the source of randomness keeps returning invalid values")
}

// NewPrivateKey decodes a private key, 32 bytes, or returns [ErrPrivateKey].
func NewPrivateKey(b []byte) (*PrivateKey, error) {
	x, ok := decodeScalar(b)
	if !ok || x.IsZero() {
		return nil, fmt.Errorf("%w: want %d bytes big-endian in [1, q-1]", ErrPrivateKey, PrivateKeySize)
	}
	k := &PrivateKey{scalar: x}
	k.public.point = curve.NewElement().MulGen(x)
	copy(k.public.encoded[:], encodePoint(k.public.point))
	return k, nil
}

// Bytes returns the encoding that [NewPrivateKey] reads, 32 bytes. It is secret.
func (k *PrivateKey) Bytes() []byte {
	return encodeScalar(k.scalar)
}

// Format prints the public key for every formatting verb, so that no log shows the secret.
func (k PrivateKey) Format(w fmt.State, _ rune) {
	_, _ = fmt.Fprintf(w, "vrf.PrivateKey of %x", k.public.encoded)
}

// PublicKey returns the key that verifies the proofs of k.
func (k *PrivateKey) PublicKey() *PublicKey {
	return &k.public
}

// NewPublicKey decodes a public key, 33 bytes, or returns [ErrPublicKey]. This
// includes the RFC's key validation: P-256 has prime order, so a point that is
// not the identity, which has no encoding of this length, is a valid key.
// https://www.rfc-editor.org/rfc/rfc9381.html#section-5.4.5
func NewPublicKey(b []byte) (*PublicKey, error) {
	y, ok := decodePoint(b)
	if !ok {
		return nil, fmt.Errorf("%w: want a point of P-256, compressed to %d bytes", ErrPublicKey, PublicKeySize)
	}
	k := &PublicKey{point: y}
	copy(k.encoded[:], b)
	return k, nil
}

// Bytes returns the encoding that [NewPublicKey] reads, 33 bytes.
func (k *PublicKey) Bytes() []byte {
	return append([]byte(nil), k.encoded[:]...)
}
