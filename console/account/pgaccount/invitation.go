package pgaccount

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Invitation is one row of the invitations table, without its hash.
type Invitation struct {
	Org       uuid.UUID
	ID        uuid.UUID
	Role      string
	Email     string // empty: of whoever has the link
	Setup     bool
	Recovers  bool // gives a person who has the address a new password
	InvitedBy string
	Created   time.Time
	Expires   time.Time
}

const invitationColumns = `org_id, invitation_id, role, coalesce(email, ''), setup, recovers, invited_by, created_at, expires_at`

// AddInvitation stores an invitation in place of earlier ones to the same
// address.
func (s *Store) AddInvitation(ctx context.Context, v Invitation, hash []byte) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if err := exec(ctx, tx, "replace invitation", `delete from invitations where org_id = $1 and email = $2`, v.Org, v.Email); err != nil {
			return err
		}
		return exec(ctx, tx, "store invitation", `insert into invitations (org_id, invitation_id, hash, role, email, setup, recovers, invited_by, created_at, expires_at)
			values ($1, $2, $3, $4, nullif($5, ''), $6, $7, $8, $9, $10)`, v.Org, v.ID, hash, v.Role, v.Email, v.Setup, v.Recovers, v.InvitedBy, v.Created, v.Expires)
	})
}

// Invitation returns the one of a token that has not expired; [ErrNotFound].
func (s *Store) Invitation(ctx context.Context, hash []byte, now time.Time) (Invitation, error) {
	return one[Invitation](ctx, s.pool, "read invitation", `select `+invitationColumns+` from invitations where hash = $1 and expires_at > $2`, hash, now)
}

// Invitations returns those of an organization that are open, newest first.
func (s *Store) Invitations(ctx context.Context, org uuid.UUID, now time.Time) ([]Invitation, error) {
	return all[Invitation](ctx, s.pool, "list invitations", `select `+invitationColumns+` from invitations
		where org_id = $1 and expires_at > $2 order by created_at desc, invitation_id`, org, now)
}

// CountInvitations returns how many of an organization are open.
func (s *Store) CountInvitations(ctx context.Context, org uuid.UUID, now time.Time) (int, error) {
	return value[int](ctx, s.pool, "count invitations", `select count(*) from invitations where org_id = $1 and expires_at > $2`, org, now)
}

// RemoveInvitation takes an invitation back and returns its address;
// [ErrNotFound].
func (s *Store) RemoveInvitation(ctx context.Context, org, id uuid.UUID) (email string, err error) {
	return value[string](ctx, s.pool, "take back invitation", `delete from invitations where org_id = $1 and invitation_id = $2 returning coalesce(email, '')`, org, id)
}

// Joining is who becomes a member by an invitation.
type Joining struct {
	Person
	// New stores the person, Recovered gives the one that exists its password
	// and takes second factor and sessions away.
	New, Recovered bool
	OrgName        string // for the organization, unless empty
}

// Accept uses an invitation up: its person becomes a member with its role.
// [ErrNotFound] when the link is no good any more, [ErrExists] when the address
// of a new person is taken.
func (s *Store) Accept(ctx context.Context, hash []byte, j Joining, now time.Time) (Invitation, error) {
	var v Invitation
	err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
		org, err := value[uuid.UUID](ctx, tx, "read invitation", `select org_id from invitations where hash = $1`, hash)
		if err != nil {
			return err
		}
		if err := lockOrg(ctx, tx, org); err != nil { // before the rows of invitations, so that nobody waits in a circle
			return err
		}
		v, err = one[Invitation](ctx, tx, "use invitation", `delete from invitations where hash = $1 and expires_at > $2 returning `+invitationColumns, hash, now)
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
		return must(ctx, tx, "name organization", `update organizations set name = $2 where org_id = $1`, v.Org, j.OrgName)
	})
	return v, err
}

// store stores the person as far as that is needed.
func (j Joining) store(ctx context.Context, tx pgx.Tx) error {
	switch {
	case j.New:
		return addPerson(ctx, tx, j.Person)
	case j.Recovered:
		if err := must(ctx, tx, "recover person", `update people set password = $2, factor = null, factor_pending = null where person_id = $1`, j.ID, j.Password); err != nil {
			return err
		}
		if err := setCodes(ctx, tx, j.ID, nil); err != nil {
			return err
		}
		return endOthers(ctx, tx, j.ID, uuid.Nil)
	}
	return nil
}

// closeSetup ends the first start: all its links are void, and this one too
// when somebody owns an organization already.
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
