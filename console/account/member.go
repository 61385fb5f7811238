package account

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

// Member is a person in an organization.
type Member = pgaccount.Member

// Members manages who belongs to which organization.
type Members struct {
	store    *pgaccount.Members
	activity *recorder
	now      func() time.Time
}

// List returns the members of the actor's organization, owners first.
func (ms *Members) List(ctx context.Context, by Actor) ([]Member, error) {
	if !by.May(Read) {
		return nil, ErrForbidden
	}
	return ms.store.List(ctx, by.Org)
}

// SetRole changes the role of a member of the actor's organization. It returns [ErrNotFound] or
// [ErrLastOwner].
func (ms *Members) SetRole(ctx context.Context, by Actor, person uuid.UUID, role Role) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	if _, err := ParseRole(string(role)); err != nil {
		return invalid.Field("role", "must be owner, operator or viewer")
	}
	m, err := ms.store.Get(ctx, by.Org, person)
	if err != nil {
		return mapError(err)
	}
	if err := ms.store.SetRole(ctx, by.Org, person, string(role)); err != nil {
		return mapError(err)
	}
	return ms.activity.record(ctx, by, "member.role", m.Email, map[string]any{"from": m.Role, "to": string(role)})
}

// Remove removes a person from the actor's organization, and from the last one with the account. Any member may leave.
// Tokens that the person made stay valid. It returns [ErrNotFound] or [ErrLastOwner].
func (ms *Members) Remove(ctx context.Context, by Actor, person uuid.UUID) error {
	if leaves := by.Kind == Person && by.ID == person; !leaves && !by.May(Admin) {
		return ErrForbidden
	}
	m, err := ms.store.Get(ctx, by.Org, person)
	if err != nil {
		return mapError(err)
	}
	if err := ms.store.Remove(ctx, by.Org, person, ms.now()); err != nil {
		return mapError(err)
	}
	return ms.activity.record(ctx, by, "member.remove", m.Email, nil)
}

// Membership is an organization of a person, with the person's role in it.
type Membership = pgaccount.Membership

// Memberships returns the person's organizations by name.
func (ms *Members) Memberships(ctx context.Context, s Session) ([]Membership, error) {
	return ms.store.Of(ctx, s.Person)
}
