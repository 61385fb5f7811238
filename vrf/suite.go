package vrf

import (
	"crypto/sha256"

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

// encoded drops the error of circl's interfaces, which is always nil for P-256.
func encoded(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
