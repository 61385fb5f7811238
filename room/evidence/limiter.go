package evidence

import (
	"context"
	"fmt"
	"time"

	"github.com/proofline/proofline/room/sequence"
)

const (
	// roundPatience is how long a submitted round waits to be verified, and roundRest the pause after one that does
	// not verify. Verifying takes 3 ms, so a flood of rounds uses a quarter of a core.
	roundPatience = time.Second
	roundRest     = 10 * time.Millisecond
)

// RoundLimiter limits the cost of verifying rounds, which anyone may send: it verifies one at a time, and pauses
// after an invalid one. It is safe for concurrent use.
type RoundLimiter struct{ turn chan struct{} }

// NewRoundLimiter returns a limiter for all rooms of a server.
func NewRoundLimiter() *RoundLimiter { return &RoundLimiter{make(chan struct{}, 1)} }

// check verifies a round when its turn comes. Errors: [ErrRound] and [sequence.ErrBusy].
func (l *RoundLimiter) check(ctx context.Context, verify func() error) error {
	ctx, cancel := context.WithTimeout(ctx, roundPatience)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return sequence.ErrBusy
	}
	if err := verify(); err != nil {
		time.AfterFunc(roundRest, func() { <-l.turn })
		return fmt.Errorf("%w: %w", ErrRound, err)
	}
	<-l.turn
	return nil
}
