package beacon_test

import (
	"math/big"
	"testing"
)

// g1 is an affine point of y^2 = x^3 + 4, in the subgroup or not; nil is the identity. It has textbook
// arithmetic, for operations that circl does not export.
type g1 struct{ x, y *big.Int }

// affine decodes a compressed point without checking the subgroup.
func affine(t *testing.T, b []byte) *g1 {
	t.Helper()
	x := new(big.Int).SetBytes(append([]byte{b[0] & 0x1f}, b[1:]...))
	y := new(big.Int).Exp(x, big.NewInt(3), prime)
	if y.ModSqrt(y.Add(y, big.NewInt(4)), prime) == nil {
		t.Fatalf("%x is not on the curve", b)
	}
	if larger(y) != (b[0]&0x20 != 0) {
		y.Sub(prime, y)
	}
	return &g1{x, y}
}

// larger reports whether y > -y, which is the sign in the encoding.
func larger(y *big.Int) bool { return new(big.Int).Lsh(y, 1).Cmp(prime) > 0 }

func (p *g1) compressed() []byte {
	b := p.x.FillBytes(make([]byte, 48))
	b[0] |= 0x80
	if larger(p.y) {
		b[0] |= 0x20
	}
	return b
}

func (p *g1) add(q *g1) *g1 {
	if p == nil {
		return q
	}
	if q == nil {
		return p
	}
	var over, under *big.Int // of the slope's denominator
	switch sum := new(big.Int).Add(p.y, q.y); {
	case p.x.Cmp(q.x) != 0:
		over, under = new(big.Int).Sub(q.y, p.y), new(big.Int).Sub(q.x, p.x)
	case sum.Mod(sum, prime).Sign() == 0:
		return nil
	default:
		over, under = new(big.Int).Mul(p.x, p.x), new(big.Int).Lsh(p.y, 1)
		over.Mul(over, big.NewInt(3))
	}
	under.ModInverse(under.Mod(under, prime), prime)
	slope := over.Mul(over, under)
	x := new(big.Int).Mul(slope, slope)
	x.Sub(x, p.x).Sub(x, q.x).Mod(x, prime)
	y := new(big.Int).Sub(p.x, x)
	y.Mul(y, slope).Sub(y, p.y).Mod(y, prime)
	return &g1{x, y}
}

func (p *g1) mul(k *big.Int) (r *g1) {
	for i := k.BitLen() - 1; i >= 0; i-- {
		r = r.add(r)
		if k.Bit(i) == 1 {
			r = r.add(p)
		}
	}
	return r
}
