package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrPooler is returned when a connection string leads to a pooler that gives a
// connection to another client after every transaction. Locks, roles and prepared
// statements would not be the server's own there.
var ErrPooler = errors.New("the database URL leads to a connection pooler that shares connections between transactions")

// Reach connects to the database that url names, and returns nil when a server can
// work with it. IsAway then means that it may be there later. Errors: [ErrPooler],
// and those of PostgreSQL.
func Reach(ctx context.Context, url string) (isAway bool, err error) {
	config, err := PoolConfig(url)
	if err != nil {
		return false, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // which poolers understand
	first, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err == nil {
		defer closeSoon(first)
		err = refusePooler(ctx, first, config.ConnConfig)
	}
	if err != nil {
		tookTooLong := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		return IsAway(err) || tookTooLong, fmt.Errorf("open database: %w", err)
	}
	return false, nil
}

// refusePooler returns [ErrPooler] when another connection can get the backend of
// the first one, as long as that is in no transaction. PostgreSQL itself says at
// the start which backend a connection has, and a pooler does not know it then.
func refusePooler(ctx context.Context, first *pgx.Conn, config *pgx.ConnConfig) error {
	backend, err := backendOf(ctx, first)
	if err != nil || uint32(backend) == first.PgConn().PID() { //nolint:gosec // a process id
		return err
	}
	second, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer closeSoon(second)
	if _, err := second.Exec(ctx, `begin`); err != nil {
		return err
	}
	other, err := backendOf(ctx, second)
	if err == nil && other == backend {
		err = ErrPooler
	}
	if err != nil {
		return err
	}
	again, err := backendOf(ctx, first)
	if err == nil && again != backend {
		err = ErrPooler
	}
	return err
}

func backendOf(ctx context.Context, conn *pgx.Conn) (pid int32, err error) {
	err = conn.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid)
	return pid, err
}
