package account

import (
	"context"
	"crypto/sha256"
	"math"
	"net/netip"
	"time"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// limit describes how often an attempt may fail. Each attempt raises a level by one, and the level
// falls by one per interval. From the level free on, the next attempt must wait, twice as long each
// time; from burst on, it waits one interval.
type limit struct {
	name     string
	free     int
	burst    int
	interval time.Duration
}

// The limits. The network limit is the widest, because many people may share an address.
//
// Guesses must not lock people out. Guesses from one network therefore count against the pair of
// account and network, which affects no other network; a browser that has signed in before has its
// own count; and when guesses from many networks exhaust the account's count, [SignInLinks.Make]
// still works.
var (
	accountLimit = limit{"account", 50, 60, time.Hour / 10}            // all unknown browsers together
	pairLimit    = limit{"account and network", 5, 10, time.Hour / 10} // unknown browsers of one network
	knownLimit   = limit{"known", 5, 10, time.Hour / 10}               // one known browser
	networkLimit = limit{"network", 30, 40, time.Minute}
	// Sign-in links, per address and per network.
	linkLimit        = limit{"sign-in link", 3, 5, time.Hour / 4}
	linkNetworkLimit = limit{"sign-in link network", 10, 15, time.Hour / 4}
	usedLink         = limit{name: "used sign-in link"}
	codeLimit        = limit{"code", 5, 10, time.Hour / 10}
	confirmLimit     = limit{"confirm", 5, 10, time.Hour / 10}
	// mailLimit counts the invitations that an organization mails to any address, so that it cannot
	// use this server to send spam.
	mailLimit = limit{"mail", 20, 30, 2 * time.Minute}
)

// key returns the key under which attempts of a browser, account or network are stored.
func (l limit) key(subject string) [32]byte {
	return sha256.Sum256([]byte("proofline/attempts/v1\x00" + l.name + "\x00" + subject))
}

// wait returns how long the next attempt must wait at a level.
func (l limit) wait(level float64) time.Duration {
	switch n := int(math.Ceil(level)); {
	case n < l.free:
		return 0
	case n < l.burst:
		return min(time.Second<<(n-l.free), l.interval)
	}
	return l.interval
}

// next counts an attempt, or returns a *[RateError] if it is too early.
func (l limit) next(before pgaccount.Attempt, now time.Time) (pgaccount.Attempt, error) {
	if wait := before.Next.Sub(now); wait > 0 {
		return before, &RateError{min(wait, l.interval)}
	}
	passed := max(0, now.Sub(before.At))
	level := max(0, before.Level-float64(passed)/float64(l.interval)) + 1
	return pgaccount.Attempt{Level: level, At: now, Next: now.Add(l.wait(level))}, nil
}

// limiter counts attempts against limits.
type limiter struct {
	store *pgaccount.Attempts
	now   func() time.Time
}

// attempt counts an attempt before it is made, so that concurrent ones cannot exceed the limit, and
// returns the new level. Callers reset or refund the count when the attempt succeeds.
func (ls *limiter) attempt(ctx context.Context, l limit, subject string) (level float64, err error) {
	now := ls.now()
	err = ls.store.Attempt(ctx, l.key(subject), now, func(before pgaccount.Attempt) (pgaccount.Attempt, error) {
		after, err := l.next(before, now)
		level = after.Level
		return after, err
	})
	return level, err
}

// refund removes a successful attempt from the count.
func (ls *limiter) refund(ctx context.Context, l limit, subject string) error {
	return ls.store.Attempt(ctx, l.key(subject), ls.now(), func(before pgaccount.Attempt) (pgaccount.Attempt, error) {
		before.Level = max(0, before.Level-1)
		before.Next = before.At.Add(l.wait(before.Level))
		return before, nil
	})
}

// forget resets a count.
func (ls *limiter) forget(ctx context.Context, l limit, subject string) error {
	return ls.store.Forget(ctx, l.key(subject))
}

// useLink marks a sign-in link as used, or returns [ErrLink] if it already was.
func (ls *limiter) useLink(ctx context.Context, id string) error {
	now := ls.now()
	return ls.store.Attempt(ctx, usedLink.key(id), now, func(before pgaccount.Attempt) (pgaccount.Attempt, error) {
		if before.Level > 0 {
			return before, ErrLink
		}
		return pgaccount.Attempt{Level: 1, At: now, Next: now}, nil
	})
}

// network returns the key for limits per network: the address, or for IPv6 its /48, which may
// belong to one customer. Limits per /64 would allow guesses from each of its 65,536 subnets.
func network(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		return netip.PrefixFrom(addr, 48).Masked().String()
	}
	return addr.String()
}
