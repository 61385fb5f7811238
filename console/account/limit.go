package account

import (
	"context"
	"crypto/sha256"
	"math"
	"net/netip"
	"time"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// limit says how often an attempt may fail. Each raises a level by one, which
// falls by one in every Every. From Free on the next attempt waits, twice as
// long each time, and from Burst on for Every.
type limit struct {
	name  string
	free  int
	burst int
	every time.Duration
}

// The limits. People behind one address share theirs, so it is wider.
//
// Guesses must not keep people out. So one network's guesses at an account count
// against both together, which nobody else notices; a browser that has signed in
// before has a count of its own; and the account's own count, which only guesses
// from many networks reach, leaves the way by [Accounts.SignInLink].
var (
	accountLimit = limit{"account", 50, 60, time.Hour / 10}            // from all unknown browsers
	pairLimit    = limit{"account and network", 5, 10, time.Hour / 10} // from those of one network
	knownLimit   = limit{"known", 5, 10, time.Hour / 10}               // from one known browser
	networkLimit = limit{"network", 30, 40, time.Minute}
	// Links that make a browser known, to one address and for one network.
	linkLimit        = limit{"sign-in link", 3, 5, time.Hour / 4}
	linkNetworkLimit = limit{"sign-in link network", 10, 15, time.Hour / 4}
	usedLink         = limit{name: "used sign-in link"}
	codeLimit        = limit{"code", 5, 10, time.Hour / 10}
	confirmLimit     = limit{"confirm", 5, 10, time.Hour / 10}
	// mailLimit counts the invitations that an organization mails, whoever they go
	// to: nobody makes this server fill strangers' mailboxes.
	mailLimit = limit{"mail", 20, 30, 2 * time.Minute}
)

// key is under what the attempts of somebody are counted.
func (l limit) key(who string) [32]byte {
	return sha256.Sum256([]byte("proofline/attempts/v1\x00" + l.name + "\x00" + who))
}

// wait is how long the next attempt waits at a level.
func (l limit) wait(level float64) time.Duration {
	switch n := int(math.Ceil(level)); {
	case n < l.free:
		return 0
	case n < l.burst:
		return min(time.Second<<(n-l.free), l.every)
	}
	return l.every
}

// next counts an attempt, or refuses it as too early.
func (l limit) next(before pgaccount.Attempt, now time.Time) (pgaccount.Attempt, error) {
	if wait := before.Next.Sub(now); wait > 0 {
		return before, &RateError{min(wait, l.every)}
	}
	passed := max(0, now.Sub(before.At))
	level := max(0, before.Level-float64(passed)/float64(l.every)) + 1
	return pgaccount.Attempt{Level: level, At: now, Next: now.Add(l.wait(level))}, nil
}

// attempt counts an attempt before it is made, so that many at once are no way
// around the limit, and returns its level. One that succeeds is forgotten.
func (a *Accounts) attempt(ctx context.Context, l limit, who string) (level float64, err error) {
	now := a.Now()
	err = a.Store.Attempt(ctx, l.key(who), now, func(before pgaccount.Attempt) (pgaccount.Attempt, error) {
		after, err := l.next(before, now)
		level = after.Level
		return after, err
	})
	return level, err
}

// refund takes an attempt back that succeeded, without forgetting others.
func (a *Accounts) refund(ctx context.Context, l limit, who string) error {
	return a.Store.Attempt(ctx, l.key(who), a.Now(), func(before pgaccount.Attempt) (pgaccount.Attempt, error) {
		before.Level = max(0, before.Level-1)
		before.Next = before.At.Add(l.wait(before.Level))
		return before, nil
	})
}

// network is whom attempts from an address are counted against: the address,
// for IPv6 the /48 that one customer may have. Of a /64 there would be 65,536 in it,
// each with guesses and work of its own.
func network(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		return netip.PrefixFrom(addr, 48).Masked().String()
	}
	return addr.String()
}
