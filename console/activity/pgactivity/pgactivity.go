// Package pgactivity stores the activity log in PostgreSQL. Only this package accesses the table
// activity_log of migrations/0008_activity.sql.
package pgactivity

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store reads and writes the activity log. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Outcome is the outcome of an operation.
type Outcome string

// The outcomes. Empty means unknown: the server stopped before it could record one.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // refused by the rules, or because the input was invalid
	Failed  Outcome = "failed"  // failed for a reason on the server's side
)

// Entry is one entry of the activity log.
type Entry struct {
	ID        uuid.UUID // UUID version 7: later entries have larger ones
	At        time.Time
	ActorKind string // person, token or server
	ActorID   uuid.UUID
	Actor     string
	Verb      string // operation such as "room.pause"
	Object    string // object of the operation, such as a room's slug
	Detail    json.RawMessage
	Outcome   Outcome
}

// Add adds an entry and returns its ID. The store sets ID and time.
func (s *Store) Add(ctx context.Context, org uuid.UUID, e Entry) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return id, fmt.Errorf("make id of activity entry: %w", err)
	}
	_, err = s.pool.Exec(ctx, `insert into activity_log (org_id, entry_id, actor_kind, actor_id, actor, verb, object,
		detail, outcome) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		org, id, e.ActorKind, e.ActorID, e.Actor, e.Verb, e.Object, e.Detail, e.Outcome)
	if err != nil {
		return id, fmt.Errorf("add activity entry: %w", err)
	}
	return id, nil
}

// Finish records the outcome of an entry.
func (s *Store) Finish(ctx context.Context, org, entry uuid.UUID, outcome Outcome) error {
	if _, err := s.pool.Exec(ctx, `update activity_log set outcome = $3 where org_id = $1 and entry_id = $2`, org,
		entry, outcome); err != nil {
		return fmt.Errorf("record outcome of activity entry: %w", err)
	}
	return nil
}

// Entries returns entries of an organization's activity log, newest first and at most limit. An
// object that is not empty selects the entries about it; before, unless zero, selects entries older
// than that one.
func (s *Store) Entries(ctx context.Context, org uuid.UUID, object string, before uuid.UUID,
	limit int) ([]Entry, error) {
	rows, _ := s.pool.Query(ctx, `
		select entry_id, at, actor_kind, actor_id, actor, verb, object, detail, outcome from activity_log
		where org_id = $1 and ($2 = '' or object = $2) and ($3 or entry_id < $4)
		order by entry_id desc limit $5`, org, object, before == uuid.Nil, before, limit) // rows reports the error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, fmt.Errorf("list activity: %w", err)
	}
	return list, nil
}
