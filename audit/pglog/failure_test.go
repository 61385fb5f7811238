package pglog_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
)

// TestRights tries statements that could change history, as the server's role.
func TestRights(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	tr.append(tr.open(), 300)
	pool := tr.connect()
	for _, sql := range []string{
		`update log_bundles set entries = '\x0000'`,
		`update log_bundles set first = first where first = 0`,
		`delete from log_bundles`,
		`delete from log_bundles where first = 256`,
		`truncate log_bundles`,
		`insert into log_bundles select * from log_bundles on conflict (room_id, first) do update set entries = '\x0000'`,
		`merge into log_bundles a using log_bundles b on a.first = b.first when matched then delete`,
		`select * from log_bundles for update`,
		`update log_tile_roots set hash = hash`,
		`delete from log_tile_roots`,
		`truncate log_tile_roots`,
		`delete from log_heads`,
		`truncate log_heads`,
		`create table other (id int)`,
		`create index on log_bundles (entries)`,
		`alter table log_bundles add column other int`,
		`alter table log_bundles disable trigger all`,
		`create rule other as on insert to log_bundles do instead nothing`,
		`drop table log_bundles`,
		`alter table log_bundles disable trigger continues`,
		`drop view log_entries`,
		`create or replace function log_split(entries bytea) returns setof text language sql as 'select ''other'''`,
		`create function other() returns int language sql as 'select 1'`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" { // insufficient_privilege
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
	tr.check()
}

// TestContinues tries to store rows that do not continue the log, as the server's role.
func TestContinues(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	tr.append(tr.open(), 300)
	pool := tr.connect(func(c *pgxpool.Config) { c.MaxConns = 1 })
	var schema string
	if err := pool.QueryRow(t.Context(), `select current_schema()`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	table := pgx.Identifier{schema, "log_bundles"}.Sanitize()
	if _, err := pool.Exec(t.Context(), `create temporary table log_bundles (room_id uuid, first bigint, count int);
		insert into pg_temp.log_bundles values ('`+tr.room.String()+`', 1000, 24)`); err != nil {
		t.Fatal(err)
	}
	for _, first := range []int{0, 10, 256, 299, 301, 512, 1024} {
		_, err := pool.Exec(t.Context(), `insert into `+table+` values ($1, $2, 1, '\x0000')`, tr.room, first)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "23505" { // unique_violation
			t.Errorf("a row from entry %d on: %v, want it refused", first, err)
		}
	}
	for _, row := range []string{`300, 0, '\x0000'`, `300, 213, '\x0000'`, `300, 1, '\x'`} {
		_, err := pool.Exec(t.Context(), `insert into `+table+` values ('`+tr.room.String()+`', `+row+`)`)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "23514" { // check_violation
			t.Errorf("row (%s): %v, want it refused", row, err)
		}
	}
	tr.check()
}

// TestCorrupt changes stored rows behind the server's back.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	query := func(sql string) func(*transcript) { return func(tr *transcript) { tr.superuser(sql) } }
	for name, corrupt := range map[string]func(*transcript){
		"entry changed": func(tr *transcript) { tr.rewrite(100, "other") },
		"entries swapped": func(tr *transcript) {
			tr.rewrite(7, string(tr.entries[8]))
			tr.rewrite(8, string(tr.entries[7]))
		},
		"first entry dropped":  func(tr *transcript) { tr.rewrite(0) },
		"middle entry dropped": func(tr *transcript) { tr.rewrite(300) },
		"last entry dropped":   func(tr *transcript) { tr.rewrite(599) },
		"entry inserted":       func(tr *transcript) { tr.rewrite(300, "other", string(tr.entries[300])) },
		"row truncated": query(`update log_bundles set entries = substr(entries, 1, octet_length(entries) - 1)
			where first = 256`),
		"row dropped": query(`delete from log_bundles where first = 256`),
		"row stored twice": query(`alter table log_bundles disable trigger continues;
			insert into log_bundles select room_id, 300, 212, entries from log_bundles where first = 256`),
		"rows moved":          query(`update log_bundles set first = first + 1024`),
		"all entries dropped": query(`delete from log_bundles`),
		"head's root changed": query(`update log_heads set root = decode(repeat('00', 32), 'hex')`),
		"head shrunk":         query(`update log_heads set size = 599`),
		"head grown":          query(`update log_heads set size = 601`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTranscript(t)
			l := tr.open()
			tr.append(l, 600)
			corrupt(tr)
			anything := func([]byte) error { return nil }
			if err := tr.open().Tail(t.Context(), anything); !errors.Is(err, pglog.ErrCorrupt) {
				t.Errorf("tail: %v, want ErrCorrupt", err)
			}
			built := false
			if _, err := tr.open().Append(t.Context(), anything, func(*pglog.Batch) error { built = true; return nil }); !errors.Is(err, pglog.ErrCorrupt) || built {
				t.Errorf("append: %v, built %t, want ErrCorrupt", err, built)
			}
		})
	}
}

// TestCorruptHead changes the head while a handle exists that has read the log.
func TestCorruptHead(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"root changed": `update log_heads set root = decode(repeat('00', 32), 'hex')`,
		"shrunk":       `update log_heads set size = 599`,
		"grown":        `update log_heads set size = 601`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTranscript(t)
			l := tr.open()
			tr.append(l, 600)
			tr.superuser(sql)
			if err := l.Tail(t.Context(), noEntries); !errors.Is(err, pglog.ErrCorrupt) {
				t.Errorf("tail: %v, want ErrCorrupt", err)
			}
			if _, err := l.Append(t.Context(), noEntries, add(tr.make(1))); !errors.Is(err, pglog.ErrCorrupt) {
				t.Errorf("append: %v, want ErrCorrupt", err)
			}
		})
	}
}

// TestCorruptRead tests a reader that refuses an entry.
func TestCorruptRead(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	tr.append(tr.open(), 3)
	if err := tr.open().Tail(t.Context(), noEntries); !errors.Is(err, pglog.ErrCorrupt) {
		t.Errorf("tail: %v, want ErrCorrupt", err)
	}
}

// TestEntriesBeyondHead sets the head and its root back, as restoring that table alone would: an append must
// fail.
func TestEntriesBeyondHead(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	tr.append(l, 10)
	root := tr.root(9)
	tr.superuser(`update log_heads set size = 9, root = $1`, root[:])
	_, err := tr.open().Append(t.Context(), func([]byte) error { return nil }, add(tr.make(1)))
	if !errors.Is(err, pglog.ErrCorrupt) {
		t.Errorf("append: %v, want ErrCorrupt", err)
	}
}

// TestCorruptReceipt changes the data from which receipts are made.
func TestCorruptReceipt(t *testing.T) {
	t.Parallel()
	for name, corrupt := range map[string]func(*transcript){
		"entry changed": func(tr *transcript) { tr.rewrite(3, "other") },
		"entry dropped": func(tr *transcript) { tr.rewrite(3) },
		"tile root changed": func(tr *transcript) {
			tr.superuser(`update log_tile_roots set hash = decode(repeat('00', 32), 'hex') where index = 1`)
		},
		"tile root dropped": func(tr *transcript) { tr.superuser(`delete from log_tile_roots where index = 1`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTranscript(t)
			tr.append(tr.open(), 600)
			corrupt(tr)
			_, err := tr.store.Receipt(t.Context(), tr.room, 2)
			if !errors.Is(err, pglog.ErrCorrupt) || errors.Is(err, pglog.ErrNotFound) {
				t.Errorf("receipt: %v, want ErrCorrupt", err)
			}
		})
	}
}

// TestTerminated ends the connection while it holds the room's lock.
func TestTerminated(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	tr.append(l, 10)
	entries := tr.make(5)
	_, err := l.Append(t.Context(), noEntries, func(b *pglog.Batch) error {
		tr.superuser(`select pg_terminate_backend(l.pid) from pg_locks l
			join pg_database d on d.oid = l.database and d.datname = current_database()
			where l.relation = 'log_heads'::regclass and l.pid <> pg_backend_pid()`)
		return add(entries)(b)
	})
	if err == nil {
		t.Fatal("append on an ended connection succeeded")
	}
	tr.append(tr.check(), 5)
	tr.check()
}

// TestWaitsForLock lets another session hold the room's lock: an append waits for it, reads a time after
// that, and gives up with its context.
func TestWaitsForLock(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	tr.append(tr.open(), 1)
	l := tr.check()
	conn, err := pgx.Connect(t.Context(), tr.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `begin; select from log_heads for update`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := tr.open().Append(ctx, func([]byte) error { return nil }, add(tr.make(1))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append: %v, want DeadlineExceeded", err)
	}
	done := make(chan struct{})
	var began int64
	go func() {
		defer close(done)
		if _, err := l.Append(t.Context(), noEntries, func(b *pglog.Batch) error { began = b.Now; return nil }); err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(100 * time.Millisecond)
	var now time.Time
	if err := conn.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&now); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `commit`); err != nil {
		t.Fatal(err)
	}
	<-done
	if began < now.UnixMilli() {
		t.Errorf("append at %d, and the lock was held at %d", began, now.UnixMilli())
	}
	tr.check()
}

// meter counts the bytes of a connection and cuts it at a limit. It counts only once it is armed.
type meter struct {
	net.Conn
	limits *limits
}

type limits struct {
	armed             atomic.Bool
	written, read     atomic.Int64
	maxWrite, maxRead int64 // cut after this many bytes; negative: never
}

var errCut = errors.New("the connection was cut")

func (m meter) Write(b []byte) (int, error) {
	if !m.limits.armed.Load() {
		return m.Conn.Write(b)
	}
	at := m.limits.written.Add(int64(len(b)))
	if most := m.limits.maxWrite; most >= 0 && at > most {
		n, _ := m.Conn.Write(b[:max(0, len(b)-int(at-most))])
		_ = m.Close()
		return n, errCut
	}
	return m.Conn.Write(b)
}

func (m meter) Read(b []byte) (int, error) {
	if !m.limits.armed.Load() {
		return m.Conn.Read(b)
	}
	if most := m.limits.maxRead; most >= 0 {
		left := most - m.limits.read.Load()
		if left <= 0 {
			// Let the server finish the request, so that only its response is lost.
			_ = m.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = m.Conn.Read(b)
			_ = m.Close()
			return 0, errCut
		}
		b = b[:min(int64(len(b)), left)]
	}
	n, err := m.Conn.Read(b)
	m.limits.read.Add(int64(n))
	return n, err
}

// metered returns a pool of one connection with limits.
func (tr *transcript) metered(l *limits) *pgxpool.Pool {
	return tr.connect(func(c *pgxpool.Config) {
		c.MaxConns = 1
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return meter{conn, l}, nil
		}
	})
}

// TestCut cuts the connection of an append at many places, in both directions. The append must be stored
// completely or not at all, and stored if it returned nil.
func TestCut(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	tr.append(tr.open(), 250)
	whole := &limits{maxWrite: -1, maxRead: -1}
	if err := tr.appendMetered(whole, 20); err != nil || !tr.afterCut(20) {
		t.Fatal(err)
	}
	written, read := whole.written.Load(), whole.read.Load()
	unanswered, lost := 0, 0
	cut := func(l *limits) {
		t.Helper()
		err := tr.appendMetered(l, 20)
		switch isStored := tr.afterCut(20); {
		case err == nil && !isStored:
			t.Fatalf("append cut after %d bytes written, %d read was answered and is not stored", l.maxWrite, l.maxRead)
		case err != nil && isStored:
			unanswered++
		case !isStored:
			lost++
		}
	}
	for at := int64(0); at < written; at += max(1, written/60) {
		cut(&limits{maxWrite: at, maxRead: -1})
	}
	for at := int64(0); at < read; at += max(1, read/60) {
		cut(&limits{maxWrite: -1, maxRead: at})
	}
	if unanswered == 0 || lost == 0 {
		t.Errorf("%d appends stored without an answer and %d lost: want some of both", unanswered, lost)
	}
}

// appendMetered appends n entries over a connection with limits.
func (tr *transcript) appendMetered(limits *limits, n int) error {
	tr.t.Helper()
	pool := tr.metered(limits)
	defer pool.Close()
	l := pglog.NewStore(pool).Open(tr.room, origin, tr.signer)
	if err := l.Tail(tr.t.Context(), func([]byte) error { return nil }); err != nil {
		tr.t.Fatal(err)
	}
	limits.armed.Store(true)
	a, err := l.Append(tr.t.Context(), noEntries, add(tr.make(n)))
	if err == nil && (a == nil || a.Size() != uint64(len(tr.entries)+n)) {
		return fmt.Errorf("appended %v", a)
	}
	return err
}

// afterCut reads the log, checks whether the n entries of an append are stored, and then appends one more.
func (tr *transcript) afterCut(n int) (stored bool) {
	tr.t.Helper()
	l := tr.open()
	last := []byte(nil)
	if err := l.Tail(tr.t.Context(), func(entry []byte) error { last = append(last[:0], entry...); return nil }); err != nil {
		tr.t.Fatal(err)
	}
	entries := tr.make(n)
	if stored = string(last) == string(entries[n-1]); stored {
		tr.entries = append(tr.entries, entries...)
	}
	if l.Size() != uint64(len(tr.entries)) || l.Root() != tr.root(len(tr.entries)) {
		tr.t.Fatalf("log has %d entries, want %d", l.Size(), len(tr.entries))
	}
	tr.append(l, 1)
	size := uint64(len(tr.entries))
	if _, err := tr.store.Tile(tr.t.Context(), tr.room, audit.Tile{Level: -1, Index: (size - 1) / audit.TileWidth, Width: int((size-1)%audit.TileWidth) + 1}); err != nil {
		tr.t.Fatal(err)
	}
	return stored
}
