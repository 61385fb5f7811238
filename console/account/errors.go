package account

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/proofline/proofline/console/account/pgaccount"
)

var (
	// ErrNotFound is returned for an object that the actor's organization does not have.
	ErrNotFound = errors.New("this organization has no object with that name or id")
	// ErrCredentials is returned for a wrong e-mail address, password or code, without saying which
	// is wrong.
	ErrCredentials = errors.New("wrong e-mail address, password or code")
	// ErrSignedOut is returned for an unknown or expired session, and for a sign-in that took too
	// long.
	ErrSignedOut = errors.New("not signed in")
	// ErrToken is returned for an unknown, revoked or expired API token.
	ErrToken = errors.New("invalid, revoked or expired token")
	// ErrLink is returned for an unknown, used or expired one-time link.
	ErrLink = errors.New("this link was used before, has expired or is incomplete: ask for a new one")
	// ErrOtherPerson is returned when a signed-in person opens an invitation for another address.
	ErrOtherPerson = errors.New("the invitation is for another e-mail address")
	// ErrLastOwner is returned when an organization would lose its last owner.
	ErrLastOwner = errors.New("an organization needs at least one owner: make another member an owner first")
	// ErrExists is returned when a name, an address or a host is already taken.
	ErrExists = errors.New("this name is already taken")
	// ErrInUse is returned when removing a host under which a room is published.
	ErrInUse = errors.New("a room that has not ended is published under this host")
	// ErrUnverified is returned when the DNS does not contain a host's token.
	ErrUnverified = errors.New("the TXT record is not in the DNS yet")
	// ErrNoOIDC is returned when sign-in by OpenID Connect is not configured.
	ErrNoOIDC = errors.New("sign-in by OpenID Connect is not configured")
	// ErrOIDC is returned when an issuer does not answer, or does not identify the person
	// sufficiently.
	ErrOIDC = errors.New("the identity provider did not confirm who you are")
	// ErrNoAccount is returned when the issuer identifies a person who has no account here.
	ErrNoAccount = errors.New("no account has this e-mail address: ask an owner for an invitation")
)

// LimitError is returned when an organization has reached the limit for a kind of object.
type LimitError struct {
	Max     int
	Objects string // plural, such as "custom hosts"
	Advice  string // empty: "remove one first"
}

// Error names the limit and says what to do.
func (e *LimitError) Error() string {
	return fmt.Sprintf("an organization can have at most %d %s: %s", e.Max, e.Objects,
		cmp.Or(e.Advice, "remove one first"))
}

// IsLimit reports whether an error is or wraps a [*LimitError].
func IsLimit(err error) bool {
	_, ok := errors.AsType[*LimitError](err)
	return ok
}

// RateError is returned for an attempt made too soon after others.
type RateError struct{ Wait time.Duration }

// Error returns how long to wait, rounded up.
func (e *RateError) Error() string {
	n, unit := (e.Wait+time.Second-1)/time.Second, "second"
	if e.Wait > time.Minute {
		n, unit = (e.Wait+time.Minute-1)/time.Minute, "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("too many attempts: wait %d %s", n, unit)
}

// mapError maps pgaccount's sentinel errors to those of this package.
func mapError(err error) error {
	for from, to := range map[error]error{
		pgaccount.ErrNotFound:  ErrNotFound,
		pgaccount.ErrExists:    ErrExists,
		pgaccount.ErrLastOwner: ErrLastOwner,
		pgaccount.ErrInUse:     ErrInUse,
	} {
		if errors.Is(err, from) {
			return to
		}
	}
	return err
}

// mapNotFound maps pgaccount.ErrNotFound to absent, and other errors as mapError does.
func mapNotFound(err, absent error) error {
	if errors.Is(err, pgaccount.ErrNotFound) {
		return absent
	}
	return mapError(err)
}
