package pglog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit"
)

// ErrArchived is returned when the entries of a log were moved to an archive that this process cannot read.
var ErrArchived = errors.New("the transcript was moved to an archive that this server cannot read")

// Archive reads the static files of logs whose entries were moved out of the database.
type Archive interface {
	// Tile returns a tile or entry bundle of a log, in the width that it has in the whole log.
	Tile(ctx context.Context, log string, t audit.Tile) ([]byte, error)
}

// ReadArchive makes the store read archived logs from a. It must be called before the first read.
func (s *Store) ReadArchive(a Archive) { s.archive = a }

// querier is a pool or a connection.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// eachStored passes the entries of a room with indexes from from to to-1 to read, from the database or else from the
// archive, as far as they are there. The entry is only valid during the call. A connection of the pool is released
// before files are read, since they may be slow.
func (s *Store) eachStored(ctx context.Context, from querier, room uuid.UUID, first, to uint64,
	read func(entry []byte) error) error {
	next := first
	rows, err := from.Query(ctx, selectBundles, room, int64(tileStart(first)), int64(to)) //nolint:gosec // both at most MaxSize
	if err != nil {
		return fmt.Errorf("read entries: %w", err)
	}
	err = eachEntry(rows, first, to, func(entry []byte) error {
		next++
		return read(entry)
	})
	if err != nil || next == to {
		return err
	}
	name, size, err := archived(ctx, from, room)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if conn, ok := from.(*pgxpool.Conn); ok {
		conn.Release()
	}
	for err == nil && next < min(to, size) {
		var bundle []byte
		t := wholeTile(-1, next/audit.TileWidth, size)
		if bundle, err = s.fromArchive(ctx, name, t); err != nil {
			break
		}
		index := tileStart(next)
		err = audit.SplitBundle(bundle, t.Width, func(entry []byte) error {
			if index++; index <= next || index > to {
				return nil
			}
			next = index
			return read(entry)
		})
	}
	return err
}

// archived returns the name and size of an archived log, or [ErrNotFound] if the log is not archived.
func archived(ctx context.Context, from querier, room uuid.UUID) (name string, size uint64, err error) {
	var n int64
	err = from.QueryRow(ctx, `select archived, size from log_heads where room_id = $1 and archived <> ''`, room).
		Scan(&name, &n)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", 0, ErrNotFound
	}
	if err != nil {
		return "", 0, fmt.Errorf("read head: %w", err)
	}
	return name, uint64(n), nil //nolint:gosec // never negative
}

// archivedTile returns a tile of an archived log, or [ErrNotFound].
func (s *Store) archivedTile(ctx context.Context, room uuid.UUID, t audit.Tile) ([]byte, error) {
	name, size, err := archived(ctx, s.pool, room)
	if err != nil {
		return nil, err
	}
	if !t.In(size) {
		return nil, ErrNotFound
	}
	content, err := s.fromArchive(ctx, name, wholeTile(t.Level, t.Index, size))
	if err != nil {
		return nil, err
	}
	end := 0
	for range t.Width {
		switch {
		case t.Level >= 0:
			end += len(audit.Hash{})
		case end+2 <= len(content):
			end += 2 + int(binary.BigEndian.Uint16(content[end:]))
		default:
			end = len(content) + 1
		}
	}
	if end > len(content) {
		return nil, fmt.Errorf("%w: %s in it is cut off", ErrArchived, t.Path())
	}
	return content[:end], nil
}

// wholeTile returns the tile with an index at a level in a log of a size.
func wholeTile(level int8, index, size uint64) audit.Tile {
	hashes := size >> (tileLevel * uint(max(level, 0)))
	return audit.Tile{Level: level, Index: index, Width: int(min(audit.TileWidth, hashes-index*audit.TileWidth))} //nolint:gosec // at most 256
}

// fromArchive reads a tile of an archived log.
func (s *Store) fromArchive(ctx context.Context, name string, t audit.Tile) ([]byte, error) {
	if s.archive == nil {
		return nil, ErrArchived
	}
	content, err := s.archive.Tile(ctx, name, t)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", ErrArchived, err)
	}
	return content, err
}

// ErrMoved is returned when a log is not the one that was written to the archive, or is there already.
var ErrMoved = errors.New("the log has changed, or its entries are in the archive already")

// Drop removes the entries of a log from the database at url, as the owner of its schema. They must be in the archive
// under the name, with the size and root of m: servers read them there from then on. It returns how many bytes smaller
// the tables are; what PostgreSQL keeps of them is used for other rooms.
func Drop(ctx context.Context, url string, room uuid.UUID, name string, m Mark) (freed int64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, fmt.Errorf("open database: %w", err)
	}
	defer closeSoon(conn)
	size := func() (n int64, err error) {
		err = conn.QueryRow(ctx, `select pg_total_relation_size('log_bundles') + pg_total_relation_size('log_tile_roots')`).Scan(&n)
		return n, err
	}
	before, err := size()
	if err != nil {
		return 0, fmt.Errorf("drop entries: %w", err)
	}
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update log_heads set archived = $2
			where room_id = $1 and archived = '' and size = $3 and root = $4`, room, name, int64(m.Size), m.Root[:]) //nolint:gosec // at most MaxSize
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrMoved
		}
		if err == nil {
			_, err = tx.Exec(ctx, `delete from log_bundles where room_id = $1`, room)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `delete from log_tile_roots where room_id = $1`, room)
		}
		return err
	}); err != nil {
		return 0, fmt.Errorf("drop entries: %w", err)
	}
	if _, err := conn.Exec(ctx, `vacuum log_bundles, log_tile_roots`); err != nil {
		return 0, fmt.Errorf("vacuum: %w", err)
	}
	after, err := size()
	return before - after, err
}
