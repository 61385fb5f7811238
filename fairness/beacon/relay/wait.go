package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// How long to pause before an attempt: from the first to the longest, twice as
// long each time.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 15 * time.Second
)

// longestSleep bounds one sleep until a round's moment, as the clock may be set
// and the machine suspended meanwhile.
const longestSleep = time.Minute

// Wait returns the signature of a round, however late it is: it waits for the
// round's moment, and then asks again and again until ctx ends. Its error then
// says what was wrong last. Other errors are those that waiting cannot mend:
// [ErrRound], [ErrNoRelays] and [beacon.ErrChain].
func (c *Client) Wait(ctx context.Context, n uint64) ([]byte, error) {
	if err := c.check(n); err != nil {
		return nil, fmt.Errorf("wait for round %d: %w", n, err)
	}
	moment := time.UnixMilli(c.Chain.Emitted(n))
	if !sleepUntil(ctx, moment) {
		return nil, fmt.Errorf("wait for round %d, which appears at %s: %w", n, moment.UTC().Format(time.RFC3339), ctx.Err())
	}
	var last error // but for those of a ctx that ended
	pause := firstPause
	for attempt := 1; ; attempt++ {
		signature, err := c.Round(ctx, n)
		if err == nil {
			return signature, nil
		}
		if ctx.Err() == nil {
			last = err
		}
		if attempt >= 4 && attempt&(attempt-1) == 0 { // ever more seldom
			c.log().Warn("a beacon round is late", "round", n, "since", moment.UTC(), "attempts", attempt, "error", err)
		}
		if !sleep(ctx, about(pause)) {
			return nil, fmt.Errorf("wait for round %d: %w", n, failures{ctx.Err(), last})
		}
		pause = min(2*pause, longestPause)
	}
}

// sleepUntil sleeps until a round may be expected at the relays: a little after
// its moment, as they need time too, and not all the world at once. It tells
// whether ctx did not end before.
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

// about is a time, 30 % more or less.
func about(d time.Duration) time.Duration {
	return time.Duration((0.7 + 0.6*rand.Float64()) * float64(d))
}

// sleep tells whether it slept all the time, and ctx did not end.
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
