package pglog

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// session prepares a connection: where the login role is not [Role], it gives up
// the rights the server does not need, which reset role would bring back ([CheckRole]
// reports that); it has a stalled node lose the room's lock, and insists on durable
// commits where the database is set up without.
var session = `
	set role ` + Role + `;
	` + silence + `;
	select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`

// silence has PostgreSQL give a node up that has gone without a word, in seconds
// instead of hours: one that stalls inside a transaction, and one whose network
// answers neither questions nor data. Over a Unix socket the last four say nothing.
const silence = `set idle_in_transaction_session_timeout = '5s';
	set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3;
	set tcp_user_timeout = '10s'`

// dialer finds out as soon when the database's machine has gone.
var dialer = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}

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
	c.ConnConfig.ConnectTimeout, c.ConnConfig.DialFunc = dialTimeout, dialer.DialContext
	c.ConnConfig.RuntimeParams["application_name"] = "proofline"
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, session); err != nil {
			return err
		}
		return identify(ctx, conn)
	}
	c.ConnConfig.OnNotice = noticeUnsure
	if c.ConnConfig.ValidateConnect == nil { // of several hosts, the primary
		c.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
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
