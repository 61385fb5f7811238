package pglog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Conditions are settings of a database that matter for a sale.
type Conditions struct {
	Version        int    // such as 150008
	Fsync          bool   // commits survive a power cut
	FullPages      bool   // full_page_writes
	IsArchiving    bool   // PostgreSQL archives its write-ahead log
	Standbys       int    // connected
	Synchronous    int    // of Standbys, those that each commit waits for
	MaxConnections int    // of all clients
	MinWAL         uint64 // bytes that are kept for reuse
	Size           uint64 // bytes of the database
}

// ReadConditions reads the settings of the pool's database.
func ReadConditions(ctx context.Context, pool *pgxpool.Pool) (Conditions, error) {
	var c Conditions
	err := pool.QueryRow(ctx, `select current_setting('server_version_num')::int, current_setting('fsync')::bool,
		current_setting('full_page_writes')::bool, current_setting('archive_mode') <> 'off',
		(select count(*) from pg_stat_replication),
		(select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')),
		current_setting('max_connections')::int, pg_size_bytes(current_setting('min_wal_size')),
		pg_database_size(current_database())`).Scan(&c.Version, &c.Fsync, &c.FullPages, &c.IsArchiving, &c.Standbys,
		&c.Synchronous, &c.MaxConnections, &c.MinWAL, &c.Size)
	if err != nil {
		return c, fmt.Errorf("read the settings of the database: %w", err)
	}
	return c, nil
}
