// Package pgroom stores in PostgreSQL the parts of a room that are not in its transcript: slug, title, settings,
// sealed keys, sessions, messages to visitors, evidence for draws, and connectors' reports. No other package uses
// the tables of migrations/0002_rooms.sql, 0004_sessions.sql, 0005_evidence.sql and 0012_gate.sql.
package pgroom

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotFound is returned when the room, key or message does not exist.
var ErrNotFound = errors.New("no such room")

// slugs is the name space that maps slugs to room ids (RFC 9562 section 6.5).
var slugs = uuid.MustParse("6f1c2f6e-41f0-5bb9-9d2c-7a3c3f5a9b10")

// RegisterName stands for the log of rooms where logs have the slugs of rooms. It is not a slug.
const RegisterName = "/rooms"

// RegisterID is the id of the log of rooms among the logs. Transactions lock it after those of rooms.
var RegisterID = uuid.Max

// RoomID returns the id of the room with the slug, or of the log of rooms.
func RoomID(slug string) uuid.UUID {
	if slug == RegisterName {
		return RegisterID
	}
	return uuid.NewSHA1(slugs, []byte(slug))
}

// Room is one row of the rooms table.
type Room struct {
	ID      uuid.UUID
	Slug    string
	Origin  string
	Title   string
	Created time.Time
	Ended   *time.Time
	// SettingsVersion is the number of changes of [Settings].
	SettingsVersion int64
	Owner
	Archived *time.Time // when it was left out of lists; nil: it is listed
	VKey     *string    // key of the log of an imported room, whose private key another server has; nil: it was created here
}

// Owner says which organization a room belongs to, and how the room is published and listed there.
type Owner struct {
	Org         uuid.UUID
	Host        *string    // custom host that the room is published under; nil: none
	RehearsalOf *uuid.UUID // room or draft that this room rehearses; nil: none
}

// MainOrg is the organization of rooms that were not assigned to another one.
var MainOrg = uuid.MustParse("00000000-0000-8000-8000-000000000001")

// Key is a sealed private key.
type Key struct {
	Purpose string // "log", "vrf" or "pass"
	Sealed  []byte
}

// Store reads and writes rooms. It is safe for concurrent use.
type Store struct {
	Sessions   *Sessions
	Connectors *Connectors
	Controls   *Controls
	Evidence   *Evidence
	Transfers  *Transfers

	pool *pgxpool.Pool
}

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store {
	return &Store{
		Sessions: &Sessions{pool, pool.Acquire}, Connectors: &Connectors{pool}, Controls: &Controls{pool},
		Evidence: &Evidence{pool}, Transfers: &Transfers{pool}, pool: pool,
	}
}

// Insert stores a room and its keys, and calls also in the same transaction. If the room exists, Insert changes
// nothing and does not call also. isNew reports whether the room is new. Insert returns [ErrQuota] if the organization may
// have no further room.
func (s *Store) Insert(ctx context.Context, r Room, keys []Key, also func(pgx.Tx) error) (isNew bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into rooms (room_id, slug, origin, title, org_id, host, rehearsal_of) values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
			r.ID, r.Slug, r.Origin, r.Title, r.Org, r.Host, r.RehearsalOf)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		isNew = true
		if err := allow(ctx, tx, r.Org); err != nil {
			return err
		}
		for _, k := range keys {
			if _, err := tx.Exec(ctx, `insert into room_keys (room_id, purpose, sealed) values ($1, $2, $3)`, r.ID,
				k.Purpose, k.Sealed); err != nil {
				return err
			}
		}
		return also(tx)
	})
	if err != nil {
		return false, fmt.Errorf("insert room %s: %w", r.Slug, err)
	}
	return isNew, nil
}

const columns = `room_id, slug, origin, title, created_at, ended_at, settings_version, org_id, host, rehearsal_of, archived_at, vkey`

// Get returns the room with the slug, or [ErrNotFound].
func (s *Store) Get(ctx context.Context, slug string) (Room, error) {
	rows, _ := s.pool.Query(ctx, `select `+columns+` from rooms where room_id = $1`, RoomID(slug))
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Room])
	if errors.Is(err, pgx.ErrNoRows) {
		return Room{}, ErrNotFound
	}
	if err != nil {
		return Room{}, fmt.Errorf("read room %s: %w", slug, err)
	}
	return r, nil
}

// List returns all rooms, newest first.
func (s *Store) List(ctx context.Context) ([]Room, error) {
	return s.list(ctx, `select `+columns+` from rooms order by created_at desc, slug`)
}

// ListOpen returns the rooms that are not marked as ended, newest first.
func (s *Store) ListOpen(ctx context.Context) ([]Room, error) {
	return s.list(ctx, `select `+columns+` from rooms where ended_at is null order by created_at desc, slug`)
}

// Selection selects rooms of an organization for a list.
type Selection struct {
	Org      uuid.UUID
	Search   string // part of the slug or title, ignoring case; empty: all
	Archived bool   // only archived rooms and finished rehearsals; false: only the others
	Before   *Room  // last room of the previous page; nil: the first page
	Limit    int
}

// ListOf returns rooms of an organization, newest first.
func (s *Store) ListOf(ctx context.Context, sel Selection) ([]Room, error) {
	before := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	slug := ""
	if sel.Before != nil {
		before, slug = sel.Before.Created, sel.Before.Slug
	}
	return s.list(ctx, `select `+columns+` from rooms
		where org_id = $1 and (archived_at is not null or rehearsal_of is not null and ended_at is not null) = $2 and ($3 = '' or strpos(slug, lower($3)) > 0 or strpos(lower(title), lower($3)) > 0)
		and (created_at < $4 or created_at = $4 and slug > $5)
		order by created_at desc, slug limit $6`, sel.Org, sel.Archived, sel.Search, before, slug, sel.Limit)
}

// SetArchived removes a room from lists, or adds it again.
func (s *Store) SetArchived(ctx context.Context, id uuid.UUID, archived bool) error {
	const update = `update rooms set archived_at = case when $2 then coalesce(archived_at, clock_timestamp()) end where room_id = $1`
	if _, err := s.pool.Exec(ctx, update, id, archived); err != nil {
		return fmt.Errorf("archive room: %w", err)
	}
	return nil
}

func (s *Store) list(ctx context.Context, query string, args ...any) ([]Room, error) {
	rows, _ := s.pool.Query(ctx, query, args...) // rows reports the error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Room])
	if err != nil {
		return nil, fmt.Errorf("list rooms: %w", err)
	}
	return list, nil
}

// Keys returns the sealed keys of a room.
func (s *Store) Keys(ctx context.Context, id uuid.UUID) ([]Key, error) {
	rows, _ := s.pool.Query(ctx, `select purpose, sealed from room_keys where room_id = $1`, id)
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
	if err != nil {
		return nil, fmt.Errorf("read room keys: %w", err)
	}
	return keys, nil
}

// SetTitle changes the title.
func (s *Store) SetTitle(ctx context.Context, id uuid.UUID, title string) error {
	if _, err := s.pool.Exec(ctx, `update rooms set title = $2 where room_id = $1`, id, title); err != nil {
		return fmt.Errorf("set room title: %w", err)
	}
	return nil
}

// MarkEnded notes that no node needs to load the room any more.
func (s *Store) MarkEnded(ctx context.Context, id uuid.UUID) error {
	if _, err := s.pool.Exec(ctx,
		`update rooms set ended_at = clock_timestamp() where room_id = $1 and ended_at is null`, id); err != nil {
		return fmt.Errorf("mark room ended: %w", err)
	}
	return nil
}

// AddMessage stores a text under its SHA-256, and returns the hash.
func (s *Store) AddMessage(ctx context.Context, id uuid.UUID, text string) ([32]byte, error) {
	hash := sha256.Sum256([]byte(text))
	if _, err := s.pool.Exec(ctx,
		`insert into room_messages (room_id, hash, text) values ($1, $2, $3) on conflict do nothing`, id, hash[:],
		text); err != nil {
		return hash, fmt.Errorf("store message: %w", err)
	}
	return hash, nil
}

// Message returns the text with the SHA-256, or [ErrNotFound].
func (s *Store) Message(ctx context.Context, id uuid.UUID, hash [32]byte) (string, error) {
	var text string
	err := s.pool.QueryRow(ctx, `select text from room_messages where room_id = $1 and hash = $2`, id,
		hash[:]).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read message: %w", err)
	}
	return text, nil
}
