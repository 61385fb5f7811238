package pgroom

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Connectors stores what connectors report: nodes, unqueued sessions and fail-open intervals. It is safe for
// concurrent use.
type Connectors struct{ pool *pgxpool.Pool }

// Reports are what connectors reported about a room's unqueued sessions since the previous batch.
type Reports struct {
	Nodes                  []uuid.UUID // nodes that reported
	Started, Active, Ended []uuid.UUID // sessions
	Length                 int64       // duration of a session after each activity, in ms
	MaxLength              int64       // maximum duration of a session, in ms
}

// Unqueued holds the counts of a room's unqueued sessions at one moment.
type Unqueued struct {
	Started uint64 // sessions that began in the last minute
	Active  uint64 // live sessions
	Nodes   uint64 // nodes that reported in the last ten seconds
}

// maxNodes is the approximate maximum of a room's nodes: a token holder could invent more.
const maxNodes = 20_000

// clock is a table with the database's clock, which is read once.
const clock = `(select ` + clockMS + ` as now_ms offset 0) as clock`

// AddReports stores a batch of reports, all or nothing, and returns the counts after that. A session that was
// already reported does not begin again.
func (s *Connectors) AddReports(ctx context.Context, room uuid.UUID, n Reports) (Unqueued, error) {
	batch := &pgx.Batch{}
	queueLock(batch, room)
	if len(n.Nodes) > 0 {
		batch.Queue(`insert into room_connectors as known (room_id, node, seen_ms)
			select distinct $1::uuid, node.node, now_ms from unnest($2::uuid[]) as node (node), `+clock+`
			where exists (select from room_connectors k where k.room_id = $1 and k.node = node.node) or (select count(*) from room_connectors where room_id = $1) < $3 order by node.node
			on conflict (room_id, node) do update set seen_ms = excluded.seen_ms where known.seen_ms < excluded.seen_ms - 2000`, room, texts(n.Nodes), maxNodes)
	}
	if len(n.Started) > 0 {
		batch.Queue(`insert into room_free_sessions (room_id, session_id, began_ms, until_ms)
			select distinct $1::uuid, session, now_ms, now_ms + $3::bigint
			from unnest($2::uuid[]) as session, `+clock+` order by session
			on conflict do nothing`, room, texts(n.Started), n.Length)
	}
	const those = ` where room_id = $1 and session_id = any($2::uuid[]) and until_ms > ` + clockMS
	if len(n.Active) > 0 {
		batch.Queue(`update room_free_sessions set until_ms = greatest(until_ms, least(`+clockMS+` + $3::bigint, began_ms + $4::bigint))`+those, room, texts(n.Active), n.Length, n.MaxLength)
	}
	if len(n.Ended) > 0 {
		batch.Queue(`update room_free_sessions set until_ms = `+clockMS+`, ended_ms = `+clockMS+those, room,
			texts(n.Ended))
	}
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return Unqueued{}, fmt.Errorf("store connector reports: %w", err)
	}
	all, err := s.CountUnqueued(ctx, []uuid.UUID{room}) // outside of the transaction
	return all[room], err
}

// queueLock makes transactions that change many sessions of a room run one after the other, so that they cannot
// deadlock, whatever the order in which the database finds the rows. It also forces custom plans: a generic plan,
// made while the table was small, would compare each session with each element of a list.
func queueLock(batch *pgx.Batch, room uuid.UUID) {
	batch.Queue(`select pg_advisory_xact_lock(hashtextextended('proofline sessions ' || $1::text, 0)), set_config('plan_cache_mode', 'force_custom_plan', true)`, room.String())
}

func texts(ids []uuid.UUID) []string { return uuid.UUIDs(ids).Strings() }

// CountUnqueued counts the unqueued sessions of rooms.
func (s *Connectors) CountUnqueued(ctx context.Context, rooms []uuid.UUID) (map[uuid.UUID]Unqueued, error) {
	if len(rooms) == 0 {
		return nil, nil
	}
	all := make(map[uuid.UUID]Unqueued, len(rooms))
	batch := &pgx.Batch{}
	queueCounts(batch, rooms, func(id uuid.UUID, u Unqueued) { all[id] = u })
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("count unqueued sessions: %w", err)
	}
	return all, nil
}

// queueCounts queues the counts of all given rooms; the indices cover them.
func queueCounts(batch *pgx.Batch, rooms []uuid.UUID, take func(uuid.UUID, Unqueued)) {
	batch.Queue(`select id,
			(select count(*) from room_free_sessions where room_id = id and began_ms > now_ms - 60000),
			(select count(*) from room_free_sessions where room_id = id and until_ms > now_ms),
			(select count(*) from room_connectors where room_id = id and seen_ms > now_ms - 10000)
		from unnest($1::uuid[]) as id, `+clock, texts(rooms)).Query(func(rows pgx.Rows) error {
		var id uuid.UUID
		var u Unqueued
		_, err := pgx.ForEachRow(rows, []any{&id, &u.Started, &u.Active, &u.Nodes},
			func() error { take(id, u); return nil })
		return err
	})
}

// DeleteExpired deletes sessions that ended and connectors that last reported longer ago than over, and fail-open
// reports that were recorded longer ago than recorded.
func (s *Connectors) DeleteExpired(ctx context.Context, over, recorded time.Duration) error {
	batch := &pgx.Batch{}
	batch.Queue(`delete from room_free_sessions where until_ms < `+clockMS+` - $1::bigint`, over.Milliseconds())
	batch.Queue(`delete from room_connectors where seen_ms < `+clockMS+` - $1::bigint`, over.Milliseconds())
	batch.Queue(`delete from room_fail_open where recorded_at < clock_timestamp() - $1::interval`, recorded)
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("delete ended sessions and reports: %w", err)
	}
	return nil
}
