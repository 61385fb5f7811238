package credential

import (
	"crypto/rsa"
	"fmt"
	"math/big"

	"github.com/cloudflare/circl/blindsign/blindrsa"
)

const (
	// Exponent is the public exponent of every RSA key.
	Exponent   = 65537
	minModulus = 256 // bytes
	maxModulus = 512
)

// blind is an RSA public key. Without a salt the encoding of a message is fixed, so a message has
// one signature.
//
// https://www.rfc-editor.org/rfc/rfc9474.html#section-5
type blind struct {
	key      *rsa.PublicKey
	verifier blindrsa.Verifier
}

// newBlind returns [ErrKey] unless the modulus has 2048 to 4096 bits, in whole bytes, and is odd.
func newBlind(modulus []byte) (*blind, error) {
	n := len(modulus)
	if n < minModulus || n > maxModulus || modulus[0] < 0x80 || modulus[n-1]%2 == 0 {
		return nil, fmt.Errorf("%w: want an odd modulus of %d to %d whole bytes", ErrKey, minModulus, maxModulus)
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: Exponent}
	verifier, err := blindrsa.NewVerifier(blindrsa.SHA384PSSZeroDeterministic, key)
	return &blind{key, verifier}, err
}

func (p *blind) verify(message []byte, _ Subject, signature []byte) error {
	if new(big.Int).SetBytes(signature).Cmp(p.key.N) >= 0 {
		return ErrRange
	}
	if p.verifier.Verify(message, signature) != nil {
		return ErrSignature
	}
	return nil
}
