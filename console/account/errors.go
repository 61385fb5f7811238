package account

import (
	"errors"
	"fmt"
	"time"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

var (
	// ErrNotFound is returned when there is no such thing in the actor's
	// organization.
	ErrNotFound = errors.New("no such thing in this organization")
	// ErrCredentials is returned when e-mail address, password or code are wrong.
	// Which of them is not said.
	ErrCredentials = errors.New("the e-mail address, the password or the code is wrong")
	// ErrSignedOut is returned for a session that is over, or never was, and for
	// a sign-in that took too long.
	ErrSignedOut = errors.New("not signed in")
	// ErrToken is returned for an API token that is wrong, revoked or expired.
	ErrToken = errors.New("not a valid token")
	// ErrLink is returned for a one-time link that is wrong, used or expired.
	ErrLink = errors.New("this link was used before, has expired or is incomplete: ask for a new one")
	// ErrOtherPerson is returned when an invitation is accepted by somebody else
	// than the person it was made for.
	ErrOtherPerson = errors.New("the invitation is for another e-mail address")
	// ErrLastOwner is returned when an organization would lose its last owner.
	ErrLastOwner = errors.New("an organization keeps at least one owner: make somebody else an owner first")
	// ErrExists is returned when a name, an address or a host is taken.
	ErrExists = errors.New("this name is taken already")
	// ErrInUse is returned when a host is removed that a room is published under.
	ErrInUse = errors.New("a room that has not ended is published under this host")
	// ErrTooMany is returned when an organization has as many of something as it may.
	ErrTooMany = errors.New("there are as many as there may be: remove one first")
	// ErrUnverified is returned when the DNS does not show a host's token.
	ErrUnverified = errors.New("the DNS has no such TXT record yet")
	// ErrNoOIDC is returned when sign-in by OpenID Connect is not configured.
	ErrNoOIDC = errors.New("sign-in by OpenID Connect is not configured")
	// ErrOIDC is returned when an issuer does not answer, or does not say who
	// somebody is in the way that is needed.
	ErrOIDC = errors.New("the identity provider did not confirm who you are")
	// ErrNoAccount is returned when the issuer vouches for somebody who has no
	// account here.
	ErrNoAccount = errors.New("nobody with this e-mail address has an account here: ask an owner for an invitation")
)

// InvalidError lists everything wrong with an input.
type InvalidError = room.InvalidError

// RateError is returned for an attempt that comes too soon after others.
type RateError struct{ Wait time.Duration }

// Error says how long to wait, rounded up.
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

// complaints gathers what is wrong with an input.
type complaints []fairness.Problem

func (c *complaints) add(field, detail string) {
	*c = append(*c, fairness.Problem{Field: field, Detail: detail})
}

// err returns everything that was gathered as one error, nil for nothing.
func (c complaints) err() error {
	if len(c) == 0 {
		return nil
	}
	return &InvalidError{Problems: c}
}

func invalid(field, detail string) error {
	return &InvalidError{Problems: []fairness.Problem{{Field: field, Detail: detail}}}
}

// known gives errors of the database the names that callers know.
func known(err error) error {
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

// orElse gives an absence another name.
func orElse(err, absent error) error {
	if errors.Is(err, pgaccount.ErrNotFound) {
		return absent
	}
	return known(err)
}
