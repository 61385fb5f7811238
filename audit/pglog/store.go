// Package pglog stores logs in PostgreSQL, one per room, in the tables created by
// migrations/0001_log.sql. No other package uses these tables.
//
// An append is one transaction: lock the room's head row, read the database's clock, catch up on
// what other nodes appended, build the new entries, extend the tree, sign the checkpoint; then, in one
// write, store the entries, update the head and commit. Under load, the lock of the next append is
// requested in that same write. Logs that append a few entries at a time share transactions. The
// holder of the row lock is the room's only sequencer, so any number of nodes may append to the same
// room.
//
// Invariants: entries and tile roots are only ever inserted; a head's size, root and checkpoint
// always belong together; a checkpoint leaves the package only after its entries are durable; the
// published checkpoint never shrinks.
package pglog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit"
)

var (
	// ErrNotFound is returned when the log, or the requested part of it, does not exist.
	ErrNotFound = errors.New("not in the log")
	// ErrExists is returned when a log is created twice.
	ErrExists = errors.New("log already exists")
	// ErrUnconfirmed is returned when PostgreSQL gave up waiting for a synchronous standby and
	// committed. A failover may lose the commit.
	ErrUnconfirmed = errors.New("the commit was not confirmed by a synchronous standby")
	// ErrWentBack is returned, together with ErrCorrupt, when a log lacks entries that the handle has
	// read or appended.
	ErrWentBack = errors.New("the log went back")
	// ErrCorrupt is returned when stored entries do not hash to the stored root.
	ErrCorrupt = errors.New("stored log is corrupt")
)

// Role is the database role that the server uses. It cannot update or delete entries.
const Role = "proofline_server"

// Store reads logs and creates handles to append to them. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	stalls *stalls
	stamp  func(clock time.Time) (time.Time, error) // see [Store.Stamp]; nil: the database's clock

	archive Archive // see [Store.ReadArchive]; nil: there is none

	guarded     atomic.Bool                 // see [Store.Guard]
	accepted    atomic.Pointer[Incarnation] // nil: none yet
	begun       chan struct{}               // closed once an incarnation is accepted
	synchronous atomic.Bool                 // commits wait for standbys, as of the latest Heads

	group group // appends that share transactions
}

// NewStore returns a store on a migrated database. It logs nothing until [Store.LogTo] is called.
func NewStore(pool *pgxpool.Pool) *Store {
	s := &Store{pool: pool, begun: make(chan struct{}),
		stalls: &stalls{pool: pool, log: slog.New(slog.DiscardHandler), waiting: map[uint32]struct{}{}}}
	s.group.store = s
	return s
}

// LogTo sets the logger for what the store does to other nodes' connections. It must be called
// before the first append.
func (s *Store) LogTo(log *slog.Logger) { s.stalls.log = log }

// Create creates an empty log inside the caller's transaction. It returns [ErrExists] if the log
// already exists.
func (s *Store) Create(ctx context.Context, tx pgx.Tx, room uuid.UUID) error {
	root := new(audit.Tree).Root()
	tag, err := tx.Exec(ctx, `insert into log_heads (room_id, root) values ($1, $2) on conflict do nothing`, room,
		root[:])
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrExists
	}
	return nil
}

// Checkpoint returns the published checkpoint, a signed note, or [ErrNotFound] before the first
// entry.
func (s *Store) Checkpoint(ctx context.Context, room uuid.UUID) ([]byte, error) {
	var note string
	err := s.pool.QueryRow(ctx, `select published from log_heads where room_id = $1 and published <> ''`,
		room).Scan(&note)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	return []byte(note), nil
}

// Publish publishes the newest checkpoints of logs, except of those that are being appended to.
func (s *Store) Publish(ctx context.Context, rooms []uuid.UUID) error {
	if len(rooms) == 0 {
		return nil
	}
	_, err := s.pool.Exec(ctx, `update log_heads
		set published = checkpoint, published_size = size, published_at = clock_timestamp()
		where room_id in (select room_id from log_heads
			where room_id = any($1::uuid[]) and published_size < size for update skip locked)`,
		uuid.UUIDs(rooms).Strings())
	if err != nil {
		return fmt.Errorf("publish checkpoint: %w", err)
	}
	return nil
}

// Head describes the end of a log.
type Head struct {
	Room        uuid.UUID
	Size        uint64
	Published   uint64    // size of the published checkpoint
	PublishedAt time.Time // time of the database's clock
	Held        bool      // see [Store.Hold] and [Store.Abandon]
}

// Heads returns the heads of those rooms that have a log, and the database's clock. It returns
// [ErrUnsettled] if the database is another incarnation.
func (s *Store) Heads(ctx context.Context, rooms []uuid.UUID) (heads []Head, now time.Time, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`select room_id, size, published_size, published_at, held_size is not null or abandoned <> '' from log_heads where room_id = any($1::uuid[])`, uuid.UUIDs(rooms).Strings()).Query(func(rows pgx.Rows) (err error) {
		heads, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Head])
		return err
	})
	var synchronous bool
	batch.Queue(`select clock_timestamp(), current_setting('synchronous_standby_names') <> ''`).QueryRow(func(row pgx.Row) error { return row.Scan(&now, &synchronous) })
	conn, err := s.acquire(ctx, toAppend)
	if err != nil {
		return nil, now, fmt.Errorf("read heads: %w", err)
	}
	defer conn.Release()
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return nil, now, fmt.Errorf("read heads: %w", err)
	}
	s.synchronous.Store(synchronous)
	return heads, now, nil
}

// Tile returns the content of a tile or entry bundle, or [ErrNotFound] unless the log has all of
// it.
func (s *Store) Tile(ctx context.Context, room uuid.UUID, t audit.Tile) ([]byte, error) {
	if !t.In(audit.MaxSize) {
		return nil, ErrNotFound
	}
	content := make([]byte, 0, t.Width*len(audit.Hash{}))
	first, n := t.Index*audit.TileWidth, 0
	if t.Level > 0 {
		rows, _ := s.pool.Query(ctx, `select hash from log_tile_roots
			where room_id = $1 and level = $2 and index >= $3 and index < $4 and `+isHere+` order by index`,
			room, int16(t.Level), int64(first), int64(first)+int64(t.Width)) //nolint:gosec // both bounded by In
		var hash pgtype.DriverBytes
		_, err := pgx.ForEachRow(rows, []any{&hash}, func() error {
			content = append(content, hash...)
			n++
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read tile: %w", err)
		}
	} else {
		last := first + uint64(t.Width)                                              //nolint:gosec // never negative
		rows, _ := s.pool.Query(ctx, selectBundles, room, int64(first), int64(last)) //nolint:gosec // both bounded by In
		if err := eachEntry(rows, first, last, func(entry []byte) (err error) {
			n++
			if t.Level < 0 {
				content, err = audit.AppendBundle(content, entry)
				return err
			}
			leaf := audit.LeafHash(entry)
			content = append(content, leaf[:]...)
			return nil
		}); err != nil {
			return nil, fmt.Errorf("read tile: %w", err)
		}
	}
	if n != t.Width {
		return s.archivedTile(ctx, room, t)
	}
	return content, nil
}

// Receipt proves an entry against the newest checkpoint. Errors are [ErrNotFound] and [ErrCorrupt].
func (s *Store) Receipt(ctx context.Context, room uuid.UUID, index uint64) ([]byte, error) {
	var size int64
	var root []byte
	var note string
	err := s.pool.QueryRow(ctx, `select size, root, checkpoint from log_heads where room_id = $1`,
		room).Scan(&size, &root, &note)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && uint64(size) <= index { //nolint:gosec // never negative
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read head: %w", err)
	}
	head := audit.Checkpoint{Size: uint64(size), Root: audit.Hash(root)} //nolint:gosec // never negative
	fetch := func(ctx context.Context, t audit.Tile) ([]byte, error) { return s.Tile(ctx, room, t) }
	path, err := audit.ProveInclusion(ctx, fetch, head, index)
	if errors.Is(err, ErrNotFound) || errors.Is(err, audit.ErrTile) {
		err = fmt.Errorf("%w: %s", ErrCorrupt, err.Error()) // not ErrNotFound: the log should have all tiles
	}
	if err != nil {
		return nil, fmt.Errorf("prove entry %d: %w", index, err)
	}
	return audit.Proof{Index: index, Path: path, Checkpoint: []byte(note)}.Marshal(), nil
}
