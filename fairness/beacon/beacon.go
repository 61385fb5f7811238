// Package beacon verifies public randomness: the rounds of drand chains with the scheme
// bls-unchained-g1-rfc9380.
//
// A chain is a group's public key and a clock. Round n, from 1, is the group's BLS signature of the
// number n, and appears at genesis + (n-1) * period. Only one value verifies, so the group cannot
// choose it; and signing takes a threshold of the group's members, so no smaller set of them knows
// it before its time.
//
//	public key   96 bytes   point of G2 of BLS12-381, compressed
//	message      32 bytes   SHA-256(uint64(round)), big-endian
//	signature    48 bytes   point of G1, compressed; hashes to G1 by BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_
//	randomness   32 bytes   SHA-256(signature)
//
// Keys and signatures have one encoding each, are in their subgroups and are not the identity.
// https://docs.drand.love/docs/concepts/2-3-concepts-specification/
package beacon

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/cloudflare/circl/sign/bls"
)

// Scheme is drand's name for the scheme that this package implements.
const (
	Scheme                = "bls-unchained-g1-rfc9380"
	SignatureSize         = 48                      // bytes
	maxGenesis, maxPeriod = 1 << 42, 31 * 24 * 3600 // seconds; keeps times in milliseconds below 2^53
)

var (
	// ErrChain is returned for parameters that no chain can have.
	ErrChain = errors.New("beacon: invalid chain")
	// ErrSignature is returned when bytes are not the signature of a round.
	ErrSignature = errors.New("beacon: signature does not verify")
)

// Chain holds the parameters that identify a chain. The results of its methods are meaningless if
// it is not [Chain.Valid].
type Chain struct {
	ID        string   // drand's beaconID; empty and "default" mean the same
	PublicKey [96]byte // group public key
	Genesis   int64    // when round 1 appears, in seconds since the Unix epoch
	Period    uint32   // from one round to the next, in seconds
	GroupHash [32]byte // drand's hash of the group that started the chain
}

// Quicknet returns the League of Entropy's chain with a round every three seconds.
// https://docs.drand.love/blog/2023/10/16/quicknet-is-live/
func Quicknet() Chain {
	c := Chain{ID: "quicknet", Genesis: 1692803367, Period: 3}
	_, _ = hex.Decode(c.PublicKey[:], []byte("83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"))
	_, _ = hex.Decode(c.GroupHash[:], []byte("f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e"))
	return c
}

// Hash returns drand's chain hash, by which relays identify a chain. It does not cover the scheme.
// https://github.com/drand/drand/blob/master/common/chain/info.go
func (c Chain) Hash() [32]byte {
	b := binary.BigEndian.AppendUint32(nil, c.Period)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Genesis))
	b = append(append(b, c.PublicKey[:]...), c.GroupHash[:]...)
	if c.ID != "default" {
		b = append(b, c.ID...)
	}
	return sha256.Sum256(b)
}

// Valid returns nil, or an [ErrChain] that says what is wrong.
func (c Chain) Valid() error {
	if len(c.ID) > 64 || strings.ContainsFunc(c.ID, func(r rune) bool { return r < '!' || r > '~' }) {
		return fmt.Errorf("%w: id %.99q is not up to 64 visible ASCII characters", ErrChain, c.ID)
	}
	if c.Genesis < 0 || c.Genesis > maxGenesis || c.Period < 1 || c.Period > maxPeriod {
		return fmt.Errorf("%w: genesis %d or period %d is out of range", ErrChain, c.Genesis, c.Period)
	}
	_, err := c.key()
	return err
}

// key decodes the public key. For a key of this length circl makes all the checks.
func (c Chain) key() (*bls.PublicKey[bls.KeyG2SigG1], error) {
	k := new(bls.PublicKey[bls.KeyG2SigG1])
	if err := k.UnmarshalBinary(c.PublicKey[:]); err != nil {
		return nil, fmt.Errorf("%w: public key: %w", ErrChain, err)
	}
	return k, nil
}

// Emitted returns when a round appears, in milliseconds since the Unix epoch, at most
// [math.MaxInt64]. Round 0, which does not exist, counts as 1.
func (c Chain) Emitted(round uint64) int64 {
	steps := max(round, 1) - 1
	if steps > uint64(math.MaxInt64/1000-c.Genesis)/uint64(max(c.Period, 1)) {
		return math.MaxInt64
	}
	return 1000 * (c.Genesis + int64(steps)*int64(c.Period))
}

// After returns the first round that appears strictly later than ms.
func (c Chain) After(ms int64) uint64 {
	if ms < 1000*c.Genesis {
		return 1
	}
	return uint64(ms-1000*c.Genesis)/(1000*uint64(max(c.Period, 1))) + 2
}

// Verify returns nil, [ErrSignature], or [ErrChain] if the chain's key is invalid.
func (c Chain) Verify(round uint64, signature []byte) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	message := messageOf(round)
	if round < 1 || len(signature) != SignatureSize || !bls.Verify(key, message[:], signature) {
		return fmt.Errorf("%w: round %d of chain %x", ErrSignature, round, c.Hash())
	}
	return nil
}
