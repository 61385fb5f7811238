package pgroom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Report is the organizer's audit report of a room.
type Report struct {
	Made    time.Time
	Entries uint64 // entries of the audited transcript
	Level   int    // assurance level; 0: a check failed
	HTML    []byte // gzip-compressed
}

// SetReport stores the report of a room, and replaces an earlier one.
func (s *Store) SetReport(ctx context.Context, id uuid.UUID, r Report) error {
	_, err := s.pool.Exec(ctx,
		`insert into room_reports (room_id, made_at, entries, level, html) values ($1, $2, $3, $4, $5)
		on conflict (room_id) do update set made_at = excluded.made_at, entries = excluded.entries, level = excluded.level, html = excluded.html`,
		id, r.Made, int64(r.Entries), r.Level, r.HTML) //nolint:gosec // entries are numbered by the same type
	if err != nil {
		return fmt.Errorf("store report: %w", err)
	}
	return nil
}

// Report returns the report of a room with its HTML, or [ErrNotFound].
func (s *Store) Report(ctx context.Context, id uuid.UUID) (Report, error) {
	return s.report(ctx, `select made_at, entries, level, html from room_reports where room_id = $1`, id)
}

// ReportHead returns the report of a room without its HTML.
func (s *Store) ReportHead(ctx context.Context, id uuid.UUID) (Report, error) {
	return s.report(ctx, `select made_at, entries, level, null::bytea from room_reports where room_id = $1`, id)
}

func (s *Store) report(ctx context.Context, query string, id uuid.UUID) (r Report, err error) {
	var entries int64
	err = s.pool.QueryRow(ctx, query, id).Scan(&r.Made, &entries, &r.Level, &r.HTML)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, ErrNotFound
	}
	if err != nil {
		return r, fmt.Errorf("read report: %w", err)
	}
	r.Entries = uint64(entries) //nolint:gosec // see SetReport
	return r, nil
}
