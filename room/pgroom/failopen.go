package pgroom

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// FailOpen is a fail-open interval, in milliseconds since the Unix epoch.
type FailOpen struct {
	ID          uuid.UUID // random, chosen by the connector
	From, Until int64
	Requests    int64 // requests let in during the interval
}

// maxWaiting is the maximum number of a room's reports that wait to be recorded.
const maxWaiting = 1_000

// claimed is how long a node may hold claimed reports before another node takes them over.
const claimed = `interval '1 minute'`

// AddFailOpen stores new reports, and returns those that are already in the transcript. A report that ends
// in the future, because the connector's clock is fast, is moved back. A room with too many waiting reports
// accepts no more for now.
func (s *Connectors) AddFailOpen(ctx context.Context, room uuid.UUID,
	list []FailOpen) (recorded map[uuid.UUID]bool, err error) {
	ids, from, until, requests := make([]string, len(list)), make([]int64, len(list)), make([]int64,
		len(list)), make([]int64, len(list))
	for i, u := range list {
		ids[i], from[i], until[i], requests[i] = u.ID.String(), u.From, u.Until, u.Requests
	}
	recorded = map[uuid.UUID]bool{}
	batch := &pgx.Batch{}
	batch.Queue(`insert into room_fail_open (room_id, report_id, from_ms, until_ms, requests)
		select $1, report, greatest(from_ms - greatest(until_ms - now_ms, 0), 1), least(until_ms, now_ms), requests
		from unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[]) as told (report, from_ms, until_ms,
			requests), `+clock+`
		where (select count(*) from room_fail_open where room_id = $1 and recorded_at is null) < $6 order by report on conflict do nothing`,
		room, ids, from, until, requests, maxWaiting)
	batch.Queue(`select report_id from room_fail_open where room_id = $1 and report_id = any($2::uuid[]) and recorded_at is not null`, room, ids).Query(collect(recorded))
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("store fail-open reports: %w", err)
	}
	return recorded, nil
}

// Claim is a set of reports that one node records in the transcript as one entry.
type Claim struct {
	ID      uuid.UUID
	IsAgain bool // another node had claimed the reports, and may have recorded them
	Reports []FailOpen
}

// ClaimFailOpen claims waiting reports: those of an earlier claim that was not finished within a minute, or else
// up to most unclaimed ones, oldest first. If none wait, the claim is empty.
func (s *Connectors) ClaimFailOpen(ctx context.Context, room uuid.UUID, most int) (c Claim, err error) {
	const returning = ` returning report_id, from_ms, until_ms, requests, claim`
	c.Reports, c.ID, err = s.claim(ctx, `update room_fail_open set claimed_at = clock_timestamp()
		where room_id = $1 and recorded_at is null and claimed_at < clock_timestamp() - `+claimed+` and claim = (
			select claim from room_fail_open where room_id = $1 and recorded_at is null and claimed_at < clock_timestamp() - `+claimed+` order by claimed_at, claim limit 1)`+returning, room)
	if err != nil || len(c.Reports) > 0 {
		c.IsAgain = true
		return c, err
	}
	c.Reports, c.ID, err = s.claim(ctx, `update room_fail_open set claim = $2, claimed_at = clock_timestamp()
		where room_id = $1 and report_id in (
			select report_id from room_fail_open where room_id = $1 and recorded_at is null and claim is null order by from_ms, report_id limit $3 for update skip locked)`+returning,
		room, uuid.New(), most)
	return c, err
}

func (s *Connectors) claim(ctx context.Context, query string,
	args ...any) (list []FailOpen, claim uuid.UUID, err error) {
	rows, _ := s.pool.Query(ctx, query, args...)
	var u FailOpen
	_, err = pgx.ForEachRow(rows, []any{&u.ID, &u.From, &u.Until, &u.Requests, &claim},
		func() error { list = append(list, u); return nil })
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("claim fail-open reports: %w", err)
	}
	return list, claim, nil
}

// MarkRecorded notes that the reports of a claim are in the transcript.
func (s *Connectors) MarkRecorded(ctx context.Context, room, claim uuid.UUID) error {
	if _, err := s.pool.Exec(ctx,
		`update room_fail_open set recorded_at = clock_timestamp() where room_id = $1 and claim = $2 and recorded_at is null`, room, claim); err != nil {
		return fmt.Errorf("mark fail-open reports: %w", err)
	}
	return nil
}

// Unclaim releases reports that were not recorded.
func (s *Connectors) Unclaim(ctx context.Context, room, claim uuid.UUID) error {
	if _, err := s.pool.Exec(ctx,
		`update room_fail_open set claim = null, claimed_at = null where room_id = $1 and claim = $2 and recorded_at is null`, room, claim); err != nil {
		return fmt.Errorf("release fail-open reports: %w", err)
	}
	return nil
}

// WaitingFailOpen returns the given rooms that have reports to record.
func (s *Connectors) WaitingFailOpen(ctx context.Context, rooms []uuid.UUID) ([]uuid.UUID, error) {
	rows, _ := s.pool.Query(ctx,
		`select distinct room_id from room_fail_open where room_id = any($1::uuid[]) and recorded_at is null`,
		texts(rooms))
	list, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list fail-open reports: %w", err)
	}
	return list, nil
}
