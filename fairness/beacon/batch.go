package beacon

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/cloudflare/circl/ecc/bls12381"
)

// Signed is a round with its signature.
type Signed struct {
	Round     uint64
	Signature [SignatureSize]byte
}

// signatureDomain separates the hashes of signed messages: the scheme's suite.
const signatureDomain = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"

// VerifyAll returns nil if every signature verifies, [ErrSignature] if at least one does not, or
// [ErrChain] if the chain's key is invalid. It is faster than [Chain.Verify] for each: with random
// coefficients r of 128 bits, the sums of r times signature and r times message satisfy the equation
// of one signature if all of them do, and otherwise with a probability of 2^-128. The coefficients
// follow from all signatures by a hash, so that the result is the same each time.
func (c Chain) VerifyAll(list []Signed) error {
	if len(list) == 1 {
		return c.Verify(list[0].Round, list[0].Signature[:])
	}
	if err := c.Valid(); err != nil {
		return err
	}
	var key bls12381.G2
	if err := key.SetBytes(c.PublicKey[:]); err != nil {
		return fmt.Errorf("%w: public key: %w", ErrChain, err)
	}
	signatures, messages := make([]bls12381.G1, len(list)), make([]bls12381.G1, len(list))
	bound := sha256.New()
	bound.Write(c.PublicKey[:])
	for i, s := range list {
		message := messageOf(s.Round)
		bound.Write(message[:])
		bound.Write(s.Signature[:])
		err := signatures[i].SetBytes(s.Signature[:])
		if s.Round < 1 || err != nil || signatures[i].IsIdentity() {
			return fmt.Errorf("%w: round %d of chain %x", ErrSignature, s.Round, c.Hash())
		}
		messages[i].Hash(message[:], []byte(signatureDomain))
	}
	factors := coefficients(bound.Sum(nil), len(list))
	left, right := combination(factors, messages), combination(factors, signatures)
	if !bls12381.ProdPairFrac([]*bls12381.G1{&left, &right},
		[]*bls12381.G2{&key, bls12381.G2Generator()}, []int{1, -1}).IsIdentity() {
		return fmt.Errorf("%w: one of %d rounds of chain %x", ErrSignature, len(list), c.Hash())
	}
	return nil
}

// messageOf returns what a chain signs for a round.
func messageOf(round uint64) [32]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, round))
}

// coefficientSize is in bytes.
const coefficientSize = 16

// coefficients derives n coefficients from a seed.
func coefficients(seed []byte, n int) [][coefficientSize]byte {
	list := make([][coefficientSize]byte, n)
	for i := range list {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(seed[:len(seed):len(seed)], uint64(i)))
		list[i] = [coefficientSize]byte(sum[:])
	}
	return list
}

// combination returns the sum of factors[i] times points[i], by Pippenger's method: each round adds
// the points with the same digit first, and then each such sum as often as its digit says.
func combination(factors [][coefficientSize]byte, points []bls12381.G1) bls12381.G1 {
	width := 4 // number of bits per digit
	if len(points) < 32 {
		width = 2 // fewer sums
	}
	sums := make([]bls12381.G1, 1<<width)
	var total bls12381.G1
	total.SetIdentity()
	for bit := 0; bit < 8*coefficientSize; bit += width {
		for range width {
			total.Double()
		}
		for i := range sums {
			sums[i].SetIdentity()
		}
		for i := range points {
			digit := factors[i][bit/8] >> (8 - width - bit%8) & byte(len(sums)-1)
			if digit > 0 {
				sums[digit].Add(&sums[digit], &points[i])
			}
		}
		var from, weighted bls12381.G1 // sum of sums[d:], and of d times sums[d]
		from.SetIdentity()
		weighted.SetIdentity()
		for d := len(sums) - 1; d > 0; d-- {
			from.Add(&from, &sums[d])
			weighted.Add(&weighted, &from)
		}
		total.Add(&total, &weighted)
	}
	return total
}
