package pglog

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The pool. A room appends on one connection at a time, so the number bounds
// how many rooms append, and how many tiles are read, in the same instant.
const (
	leastConns   = 16
	connsPerCPU  = 4
	maxIdle      = 5 * time.Minute
	dialTimeout  = 5 * time.Second
	healthPeriod = 15 * time.Second
)

// session prepares a connection: it gives up the rights the server does not
// need, has a stalled node lose the room's lock, and insists on durable
// commits where the database is set up without.
var session = `
	set role ` + Role + `;
	set idle_in_transaction_session_timeout = '20s';
	select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`

// PoolConfig returns how the server connects to the database that url names:
// as [Role], losing the room's lock when it stalls, with durable commits. The
// url's own pool_max_conns counts.
func PoolConfig(url string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		c.MaxConns = int32(max(leastConns, connsPerCPU*runtime.NumCPU()))
	}
	c.MaxConnIdleTime, c.HealthCheckPeriod = maxIdle, healthPeriod
	c.ConnConfig.ConnectTimeout = dialTimeout
	c.ConnConfig.RuntimeParams["application_name"] = "proofline"
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, session)
		return err
	}
	return c, nil
}

// PoolUse is how many of the pool's connections are in use.
type PoolUse struct {
	InUse, Open, Most int
	Waited            int64 // acquisitions that had to wait for a connection, since the start
}

// PoolUse returns how busy the connections are, as of now.
func (s *Store) PoolUse() PoolUse {
	stat := s.pool.Stat()
	return PoolUse{int(stat.AcquiredConns()), int(stat.TotalConns()), int(stat.MaxConns()), stat.EmptyAcquireCount()}
}
