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

// openDatabase starts or reaches the database, migrates it as its owner and opens
// the pool, whose connections can add to the log but never change it.
func (s *Server) openDatabase(ctx context.Context) error {
	login, owner := s.cfg.DatabaseURL, cmp.Or(s.cfg.OwnerURL, s.cfg.DatabaseURL)
	if login == "" {
		local, err := localpg.Start(ctx, localpg.Config{Dir: s.cfg.Data, Log: s.cfg.Log})
		if err != nil {
			return err
		}
		s.atStop(local.Stop)
		s.local, login, owner = local, local.URLOf(pglog.Role), local.URL()
		s.reserveWAL()
	}
	config, err := pglog.PoolConfig(login)
	if err != nil {
		return err
	}
	if err := s.prepareDatabase(ctx, owner, login); err != nil {
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

// prepareDatabase waits for the database, and migrates it. If the database goes away meanwhile, as in a
// failover, it begins again.
func (s *Server) prepareDatabase(ctx context.Context, owner, login string) error {
	for {
		err := s.awaitDatabase(ctx, owner)
		if err != nil {
			return err
		}
		if err = migrations.Up(ctx, owner); err == nil { // Up opens and closes its own connections
			_, err = reach(ctx, login) // only now, because the migrations create its role
		}
		if !pglog.IsAway(err) {
			return err
		}
		s.cfg.Log.Warn("database went away during the start: the server begins again", "err", err)
		select {
		case <-time.After(reachInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reserveWAL makes the private PostgreSQL allocate its write-ahead log in advance, in the
// background.
func (s *Server) reserveWAL() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.local.ReserveWAL(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("joins may wait for PostgreSQL to create files", "err", err)
		}
	}()
	s.atStop(func(context.Context) error {
		cancel()
		<-ended
		return nil
	})
}

// checkRole warns when the server could change the log. It does not fail, because some platforms
// offer only the owner's role.
func (s *Server) checkRole(ctx context.Context) error {
	err := pglog.CheckRole(ctx, s.pool)
	var role *pglog.RoleError
	if !errors.As(err, &role) {
		return err
	}
	s.cfg.Log.Warn("this server could change its transcripts: its database role may do more than append; "+
		"let it log in as "+pglog.Role+" and pass the owner's URL with --owner-database-url "+
		"(README.md, Your own PostgreSQL)",
		"login", role.Login, "role", role.Role, "power", role.Power)
	return nil
}

// downTimeout limits how long Stop waits for work that hangs because the database is down.
const downTimeout = 500 * time.Millisecond

// databaseDown returns a channel that fires when Stop need not wait for the
// database any longer; nil while the database answers.
func (s *Server) databaseDown() <-chan time.Time {
	if s.rooms == nil || s.rooms.Answers() {
		return nil
	}
	return time.After(downTimeout)
}

// closePool closes the connections. Those in use are closed when they are returned.
func (s *Server) closePool(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.pool.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-s.databaseDown():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close database: %w", ctx.Err())
	}
}
