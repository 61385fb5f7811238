package vrf_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"math/big"
)

// The reference is a second ECVRF-P256-SHA256-SSWU, written from the RFCs with math/big alone: textbook
// affine arithmetic, the SSWU map as defined in RFC 9380, section 6.6.2, and no code of circl or of
// crypto/elliptic.

var (
	refP = hexInt("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")
	refQ = hexInt("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
	refA = big.NewInt(-3)
	refB = hexInt("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b")
	refZ = big.NewInt(-10)
	refG = &refPoint{
		hexInt("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
		hexInt("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"),
	}
)

func hexInt(s string) *big.Int {
	n, ok := new(big.Int).SetString(s, 16)
	if !ok {
		panic("not hex: " + s)
	}
	return n
}

// refPoint is an affine point; nil is the identity.
type refPoint struct{ x, y *big.Int }

func mod(n, m *big.Int) *big.Int { return new(big.Int).Mod(n, m) }
func add(a, b *big.Int) *big.Int { return mod(new(big.Int).Add(a, b), refP) }
func sub(a, b *big.Int) *big.Int { return mod(new(big.Int).Sub(a, b), refP) }
func mul(a, b *big.Int) *big.Int { return mod(new(big.Int).Mul(a, b), refP) }
func inv(a *big.Int) *big.Int    { return new(big.Int).ModInverse(a, refP) }

// refCurve is x^3 + A*x + B.
func refCurve(x *big.Int) *big.Int {
	return add(mul(add(mul(x, x), refA), x), refB)
}

func (p *refPoint) add(q *refPoint) *refPoint {
	if p == nil {
		return q
	}
	if q == nil {
		return p
	}
	var slope *big.Int
	switch {
	case p.x.Cmp(q.x) != 0:
		slope = mul(sub(q.y, p.y), inv(sub(q.x, p.x)))
	case add(p.y, q.y).Sign() == 0:
		return nil
	default:
		slope = mul(add(mul(big.NewInt(3), mul(p.x, p.x)), refA), inv(add(p.y, p.y)))
	}
	x := sub(sub(mul(slope, slope), p.x), q.x)
	return &refPoint{x, sub(mul(slope, sub(p.x, x)), p.y)}
}

func (p *refPoint) neg() *refPoint {
	if p == nil {
		return nil
	}
	return &refPoint{p.x, sub(new(big.Int), p.y)}
}

func (p *refPoint) mul(k *big.Int) *refPoint {
	var r *refPoint
	for i := k.BitLen() - 1; i >= 0; i-- {
		r = r.add(r)
		if k.Bit(i) == 1 {
			r = r.add(p)
		}
	}
	return r
}

func (p *refPoint) bytes() []byte {
	if p == nil {
		return []byte{0}
	}
	return append([]byte{2 + byte(p.y.Bit(0))}, refBytes(p.x)...)
}

func refBytes(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }

func refDecodePoint(b []byte) *refPoint {
	x := new(big.Int).SetBytes(b[1:])
	y := new(big.Int).ModSqrt(refCurve(x), refP)
	if b[0] != 2 && b[0] != 3 || x.Cmp(refP) >= 0 || y == nil {
		return nil
	}
	if y.Bit(0) != uint(b[0]&1) {
		y = sub(new(big.Int), y)
	}
	return &refPoint{x, y}
}

// refExpand is expand_message_xmd for 48 bytes (RFC 9380, 5.3.1).
func refExpand(msg []byte, dst string) []byte {
	dstPrime := dst + string(rune(len(dst)))
	b0 := sha256.Sum256([]byte(string(make([]byte, 64)) + string(msg) + "\x00\x30\x00" + dstPrime))
	b1 := sha256.Sum256([]byte(string(b0[:]) + "\x01" + dstPrime))
	for i := range b0 {
		b0[i] ^= b1[i]
	}
	b2 := sha256.Sum256([]byte(string(b0[:]) + "\x02" + dstPrime))
	return append(b1[:], b2[:16]...)
}

// refMap is map_to_curve_simple_swu (RFC 9380, 6.6.2).
func refMap(u *big.Int) *refPoint {
	zu2 := mul(refZ, mul(u, u))
	tv := add(mul(zu2, zu2), zu2)
	x := mul(refB, inv(mul(refZ, refA)))
	if tv.Sign() != 0 {
		x = mul(mul(sub(new(big.Int), refB), inv(refA)), add(inv(tv), big.NewInt(1)))
	}
	if big.Jacobi(refCurve(x), refP) == -1 {
		x = mul(zu2, x)
	}
	y := new(big.Int).ModSqrt(refCurve(x), refP)
	if y.Bit(0) != u.Bit(0) {
		y = sub(new(big.Int), y)
	}
	return &refPoint{x, y}
}

func refEncodeToCurve(pk, alpha []byte) *refPoint {
	msg := append(append([]byte{}, pk...), alpha...)
	u := new(big.Int).SetBytes(refExpand(msg, "ECVRF_P256_XMD:SHA-256_SSWU_NU_\x02"))
	return refMap(mod(u, refP))
}

func refHMAC(key []byte, data ...[]byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(bytes.Join(data, nil))
	return m.Sum(nil)
}

// refNonce is RFC 6979, section 3.2, step by step.
func refNonce(x *big.Int, m []byte) *big.Int {
	sum := sha256.Sum256(m)
	seed := append(refBytes(x), refBytes(mod(new(big.Int).SetBytes(sum[:]), refQ))...)
	v := bytes.Repeat([]byte{1}, 32)
	k := make([]byte, 32)
	k = refHMAC(k, v, []byte{0}, seed)
	v = refHMAC(k, v)
	k = refHMAC(k, v, []byte{1}, seed)
	v = refHMAC(k, v)
	for {
		v = refHMAC(k, v)
		if n := new(big.Int).SetBytes(v); n.Sign() > 0 && n.Cmp(refQ) < 0 {
			return n
		}
		k = refHMAC(k, v, []byte{0})
		v = refHMAC(k, v)
	}
}

func refChallenge(points ...*refPoint) []byte {
	str := []byte{2, 2}
	for _, p := range points {
		str = append(str, p.bytes()...)
	}
	sum := sha256.Sum256(append(str, 0))
	return sum[:16]
}

func refOutput(gamma *refPoint) [32]byte {
	return sha256.Sum256(append(append([]byte{2, 3}, gamma.bytes()...), 0))
}

// refProve makes a proof with the given nonce, or with the RFC's if it is nil.
func refProve(x *big.Int, alpha []byte, nonce *big.Int) (proof []byte, beta [32]byte) {
	y := refG.mul(x)
	h := refEncodeToCurve(y.bytes(), alpha)
	if nonce == nil {
		nonce = refNonce(x, h.bytes())
	}
	gamma := h.mul(x)
	c := refChallenge(y, h, gamma, refG.mul(nonce), h.mul(nonce))
	s := new(big.Int).Mul(new(big.Int).SetBytes(c), x)
	s = mod(s.Add(s, nonce), refQ)
	return bytes.Join([][]byte{gamma.bytes(), c, refBytes(s)}, nil), refOutput(gamma)
}

func refVerify(pk, alpha, proof []byte) (beta [32]byte, ok bool) {
	y, gamma := refDecodePoint(pk), refDecodePoint(proof[:33])
	s := new(big.Int).SetBytes(proof[49:])
	if y == nil || gamma == nil || s.Cmp(refQ) >= 0 {
		return beta, false
	}
	c := new(big.Int).SetBytes(proof[33:49])
	h := refEncodeToCurve(pk, alpha)
	u := refG.mul(s).add(y.mul(c).neg())
	v := h.mul(s).add(gamma.mul(c).neg())
	if !bytes.Equal(refChallenge(y, h, gamma, u, v), proof[33:49]) {
		return beta, false
	}
	return refOutput(gamma), true
}
