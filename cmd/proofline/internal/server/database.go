package server

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/migrations"
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
	set role ` + pgx.Identifier{pglog.Role}.Sanitize() + `;
	set idle_in_transaction_session_timeout = '20s';
	select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`

// openDatabase brings up the database, migrates it and opens the pool.
func (s *Server) openDatabase(ctx context.Context) error {
	url := s.cfg.DatabaseURL
	if url == "" {
		local, err := localpg.Start(ctx, localpg.Config{Dir: s.cfg.Data, Log: s.cfg.Log})
		if err != nil {
			return err
		}
		s.atStop(local.Stop)
		s.local, url = local, local.URL()
	}
	config, err := poolConfig(url)
	if err != nil {
		return fmt.Errorf("read database URL: %w", err)
	}
	if err := migrations.Up(ctx, url); err != nil {
		return err
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	s.atStop(s.closePool)
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	return nil
}

func poolConfig(url string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
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

// closePool closes the connections, those in use once they are given back.
func (s *Server) closePool(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.pool.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close database: %w", ctx.Err())
	}
}
