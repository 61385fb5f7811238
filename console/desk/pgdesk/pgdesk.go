// Package pgdesk keeps in PostgreSQL what the desk needs beside the rooms: acts
// and drafts, and answers to requests that came with a key. It is the only
// package that knows the tables of migrations/0008_desk.sql.
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
	// ErrNotFound is returned when there is no such draft.
	ErrNotFound = errors.New("no such draft")
	// ErrChanged is returned when a draft is not as it was when it was read.
	ErrChanged = errors.New("somebody has changed it in the meantime")
	// ErrTooMany is returned when an organization has [MaxDrafts] drafts.
	ErrTooMany = errors.New("too many drafts")
	// ErrUnstorable is returned for JSON that the database cannot hold, such as
	// half of a surrogate pair, or a number of a million digits.
	ErrUnstorable = errors.New("not what a database can hold")
)

// Store reads and writes what the desk keeps. Safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	turns *turns
}

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool, newTurns(pool.Config().MaxConns)} }

// Outcome is what became of an act.
type Outcome string

// The outcomes. Empty means that nobody knows: the server stopped in between.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // by the rules, or because the input was wrong
	Failed  Outcome = "failed"  // for a reason on the server's side
)

// Act is one deed of a person or a program.
type Act struct {
	ID        uuid.UUID // version 7: later acts have larger ones
	At        time.Time
	ActorKind string // person, token or server
	ActorID   uuid.UUID
	Actor     string
	Verb      string // such as "room.pause"
	Object    string // what it was done to, such as a room's slug
	Detail    json.RawMessage
	Outcome   Outcome
}

// Begin notes an act before it is done. ID, time and outcome are set here.
func (s *Store) Begin(ctx context.Context, org uuid.UUID, a Act) (uuid.UUID, error) {
	return s.insert(ctx, org, a, "")
}

// Note notes an act that is done.
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

// Finish notes what became of an act.
func (s *Store) Finish(ctx context.Context, org, act uuid.UUID, outcome Outcome) error {
	if _, err := s.pool.Exec(ctx, `update acts set outcome = $3 where org_id = $1 and act_id = $2`, org, act, outcome); err != nil {
		return fmt.Errorf("note outcome of act: %w", err)
	}
	return nil
}

// Acts returns acts of an organization, the newest first: those on one object
// unless that is empty, before one act unless that is zero, and at most so many.
func (s *Store) Acts(ctx context.Context, org uuid.UUID, object string, before uuid.UUID, most int) ([]Act, error) {
	rows, _ := s.pool.Query(ctx, `
		select act_id, at, actor_kind, actor_id, actor, verb, object, detail, outcome from acts
		where org_id = $1 and ($2 = '' or object = $2) and ($3 or act_id < $4)
		order by act_id desc limit $5`, org, object, before == uuid.Nil, before, most) // its error is that of the rows
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Act])
	if err != nil {
		return nil, fmt.Errorf("list acts: %w", err)
	}
	return list, nil
}

// Draft is a room that is not published.
type Draft struct {
	ID      uuid.UUID
	Config  json.RawMessage // an object, as the organizer wrote it
	Version int64           // counts the changes, from 1
	Created time.Time
	Changed time.Time
	By      string // who changed it last
}

const draftColumns = `draft_id, config, version, created_at, changed_at, changed_by`

// Drafts returns the drafts of an organization, the latest changed first.
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

// MaxDrafts is how many drafts an organization has: a list has all of them, with
// what they say.
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

// ChangeDraft replaces the version of a draft that was read. Errors:
// [ErrNotFound], [ErrChanged], [ErrUnstorable].
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
	rows, _ := s.pool.Query(ctx, query, args...) // its error is that of the rows
	d, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Draft])
	if errors.Is(err, pgx.ErrNoRows) {
		return Draft{}, ErrNotFound
	}
	const dataException = "22" // the class
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && strings.HasPrefix(pg.Code, dataException) {
		return Draft{}, fmt.Errorf("draft: %w: %w", ErrUnstorable, err)
	}
	if err != nil {
		return Draft{}, fmt.Errorf("draft: %w", err)
	}
	return d, nil
}
