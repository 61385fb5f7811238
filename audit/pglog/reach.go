package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrPooler is returned when a database URL points to a pooler that gives a connection to another
// client after every transaction. Locks, roles and prepared statements would leak between clients
// there.
var ErrPooler = errors.New("the database URL points to a connection pooler in transaction mode: use a session pooler or a direct connection")

// Reach connects to the database at url and returns nil if a server can work with it. If isAway is
// true, a later attempt may succeed. Errors are [ErrPooler] and those of PostgreSQL.
func Reach(ctx context.Context, url string) (isAway bool, err error) {
	config, err := PoolConfig(url)
	if err != nil {
		return false, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // which poolers support
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

// refusePooler returns [ErrPooler] if a second connection can get the backend of the first, which
// is in no transaction. PostgreSQL sends the backend's process ID at connection start; a pooler
// does not know it at that time, so the check ends early if they match.
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
