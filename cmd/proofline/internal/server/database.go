package server

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/migrations"
)

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
	config, err := pglog.PoolConfig(url)
	if err != nil {
		return err
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
