package vrf

import (
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/cloudflare/circl/group"
)

// This file holds the prover. An auditor does not need it, and the verifier compiles without it.

// PrivateKey makes proofs. It is immutable and safe for concurrent use. The zero value is invalid:
// use [GenerateKey] or [NewPrivateKey].
type PrivateKey struct {
	scalar group.Scalar
	public PublicKey
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

// Bytes returns the encoding that [NewPublicKey] reads, 33 bytes.
func (k *PublicKey) Bytes() []byte {
	return append([]byte(nil), k.encoded[:]...)
}

// Prove returns the output for alpha and its proof. The same key and alpha always give the same
// proof. It is safe for concurrent use. https://www.rfc-editor.org/rfc/rfc9381.html#section-5.1
func (k *PrivateKey) Prove(alpha []byte) (proof []byte, beta [OutputSize]byte) {
	h := encodeToCurve(k.public.encoded[:], alpha)
	hString := encodePoint(h)
	gamma := encodePoint(curve.NewElement().Mul(h, k.scalar))

	nonce := generateNonce(k.scalar, hString)
	u := curve.NewElement().MulGen(nonce)
	v := curve.NewElement().Mul(h, nonce)
	c := generateChallenge(k.public.encoded[:], hString, gamma, encodePoint(u), encodePoint(v))
	s := curve.NewScalar().Mul(challengeScalar(c), k.scalar)
	s.Add(s, nonce)

	proof = append(make([]byte, 0, ProofSize), gamma...)
	proof = append(proof, c[:]...)
	proof = append(proof, encodeScalar(s)...)
	return proof, gammaToHash(gamma)
}

// ProofToHash returns the output of a proof, or [ErrProof]. It does not verify: call it only with a
// proof that is already verified or was made by Prove.
// https://www.rfc-editor.org/rfc/rfc9381.html#section-5.2
func ProofToHash(proof []byte) (beta [OutputSize]byte, err error) {
	p, err := decodeProof(proof)
	if err != nil {
		return beta, err
	}
	return gammaToHash(p.gammaString), nil
}

// generateNonce is ECVRF_nonce_generation_RFC6979: the nonce of deterministic
// ECDSA over SHA-256 for the message hString.
// https://www.rfc-editor.org/rfc/rfc9381.html#section-5.4.2.1
func generateNonce(x group.Scalar, hString []byte) group.Scalar {
	g := newNonceStream(encodeScalar(x), bitsToOctets(sha256.Sum256(hString)))
	for {
		if k, ok := decodeScalar(g.next()); ok && !k.IsZero() {
			return k
		}
	}
}

// bitsToOctets reduces a hash modulo the group order q; both have 256 bits.
// https://www.rfc-editor.org/rfc/rfc6979.html#section-2.3.4
func bitsToOctets(h [sha256.Size]byte) []byte {
	n := new(big.Int).SetBytes(h[:])
	return n.Mod(n, elliptic.P256().Params().N).FillBytes(make([]byte, scalarSize))
}

// nonceStream is the HMAC_DRBG of RFC 6979 that proposes nonces.
// https://www.rfc-editor.org/rfc/rfc6979.html#section-3.2
type nonceStream struct {
	key, v []byte
}

// newNonceStream performs steps b to g.
func newNonceStream(x, h1 []byte) *nonceStream {
	g := &nonceStream{key: make([]byte, sha256.Size), v: make([]byte, sha256.Size)}
	for i := range g.v {
		g.v[i] = 1
	}
	g.update([]byte{0}, x, h1)
	g.update([]byte{1}, x, h1)
	return g
}

// next performs step h once, including the update before the next try. It returns 32 bytes, which
// the caller rejects if they are out of range.
func (g *nonceStream) next() []byte {
	g.v = g.mac(g.v)
	t := g.v
	g.update([]byte{0})
	return t
}

func (g *nonceStream) update(data ...[]byte) {
	g.key = g.mac(append([][]byte{g.v}, data...)...)
	g.v = g.mac(g.v)
}

func (g *nonceStream) mac(data ...[]byte) []byte {
	m := hmac.New(sha256.New, g.key)
	for _, d := range data {
		m.Write(d)
	}
	return m.Sum(nil)
}

func encodeScalar(s group.Scalar) []byte {
	return encoded(s.MarshalBinary())
}
