package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/migrations"
)

// openDatabase brings up the database, migrates it as its owner and opens the
// pool, whose connections can add to the log and never change it.
func (s *Server) openDatabase(ctx context.Context) error {
	login, owner := s.cfg.DatabaseURL, cmp.Or(s.cfg.OwnerURL, s.cfg.DatabaseURL)
	if login == "" {
		local, err := localpg.Start(ctx, localpg.Config{Dir: s.cfg.Data, Log: s.cfg.Log})
		if err != nil {
			return err
		}
		s.atStop(local.Stop)
		s.local, login, owner = local, local.URLOf(pglog.Role), local.URL()
	}
	config, err := pglog.PoolConfig(login)
	if err != nil {
		return err
	}
	if err := s.awaitDatabase(ctx, owner); err != nil {
		return err
	}
	if err := migrations.Up(ctx, owner); err != nil { // on connections of its own, closed when it returns
		return err
	}
	if _, err := reach(ctx, login); err != nil { // whose role the owner's migrations make
		return err
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	s.atStop(s.closePool)
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	return s.checkRole(ctx)
}

// checkRole warns when the server could change the log. It does not refuse: on
// some platforms the owner is the only role there is.
func (s *Server) checkRole(ctx context.Context) error {
	err := pglog.CheckRole(ctx, s.pool)
	var role *pglog.RoleError
	if !errors.As(err, &role) {
		return err
	}
	s.cfg.Log.Warn("this server could change its transcripts: its database role can do more than add to them; "+
		"let it log in as "+pglog.Role+", and give the owner's URL with --owner-database-url (README.md, Your own PostgreSQL)",
		"login", role.Login, "role", role.Role, "power", role.Power)
	return nil
}

// goneTimeout is how long a stop waits for what a database that is away holds up.
const goneTimeout = 500 * time.Millisecond

// gone returns when a stop need not wait for the database any longer; never while
// that answers.
func (s *Server) gone() <-chan time.Time {
	if s.rooms == nil || s.rooms.Answers() {
		return nil
	}
	return time.After(goneTimeout)
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
	case <-s.gone():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close database: %w", ctx.Err())
	}
}
