package vrf

import (
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"math/big"

	"github.com/cloudflare/circl/group"
)

// Parameters of the suite. https://www.rfc-editor.org/rfc/rfc9381.html#section-5.5
const (
	suiteString   = "\x02"
	pointSize     = 33 // ptLen
	challengeSize = 16 // cLen
	scalarSize    = 32 // qLen

	challengeDomain = "\x02"
	outputDomain    = "\x03"
	domainEnd       = "\x00"

	encodeToCurveDST = "ECVRF_" + "P256_XMD:SHA-256_SSWU_NU_" + suiteString
)

var curve = group.P256

// encodeToCurve is ECVRF_encode_to_curve_h2c_suite; the salt is the public key.
// https://www.rfc-editor.org/rfc/rfc9381.html#section-5.4.1.2
func encodeToCurve(salt, alpha []byte) group.Element {
	msg := append(salt[:len(salt):len(salt)], alpha...) // the append must not write into the key's array
	return curve.HashToElementNonUniform(msg, []byte(encodeToCurveDST))
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

// generateChallenge hashes the encodings of Y, H, Gamma, U and V.
// https://www.rfc-editor.org/rfc/rfc9381.html#section-5.4.3
func generateChallenge(y, h, gamma, u, v []byte) [challengeSize]byte {
	str := []byte(suiteString + challengeDomain)
	for _, p := range [][]byte{y, h, gamma, u, v} {
		str = append(str, p...)
	}
	sum := sha256.Sum256(append(str, domainEnd...))
	return [challengeSize]byte(sum[:challengeSize])
}

// challengeScalar returns c, which is always below q, as a scalar.
func challengeScalar(c [challengeSize]byte) group.Scalar {
	var b [scalarSize]byte
	copy(b[scalarSize-challengeSize:], c[:])
	s, _ := decodeScalar(b[:])
	return s
}

// gammaToHash returns beta; the cofactor is 1.
// https://www.rfc-editor.org/rfc/rfc9381.html#section-5.2
func gammaToHash(gamma []byte) [OutputSize]byte {
	str := append([]byte(suiteString+outputDomain), gamma...)
	return sha256.Sum256(append(str, domainEnd...))
}

// decodePoint reads a compressed point. It checks length and prefix first, because circl also reads
// uncompressed points and the identity.
func decodePoint(b []byte) (group.Element, bool) {
	if len(b) != pointSize || b[0] != 2 && b[0] != 3 {
		return nil, false
	}
	p := curve.NewElement()
	return p, p.UnmarshalBinary(b) == nil
}

// decodeScalar reads 32 bytes, big-endian, below q.
func decodeScalar(b []byte) (group.Scalar, bool) {
	s := curve.NewScalar()
	return s, s.UnmarshalBinary(b) == nil
}

// encodePoint returns the compressed encoding, or 0x00 for the identity (SEC 1, 2.3.3). circl
// writes to p meanwhile, so p must not be shared.
func encodePoint(p group.Element) []byte {
	return encoded(p.MarshalBinaryCompress())
}

func encodeScalar(s group.Scalar) []byte {
	return encoded(s.MarshalBinary())
}

// encoded drops the error of circl's interfaces, which is always nil for P-256.
func encoded(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
