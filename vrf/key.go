package vrf

import (
	"fmt"

	"github.com/cloudflare/circl/group"
)

// PublicKey verifies proofs. It is immutable and safe for concurrent use. The zero value is
// invalid: use [NewPublicKey] or [PrivateKey.PublicKey].
type PublicKey struct {
	// point is read-only: circl's Marshal functions write to their receiver, so the encoding is
	// computed once, before the key is shared.
	point   group.Element
	encoded [PublicKeySize]byte
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
