package account

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

// Lifetimes of sessions and of confirmations.
const (
	SessionLife   = 7 * 24 * time.Hour // at most, however much the session is used
	ConfirmedLife = 15 * time.Minute
	sessionIdle   = 12 * time.Hour

	seenInterval = time.Minute // precision of the time of last use
)

// Organization owns rooms, members and tokens.
type Organization = pgaccount.Organization

// Membership is an organization of a person, with the person's role in it.
type Membership = pgaccount.Membership

// Session is a signed-in person, acting in one organization at a time.
type Session struct {
	ID          uuid.UUID
	Person      uuid.UUID
	Email       string
	Name        string
	HasPassword bool
	HasFactor   bool         // the person has a second factor
	Org         Organization // zero value: the person has no organization
	Role        Role         // in Org; empty if there is none
	Created     time.Time
	Seen        time.Time
	Confirmed   time.Time // last time the person proved their identity
}

// Actor returns the person as an actor. Persons without the second factor that their organization
// requires have no permissions.
func (s Session) Actor() Actor {
	actor := Actor{Kind: Person, ID: s.Person, Name: s.Email, Org: s.Org.ID, Scopes: s.Role.Scopes()}
	if s.MustEnrol() {
		actor.Scopes = 0
	}
	return actor
}

// MustEnrol reports whether the organization requires a second factor that the person lacks.
func (s Session) MustEnrol() bool { return s.Org.RequireFactor && !s.HasFactor }

// IsConfirmed reports whether the person has recently proved their identity. Sensitive operations
// require this: changing members, tokens, hosts and the second factor, and operations on the whole
// server.
func (s Session) IsConfirmed(now time.Time) bool { return now.Sub(s.Confirmed) < ConfirmedLife }

// Session returns the session of a token, or [ErrSignedOut].
func (a *Accounts) Session(ctx context.Context, token string) (Session, error) {
	if isSecret("", token) != nil {
		return Session{}, ErrSignedOut
	}
	now := a.Now()
	h, err := a.Store.Holder(ctx, hashOf(token), now.Add(-SessionLife), now.Add(-sessionIdle))
	if err != nil {
		return Session{}, mapNotFound(err, ErrSignedOut)
	}
	if now.Sub(h.Seen) >= seenInterval {
		if err := a.Store.Touch(ctx, h.ID, now); err != nil {
			return Session{}, err
		}
	}
	s := Session{
		ID: h.ID, Person: h.Person, Email: h.Email, Name: h.Name, HasPassword: h.HasPassword, HasFactor: h.HasFactor,
		Role: Role(h.Role), Created: h.Created, Seen: h.Seen, Confirmed: h.Confirmed,
	}
	if h.Role != "" {
		s.Org = Organization{ID: h.Org, Slug: h.OrgSlug, Name: h.OrgName, RequireFactor: h.OrgRequires,
			Created: h.OrgCreated}
	}
	return s, nil
}

// addSession stores a new session and returns its token.
func (a *Accounts) addSession(ctx context.Context, person, org uuid.UUID, c Client) (string, error) {
	id, err := a.newID()
	if err != nil {
		return "", err
	}
	token, hash, err := a.secret("")
	if err != nil {
		return "", err
	}
	now := a.Now()
	return token, a.Store.AddSession(ctx, pgaccount.Session{
		ID: id, Hash: hash, Person: person, Org: org, Device: device(c.UserAgent), Created: now, Seen: now,
		Confirmed: now,
	})
}

// rotate replaces a session's token after the person has proved their identity.
func (a *Accounts) rotate(ctx context.Context, id uuid.UUID) (string, error) {
	token, hash, err := a.secret("")
	if err != nil {
		return "", err
	}
	return token, mapNotFound(a.Store.Rotate(ctx, id, hash, a.Now()), ErrSignedOut)
}

// Confirm checks the password and returns the session's new token. It returns [ErrCredentials] or a
// *[RateError]. People without a password confirm through their issuer instead:
// [Accounts.StartOIDC].
func (a *Accounts) Confirm(ctx context.Context, s Session, password string) (token string, err error) {
	if err := a.checkOwnPassword(ctx, s, password); err != nil {
		return "", err
	}
	return a.rotate(ctx, s.ID)
}

// checkOwnPassword checks the password of a signed-in person.
func (a *Accounts) checkOwnPassword(ctx context.Context, s Session, password string) error {
	if _, err := a.attempt(ctx, confirmLimit, s.Person.String()); err != nil {
		return err
	}
	p, err := a.Store.Person(ctx, s.Person)
	if err != nil {
		return mapNotFound(err, ErrSignedOut)
	}
	ok, err := a.checkPassword(ctx, a.known, p.Password, password)
	if err != nil {
		return err
	}
	if !ok {
		return ErrCredentials
	}
	return a.Store.Forget(ctx, confirmLimit.key(s.Person.String()))
}

// SignOut ends the session of a token. A session that has already ended is not an error.
func (a *Accounts) SignOut(ctx context.Context, token string) error {
	s, err := a.Session(ctx, token)
	if errors.Is(err, ErrSignedOut) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := a.EndSession(ctx, s, s.ID); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// SessionInfo is an entry in a person's list of sessions.
type SessionInfo struct {
	ID      uuid.UUID
	Device  string // such as "Firefox on Linux"
	Created time.Time
	Seen    time.Time // with a precision of a minute
	Current bool      // the session of the request
}

// Sessions returns the person's sessions, most recently used first.
func (a *Accounts) Sessions(ctx context.Context, s Session) ([]SessionInfo, error) {
	now := a.Now()
	stored, err := a.Store.Sessions(ctx, s.Person, now.Add(-SessionLife), now.Add(-sessionIdle))
	if err != nil {
		return nil, err
	}
	list := make([]SessionInfo, len(stored))
	for i, v := range stored {
		list[i] = SessionInfo{v.ID, v.Device, v.Created, v.Seen, v.ID == s.ID}
	}
	return list, nil
}

// EndSession ends one of the person's sessions, or returns [ErrNotFound].
func (a *Accounts) EndSession(ctx context.Context, s Session, id uuid.UUID) error {
	return mapError(a.Store.EndSession(ctx, s.Person, id))
}

// EndOtherSessions ends all of the person's sessions except the current one.
func (a *Accounts) EndOtherSessions(ctx context.Context, s Session) error {
	return a.Store.EndOthers(ctx, s.Person, s.ID)
}

// Memberships returns the person's organizations by name.
func (a *Accounts) Memberships(ctx context.Context, s Session) ([]Membership, error) {
	return a.Store.Memberships(ctx, s.Person)
}

// Switch changes the session's organization. It returns [ErrNotFound] if the person is not a
// member.
func (a *Accounts) Switch(ctx context.Context, s Session, org uuid.UUID) error {
	return mapError(a.Store.SetSessionOrg(ctx, s.ID, org))
}

// Rename changes the person's display name.
func (a *Accounts) Rename(ctx context.Context, s Session, name string) error {
	name, ok := normalName(name)
	if !ok {
		return invalid.Field("name", wantName)
	}
	return mapError(a.Store.SetName(ctx, s.Person, name))
}

// ChangePassword sets a new password and ends all other sessions. It requires the current password
// if there is one, otherwise a recent confirmation. It returns the session's new token.
func (a *Accounts) ChangePassword(ctx context.Context, s Session, current, next string) (token string, err error) {
	if problem := passwordProblem(next, s.Email); problem != "" {
		return "", invalid.Field("password", problem)
	}
	if s.HasPassword {
		if err := a.checkOwnPassword(ctx, s, current); err != nil {
			return "", err
		}
	} else if !s.IsConfirmed(a.Now()) {
		return "", ErrForbidden
	}
	phc, err := a.hashPassword(ctx, next)
	if err != nil {
		return "", err
	}
	if err := a.Store.SetPassword(ctx, s.Person, phc, s.ID); err != nil {
		return "", mapError(err)
	}
	if err := a.record(ctx, s.Actor(), "password.change", s.Email, nil); err != nil {
		return "", err
	}
	return a.rotate(ctx, s.ID)
}
