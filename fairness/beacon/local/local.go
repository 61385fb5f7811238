// Package local runs a self-hosted drand chain: one key instead of a group's, and the part of
// drand's HTTP API that clients need. It is for rehearsals, tests and demos. The key holder knows
// every round in advance, so such a beacon proves nothing to third parties.
//
// It stores nothing: a round's signature follows from the key and the chain's parameters. So after
// downtime a beacon has all its rounds, and several servers with the same key act as one beacon.
package local

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cloudflare/circl/sign/bls"

	"github.com/proofline/proofline/fairness/beacon"
)

var (
	// ErrKey is returned for a text that is not a key.
	ErrKey = errors.New("not a beacon key")
	// ErrFuture is returned by Sign for a round whose time has not come.
	ErrFuture = errors.New("the round is in the future")
	// ErrRound is returned for round 0, which does not exist.
	ErrRound = errors.New("rounds count from 1")
)

// Key is a beacon's secret, 32 random bytes. Every chain derives its own signing key from it: a
// signature covers the round number alone, so two chains with the same signing key and different
// clocks would reveal each other's future rounds.
type Key struct{ seed [32]byte }

// NewKey returns a random key.
func NewKey() *Key {
	k := new(Key)
	_, _ = rand.Read(k.seed[:]) // never fails
	return k
}

// ParseKey reads the output of [Key.Encode], 64 lower-case hex digits, or returns [ErrKey].
func ParseKey(text string) (*Key, error) {
	k := new(Key)
	b, err := hex.DecodeString(text)
	if copy(k.seed[:], b); err != nil || len(b) != len(k.seed) || k.Encode() != text {
		return nil, fmt.Errorf("%w: want %d lower-case hex digits", ErrKey, 2*len(k.seed))
	}
	return k, nil
}

// Encode returns the key as text, which is secret.
func (k *Key) Encode() string { return hex.EncodeToString(k.seed[:]) }

// Format keeps the key out of logs for every formatting verb.
func (k Key) Format(w fmt.State, _ rune) { _, _ = fmt.Fprint(w, "local.Key") }

// Config selects the chain that a key runs. Chains that differ in any field have different hashes
// and signatures.
type Config struct {
	ID      string           // drand's beaconID, such as "rehearsal"
	Genesis int64            // when round 1 appears, in seconds since the Unix epoch
	Period  uint32           // from one round to the next, in seconds
	Now     func() time.Time // the clock; nil means [time.Now]
}

// Beacon signs the rounds of a chain. It is safe for concurrent use.
type Beacon struct {
	chain beacon.Chain
	key   *bls.PrivateKey[bls.KeyG2SigG1] // read-only
	now   func() time.Time
}

// New returns the beacon of a key, or [beacon.ErrChain] if the configuration is invalid.
func New(k *Key, cfg Config) (*Beacon, error) {
	about := append([]byte("proofline/beacon/local/v1\x00"), cfg.ID...)
	about = binary.BigEndian.AppendUint64(append(about, 0), uint64(cfg.Genesis))
	about = binary.BigEndian.AppendUint32(about, cfg.Period)
	key, err := bls.KeyGen[bls.KeyG2SigG1](k.seed[:], nil, about)
	if err != nil {
		return nil, fmt.Errorf("derive signing key: %w", err)
	}
	public, err := key.PublicKey().MarshalBinary() // caches the public key before the private one is shared
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	b := &Beacon{key: key, now: cfg.Now, chain: beacon.Chain{
		ID: cfg.ID, PublicKey: [96]byte(public), Genesis: cfg.Genesis, Period: cfg.Period,
		GroupHash: sha256.Sum256(append([]byte("proofline/beacon/local/group/v1\x00"), public...)),
	}}
	if b.now == nil {
		b.now = time.Now
	}
	if err := b.chain.Valid(); err != nil {
		return nil, err
	}
	return b, nil
}

// Chain returns the parameters that others need to verify the beacon's rounds.
func (b *Beacon) Chain() beacon.Chain { return b.chain }

// Latest returns the latest round that has appeared; 0 before the first.
func (b *Beacon) Latest() uint64 { return b.chain.After(b.now().UnixMilli()) - 1 }

// Sign returns the signature of a round, always the same. The error is
// [ErrFuture] before the round's time, or [ErrRound].
func (b *Beacon) Sign(round uint64) ([]byte, error) {
	switch {
	case round < 1:
		return nil, ErrRound
	case round > b.Latest():
		return nil, fmt.Errorf("%w: round %d, the latest is %d", ErrFuture, round, b.Latest())
	}
	message := sha256.Sum256(binary.BigEndian.AppendUint64(nil, round))
	return bls.Sign(b.key, message[:]), nil
}
