package pglog_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
)

// isLocked reports whether a transaction holds the room's lock.
func (tr *transcript) isLocked() bool {
	tr.t.Helper()
	conn, err := pgx.Connect(tr.t.Context(), tr.url)
	if err != nil {
		tr.t.Fatal(err)
	}
	defer func() { _ = conn.Close(tr.t.Context()) }()
	_, err = conn.Exec(tr.t.Context(), `select from log_heads where room_id = $1 for update nowait`, tr.room)
	e, isPg := errors.AsType[*pgconn.PgError](err)
	if err != nil && (!isPg || e.Code != "55P03") { // lock_not_available
		tr.t.Fatal(err)
	}
	return err != nil
}

// TestRide requests each lock together with the previous commit, across the borders of tiles.
func TestRide(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l, waits := tr.open(), true
	l.More = func() bool { return waits }
	held := 0
	for i := range 60 {
		tr.append(l, 17+i%300)
		if tr.isLocked() {
			held++
		}
	}
	if held < 50 || held == 60 {
		t.Errorf("the lock was held after %d of 60 appends: want most, and not all", held)
	}
	l.Release()
	if tr.isLocked() {
		t.Error("the lock is still held after Release")
	}
	l.Release()
	tr.append(l, 20)
	waits = false
	tr.append(l, 20)
	if tr.isLocked() {
		t.Error("the lock is held, and no work waits")
	}
	waits = true
	tr.append(l, 20)
	if err := l.Tail(t.Context(), noEntries); err != nil || tr.isLocked() {
		t.Errorf("tail: %v; it releases the lock", err)
	}
	tr.append(l, 20)
	// An empty batch, and a batch that fails, release the lock.
	for _, want := range []error{nil, errors.New("not built")} {
		a, err := l.Append(t.Context(), noEntries, func(*pglog.Batch) error { return want })
		if a != nil || !errors.Is(err, want) || tr.isLocked() {
			t.Errorf("appended %v, %v, want %v and no lock", a, err, want)
		}
		tr.append(l, 20)
	}
	l.Release()
	tr.check()
	tr.checkTiles()
}

// TestRideTime checks that the clock is read after the lock was granted, not when it was requested.
func TestRideTime(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	l.More = func() bool { return true }
	tr.append(l, 20)
	last := int64(0)
	for range 30 {
		entries := tr.make(20)
		before := time.Now().UnixMilli()
		var now int64
		if _, err := l.Append(t.Context(), noEntries, func(b *pglog.Batch) error {
			now = b.Now
			return add(entries)(b)
		}); err != nil {
			t.Fatal(err)
		}
		tr.entries = append(tr.entries, entries...)
		if now < last || now > time.Now().UnixMilli() {
			t.Errorf("append at %d, after one at %d, requested at %d", now, last, before)
		}
		last = now
	}
	l.Release()
}

// TestRideShared lets two nodes append to a log for which both always have work: neither waits long.
func TestRideShared(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	tr.append(tr.open(), 1)
	anything := func([]byte) error { return nil }
	var nodes sync.WaitGroup
	for range 2 {
		l := tr.open()
		l.More = func() bool { return true }
		if err := l.Tail(t.Context(), anything); err != nil {
			t.Fatal(err)
		}
		nodes.Go(func() {
			defer l.Release()
			for range 100 {
				began := time.Now()
				_, err := l.Append(t.Context(), anything, func(b *pglog.Batch) error {
					for range 20 {
						if err := b.Add([]byte("an entry")); err != nil {
							return err
						}
					}
					return nil
				})
				if took := time.Since(began); err != nil || took > 2*time.Second {
					t.Errorf("append after %v: %v", took, err)
				}
			}
		})
	}
	nodes.Wait()
	l := tr.open()
	if err := l.Tail(t.Context(), anything); err != nil || l.Size() != 1+2*100*20 {
		t.Errorf("%d entries: %v", l.Size(), err)
	}
}

// TestCutRide cuts the connection of an append whose write also requests the next lock, at many places of
// what it sends and receives.
func TestCutRide(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	tr.append(tr.open(), 250)
	ride := func(limits *limits) (first, second error) {
		pool := tr.metered(limits)
		defer pool.Close()
		l := pglog.NewStore(pool).Open(tr.room, origin, tr.signer)
		l.More = func() bool { return true }
		defer l.Release()
		if err := l.Tail(t.Context(), func([]byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		limits.armed.Store(true)
		entries := tr.make(40)
		if _, first = l.Append(t.Context(), noEntries, add(entries[:20])); first != nil {
			return first, first
		}
		_, second = l.Append(t.Context(), noEntries, add(entries[20:]))
		return nil, second
	}
	whole := &limits{maxWrite: -1, maxRead: -1}
	if first, second := ride(whole); first != nil || second != nil || tr.stored(40) != 40 {
		t.Fatal(first, second)
	}
	between := 0 // cuts after the first commit
	for at := range int64(240) {
		cut := &limits{maxWrite: at * whole.written.Load() / 120, maxRead: -1}
		if at >= 120 {
			cut = &limits{maxWrite: -1, maxRead: (at - 120) * whole.read.Load() / 120}
		}
		first, second := ride(cut)
		switch n := tr.stored(40); {
		case n != 0 && n != 20 && n != 40, first == nil && n < 20, second == nil && n < 40:
			t.Fatalf("cut after %d bytes written, %d read: %d entries stored, answers %v, %v", cut.maxWrite, cut.maxRead, n, first, second)
		case first == nil && second != nil:
			between++
		}
	}
	if between == 0 {
		t.Error("no cut was behind the first commit")
	}
}

// stored reads the log and returns how many of the next n entries are stored.
func (tr *transcript) stored(n int) int {
	tr.t.Helper()
	l := tr.open()
	// With the lock, because the database may still be storing what was sent before the cut.
	if _, err := l.Append(tr.t.Context(), func([]byte) error { return nil }, add(nil)); err != nil {
		tr.t.Fatal(err)
	}
	found := int(l.Size()) - len(tr.entries) //nolint:gosec // small
	if found < 0 || found > n {
		tr.t.Fatalf("log has %d entries, after %d", l.Size(), len(tr.entries))
	}
	tr.entries = append(tr.entries, tr.make(found)...)
	if l.Root() != tr.root(len(tr.entries)) {
		tr.t.Fatal("the log has other entries")
	}
	return found
}

// TestGroup appends to many logs at once: they share transactions, and one that fails does so alone.
func TestGroup(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	const rooms, rounds = 40, 20
	logs := make([]*transcript, rooms)
	for i := range logs {
		other := *tr
		other.room[0] ^= byte(i + 1) //nolint:gosec // small
		logs[i] = &other
		if err := pgx.BeginFunc(t.Context(), tr.connect(), func(tx pgx.Tx) error {
			return tr.store.Create(t.Context(), tx, other.room)
		}); err != nil {
			t.Fatal(err)
		}
	}
	broken := logs[0]
	broken.append(broken.open(), 3)
	broken.superuser(`delete from log_bundles where room_id = $1`, broken.room)
	var nodes sync.WaitGroup
	var twice atomic.Int32 // entries appended by further handles of one log
	for range 3 {
		nodes.Go(func() {
			l := logs[1].open()
			for range rounds {
				if _, err := l.Append(t.Context(), func([]byte) error { return nil }, add(tr.make(1))); err != nil {
					t.Errorf("append alongside another handle of the log: %v", err)
				}
				twice.Add(1)
			}
		})
	}
	for i, other := range logs {
		nodes.Go(func() {
			l := other.open()
			for range rounds {
				a, err := l.Append(t.Context(), func([]byte) error { return nil }, add(other.make(3)))
				if i == 0 {
					if !errors.Is(err, pglog.ErrCorrupt) {
						t.Errorf("append to the broken log: %v", err)
					}
					continue
				}
				if err != nil || a == nil {
					t.Errorf("append alongside a broken log: %v", err)
					return
				}
				other.entries = append(other.entries, other.make(3)...)
			}
		})
	}
	nodes.Wait()
	shared := logs[1].open()
	if err := shared.Tail(t.Context(), func([]byte) error { return nil }); err != nil || shared.Size() != 3*rounds+uint64(twice.Load()) { //nolint:gosec // small
		t.Errorf("%d entries by several handles: %v", shared.Size(), err)
	}
	for _, other := range logs[2:] {
		if n := len(other.check().Root()); n != len(audit.Hash{}) || len(other.entries) != 3*rounds {
			t.Errorf("%d entries", len(other.entries))
		}
	}
	conn, err := pgx.Connect(t.Context(), tr.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var n int
	if err := conn.QueryRow(t.Context(), `select count(distinct xmin::text) from log_bundles`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d transactions for %d appends", n, rooms*rounds)
	if n > rooms*rounds/4 {
		t.Errorf("%d transactions for %d appends", n, rooms*rounds)
	}
}
