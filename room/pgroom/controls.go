package pgroom

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PassKey is a sealed pass key made by rotation.
type PassKey struct {
	ID      string // RFC 7638 thumbprint
	Sealed  []byte
	Created time.Time // creation time by the database's clock
}

// Controls stores what the admission of visitors depends on besides the transcript. It is safe for concurrent
// use.
type Controls struct{ pool *pgxpool.Pool }

// AddPassKey stores a key.
func (s *Controls) AddPassKey(ctx context.Context, id uuid.UUID, kid string, sealed []byte) error {
	if _, err := s.pool.Exec(ctx, `insert into room_pass_keys (room_id, key_id, sealed) values ($1, $2, $3)`, id,
		kid, sealed); err != nil {
		return fmt.Errorf("store pass key: %w", err)
	}
	return nil
}

// PassKeys returns the keys made by rotation, oldest first.
func (s *Controls) PassKeys(ctx context.Context, id uuid.UUID) ([]PassKey, error) {
	rows, _ := s.pool.Query(ctx,
		`select key_id, sealed, created_at from room_pass_keys where room_id = $1 order by created_at, key_id`, id)
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PassKey])
	if err != nil {
		return nil, fmt.Errorf("read pass keys: %w", err)
	}
	return keys, nil
}

// SetPull stores whether visitors are called only when a backend asks for them.
func (s *Controls) SetPull(ctx context.Context, id uuid.UUID, pull bool) error {
	const upsert = `insert into room_flow (room_id, pull) values ($1, $2) on conflict (room_id) do update set pull = excluded.pull`
	if _, err := s.pool.Exec(ctx, upsert, id, pull); err != nil {
		return fmt.Errorf("set who calls: %w", err)
	}
	return nil
}

// ControlValues are the part of a room that may change while its transcript does not grow.
type ControlValues struct {
	PassKeys int   // number of keys made by rotation
	Pull     bool  // visitors are called only when a backend asks for them
	Shift    int64 // live sessions minus unexpired passes
}

// Read reads the values of rooms in one round trip. Rooms without stored values are missing from the result.
func (s *Controls) Read(ctx context.Context, rooms []uuid.UUID) (map[uuid.UUID]ControlValues, error) {
	values := map[uuid.UUID]ControlValues{}
	ids := uuid.UUIDs(rooms).Strings()
	batch := &pgx.Batch{}
	gather(batch, `select room_id, count(*) from room_pass_keys where room_id = any($1::uuid[]) group by room_id`, ids,
		func(id uuid.UUID, keys int) { v := values[id]; v.PassKeys = keys; values[id] = v })
	gather(batch, `select room_id, pull from room_flow where room_id = any($1::uuid[])`, ids,
		func(id uuid.UUID, pull bool) { v := values[id]; v.Pull = pull; values[id] = v })
	gather(batch, `
		with moment as (select floor(extract(epoch from now()) * 1000)::bigint as ms)
		select room_id, count(*) filter (where until_ms > ms) - count(*) filter (where expires_ms > ms)
		from room_sessions, moment
		where room_id = any($1::uuid[]) and until_ms <> expires_ms and greatest(expires_ms, until_ms) > ms
		group by room_id`, ids,
		func(id uuid.UUID, shift int64) { v := values[id]; v.Shift = shift; values[id] = v })
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read room controls: %w", err)
	}
	return values, nil
}

// gather queues a query for one value per room.
func gather[T any](batch *pgx.Batch, query string, rooms []string, take func(uuid.UUID, T)) {
	batch.Queue(query, rooms).Query(func(rows pgx.Rows) error {
		var id uuid.UUID
		var value T
		_, err := pgx.ForEachRow(rows, []any{&id, &value}, func() error { take(id, value); return nil })
		return err
	})
}
