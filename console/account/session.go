package account

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// Lifetimes of sessions and of confirmations.
const (
	SessionLife   = pgaccount.SessionLife // maximum, however much the session is used
	ConfirmedLife = 15 * time.Minute
	sessionIdle   = pgaccount.SessionIdle

	seenInterval = time.Minute // precision of the time of last use
)

// Organization owns rooms, members and tokens.
type Organization = pgaccount.Organization

// Session is a signed-in person, acting in one organization at a time.
type Session struct {
	ID          uuid.UUID
	Person      uuid.UUID
	Email       string
	Name        string
	HasPassword bool
	HasFactor   bool         // the person has a second factor
	Org         Organization // zero value: the person has no organization
	Role        Role         // role in Org; empty if there is none
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

// Sessions manages the sessions of signed-in people.
type Sessions struct {
	store  *pgaccount.Sessions
	random random
	now    func() time.Time
}

// Get returns the session of a token, or [ErrSignedOut].
func (ss *Sessions) Get(ctx context.Context, token string) (Session, error) {
	if isSecret("", token) != nil {
		return Session{}, ErrSignedOut
	}
	now := ss.now()
	h, err := ss.store.Holder(ctx, hashOf(token), now.Add(-SessionLife), now.Add(-sessionIdle))
	if err != nil {
		return Session{}, mapNotFound(err, ErrSignedOut)
	}
	if now.Sub(h.Seen) >= seenInterval {
		if err := ss.store.Touch(ctx, h.ID, now); err != nil {
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

// add stores a new session and returns its token.
func (ss *Sessions) add(ctx context.Context, person, org uuid.UUID, c Client) (string, error) {
	id, err := ss.random.id()
	if err != nil {
		return "", err
	}
	token, hash, err := ss.random.secret("")
	if err != nil {
		return "", err
	}
	now := ss.now()
	return token, ss.store.Add(ctx, pgaccount.Session{
		ID: id, Hash: hash, Person: person, Org: org, Device: device(c.UserAgent), Created: now, Seen: now,
		Confirmed: now,
	})
}

// rotate replaces a session's token after the person has proved their identity.
func (ss *Sessions) rotate(ctx context.Context, id uuid.UUID) (string, error) {
	token, hash, err := ss.random.secret("")
	if err != nil {
		return "", err
	}
	return token, mapNotFound(ss.store.Rotate(ctx, id, hash, ss.now()), ErrSignedOut)
}

// SignOut ends the session of a token. A session that has already ended is not an error.
func (ss *Sessions) SignOut(ctx context.Context, token string) error {
	s, err := ss.Get(ctx, token)
	if errors.Is(err, ErrSignedOut) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := ss.End(ctx, s, s.ID); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// SessionInfo is an entry in a person's list of sessions.
type SessionInfo struct {
	ID      uuid.UUID
	Device  string // device such as "Firefox on Linux"
	Created time.Time
	Seen    time.Time // time of last use, with a precision of a minute
	Current bool      // the session of the request
}

// List returns the person's sessions, most recently used first.
func (ss *Sessions) List(ctx context.Context, s Session) ([]SessionInfo, error) {
	now := ss.now()
	stored, err := ss.store.List(ctx, s.Person, now.Add(-SessionLife), now.Add(-sessionIdle))
	if err != nil {
		return nil, err
	}
	list := make([]SessionInfo, len(stored))
	for i, v := range stored {
		list[i] = SessionInfo{v.ID, v.Device, v.Created, v.Seen, v.ID == s.ID}
	}
	return list, nil
}

// End ends one of the person's sessions, or returns [ErrNotFound].
func (ss *Sessions) End(ctx context.Context, s Session, id uuid.UUID) error {
	return mapError(ss.store.End(ctx, s.Person, id))
}

// EndOthers ends all of the person's sessions except the current one.
func (ss *Sessions) EndOthers(ctx context.Context, s Session) error {
	return ss.store.EndOthers(ctx, s.Person, s.ID)
}

// Switch changes the session's organization. It returns [ErrNotFound] if the person is not a
// member.
func (ss *Sessions) Switch(ctx context.Context, s Session, org uuid.UUID) error {
	return mapError(ss.store.SetOrg(ctx, s.ID, org))
}
