// Package pgdesk stores in PostgreSQL what the desk needs besides the rooms: the activity log,
// drafts,
// and answers to requests with an idempotency key. Only this package uses the tables of
// migrations/0008_desk.sql.
package pgdesk

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
	// ErrTooMany means that the organization has [MaxDrafts] drafts.
	ErrTooMany = errors.New("too many drafts")
	// ErrUnstorable means that the database cannot store the JSON, for example half of a surrogate
	// pair
	// or a number with a million digits.
	ErrUnstorable = errors.New("the database cannot store this JSON")
)

// Store reads and writes the desk's data. Safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	turns *turns
}

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool, newTurns(pool.Config().MaxConns)} }

// Outcome is the outcome of an operation.
type Outcome string

// The outcomes. Empty means unknown: the server stopped before it could record one.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // by the rules, or because the input was invalid
	Failed  Outcome = "failed"  // for a reason on the server's side
)

// Act is one entry of the activity log.
type Act struct {
	ID        uuid.UUID // version 7: later acts have larger ones
	At        time.Time
	ActorKind string // person, token or server
	ActorID   uuid.UUID
	Actor     string
	Verb      string // such as "room.pause"
	Object    string // object of the operation, such as a room's slug
	Detail    json.RawMessage
	Outcome   Outcome
}

// Begin adds an entry before its operation runs. It sets ID, time and outcome.
func (s *Store) Begin(ctx context.Context, org uuid.UUID, a Act) (uuid.UUID, error) {
	return s.insert(ctx, org, a, "")
}

// Note adds an entry for something already done.
func (s *Store) Note(ctx context.Context, org uuid.UUID, a Act) error {
	_, err := s.insert(ctx, org, a, Done)
	return err
}

func (s *Store) insert(ctx context.Context, org uuid.UUID, a Act, outcome Outcome) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return id, fmt.Errorf("number act: %w", err)
	}
	_, err = s.pool.Exec(ctx, `insert into acts (org_id, act_id, actor_kind, actor_id, actor, verb, object, detail, outcome) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		org, id, a.ActorKind, a.ActorID, a.Actor, a.Verb, a.Object, a.Detail, outcome)
	if err != nil {
		return id, fmt.Errorf("note act: %w", err)
	}
	return id, nil
}

// Finish records the outcome of an entry.
func (s *Store) Finish(ctx context.Context, org, act uuid.UUID, outcome Outcome) error {
	if _, err := s.pool.Exec(ctx, `update acts set outcome = $3 where org_id = $1 and act_id = $2`, org, act, outcome); err != nil {
		return fmt.Errorf("note outcome of act: %w", err)
	}
	return nil
}

// Acts returns entries of an organization's activity log, newest first and at most max. An object
// that is not empty selects the entries about it; before, unless zero, selects entries older than
// that one.
func (s *Store) Acts(ctx context.Context, org uuid.UUID, object string, before uuid.UUID, max int) ([]Act, error) {
	rows, _ := s.pool.Query(ctx, `
		select act_id, at, actor_kind, actor_id, actor, verb, object, detail, outcome from acts
		where org_id = $1 and ($2 = '' or object = $2) and ($3 or act_id < $4)
		order by act_id desc limit $5`, org, object, before == uuid.Nil, before, max) // the rows carry the error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Act])
	if err != nil {
		return nil, fmt.Errorf("list acts: %w", err)
	}
	return list, nil
}

// Draft is an unpublished room.
type Draft struct {
	ID      uuid.UUID
	Config  json.RawMessage // an object, as the organizer wrote it
	Version int64           // incremented with each change, from 1
	Created time.Time
	Changed time.Time
	By      string // name of the actor that changed it last
}

const draftColumns = `draft_id, config, version, created_at, changed_at, changed_by`

// Drafts returns the drafts of an organization, latest change first.
func (s *Store) Drafts(ctx context.Context, org uuid.UUID) ([]Draft, error) {
	rows, _ := s.pool.Query(ctx, `select `+draftColumns+` from drafts where org_id = $1 order by changed_at desc, draft_id`, org)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Draft])
	if err != nil {
		return nil, fmt.Errorf("list drafts: %w", err)
	}
	return list, nil
}

// Draft returns one draft; [ErrNotFound].
func (s *Store) Draft(ctx context.Context, org, id uuid.UUID) (Draft, error) {
	return s.draft(ctx, `select `+draftColumns+` from drafts where org_id = $1 and draft_id = $2`, org, id)
}

// MaxDrafts is the maximum number of drafts of an organization. It is small because a list has all
// drafts with their contents.
const MaxDrafts = 100

// AddDraft stores a new draft. Errors: [ErrTooMany], [ErrUnstorable].
func (s *Store) AddDraft(ctx context.Context, org uuid.UUID, config json.RawMessage, by string) (Draft, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Draft{}, fmt.Errorf("number draft: %w", err)
	}
	d, err := s.draft(ctx, `insert into drafts (org_id, draft_id, config, changed_by) select $1, $2, $3, $4
		where (select count(*) from drafts where org_id = $1) < $5 returning `+draftColumns, org, id, config, by, MaxDrafts)
	if errors.Is(err, ErrNotFound) {
		return d, ErrTooMany
	}
	return d, err
}

// ChangeDraft replaces a draft if it still has the given version. Errors: [ErrNotFound],
// [ErrChanged], [ErrUnstorable].
func (s *Store) ChangeDraft(ctx context.Context, org, id uuid.UUID, version int64, config json.RawMessage, by string) (Draft, error) {
	d, err := s.draft(ctx, `update drafts set config = $4, version = version + 1, changed_at = now(), changed_by = $5
		where org_id = $1 and draft_id = $2 and version = $3 returning `+draftColumns, org, id, version, config, by)
	if !errors.Is(err, ErrNotFound) {
		return d, err
	}
	if _, err := s.Draft(ctx, org, id); err != nil {
		return Draft{}, err
	}
	return Draft{}, ErrChanged
}

// DeleteDraft deletes a draft; [ErrNotFound].
func (s *Store) DeleteDraft(ctx context.Context, org, id uuid.UUID) error {
	tag, err := s.pool.Exec(ctx, `delete from drafts where org_id = $1 and draft_id = $2`, org, id)
	if err != nil {
		return fmt.Errorf("delete draft: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return nil
}

func (s *Store) draft(ctx context.Context, query string, args ...any) (Draft, error) {
	rows, _ := s.pool.Query(ctx, query, args...) // the rows carry the error
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
