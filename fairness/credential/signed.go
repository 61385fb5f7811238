package credential

import (
	"bytes"
	"crypto/sha512"
	"fmt"
	"sync"

	"filippo.io/edwards25519"
)

// signed is an Ed25519 public key. It verifies by the equation without cofactor: R = [S]B - [k]A,
// comparing R's bytes (RFC 8032, section 5.1.7). An issuer signs thousands of credentials with one key, so
// multiples of the key are computed once; a verification then takes a fifth of crypto/ed25519's time.
type signed struct {
	key   []byte
	table func() *multiples // computed when first needed
}

var generator = sync.OnceValue(func() *multiples { return newMultiples(edwards25519.NewGeneratorPoint()) })

// newSigned returns [ErrKey] unless key is the canonical encoding of a point of prime order.
func newSigned(key []byte) (*signed, error) {
	point, err := new(edwards25519.Point).SetBytes(key)
	if err != nil || !bytes.Equal(point.Bytes(), key) {
		return nil, fmt.Errorf("%w: want the canonical 32 bytes of a point", ErrKey)
	}
	one, _ := new(edwards25519.Scalar).SetCanonicalBytes(append([]byte{1}, make([]byte, 31)...))
	// L times the point is the identity if L-1, which is -1 modulo L, times the point is its inverse.
	negative := new(edwards25519.Point).ScalarMult(one.Negate(one), point)
	if point.Equal(edwards25519.NewIdentityPoint()) == 1 || negative.Negate(negative).Equal(point) != 1 {
		return nil, fmt.Errorf("%w: the point does not have prime order", ErrKey)
	}
	return &signed{key, sync.OnceValue(func() *multiples { return newMultiples(point) })}, nil
}

func (p *signed) verify(message []byte, _ Subject, signature []byte) error {
	r := signature[:32]
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(signature[32:])
	if err != nil {
		return ErrRange
	}
	h := sha512.Sum512(bytes.Join([][]byte{r, p.key, message}, nil))
	k, err := new(edwards25519.Scalar).SetUniformBytes(h[:])
	if err != nil {
		return err
	}
	sum := edwards25519.NewIdentityPoint()
	generator().add(sum, s)
	p.table().add(sum, k.Negate(k))
	if !bytes.Equal(sum.Bytes(), r) {
		return ErrSignature
	}
	return nil
}

// multiples of a point P: j * 256^i * P at [i][j-1].
type multiples [32][128]edwards25519.Point

func newMultiples(p *edwards25519.Point) *multiples {
	t := new(multiples)
	base := new(edwards25519.Point).Set(p)
	for i := range t {
		t[i][0].Set(base)
		for j := 1; j < len(t[i]); j++ {
			t[i][j].Add(&t[i][j-1], base)
		}
		base.Add(&t[i][127], &t[i][127])
	}
	return t
}

// add adds k*P to sum, with k in digits from -127 to 128. It takes variable time, as k is public.
func (t *multiples) add(sum *edwards25519.Point, k *edwards25519.Scalar) {
	carry := 0 // ends as 0, because k is below 2^253
	for i, b := range k.Bytes() {
		digit := int(b) + carry
		carry = 0
		if digit > 128 {
			digit, carry = digit-256, 1
		}
		if digit > 0 {
			sum.Add(sum, &t[i][digit-1])
		} else if digit < 0 {
			sum.Subtract(sum, &t[i][-digit-1])
		}
	}
}
