// Package pglive stores in PostgreSQL what package live keeps: one row per minute and room, the
// summaries of ended rooms, and the list of nodes. Only this package accesses the tables of
// migrations/0010_live.sql.
package pglive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotFound is returned when a room has no summary yet.
var ErrNotFound = errors.New("no summary yet")

// Store reads and writes these tables. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Minute describes a room in one minute. Sums count from the creation of the room to the end of the
// minute.
type Minute struct {
	Room      uuid.UUID
	At        time.Time // start of the minute
	Arrivals  int64
	Drawn     int64
	Called    int64
	Admitted  int64
	NoShows   int64
	Gone      int64 // left or revoked
	Waiting   int64 // visitors in line and not called, at the end of the minute
	Active    int64 // visitors expected or at the site, at the end of the minute
	Peak      int64 // most arrivals in a second
	PerMinute int64 // outflow in force
	MaxActive int64 // 0: no limit
	Paused    bool
}

const minuteColumns = `room_id, at, arrivals, drawn, called, admitted, no_shows, gone, waiting, active, peak, per_minute, max_active, paused`

// AddMinutes stores rows. It does not replace rows that another node has already stored.
func (s *Store) AddMinutes(ctx context.Context, minutes []Minute) error {
	const insert = `insert into live_minutes (` + minuteColumns +
		`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) on conflict do nothing`
	batch := &pgx.Batch{}
	for i := range minutes {
		m := &minutes[i]
		batch.Queue(insert, m.Room, m.At, m.Arrivals, m.Drawn, m.Called, m.Admitted, m.NoShows, m.Gone, m.Waiting,
			m.Active, m.Peak, m.PerMinute, m.MaxActive, m.Paused)
	}
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("store minutes: %w", err)
	}
	return nil
}

// Minutes returns a room's rows in the interval [from, to), in steps of whole minutes since the
// Unix epoch, oldest first. A step has the sums of its last minute and the maximum of other values.
// Steps without rows are omitted.
func (s *Store) Minutes(ctx context.Context, room uuid.UUID, from, to time.Time, step time.Duration) ([]Minute, error) {
	rows, _ := s.pool.Query(ctx, `
		select room_id, date_bin($4, at, 'epoch'::timestamptz) as step, max(arrivals), max(drawn), max(called),
		max(admitted), max(no_shows), max(gone),
			max(waiting), max(active), max(peak), (array_agg(per_minute order by at desc))[1], 
			(array_agg(max_active order by at desc))[1], bool_or(paused)
		from live_minutes where room_id = $1 and at >= $2 and at < $3
		group by room_id, step order by step`, room, from, to, step)
	minutes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Minute])
	if err != nil {
		return nil, fmt.Errorf("read minutes: %w", err)
	}
	for i := range minutes {
		minutes[i].At = minutes[i].At.UTC()
	}
	return minutes, nil
}

// pruneBatch is the number of rows per deletion, so that locks are short.
const pruneBatch = 10_000

// Prune deletes rows from before a time, and nodes last seen before it. It returns the number of
// rows of minutes deleted.
func (s *Store) Prune(ctx context.Context, before time.Time) (pruned int64, err error) {
	if _, err := s.pool.Exec(ctx, `delete from nodes where seen_at < $1`, before); err != nil {
		return 0, fmt.Errorf("prune nodes: %w", err)
	}
	for {
		tag, err := s.pool.Exec(ctx, `delete from live_minutes where (room_id, at) in (select room_id, at
			from live_minutes where at < $1 limit $2)`, before, pruneBatch)
		if err != nil {
			return pruned, fmt.Errorf("prune minutes: %w", err)
		}
		if pruned += tag.RowsAffected(); tag.RowsAffected() < pruneBatch {
			return pruned, nil
		}
	}
}

// AddSummary stores the summary of a room, a JSON document, unless there is one already.
func (s *Store) AddSummary(ctx context.Context, room uuid.UUID, summary []byte) error {
	if _, err := s.pool.Exec(ctx,
		`insert into room_summaries (room_id, summary) values ($1, $2) on conflict do nothing`, room,
		summary); err != nil {
		return fmt.Errorf("store summary: %w", err)
	}
	return nil
}

// Summary returns the summary of a room, or [ErrNotFound].
func (s *Store) Summary(ctx context.Context, room uuid.UUID) (summary []byte, err error) {
	err = s.pool.QueryRow(ctx, `select summary from room_summaries where room_id = $1`, room).Scan(&summary)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read summary: %w", err)
	}
	return summary, nil
}

// Node is a server process that uses the database.
type Node struct {
	ID         uuid.UUID
	Name       string
	Version    string
	Started    time.Time
	Seen       time.Time     // set by [Store.SeeNode]
	Ago        time.Duration // time since Seen, by the database's clock, when the row was read
	Healthy    bool
	Rooms      int // loaded rooms
	Goroutines int
	Heap       int64 // size of the heap, in bytes
	Ahead      time.Duration
	Refused    map[string]uint64 // requests refused since the start, by limit
}

// SeeNode stores the heartbeat of a node, and returns all nodes seen within since, oldest first.
func (s *Store) SeeNode(ctx context.Context, n Node, since time.Duration) (nodes []Node, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`insert into nodes (node_id, name, version, started_at, healthy, rooms, goroutines, heap, ahead_ms,
		refused) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		on conflict (node_id) do update set
			seen_at = clock_timestamp(), healthy = excluded.healthy, rooms = excluded.rooms,
			goroutines = excluded.goroutines, heap = excluded.heap, ahead_ms = excluded.ahead_ms,
			refused = excluded.refused`,
		n.ID, n.Name, n.Version, n.Started, n.Healthy, n.Rooms, n.Goroutines, n.Heap, n.Ahead.Milliseconds(), n.Refused)
	batch.Queue(`select node_id, name, version, started_at, seen_at, clock_timestamp() - seen_at, healthy, rooms,
		goroutines, heap, ahead_ms * interval '1 millisecond', refused
		from nodes where seen_at > clock_timestamp() - $1::interval
		order by started_at, node_id`, since).Query(func(rows pgx.Rows) (err error) {
		nodes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Node])
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("exchange heartbeats: %w", err)
	}
	return nodes, nil
}

// LeaveNode deletes a node that shuts down.
func (s *Store) LeaveNode(ctx context.Context, id uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, `delete from nodes where node_id = $1`, id); err != nil {
		return fmt.Errorf("remove node: %w", err)
	}
	return nil
}
