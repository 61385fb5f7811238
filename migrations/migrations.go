// Package migrations contains the database schema as numbered SQL files, and applies them to a
// database.
//
// A file is named NNNN_name.sql, runs in one transaction, and never changes after a release. Names
// in it are unqualified, so tables, including that of applied versions, are created in the first
// schema of the search_path.
//
// Servers of two versions can share a database during an upgrade. A release that changes the schema adds to it first
// (expand), and moves what is stored. A later release takes away what the earlier version used (contract), and raises
// the floor in schema_floor, below which no version starts.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the database/sql driver "pgx"
	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

var (
	// ErrNoSchema is returned when no schema of the search_path exists.
	ErrNoSchema = errors.New("no schema of the search_path exists")
	// ErrNewer is returned when the schema lacks what this version uses: a newer version has taken it away.
	ErrNewer = errors.New("the database belongs to a newer version of proofline: update this one")
	// ErrOwner is returned when migrations are missing and the connection's role may not create
	// tables.
	ErrOwner = errors.New("only the owner of the schema can migrate it: run this version once as the owner")
)

// Up applies all missing migrations to the database at url, a PostgreSQL connection string.
// Concurrent calls for the same schema run one after another, even in different processes; calls
// for different schemas are independent. If a migration fails, the earlier ones stay applied. Up
// returns [ErrOwner] for a role that may not create tables, unless there is nothing to apply.
func Up(ctx context.Context, url string) error {
	return up(ctx, url, files)
}

// up applies the migrations in files. It takes its own lock, because goose looks for its table, and
// creates it, before locking.
func up(ctx context.Context, url string, files fs.FS) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("migrate database: %w", err)
		}
	}()
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var owner bool
	err = db.QueryRowContext(ctx,
		`select coalesce(has_schema_privilege(current_schema(), 'create'), true)`).Scan(&owner)
	if err != nil {
		return err
	}
	if !owner {
		return check(ctx, db, files)
	}
	unlock, err := lockSchema(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return apply(ctx, db, files)
}

// apply migrates a locked schema.
func apply(ctx context.Context, db *sql.DB, files fs.FS) error {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	applied, known, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if applied > known {
		return checkFloor(ctx, db, known)
	}
	_, err = provider.Up(ctx)
	if partial, ok := errors.AsType[*goose.PartialError](err); ok {
		return fmt.Errorf("apply %s: %w", partial.Failed.Source.Path, partial.Err)
	}
	return err
}

// check compares the schema's version with the newest file, without changing anything.
func check(ctx context.Context, db *sql.DB, files fs.FS) error {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	var applied, known int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return err
		}
		known = max(known, version)
	}
	var exists bool
	err = db.QueryRowContext(ctx, `select to_regclass('`+goose.DefaultTablename+`') is not null`).Scan(&exists)
	if err == nil && exists {
		err = db.QueryRowContext(ctx, `select coalesce(max(version_id), 0) from `+goose.DefaultTablename).Scan(&applied)
	}
	switch {
	case err != nil:
		return err
	case applied < known:
		return fmt.Errorf("%w: it is at migration %d of %d", ErrOwner, applied, known)
	case applied > known:
		return checkFloor(ctx, db, known)
	}
	return nil
}

// checkFloor returns [ErrNewer] if the newer schema has no place for a version that knows so many migrations.
func checkFloor(ctx context.Context, db *sql.DB, known int64) error {
	var floor int64
	if err := db.QueryRowContext(ctx, `select floor from schema_floor`).Scan(&floor); err != nil {
		return err
	}
	if known < floor {
		return fmt.Errorf("%w: it needs one that knows migration %d, and this version knows %d", ErrNewer, floor, known)
	}
	return nil
}

// lockID derives the advisory lock's number from the schema to migrate.
const lockID = `hashtextextended('proofline migrations into ' || current_schema(), 0)`

// keepalive makes PostgreSQL release the lock within seconds when the node that holds it has
// vanished.
const keepalive = `set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3; `

// lockSchema waits for the schema's lock, and holds it on its own connection until unlock is
// called.
func lockSchema(ctx context.Context, db *sql.DB) (unlock func() error, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var exists bool
	err = conn.QueryRowContext(ctx, `select current_schema() is not null`).Scan(&exists)
	if err == nil && !exists {
		err = ErrNoSchema
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, keepalive+`select pg_advisory_lock(`+lockID+`)`)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() error {
		_, err := conn.ExecContext(context.WithoutCancel(ctx), `select pg_advisory_unlock(`+lockID+`)`)
		return errors.Join(err, conn.Close())
	}, nil
}
