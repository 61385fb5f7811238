// Package vrf implements the verifiable random function ECVRF-P256-SHA256-SSWU, suite 0x02 of RFC
// 9381, and nothing else.
//
// The holder of a private key maps an input alpha, of any length, to an output beta of 32 bytes
// that looks random, and to a proof pi of 81 bytes. Any holder of the public key can check that
// beta is the only output of that key for alpha.
//
//	private key  SK     32 bytes   scalar x in [1, q-1], big-endian
//	public key   PK     33 bytes   Y = x*B, compressed point (SEC 1, 2.3.3)
//	proof        pi     81 bytes   Gamma (33, compressed) || c (16) || s (32), big-endian
//	output       beta   32 bytes   SHA-256(0x02 || 0x03 || Gamma || 0x00)
//
// Every decoder is strict: a key or a proof has exactly one valid encoding. Decoding and
// verification never panic on any input.
//
// # What a proof shows
//
// A key has only one provable output for each alpha, even for the party that made the key. But that
// output has many proofs: Prove is deterministic, yet a key holder may choose another nonce. So
// compare outputs, never proofs, and use beta, never pi, as randomness. The key holder also knows
// beta for any alpha in advance; a draw that its operator must not predict needs a second source of
// randomness.
//
// # Constant time
//
// The scalar multiplications by x and by the nonce run in the standard library's constant-time
// P-256, through circl/group and crypto/elliptic; the nonce is computed with HMAC-SHA256 and
// compared with the group order in constant time, except for one lookup in a 32-byte table. Points
// become [math/big.Int] only when they are public: Y, Gamma, k*B and k*H all follow from the proof.
//
// Not constant time: the response s = (k + c*x) mod q, which circl computes with math/big, so its
// time may depend slightly on x and k; and operations on alpha alone, such as the encoding to the
// curve. So alpha must not be secret, and callers must not let clients request and time very many
// proofs. Private keys are not wiped from memory.
package vrf

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/cloudflare/circl/group"
)

// Suite is the name of the suite in RFC 9381, section 5.5.
const Suite = "ECVRF-P256-SHA256-SSWU"

// Sizes of the encodings, in bytes.
const (
	PublicKeySize  = pointSize
	PrivateKeySize = scalarSize
	ProofSize      = pointSize + challengeSize + scalarSize
	OutputSize     = sha256.Size
)

var (
	// ErrPrivateKey is returned when bytes do not encode a private key.
	ErrPrivateKey = errors.New("vrf: invalid private key")
	// ErrPublicKey is returned when bytes do not encode a public key.
	ErrPublicKey = errors.New("vrf: invalid public key")
	// ErrProof is returned when bytes do not encode a proof of any key or input.
	ErrProof = errors.New("vrf: malformed proof")
	// ErrVerify is returned when a well-formed proof does not belong to this key and input.
	ErrVerify = errors.New("vrf: proof does not verify")
)

// Verify returns the output for alpha if the proof is valid, otherwise [ErrProof] or [ErrVerify].
// It is safe for concurrent use. https://www.rfc-editor.org/rfc/rfc9381.html#section-5.3
func (k *PublicKey) Verify(alpha, proof []byte) (beta [OutputSize]byte, err error) {
	p, err := decodeProof(proof)
	if err != nil {
		return beta, err
	}
	h := encodeToCurve(k.encoded[:], alpha)
	u, v := commitments(k.point, h, p)
	c := generateChallenge(k.encoded[:], encodePoint(h), p.gammaString, encodePoint(u), encodePoint(v))
	if c != p.c {
		return beta, ErrVerify
	}
	return gammaToHash(p.gammaString), nil
}

// proof is a decoded pi. It keeps the (unique) encoding of Gamma because both hashes use it.
type proof struct {
	gamma       group.Element
	gammaString []byte
	c           [challengeSize]byte
	s           group.Scalar
}

// decodeProof accepts only the canonical encoding of a proof.
// https://www.rfc-editor.org/rfc/rfc9381.html#section-5.4.4
func decodeProof(b []byte) (*proof, error) {
	if len(b) != ProofSize {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrProof, len(b), ProofSize)
	}
	gamma, ok := decodePoint(b[:pointSize])
	if !ok {
		return nil, fmt.Errorf("%w: Gamma is not a compressed point of P-256", ErrProof)
	}
	s, ok := decodeScalar(b[pointSize+challengeSize:])
	if !ok {
		return nil, fmt.Errorf("%w: s is not below the group order", ErrProof)
	}
	p := &proof{gamma: gamma, gammaString: b[:pointSize], s: s}
	copy(p.c[:], b[pointSize:])
	return p, nil
}

// commitments recomputes the prover's U = s*B - c*Y and V = s*H - c*Gamma. Both are the identity if
// the prover used the nonce 0 and so disclosed its key. The RFC's verifier accepts that, so every
// implementation must, or auditors would disagree.
func commitments(y, h group.Element, p *proof) (u, v group.Element) {
	c := challengeScalar(p.c)
	u = curve.NewElement().MulGen(p.s)
	u.Add(u, negMul(y, c))
	v = curve.NewElement().Mul(h, p.s)
	v.Add(v, negMul(p.gamma, c))
	return u, v
}

// negMul returns -(c*p).
func negMul(p group.Element, c group.Scalar) group.Element {
	q := curve.NewElement().Mul(p, c)
	return q.Neg(q)
}
