package account

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// How long sessions last, and a confirmation in one.
const (
	SessionLife   = 7 * 24 * time.Hour // in any case
	ConfirmedLife = 15 * time.Minute
	sessionIdle   = 12 * time.Hour

	seenEvery = time.Minute // how exactly the latest use is noted
)

// Organization is whom rooms belong to.
type Organization = pgaccount.Organization

// Membership is an organization that a person belongs to, and the role there.
type Membership = pgaccount.Membership

// Session is a person who is signed in, in one organization at a time.
type Session struct {
	ID          uuid.UUID
	Person      uuid.UUID
	Email       string
	Name        string
	HasPassword bool
	HasFactor   bool         // a second factor
	Org         Organization // the zero value for somebody who belongs to none
	Role        Role         // there; empty for none
	Created     time.Time
	Seen        time.Time
	Confirmed   time.Time // newest proof of who it is
}

// Actor returns who the person is for operations. Somebody who lacks the second
// factor that the organization requires may do nothing.
func (s Session) Actor() Actor {
	actor := Actor{Kind: Person, ID: s.Person, Name: s.Email, Org: s.Org.ID, Scopes: s.Role.Scopes()}
	if s.MustEnrol() {
		actor.Scopes = 0
	}
	return actor
}

// MustEnrol tells whether the organization requires a second factor that the
// person has not.
func (s Session) MustEnrol() bool { return s.Org.RequireFactor && !s.HasFactor }

// IsConfirmed tells whether the person has proven who it is a short time ago, as
// sensitive acts want it: changes of members, tokens and hosts, of the second
// factor, and whatever concerns the whole server.
func (s Session) IsConfirmed(now time.Time) bool { return now.Sub(s.Confirmed) < ConfirmedLife }

// Session returns the session of a token; [ErrSignedOut].
func (a *Accounts) Session(ctx context.Context, token string) (Session, error) {
	if isSecret("", token) != nil {
		return Session{}, ErrSignedOut
	}
	now := a.Now()
	h, err := a.Store.Holder(ctx, hashOf(token), now.Add(-SessionLife), now.Add(-sessionIdle))
	if err != nil {
		return Session{}, orElse(err, ErrSignedOut)
	}
	if now.Sub(h.Seen) >= seenEvery {
		if err := a.Store.Touch(ctx, h.ID, now); err != nil {
			return Session{}, err
		}
	}
	s := Session{
		ID: h.ID, Person: h.Person, Email: h.Email, Name: h.Name, HasPassword: h.HasPassword, HasFactor: h.HasFactor,
		Role: Role(h.Role), Created: h.Created, Seen: h.Seen, Confirmed: h.Confirmed,
	}
	if h.Role != "" {
		s.Org = Organization{ID: h.Org, Slug: h.OrgSlug, Name: h.OrgName, RequireFactor: h.OrgRequires, Created: h.OrgCreated}
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
		ID: id, Hash: hash, Person: person, Org: org, Device: device(c.UserAgent), Created: now, Seen: now, Confirmed: now,
	})
}

// rotate gives a session another token, after a proof of who it is.
func (a *Accounts) rotate(ctx context.Context, id uuid.UUID) (string, error) {
	token, hash, err := a.secret("")
	if err != nil {
		return "", err
	}
	return token, orElse(a.Store.Rotate(ctx, id, hash, a.Now()), ErrSignedOut)
}

// Confirm proves with the password who it is, and returns the token that the
// session has from now on: [ErrCredentials], *[RateError]. People without a
// password go to their issuer instead: [Accounts.StartOIDC].
func (a *Accounts) Confirm(ctx context.Context, s Session, password string) (token string, err error) {
	if err := a.prove(ctx, s, password); err != nil {
		return "", err
	}
	return a.rotate(ctx, s.ID)
}

// prove checks the password of somebody who is signed in.
func (a *Accounts) prove(ctx context.Context, s Session, password string) error {
	if _, err := a.attempt(ctx, confirmLimit, s.Person.String()); err != nil {
		return err
	}
	p, err := a.Store.Person(ctx, s.Person)
	if err != nil {
		return orElse(err, ErrSignedOut)
	}
	ok, err := a.checkPassword(ctx, p.Password, password)
	if err != nil {
		return err
	}
	if !ok {
		return ErrCredentials
	}
	return a.Store.Forget(ctx, confirmLimit.key(s.Person.String()))
}

// SignOut ends the session of a token. One that is over stays over.
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

// SessionInfo is a session in the list of a person.
type SessionInfo struct {
	ID      uuid.UUID
	Device  string // such as "Firefox on Linux"
	Created time.Time
	Seen    time.Time // to the minute
	Current bool      // the one that asks
}

// Sessions returns the sessions of the person, latest use first.
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

// EndSession ends one session of the person; [ErrNotFound].
func (a *Accounts) EndSession(ctx context.Context, s Session, id uuid.UUID) error {
	return known(a.Store.EndSession(ctx, s.Person, id))
}

// EndOtherSessions ends all sessions of the person but the one that asks.
func (a *Accounts) EndOtherSessions(ctx context.Context, s Session) error {
	return a.Store.EndOthers(ctx, s.Person, s.ID)
}

// Memberships returns the organizations of the person by name.
func (a *Accounts) Memberships(ctx context.Context, s Session) ([]Membership, error) {
	return a.Store.Memberships(ctx, s.Person)
}

// Switch goes to another organization of the person; [ErrNotFound].
func (a *Accounts) Switch(ctx context.Context, s Session, org uuid.UUID) error {
	return known(a.Store.SetSessionOrg(ctx, s.ID, org))
}

// Rename changes the person's display name.
func (a *Accounts) Rename(ctx context.Context, s Session, name string) error {
	name, ok := normalName(name)
	if !ok {
		return invalid("name", wantName)
	}
	return known(a.Store.SetName(ctx, s.Person, name))
}

// ChangePassword gives the person another password, for the one that was
// unless there was none, and ends all other sessions. It returns the token that
// the session has from now on.
func (a *Accounts) ChangePassword(ctx context.Context, s Session, current, next string) (token string, err error) {
	if problem := passwordProblem(next, s.Email); problem != "" {
		return "", invalid("password", problem)
	}
	if s.HasPassword {
		if err := a.prove(ctx, s, current); err != nil {
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
		return "", known(err)
	}
	if err := a.record(ctx, s.Actor(), "password.change", s.Email, nil); err != nil {
		return "", err
	}
	return a.rotate(ctx, s.ID)
}
