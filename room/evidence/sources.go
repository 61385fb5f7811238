package evidence

import (
	"context"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness/beacon"
)

// Rounds fetches the rounds of a drand chain.
type Rounds interface {
	// Wait returns the verified signature of a round, and waits for a round that is late.
	Wait(ctx context.Context, round uint64) ([]byte, error)
}

// Chain is a beacon that rooms may use, with access to its rounds.
type Chain struct {
	beacon.Chain
	Rounds Rounds
	Reach  Reach // nil: always reachable
}

// Reach reports whether a chain's relays are serving it.
type Reach interface {
	// Check queries the relays, unless they were queried a moment ago.
	Check(ctx context.Context) error
	// Err returns the result of the latest query; nil: the relays serve the chain.
	Err() error
}

// Name returns the chain's name in configurations, such as drand:quicknet.
func (c Chain) Name() string { return ChainName(c.Chain) }

// Err returns why the relays of the chain are unreachable; nil if they can be reached.
func (c Chain) Err() error {
	if c.Reach == nil {
		return nil
	}
	return c.Reach.Err()
}

// Cosigner submits checkpoints to one witness.
type Cosigner interface {
	// AddCheckpoint submits a signed checkpoint that continues the one of the old size, and returns the
	// witness's verified cosignature.
	AddCheckpoint(ctx context.Context, old uint64, proof []audit.Hash, signed []byte) (audit.Cosignature, error)
}

// Witness is a third party that cosigns checkpoints, with access to it.
type Witness struct {
	Key      audit.Witness
	Cosigner Cosigner
}

// ChainPrefix begins the name of a chain in configurations.
const ChainPrefix = "drand:"

// ChainName returns the name of a chain in configurations.
func ChainName(c beacon.Chain) string { return ChainPrefix + c.ID }
