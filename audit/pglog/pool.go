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

// Settings of the pool. A room appends on one connection at a time, so the number of connections
// limits how many rooms can append and how many tiles can be read at once.
const (
	minConns     = 16
	connsPerCPU  = 4
	maxIdle      = 5 * time.Minute
	dialTimeout  = 5 * time.Second
	healthPeriod = 15 * time.Second
)

// session prepares a connection. If the login role is not [Role], it gives up rights that the
// server does not need; [CheckRole] reports whether reset role would bring them back. It makes a
// stalled node lose the room's lock, and turns on durable commits if the database has them off.
var session = `
	set role ` + Role + `;
	` + silence + `;
	select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`

// silence makes PostgreSQL drop an unresponsive node within seconds instead of hours: one that
// stalls inside a transaction, or whose network is gone. The last four settings have no effect on a
// Unix socket.
const silence = `set idle_in_transaction_session_timeout = '5s';
	set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3;
	set tcp_user_timeout = '10s'`

// dialer detects equally fast that the database's machine is gone.
var dialer = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second,
	Interval: 2 * time.Second, Count: 3}}

// PoolConfig returns the configuration for connecting to the database at url: as [Role], losing the
// room's lock when stalled, with durable commits. A pool_max_conns in the URL is respected.
func PoolConfig(url string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		c.MaxConns = int32(max(minConns, connsPerCPU*runtime.NumCPU()))
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
	if c.ConnConfig.ValidateConnect == nil { // if the URL names several hosts, select the primary
		c.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return c, nil
}

// PoolUse holds the number of connections in use, open and allowed.
type PoolUse struct {
	InUse, Open, Max int
	Waited           int64 // acquisitions since the start that had to wait for a connection
}

// PoolUse returns the current use of the pool.
func (s *Store) PoolUse() PoolUse {
	stat := s.pool.Stat()
	return PoolUse{int(stat.AcquiredConns()), int(stat.TotalConns()), int(stat.MaxConns()), stat.EmptyAcquireCount()}
}
