//go:build unix

package localpg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// reservePause is how long ReserveWAL waits between segments, so that others can use the disk.
const reservePause = 50 * time.Millisecond

// reserveShare is the part of the free disk that ReserveWAL may take: PostgreSQL ends when it cannot
// write its log.
const reserveShare = 8

// ReserveWAL allocates as much write-ahead log as PostgreSQL keeps (min_wal_size) before it is needed. A new
// cluster has one segment, and would create each further one inside a commit: 16 MB of zeros and an fsync, for
// which all joins wait. ReserveWAL switches through empty segments, which a checkpoint then recycles for later
// use. It does nothing if most of them exist already, if the log is archived, or if the disk has little space.
//
// https://www.postgresql.org/docs/current/wal-configuration.html
func (s *Server) ReserveWAL(ctx context.Context) error {
	if err := s.reserveWAL(ctx); err != nil {
		return fmt.Errorf("reserve write-ahead log: %w", err)
	}
	return nil
}

func (s *Server) reserveWAL(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost
	var kept, ready, segment int
	var isArchived bool
	err = conn.QueryRow(ctx, `select
			(pg_size_bytes(current_setting('min_wal_size')) / pg_size_bytes(current_setting('wal_segment_size')))::int,
			(select count(*) from pg_ls_waldir()
				where name > pg_walfile_name(pg_current_wal_lsn()) and name ~ '^[0-9A-F]{24}$'),
			pg_size_bytes(current_setting('wal_segment_size'))::int,
			current_setting('archive_mode') <> 'off'`).Scan(&kept, &ready, &segment, &isArchived)
	if err != nil || isArchived || ready >= kept/2 {
		return err
	}
	if free, err := freeSpace(s.cfg.Dir); err != nil || free/reserveShare < uint64((kept-ready)*segment) { //nolint:gosec // positive
		return err
	}
	for range kept - ready {
		// PostgreSQL does not switch from a segment with nothing new in it.
		if _, err := conn.Exec(ctx, `select pg_logical_emit_message(false, 'proofline', '');
			select pg_switch_wal()`); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(reservePause):
		}
	}
	_, err = conn.Exec(ctx, `checkpoint`)
	return err
}
