package pgroom

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Unguarded is a time in which a connector let everybody in, in milliseconds
// since the Unix epoch.
type Unguarded struct {
	ID          uuid.UUID // random, made by the connector
	From, Until int64
	Requests    int64 // that were let in
}

// waitingMost is how many reports of a room wait for its transcript at most.
const waitingMost = 1_000

// claimed is how long whoever took reports on has, before somebody else does.
const claimed = `interval '1 minute'`

// AddUnguarded stores reports that are not known and returns those that are in
// the transcript. One whose end is to come, by a connector whose clock is ahead,
// is moved back. A room for which too many wait takes no more for now.
func (s *Store) AddUnguarded(ctx context.Context, room uuid.UUID, list []Unguarded) (recorded map[uuid.UUID]bool, err error) {
	ids, from, until, requests := make([]string, len(list)), make([]int64, len(list)), make([]int64, len(list)), make([]int64, len(list))
	for i, u := range list {
		ids[i], from[i], until[i], requests[i] = u.ID.String(), u.From, u.Until, u.Requests
	}
	recorded = map[uuid.UUID]bool{}
	batch := &pgx.Batch{}
	batch.Queue(`insert into room_unguarded (room_id, report_id, from_ms, until_ms, requests)
		select $1, report, greatest(from_ms - greatest(until_ms - now_ms, 0), 1), least(until_ms, now_ms), requests
		from unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[]) as told (report, from_ms, until_ms, requests), `+clock+`
		where (select count(*) from room_unguarded where room_id = $1 and recorded_at is null) < $6 order by report on conflict do nothing`,
		room, ids, from, until, requests, waitingMost)
	batch.Queue(`select report_id from room_unguarded where room_id = $1 and report_id = any($2::uuid[]) and recorded_at is not null`, room, ids).Query(collect(recorded))
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("store unguarded times: %w", err)
	}
	return recorded, nil
}

// Claim is reports that one node puts into the transcript, as one entry.
type Claim struct {
	ID      uuid.UUID
	IsAgain bool // another node had taken them on, and may have done it
	Reports []Unguarded
}

// ClaimUnguarded takes reports on that wait: those of an earlier claim that was
// not finished within a minute, or else at most so many that nobody took on,
// oldest first. Without any the claim has no reports.
func (s *Store) ClaimUnguarded(ctx context.Context, room uuid.UUID, most int) (c Claim, err error) {
	const returning = ` returning report_id, from_ms, until_ms, requests, claim`
	c.Reports, c.ID, err = s.claim(ctx, `update room_unguarded set claimed_at = clock_timestamp()
		where room_id = $1 and recorded_at is null and claimed_at < clock_timestamp() - `+claimed+` and claim = (
			select claim from room_unguarded where room_id = $1 and recorded_at is null and claimed_at < clock_timestamp() - `+claimed+` order by claimed_at, claim limit 1)`+returning, room)
	if err != nil || len(c.Reports) > 0 {
		c.IsAgain = true
		return c, err
	}
	c.Reports, c.ID, err = s.claim(ctx, `update room_unguarded set claim = $2, claimed_at = clock_timestamp()
		where room_id = $1 and report_id in (
			select report_id from room_unguarded where room_id = $1 and recorded_at is null and claim is null order by from_ms, report_id limit $3 for update skip locked)`+returning,
		room, uuid.New(), most)
	return c, err
}

func (s *Store) claim(ctx context.Context, query string, args ...any) (list []Unguarded, claim uuid.UUID, err error) {
	rows, _ := s.pool.Query(ctx, query, args...)
	var u Unguarded
	_, err = pgx.ForEachRow(rows, []any{&u.ID, &u.From, &u.Until, &u.Requests, &claim}, func() error { list = append(list, u); return nil })
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("claim unguarded times: %w", err)
	}
	return list, claim, nil
}

// MarkRecorded notes that the reports of a claim are in the transcript.
func (s *Store) MarkRecorded(ctx context.Context, room, claim uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, `update room_unguarded set recorded_at = clock_timestamp() where room_id = $1 and claim = $2 and recorded_at is null`, room, claim); err != nil {
		return fmt.Errorf("mark unguarded times: %w", err)
	}
	return nil
}

// Unclaim gives reports back that were not put into the transcript.
func (s *Store) Unclaim(ctx context.Context, room, claim uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, `update room_unguarded set claim = null, claimed_at = null where room_id = $1 and claim = $2 and recorded_at is null`, room, claim); err != nil {
		return fmt.Errorf("give unguarded times back: %w", err)
	}
	return nil
}

// WaitingUnguarded returns which of these rooms have reports that wait for their
// transcripts.
func (s *Store) WaitingUnguarded(ctx context.Context, rooms []uuid.UUID) ([]uuid.UUID, error) {
	rows, _ := s.pool.Query(ctx, `select distinct room_id from room_unguarded where room_id = any($1::uuid[]) and recorded_at is null`, texts(rooms))
	list, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list unguarded times: %w", err)
	}
	return list, nil
}
