package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Pauses between attempts: each is twice as long as the one before.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 15 * time.Second
)

// longestSleep is the longest single sleep until a round's time, because the clock may be set or
// the machine suspended meanwhile.
const longestSleep = time.Minute

// Wait returns the signature of a round, however late it is. It waits for the round's time and then
// retries until ctx ends; the error then includes the last failure. It returns errors that waiting
// cannot fix at once: [ErrRound], [ErrNoRelays] and [beacon.ErrChain].
func (c *Client) Wait(ctx context.Context, n uint64) ([]byte, error) {
	if err := c.check(n); err != nil {
		return nil, fmt.Errorf("wait for round %d: %w", n, err)
	}
	moment := time.UnixMilli(c.Chain.Emitted(n))
	if !sleepUntil(ctx, moment) {
		return nil, fmt.Errorf("wait for round %d, which appears at %s: %w", n,
			moment.UTC().Format(time.RFC3339), ctx.Err())
	}
	var last error // ignores failures after ctx ended
	pause := firstPause
	for attempt := 1; ; attempt++ {
		signature, err := c.Round(ctx, n)
		if err == nil {
			return signature, nil
		}
		if ctx.Err() == nil {
			last = err
		}
		if attempt >= 4 && attempt&(attempt-1) == 0 { // logs attempts 4, 8, 16, ...
			c.log().Warn("beacon round is late", "round", n, "since", moment.UTC(), "attempts", attempt, "error", err)
		}
		if !sleep(ctx, about(pause)) {
			return nil, fmt.Errorf("wait for round %d: %w", n, failures{ctx.Err(), last})
		}
		pause = min(2*pause, longestPause)
	}
}

// sleepUntil sleeps until shortly after a round's time, because relays need a moment too; the
// jitter spreads the clients. It reports false if ctx ended first.
func sleepUntil(ctx context.Context, moment time.Time) bool {
	if time.Until(moment) <= 0 {
		return true
	}
	for moment = moment.Add(about(firstPause)); time.Until(moment) > 0; {
		if !sleep(ctx, min(time.Until(moment), longestSleep)) {
			return false
		}
	}
	return true
}

// about returns d with a jitter of 30 %.
func about(d time.Duration) time.Duration {
	return time.Duration((0.7 + 0.6*rand.Float64()) * float64(d))
}

// sleep sleeps for d; it reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
