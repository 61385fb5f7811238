// Package migrations holds the database schema as numbered SQL files and
// brings a database up to date with them.
//
// A file is named NNNN_name.sql, runs in one transaction, and never changes
// once released. Names in it are not qualified: tables, and the table of
// applied versions, come to live in the first schema of the search_path.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver "pgx"
	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

// ErrNoSchema is returned when no schema named in the search_path exists.
var ErrNoSchema = errors.New("no schema of the search_path exists")

// Up applies every migration not yet applied to the database that url names,
// a PostgreSQL connection string. Callers on the same schema take turns, in
// one process or many; on different schemas they do not wait for each other.
// When a migration fails, those before it stay applied.
func Up(ctx context.Context, url string) error {
	return up(ctx, url, files)
}

func up(ctx context.Context, url string, files fs.FS) (err error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(schemaLock{}),
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	return nil
}

// schemaLock is an advisory lock on the schema that migrations go into. Unlike
// goose's own it waits in the database instead of asking every few seconds.
type schemaLock struct{}

// SessionLock waits for the lock.
func (schemaLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	var schema sql.NullString
	if err := conn.QueryRowContext(ctx, `select current_schema()`).Scan(&schema); err != nil {
		return fmt.Errorf("read current schema: %w", err)
	}
	if !schema.Valid {
		return ErrNoSchema
	}
	if _, err := conn.ExecContext(ctx, `select pg_advisory_lock(`+lockID+`)`); err != nil {
		return fmt.Errorf("lock schema %s: %w", schema.String, err)
	}
	return nil
}

// SessionUnlock releases the lock.
func (schemaLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `select pg_advisory_unlock(`+lockID+`)`); err != nil {
		return fmt.Errorf("unlock schema: %w", err)
	}
	return nil
}

// lockID derives the number of the lock from the name of the schema.
const lockID = `hashtextextended('proofline migrations into ' || current_schema(), 0)`
