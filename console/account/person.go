package account

import (
	"context"
	"time"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

// People changes the names and passwords of people.
type People struct {
	store     *pgaccount.People
	sessions  *Sessions
	passwords *hasher
	limits    *limiter
	activity  *recorder
	now       func() time.Time
}

// Rename changes the person's display name.
func (ps *People) Rename(ctx context.Context, s Session, name string) error {
	name, ok := normalName(name)
	if !ok {
		return invalid.Field("name", wantName)
	}
	return mapError(ps.store.SetName(ctx, s.Person, name))
}

// ChangePassword sets a new password and ends all other sessions. It requires the current password
// if there is one, otherwise a recent confirmation. It returns the session's new token.
func (ps *People) ChangePassword(ctx context.Context, s Session, current, next string) (token string, err error) {
	if problem := passwordProblem(next, s.Email); problem != "" {
		return "", invalid.Field("password", problem)
	}
	if s.HasPassword {
		if err := ps.checkOwnPassword(ctx, s, current); err != nil {
			return "", err
		}
	} else if !s.IsConfirmed(ps.now()) {
		return "", ErrForbidden
	}
	phc, err := ps.passwords.hash(ctx, next)
	if err != nil {
		return "", err
	}
	if err := ps.store.SetPassword(ctx, s.Person, phc, s.ID); err != nil {
		return "", mapError(err)
	}
	if err := ps.activity.record(ctx, s.Actor(), "password.change", s.Email, nil); err != nil {
		return "", err
	}
	return ps.sessions.rotate(ctx, s.ID)
}

// Confirm checks the password and returns the session's new token. It returns [ErrCredentials] or a
// *[RateError]. People without a password confirm through their issuer instead:
// [OIDC.Start].
func (ps *People) Confirm(ctx context.Context, s Session, password string) (token string, err error) {
	if err := ps.checkOwnPassword(ctx, s, password); err != nil {
		return "", err
	}
	return ps.sessions.rotate(ctx, s.ID)
}

// checkOwnPassword checks the password of a signed-in person.
func (ps *People) checkOwnPassword(ctx context.Context, s Session, password string) error {
	if _, err := ps.limits.attempt(ctx, confirmLimit, s.Person.String()); err != nil {
		return err
	}
	p, err := ps.store.Get(ctx, s.Person)
	if err != nil {
		return mapNotFound(err, ErrSignedOut)
	}
	ok, err := ps.passwords.check(ctx, p.Password, password)
	if err != nil {
		return err
	}
	if !ok {
		return ErrCredentials
	}
	return ps.limits.forget(ctx, confirmLimit, s.Person.String())
}
