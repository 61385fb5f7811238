package pgroom

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Admission is a pass with its times, in milliseconds since the Unix epoch.
type Admission struct {
	Room, Pass uuid.UUID
	Expires    int64 // when the pass expires, and the session if the pass is not redeemed
	Ends       int64 // when the session ends if the pass is redeemed, without touch or release
}

// Session is the state of an admission's session.
type Session struct {
	Until    int64 // milliseconds since the Unix epoch
	Redeemed bool
	Released bool

	Changed bool // this request changed the session
}

// ClientSize is the length of a [Client], in bytes.
const ClientSize = 16

// Client identifies the client that redeems a pass; empty: not given.
type Client []byte

// redeemAgain is how long the same client may redeem a pass again, in case the response was lost.
const redeemAgain = `interval '30 seconds'`

// clockMS is the database's clock in milliseconds: the current time, not the start of the transaction,
// because a transaction that waited for another may come too late.
const clockMS = `floor(extract(epoch from clock_timestamp()) * 1000)::bigint`

// Sessions stores the sessions of admitted visitors. It is safe for concurrent use.
type Sessions struct {
	pool    *pgxpool.Pool
	acquire func(context.Context) (*pgxpool.Conn, error)
}

// Through makes the store read and change sessions on connections that acquire returns. It must be called
// before the first use.
func (s *Sessions) Through(acquire func(context.Context) (*pgxpool.Conn, error)) { s.acquire = acquire }

// Redeem uses up a pass. Of concurrent requests on all nodes, only one changes the session; requests of the same
// client within the following 30 s do, too. No request does once the pass has expired or its session was released.
func (s *Sessions) Redeem(ctx context.Context, a Admission, c Client) (Session, error) {
	var by []byte
	if len(c) > 0 {
		by = c
	}
	batch := &pgx.Batch{}
	insertSession(batch, a)
	batch.Queue(`update room_sessions set redeemed_at = clock_timestamp(), redeemed_by = $4, until_ms = greatest(until_ms, $3::bigint)
		where redeemed_at is null and until_ms > `+clockMS+` and room_id = $1 and pass_id = $2 and released_at is null`, a.Room, a.Pass, a.Ends, by)
	batch.Queue(`select until_ms, redeemed_at is not null, released_at is not null,
			case when redeemed_at > clock_timestamp() - `+redeemAgain+` and released_at is null then redeemed_by end
		from room_sessions where room_id = $1 and pass_id = $2`, a.Room, a.Pass)
	var lately []byte // the client that redeemed it
	session, err := s.send(ctx, batch, &lately)
	if len(by) > 0 && subtle.ConstantTimeCompare(by, lately) == 1 {
		session.Changed = true
	}
	return session, err
}

// Touch makes a session last length milliseconds from now, but not beyond most, unless it has ended or its pass
// was never redeemed.
func (s *Sessions) Touch(ctx context.Context, a Admission, length, most int64) (Session, error) {
	return s.change(ctx, a, `set until_ms = greatest(until_ms, least(`+clockMS+` + $3::bigint, $4::bigint)) where redeemed_at is not null and until_ms > `+clockMS, length, most)
}

// Keep extends a session as if its pass were redeemed; the pass can still be redeemed.
func (s *Sessions) Keep(ctx context.Context, a Admission) (Session, error) {
	return s.change(ctx, a, `set until_ms = greatest(until_ms, $3::bigint) where until_ms > `+clockMS, a.Ends)
}

// Session reads a session. A session without a row ends with its pass.
func (s *Sessions) Session(ctx context.Context, a Admission) (Session, error) {
	session := Session{Until: a.Expires}
	conn, err := s.acquire(ctx)
	if err != nil {
		return session, fmt.Errorf("read session: %w", err)
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, `select until_ms, redeemed_at is not null, released_at is not null from room_sessions where room_id = $1 and pass_id = $2`,
		a.Room, a.Pass).Scan(&session.Until, &session.Redeemed, &session.Released)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return session, fmt.Errorf("read session: %w", err)
	}
	return session, nil
}

// Release ends a session now, unless it has ended.
func (s *Sessions) Release(ctx context.Context, a Admission) (Session, error) {
	return s.change(ctx, a, `set released_at = clock_timestamp(), until_ms = `+clockMS+` where until_ms > `+clockMS)
}

func insertSession(batch *pgx.Batch, a Admission) {
	batch.Queue(`insert into room_sessions (room_id, pass_id, expires_ms, until_ms) values ($1, $2, $3, $3) on conflict do nothing`, a.Room, a.Pass, a.Expires)
}

// change makes sure that the session has a row, updates it unless it was released, and reads it. The update waits
// for a concurrent one, and then sees its result.
func (s *Sessions) change(ctx context.Context, a Admission, update string, args ...any) (session Session, err error) {
	batch := &pgx.Batch{}
	insertSession(batch, a)
	batch.Queue(`update room_sessions `+update+` and room_id = $1 and pass_id = $2 and released_at is null`,
		append([]any{a.Room, a.Pass}, args...)...)
	batch.Queue(`select until_ms, redeemed_at is not null, released_at is not null from room_sessions where room_id = $1 and pass_id = $2`, a.Room, a.Pass)
	return s.send(ctx, batch)
}

// send runs a batch of one insert, one update and one query of a session, which may have additional columns.
func (s *Sessions) send(ctx context.Context, batch *pgx.Batch, more ...any) (session Session, err error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return session, fmt.Errorf("change session: %w", err)
	}
	defer conn.Release()
	results := conn.SendBatch(ctx, batch)
	defer func() {
		if err = errors.Join(err, results.Close()); err != nil {
			err = fmt.Errorf("change session: %w", err)
		}
	}()
	if _, err := results.Exec(); err != nil {
		return session, err
	}
	tag, err := results.Exec()
	if err != nil {
		return session, err
	}
	session.Changed = tag.RowsAffected() == 1
	return session, results.QueryRow().Scan(append([]any{&session.Until, &session.Redeemed, &session.Released},
		more...)...)
}

// Changes are touches and releases of many sessions of a room.
type Changes struct {
	Touch, Release []Admission
	Length         int64 // duration of a session after a touch, in ms
	More           int64 // how long after the pass has expired touches may extend a session, in ms
}

// Changed groups passes by what happened to their sessions. A session that had already ended is in none of the
// groups.
type Changed struct {
	Touched    map[uuid.UUID]bool // extended by a touch
	Unredeemed map[uuid.UUID]bool // not touched, because the pass was never redeemed
	Released   map[uuid.UUID]bool // released, now or before
}

// ChangeAll makes the changes in one transaction, touches first.
func (s *Sessions) ChangeAll(ctx context.Context, room uuid.UUID, c Changes) (Changed, error) {
	batch := &pgx.Batch{}
	queueLock(batch, room)
	done := Changed{map[uuid.UUID]bool{}, map[uuid.UUID]bool{}, map[uuid.UUID]bool{}}
	if passes, expire := listed(c.Touch); len(passes) > 0 {
		insertSessions(batch, room, passes, expire)
		queueAll(batch, `set until_ms = greatest(until_ms, least(`+clockMS+` + $3::bigint, expires_ms + $4::bigint))`,
			`redeemed_at is not null`, done.Touched, room, passes, c.Length, c.More)
		batch.Queue(`select pass_id from room_sessions
			where room_id = $1 and pass_id = any($2::uuid[]) and redeemed_at is null and released_at is null and until_ms > `+clockMS, room, passes).
			Query(collect(done.Unredeemed))
	}
	if passes, expire := listed(c.Release); len(passes) > 0 {
		insertSessions(batch, room, passes, expire)
		queueAll(batch, `set released_at = clock_timestamp(), until_ms = `+clockMS, `true`, done.Released, room, passes)
		batch.Queue(`select pass_id from room_sessions where room_id = $1 and pass_id = any($2::uuid[]) and released_at is not null`, room, passes).
			Query(collect(done.Released))
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return Changed{}, fmt.Errorf("change sessions: %w", err)
	}
	defer conn.Release()
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return Changed{}, fmt.Errorf("change sessions: %w", err)
	}
	return done, nil
}

// RedeemAgain stores redemptions that the database has lost, unless their sessions would have ended without a
// touch or release, and returns their number.
func (s *Sessions) RedeemAgain(ctx context.Context, list []Admission) (int64, error) {
	var rooms, passes []string
	var expire, ends []int64
	for _, a := range list {
		rooms, passes, expire, ends = append(rooms, a.Room.String()), append(passes,
			a.Pass.String()), append(expire, a.Expires), append(ends, a.Ends)
	}
	tag, err := s.pool.Exec(ctx, `insert into room_sessions as s (room_id, pass_id, expires_ms, until_ms, redeemed_at)
		select distinct on (room, pass) room, pass, expires, ends, clock_timestamp()
		from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[]) as seen (room, pass, expires, ends)
		where ends > `+clockMS+`
			and not exists (select from room_sessions where room_id = room and pass_id = pass and redeemed_at is not null)
		order by room, pass
		on conflict (room_id, pass_id) do update set redeemed_at = excluded.redeemed_at, until_ms = greatest(s.until_ms, excluded.until_ms)
			where s.redeemed_at is null and s.released_at is null`, rooms, passes, expire, ends)
	if err != nil {
		return 0, fmt.Errorf("redeem passes again: %w", err)
	}
	return tag.RowsAffected(), nil
}

// listed returns the passes and their expiry times as lists.
func listed(list []Admission) (passes []string, expire []int64) {
	for _, a := range list {
		passes, expire = append(passes, a.Pass.String()), append(expire, a.Expires)
	}
	return passes, expire
}

func insertSessions(batch *pgx.Batch, room uuid.UUID, passes []string, expire []int64) {
	batch.Queue(`insert into room_sessions (room_id, pass_id, expires_ms, until_ms)
		select $1, pass, at, at from unnest($2::uuid[], $3::bigint[]) as all_of (pass, at)
		on conflict do nothing`, room, passes, expire)
}

// queueAll queues an update of the sessions that have not ended and meet a condition, and collects their passes.
func queueAll(batch *pgx.Batch, update, condition string, changed map[uuid.UUID]bool, room uuid.UUID,
	passes []string, args ...any) {
	batch.Queue(`update room_sessions `+update+`
		where room_id = $1 and pass_id = any($2::uuid[]) and released_at is null and `+condition+` and until_ms > `+clockMS+` returning pass_id`,
		append([]any{room, passes}, args...)...).Query(collect(changed))
}

// collect adds the ids that a query returns to a set.
func collect(ids map[uuid.UUID]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var id uuid.UUID
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { ids[id] = true; return nil })
		return err
	}
}
