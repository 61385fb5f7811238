package pgaccount

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Member is a person in an organization.
type Member struct {
	Org       uuid.UUID
	Person    uuid.UUID
	Email     string
	Name      string
	Role      string
	HasFactor bool
	Since     time.Time
}

const memberColumns = `m.org_id, m.person_id, p.email, p.name, m.role, p.factor is not null, m.created_at`

// Members stores who belongs to which organization, in the table members.
type Members struct{ pool *pgxpool.Pool }

// List returns an organization's members, owners first.
func (s *Members) List(ctx context.Context, org uuid.UUID) ([]Member, error) {
	return all[Member](ctx, s.pool, "list members", `select `+memberColumns+
		` from members m join people p using (person_id)
		where m.org_id = $1 order by array_position(array['owner', 'operator', 'viewer'], m.role), p.email`, org)
}

// Get returns one member, or [ErrNotFound].
func (s *Members) Get(ctx context.Context, org, person uuid.UUID) (Member, error) {
	return one[Member](ctx, s.pool, "read member", `select `+memberColumns+
		` from members m join people p using (person_id)
		where m.org_id = $1 and m.person_id = $2`, org, person)
}

// Membership is an organization of a person, with the person's role in it.
type Membership struct {
	Organization
	Role string
}

// Of returns the organizations of a person by name.
func (s *Members) Of(ctx context.Context, person uuid.UUID) ([]Membership, error) {
	return all[Membership](ctx, s.pool, "list organizations of a person",
		`select o.org_id, o.slug, o.name, o.require_second_factor, o.created_at, o.logo, m.role
		from members m join organizations o using (org_id) where m.person_id = $1 order by o.name, o.slug`, person)
}

// SetRole changes a member's role. It returns [ErrNotFound] or [ErrLastOwner].
func (s *Members) SetRole(ctx context.Context, org, person uuid.UUID, role string) error {
	return s.keepOwner(ctx, org, func(tx pgx.Tx) error {
		return must(ctx, tx, "change role", `update members set role = $3 where org_id = $1 and person_id = $2`, org,
			person, role)
	})
}

// Remove removes a person from an organization, and from the last one with the account. It returns [ErrNotFound] or
// [ErrLastOwner].
func (s *Members) Remove(ctx context.Context, org, person uuid.UUID, now time.Time) error {
	return s.keepOwner(ctx, org, func(tx pgx.Tx) error {
		if err := must(ctx, tx, "remove member", `delete from members where org_id = $1 and person_id = $2`, org,
			person); err != nil {
			return err
		}
		if err := lockPerson(ctx, tx, person); err != nil {
			return err
		}
		remains, err := value[bool](ctx, tx, "look for organizations", `select exists (select from members
			where person_id = $1)`, person)
		if err != nil || remains {
			return err
		}
		return removePerson(ctx, tx, person, now)
	})
}

// keepOwner runs change and returns [ErrLastOwner] if it removes the last owner. Changes of one
// organization are serialized.
func (s *Members) keepOwner(ctx context.Context, org uuid.UUID, change func(pgx.Tx) error) error {
	const owned = `select exists (select from members where org_id = $1 and role = 'owner')`
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lockOrg(ctx, tx, org); err != nil {
			return err
		}
		before, err := value[bool](ctx, tx, "look for owners", owned, org)
		if err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		after, err := value[bool](ctx, tx, "look for owners", owned, org)
		if err == nil && before && !after {
			return ErrLastOwner
		}
		return err
	})
}

func lockOrg(ctx context.Context, tx pgx.Tx, org uuid.UUID) error {
	_, err := value[uuid.UUID](ctx, tx, "lock organization", `select org_id from organizations
		where org_id = $1 for update`, org)
	return err
}

// HasOwner reports whether any organization has an owner.
func (s *Members) HasOwner(ctx context.Context) (bool, error) {
	return value[bool](ctx, s.pool, "look for an owner", `select exists (select from members where role = 'owner')`)
}

// addMember adds a member, or raises the role of an existing one. It returns [ErrNotFound] if the account was removed
// meanwhile.
func addMember(ctx context.Context, tx pgx.Tx, org, person uuid.UUID, role string, now time.Time) error {
	if err := lockPerson(ctx, tx, person); err != nil {
		return err
	}
	return exec(ctx, tx, "add member", `insert into members (org_id, person_id, role, created_at)
		values ($1, $2, $3, $4)
		on conflict (org_id, person_id) do update set role = excluded.role
		where excluded.role = 'owner' or members.role = 'viewer'`,
		org, person, role, now)
}
