package pgaccount

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Invitation is one row of the invitations table, without its hash.
type Invitation struct {
	Org       uuid.UUID
	ID        uuid.UUID
	Role      string
	Email     string // empty: the link is valid for any address
	Setup     bool
	Recovers  bool // resets the password of the person with that address
	InvitedBy string
	Created   time.Time
	Expires   time.Time
}

const invitationColumns = `org_id, invitation_id, role, coalesce(email, ''), setup, recovers, invited_by, created_at, expires_at`

// Invitations stores invitations, in the table invitations.
type Invitations struct{ pool *pgxpool.Pool }

// Add stores an invitation and deletes earlier ones to the same address.
func (s *Invitations) Add(ctx context.Context, v Invitation, hash []byte) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := exec(ctx, tx, "replace invitation", `delete from invitations where org_id = $1 and email = $2`,
			v.Org, v.Email); err != nil {
			return err
		}
		return exec(ctx, tx, "store invitation", `insert into invitations (org_id, invitation_id, hash, role, email,
			setup, recovers, invited_by, created_at, expires_at)
			values ($1, $2, $3, $4, nullif($5, ''), $6, $7, $8, $9, $10)`,
			v.Org, v.ID, hash, v.Role, v.Email, v.Setup, v.Recovers, v.InvitedBy, v.Created, v.Expires)
	})
}

// ByHash returns the unexpired invitation with that token hash, or [ErrNotFound].
func (s *Invitations) ByHash(ctx context.Context, hash []byte, now time.Time) (Invitation, error) {
	return one[Invitation](ctx, s.pool, "read invitation", `select `+invitationColumns+
		` from invitations where hash = $1 and expires_at > $2`, hash, now)
}

// List returns the open invitations of an organization, newest first.
func (s *Invitations) List(ctx context.Context, org uuid.UUID, now time.Time) ([]Invitation, error) {
	return all[Invitation](ctx, s.pool, "list invitations", `select `+invitationColumns+` from invitations
		where org_id = $1 and expires_at > $2 order by created_at desc, invitation_id`, org, now)
}

// Count returns the number of open invitations of an organization.
func (s *Invitations) Count(ctx context.Context, org uuid.UUID, now time.Time) (int, error) {
	return value[int](ctx, s.pool, "count invitations", `select count(*) from invitations where org_id = $1
		and expires_at > $2`, org, now)
}

// Remove deletes an invitation and returns its address, or [ErrNotFound].
func (s *Invitations) Remove(ctx context.Context, org, id uuid.UUID) (email string, err error) {
	return value[string](ctx, s.pool, "take back invitation", `delete from invitations where org_id = $1
		and invitation_id = $2 returning coalesce(email, '')`, org, id)
}

// Joining is the person who accepts an invitation.
type Joining struct {
	Person
	// New stores the person. Recovered sets the password of an existing person and removes their
	// second factor and sessions.
	New, Recovered bool
	OrgName        string // new name of the organization; empty: unchanged
}

// Accept consumes an invitation: the person becomes a member with the invitation's role. It returns
// [ErrNotFound] if the link is no longer valid, or [ErrExists] if a new person's address is taken.
func (s *Invitations) Accept(ctx context.Context, hash []byte, j Joining, now time.Time) (Invitation, error) {
	var v Invitation
	err := inTx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		org, err := value[uuid.UUID](ctx, tx, "read invitation", `select org_id from invitations where hash = $1`, hash)
		if err != nil {
			return err
		}
		if err := lockOrg(ctx, tx, org); err != nil { // locked before the rows of invitations, to avoid a deadlock
			return err
		}
		v, err = one[Invitation](ctx, tx, "use invitation", `delete from invitations where hash = $1
			and expires_at > $2 returning `+invitationColumns, hash, now)
		if err != nil {
			return err
		}
		if v.Setup {
			if err := closeSetup(ctx, tx); err != nil {
				return err
			}
		}
		if err := j.store(ctx, tx); err != nil {
			return err
		}
		if err := addMember(ctx, tx, v.Org, j.ID, v.Role, now); err != nil || j.OrgName == "" {
			return err
		}
		return must(ctx, tx, "name organization", `update organizations set name = $2 where org_id = $1`, v.Org,
			j.OrgName)
	})
	return v, err
}

// store stores the changes to the person.
func (j Joining) store(ctx context.Context, tx pgx.Tx) error {
	switch {
	case j.New:
		return addPerson(ctx, tx, j.Person)
	case j.Recovered:
		if err := must(ctx, tx, "recover person", `update people set password = $2, factor = null,
			factor_pending = null where person_id = $1`, j.ID, j.Password); err != nil {
			return err
		}
		if err := setCodes(ctx, tx, j.ID, nil); err != nil {
			return err
		}
		return endOthers(ctx, tx, j.ID, uuid.Nil)
	}
	return nil
}

// closeSetup deletes all setup links, and returns [ErrNotFound] if an organization already has an
// owner.
func closeSetup(ctx context.Context, tx pgx.Tx) error {
	owned, err := value[bool](ctx, tx, "look for an owner", `select exists (select from members where role = 'owner')`)
	if err != nil {
		return err
	}
	if owned {
		return ErrNotFound
	}
	return exec(ctx, tx, "close setup", `delete from invitations where setup`)
}
