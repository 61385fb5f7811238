package pgaccount

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Session is one row of the sessions table.
type Session struct {
	ID        uuid.UUID
	Hash      []byte
	Person    uuid.UUID
	Org       uuid.UUID
	Device    string
	Created   time.Time
	Seen      time.Time
	Confirmed time.Time
}

const sessionColumns = `session_id, hash, person_id, org_id, device, created_at, seen_at, confirmed_at`

// Sessions stores sessions, in the table sessions.
type Sessions struct{ pool *pgxpool.Pool }

// Add stores a session.
func (s *Sessions) Add(ctx context.Context, v Session) error {
	return exec(ctx, s.pool, "store session", `insert into sessions (`+sessionColumns+
		`) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		v.ID, v.Hash, v.Person, v.Org, v.Device, v.Created, v.Seen, v.Confirmed)
}

// Holder is a session with its person and organization: the session's organization while the person
// is a member of it, else another one of the person's, or the zero value.
type Holder struct {
	ID          uuid.UUID
	Created     time.Time
	Seen        time.Time
	Confirmed   time.Time
	Person      uuid.UUID
	Email       string
	Name        string
	HasPassword bool
	HasFactor   bool
	Org         uuid.UUID
	OrgSlug     string
	OrgName     string
	OrgRequires bool // members need a second factor
	OrgCreated  time.Time
	Role        string
}

// Holder returns the session of a token, or [ErrNotFound] if it began or was last used before the
// given times.
func (s *Sessions) Holder(ctx context.Context, hash []byte, begun, seen time.Time) (Holder, error) {
	return one[Holder](ctx, s.pool, "read session", `
		select s.session_id, s.created_at, s.seen_at, s.confirmed_at,
			p.person_id, p.email, p.name, p.password is not null, p.factor is not null,
			coalesce(o.org_id, '00000000-0000-0000-0000-000000000000'), coalesce(o.slug, ''), coalesce(o.name, ''),
			coalesce(o.require_second_factor, false), coalesce(o.created_at, s.created_at), coalesce(m.role, '')
		from sessions s
		join people p using (person_id)
		left join lateral (
			select org_id, role from members where members.person_id = s.person_id
			order by org_id = s.org_id desc, created_at, org_id limit 1) m on true
		left join organizations o on o.org_id = m.org_id
		where s.hash = $1 and s.created_at > $2 and s.seen_at > $3`, hash, begun, seen)
}

// Touch updates a session's time of last use.
func (s *Sessions) Touch(ctx context.Context, id uuid.UUID, now time.Time) error {
	return exec(ctx, s.pool, "touch session", `update sessions set seen_at = greatest(seen_at, $2)
		where session_id = $1`, id, now)
}

// List returns a person's sessions that began and were used after the given times, newest
// first.
func (s *Sessions) List(ctx context.Context, person uuid.UUID, begun, seen time.Time) ([]Session, error) {
	return all[Session](ctx, s.pool, "list sessions", `select `+sessionColumns+` from sessions
		where person_id = $1 and created_at > $2 and seen_at > $3 order by seen_at desc, session_id`, person, begun, seen)
}

// Rotate replaces a session's token and sets the time of its confirmation. It returns
// [ErrNotFound].
func (s *Sessions) Rotate(ctx context.Context, id uuid.UUID, hash []byte, confirmed time.Time) error {
	return must(ctx, s.pool, "rotate session", `update sessions set hash = $2, confirmed_at = $3,
		seen_at = greatest(seen_at, $3) where session_id = $1`, id, hash, confirmed)
}

// SetOrg changes the organization of a session. It returns [ErrNotFound] if the person is
// not a member.
func (s *Sessions) SetOrg(ctx context.Context, id, org uuid.UUID) error {
	return must(ctx, s.pool, "switch organization", `update sessions set org_id = $2 where session_id = $1
		and exists (select from members m where m.org_id = $2 and m.person_id = sessions.person_id)`, id, org)
}

// End ends a person's session, or returns [ErrNotFound].
func (s *Sessions) End(ctx context.Context, person, id uuid.UUID) error {
	return must(ctx, s.pool, "end session", `delete from sessions where person_id = $1 and session_id = $2`, person, id)
}

// EndOthers ends all sessions of a person but one.
func (s *Sessions) EndOthers(ctx context.Context, person, keep uuid.UUID) error {
	return endOthers(ctx, s.pool, person, keep)
}

func endOthers(ctx context.Context, q querier, person, keep uuid.UUID) error {
	return exec(ctx, q, "end sessions", `delete from sessions where person_id = $1 and session_id <> $2`, person, keep)
}
