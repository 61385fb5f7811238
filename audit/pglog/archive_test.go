package pglog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
)

// files is an archive in memory with one log.
type files map[audit.Tile][]byte

func (f files) Tile(_ context.Context, log string, t audit.Tile) ([]byte, error) {
	if b, ok := f[t]; ok && log == "sale" {
		return b, nil
	}
	return nil, fs.ErrNotExist
}

// TestArchive moves a log out of the database: everything that is read of it stays the same.
func TestArchive(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	const size = 2*audit.TileWidth + 100
	for i := range size {
		tr.entries = append(tr.entries, fmt.Appendf(nil, "entry %d", i))
	}
	log := tr.open()
	if _, err := log.Append(t.Context(), noEntries, add(tr.entries)); err != nil {
		t.Fatal(err)
	}
	mark := pglog.Mark{Size: log.Size(), Root: log.Root()}
	tiles := map[audit.Tile][]byte{}
	archive := files{}
	for _, n := range []uint64{size, 300, 40} {
		for tile := range audit.Tiles(n) {
			content, err := tr.store.Tile(t.Context(), tr.room, tile)
			if err != nil {
				t.Fatal(err)
			}
			if tiles[tile] = content; n == size {
				archive[tile] = content
			}
		}
	}
	receipt, err := tr.store.Receipt(t.Context(), tr.room, 300)
	if err != nil {
		t.Fatal(err)
	}

	drop := func(url string, m pglog.Mark) error {
		_, err := pglog.Drop(t.Context(), url, tr.room, "sale", m)
		return err
	}
	var refused *pgconn.PgError
	if err := drop(pgtest.AsServer(tr.url), mark); !errors.As(err, &refused) || refused.Code != "42501" {
		t.Errorf("the server's role drops entries: %v", err)
	}
	if err := drop(tr.url, pglog.Mark{Size: size, Root: audit.LeafHash(nil)}); !errors.Is(err, pglog.ErrMoved) {
		t.Errorf("a log that was not written: %v", err)
	}
	if _, err := tr.store.Tile(t.Context(), tr.room, audit.Tile{Level: -1, Width: 1}); err != nil {
		t.Errorf("a refused drop has removed entries: %v", err)
	}
	if err := drop(tr.url, mark); err != nil {
		t.Fatal(err)
	}
	if err := drop(tr.url, mark); !errors.Is(err, pglog.ErrMoved) {
		t.Errorf("dropped again: %v", err)
	}

	without, with := pglog.NewStore(tr.connect()), pglog.NewStore(tr.connect())
	if _, err := without.Tile(t.Context(), tr.room, audit.Tile{Level: -1, Width: 1}); !errors.Is(err, pglog.ErrArchived) {
		t.Errorf("a tile without the archive: %v", err)
	}
	if err := without.Open(tr.room, origin, tr.signer).Tail(t.Context(), noEntries); !errors.Is(err, pglog.ErrArchived) {
		t.Errorf("a log without the archive: %v", err)
	}
	with.ReadArchive(archive)
	for tile, want := range tiles {
		if got, err := with.Tile(t.Context(), tr.room, tile); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v", tile.Path(), err)
		}
	}
	for _, tile := range []audit.Tile{{Level: -1, Index: 2, Width: 101}, {Level: 0, Index: 3, Width: 1}, {Level: 1, Width: 3}, {Level: 2, Width: 1}} {
		if _, err := with.Tile(t.Context(), tr.room, tile); !errors.Is(err, pglog.ErrNotFound) {
			t.Errorf("%s: %v", tile.Path(), err)
		}
	}
	if again, err := with.Receipt(t.Context(), tr.room, 300); err != nil || !bytes.Equal(again, receipt) {
		t.Errorf("receipt: %v", err)
	}
	if root, _, err := with.Growth(t.Context(), tr.room, 40, size); err != nil || root != mark.Root {
		t.Errorf("growth: %v", err)
	}
	for _, from := range []uint64{0, 255, 256, 300, size - 1} {
		found, next, err := with.Scan(t.Context(), tr.room, from, 10)
		if n := min(10, size-from); err != nil || uint64(len(found)) != n || next != from+n || found[0].Index != from || found[0].Text != string(tr.entries[from]) {
			t.Errorf("scan from %d: %d entries, next %d, %v", from, len(found), next, err)
		}
	}
	again, n := with.Open(tr.room, origin, tr.signer), 0
	if err := again.Tail(t.Context(), func(entry []byte) error {
		if !bytes.Equal(entry, tr.entries[n]) {
			t.Errorf("entry %d is %q", n, entry)
		}
		n++
		return nil
	}); err != nil || n != size || again.Root() != mark.Root {
		t.Errorf("%d entries: %v", n, err)
	}
	if _, err := again.Append(t.Context(), noEntries, add([][]byte{[]byte("one more")})); !errors.Is(err, pglog.ErrCorrupt) {
		t.Errorf("an entry after those in the archive: %v", err)
	}

	// An archive that is wrong, or lacks a file.
	bundle := audit.Tile{Level: -1, Index: 1, Width: audit.TileWidth}
	archive[bundle] = bytes.Replace(archive[bundle], []byte("entry 300"), []byte("entry 301"), 1)
	if err := with.Open(tr.room, origin, tr.signer).Tail(t.Context(), func([]byte) error { return nil }); !errors.Is(err, pglog.ErrCorrupt) {
		t.Errorf("a changed bundle: %v", err)
	}
	archive[bundle] = archive[bundle][:100]
	if _, err := with.Tile(t.Context(), tr.room, bundle); !errors.Is(err, pglog.ErrArchived) {
		t.Errorf("a bundle that is cut off: %v", err)
	}
	delete(archive, bundle)
	if err := with.Open(tr.room, origin, tr.signer).Tail(t.Context(), func([]byte) error { return nil }); !errors.Is(err, pglog.ErrArchived) {
		t.Errorf("a missing bundle: %v", err)
	}
}

// queried is an archive that needs a connection of a pool for each tile.
type queried struct {
	files
	pool *pgxpool.Pool
}

func (q queried) Tile(ctx context.Context, log string, t audit.Tile) ([]byte, error) {
	if err := q.pool.Ping(ctx); err != nil {
		return nil, err
	}
	return q.files.Tile(ctx, log, t)
}

// TestArchiveConnections loads an archived log with a pool of one connection, which is free while files are read:
// requests for many archived rooms must not take all connections and then wait for more.
func TestArchiveConnections(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	archive := tr.archive(300)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pool := tr.connect(func(c *pgxpool.Config) { c.MaxConns = 1 })
	tr.store = pglog.NewStore(pool)
	tr.store.ReadArchive(queried{archive, pool})
	n := 0
	if err := tr.open().Tail(ctx, func([]byte) error { n++; return nil }); err != nil || n != 300 {
		t.Errorf("%d entries: %v", n, err)
	}
	if found, _, err := tr.store.Scan(ctx, tr.room, 0, 1000); err != nil || len(found) != 300 {
		t.Errorf("scan: %d entries, %v", len(found), err)
	}
	for tile := range archive {
		if _, err := tr.store.Tile(ctx, tr.room, tile); err != nil {
			t.Errorf("%s: %v", tile.Path(), err)
		}
	}
}

// TestArchiveStays tries to store another transcript in place of an archived one, as the server's role.
func TestArchiveStays(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	archive, pool := tr.archive(300), tr.connect()
	tr.store.ReadArchive(archive)
	for code, statements := range map[string][]string{
		"23505": {`insert into log_heads (room_id, root) values ($1, decode(repeat('00', 32), 'hex'))`}, // exists
		"42501": { // insufficient privilege
			`update log_heads set archived = '' where room_id = $1`,
			`update log_heads set room_id = gen_random_uuid() where room_id = $1`,
			`insert into log_heads as h (room_id, root) values ($1, '') on conflict (room_id) do update set archived = ''`,
			`delete from log_heads where room_id = $1`,
		},
	} {
		for _, sql := range statements {
			_, err := pool.Exec(t.Context(), sql, tr.room)
			if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != code {
				t.Errorf("%s: %v, want code %s", sql, err, code)
			}
		}
	}
	for _, sql := range []string{ // these rows are not read
		`insert into log_bundles (room_id, first, count, entries) values ($1, 0, 1, '\x000161')`,
		`insert into log_tile_roots (room_id, level, index, hash) values ($1, 1, 0, decode(repeat('00', 32), 'hex'))`,
	} {
		if _, err := pool.Exec(t.Context(), sql, tr.room); err != nil {
			t.Fatal(err)
		}
	}
	tr.check()
	for tile, content := range archive {
		if got, err := tr.store.Tile(t.Context(), tr.room, tile); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %v", tile.Path(), err)
		}
	}
}

// archive appends n entries to an empty log and moves it out of the database.
func (tr *transcript) archive(n int) files {
	tr.t.Helper()
	log := tr.open()
	tr.append(log, n)
	archive := files{}
	for tile := range audit.Tiles(log.Size()) {
		var err error
		if archive[tile], err = tr.store.Tile(tr.t.Context(), tr.room, tile); err != nil {
			tr.t.Fatal(err)
		}
	}
	mark := pglog.Mark{Size: log.Size(), Root: log.Root()}
	if _, err := pglog.Drop(tr.t.Context(), tr.url, tr.room, "sale", mark); err != nil {
		tr.t.Fatal(err)
	}
	return archive
}
