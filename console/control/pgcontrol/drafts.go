package pgcontrol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrNotFound means that there is no such draft.
	ErrNotFound = errors.New("no such draft")
	// ErrChanged means that a draft has changed since the caller read it.
	ErrChanged = errors.New("the draft was changed in the meantime")
	// ErrTooManyDrafts means that the organization has [MaxDrafts] drafts.
	ErrTooManyDrafts = errors.New("too many drafts")
	// ErrUnstorable means that the database cannot store the JSON, for example half of a surrogate
	// pair or a number with a million digits.
	ErrUnstorable = errors.New("the database cannot store this JSON")
)

// Draft is an unpublished room.
type Draft struct {
	ID      uuid.UUID
	Config  json.RawMessage // an object, as the organizer wrote it
	Version int64           // incremented with each change, from 1
	Created time.Time
	Changed time.Time
	By      string // name of the actor that changed it last
}

// Drafts stores drafts, in the table drafts.
type Drafts struct{ pool *pgxpool.Pool }

const draftColumns = `draft_id, config, version, created_at, changed_at, changed_by`

// List returns the drafts of an organization, latest change first.
func (s *Drafts) List(ctx context.Context, org uuid.UUID) ([]Draft, error) {
	rows, _ := s.pool.Query(ctx, `select `+draftColumns+` from drafts where org_id = $1
		order by changed_at desc, draft_id`, org)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Draft])
	if err != nil {
		return nil, fmt.Errorf("list drafts: %w", err)
	}
	return list, nil
}

// Get returns one draft, or [ErrNotFound].
func (s *Drafts) Get(ctx context.Context, org, id uuid.UUID) (Draft, error) {
	return s.draft(ctx, `select `+draftColumns+` from drafts where org_id = $1 and draft_id = $2`, org, id)
}

// MaxDrafts is the maximum number of drafts of an organization. It is small because a list contains
// all drafts in full.
const MaxDrafts = 100

// Add stores a new draft. Errors: [ErrTooManyDrafts], [ErrUnstorable].
func (s *Drafts) Add(ctx context.Context, org uuid.UUID, config json.RawMessage, by string) (Draft, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Draft{}, fmt.Errorf("make id of draft: %w", err)
	}
	d, err := s.draft(ctx, `insert into drafts (org_id, draft_id, config, changed_by) select $1, $2, $3, $4
		where (select count(*) from drafts where org_id = $1) < $5 returning `+draftColumns, org, id, config, by, MaxDrafts)
	if errors.Is(err, ErrNotFound) {
		return d, ErrTooManyDrafts
	}
	return d, err
}

// Change replaces a draft if it still has the given version. Errors: [ErrNotFound],
// [ErrChanged], [ErrUnstorable].
func (s *Drafts) Change(ctx context.Context, org, id uuid.UUID, version int64, config json.RawMessage,
	by string) (Draft, error) {
	d, err := s.draft(ctx, `update drafts set config = $4, version = version + 1, changed_at = now(), changed_by = $5
		where org_id = $1 and draft_id = $2 and version = $3 returning `+draftColumns, org, id, version, config, by)
	if !errors.Is(err, ErrNotFound) {
		return d, err
	}
	if _, err := s.Get(ctx, org, id); err != nil {
		return Draft{}, err
	}
	return Draft{}, ErrChanged
}

// Delete deletes a draft, or returns [ErrNotFound].
func (s *Drafts) Delete(ctx context.Context, org, id uuid.UUID) error {
	tag, err := s.pool.Exec(ctx, `delete from drafts where org_id = $1 and draft_id = $2`, org, id)
	if err != nil {
		return fmt.Errorf("delete draft: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return nil
}

func (s *Drafts) draft(ctx context.Context, query string, args ...any) (Draft, error) {
	rows, _ := s.pool.Query(ctx, query, args...) // rows reports the error
	d, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Draft])
	if errors.Is(err, pgx.ErrNoRows) {
		return Draft{}, ErrNotFound
	}
	const dataException = "22" // class of SQLSTATE codes
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && strings.HasPrefix(pg.Code, dataException) {
		return Draft{}, fmt.Errorf("draft: %w: %w", ErrUnstorable, err)
	}
	if err != nil {
		return Draft{}, fmt.Errorf("draft: %w", err)
	}
	return d, nil
}
