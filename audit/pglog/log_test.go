package pglog_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
)

// TestAppend appends batches of many sizes across the borders of tiles at levels 0, 1 and 2, and checks all
// responses of the log after each.
func TestAppend(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	for _, n := range []int{1, 254, 1, 1, 255, 256, 257, 5_000, 15_000, 15_000, 15_000, 15_000, 8, 1, 1, 600} {
		before := uint64(len(tr.entries))
		a := tr.append(l, n)
		if a.Start() != before || a.Size() != before+uint64(n) || a.Root() != tr.root(len(tr.entries)) {
			t.Fatalf("appended [%d, %d), want %d entries from %d on", a.Start(), a.Size(), n, before)
		}
		if c := tr.openCheckpoint(a.Checkpoint); c != (audit.Checkpoint{Origin: origin, Size: a.Size(), Root: a.Root()}) {
			t.Fatalf("signed %+v", c)
		}
		for _, index := range []uint64{before, before + uint64(n)/2, a.Size() - 1} {
			receipt, err := a.AppendReceipt(nil, index)
			if err != nil {
				t.Fatal(err)
			}
			tr.checkReceipt(receipt, index, a.Size())
		}
		for _, index := range []uint64{0, before / 2, before, a.Size() - 1} {
			receipt, err := tr.store.Receipt(t.Context(), tr.room, index)
			if err != nil {
				t.Fatal(err)
			}
			tr.checkReceipt(receipt, index, a.Size())
		}
	}
	tr.check()
	tr.checkTiles()
}

// TestLargeBatch appends a batch that fills tiles of all levels at once.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	for range 4 {
		tr.append(l, 15_000)
	}
	tr.append(l, 10_000)
	tr.check()
	tr.checkTiles()
}

// checkTiles compares each tile of the log with the tree, and checks that there are no others.
func (tr *transcript) checkTiles() {
	tr.t.Helper()
	size := uint64(len(tr.entries))
	for tile := range audit.Tiles(size) {
		tr.checkTile(tile)
		if tile.Width < audit.TileWidth {
			tile.Width++
		} else {
			tile.Index++
		}
		if !tile.In(size) {
			tr.checkNoTile(tile)
		}
	}
	tr.checkNoTile(audit.Tile{Level: 8, Width: 1})
	tr.checkNoTile(audit.Tile{Level: 0, Index: 1 << 62, Width: 1})
	tr.checkNoTile(audit.Tile{Level: -2, Width: 1})
	tr.checkNoTile(audit.Tile{Level: 0})
}

func (tr *transcript) checkTile(tile audit.Tile) {
	tr.t.Helper()
	got, err := tr.store.Tile(tr.t.Context(), tr.room, tile)
	if err != nil {
		tr.t.Fatalf("%s: %v", tile.Path(), err)
	}
	if want := tr.tile(tile); !bytes.Equal(got, want) {
		tr.t.Fatalf("%s: %d bytes, want %d others", tile.Path(), len(got), len(want))
	}
}

func (tr *transcript) checkNoTile(tile audit.Tile) {
	tr.t.Helper()
	if _, err := tr.store.Tile(tr.t.Context(), tr.room, tile); !errors.Is(err, pglog.ErrNotFound) {
		tr.t.Errorf("tile %+v of %d entries: %v, want ErrNotFound", tile, len(tr.entries), err)
	}
}

// tile returns a tile's expected content, computed from the entries.
func (tr *transcript) tile(tile audit.Tile) (content []byte) {
	span := 1
	for range tile.Level {
		span *= audit.TileWidth
	}
	for i := range tile.Width {
		from := (int(tile.Index)*audit.TileWidth + i) * span
		if tile.Level < 0 {
			content, _ = audit.AppendBundle(content, tr.entries[from])
			continue
		}
		subtree := &audit.Tree{}
		for _, e := range tr.entries[from : from+span] {
			subtree.Append(audit.LeafHash(e))
		}
		root := subtree.Root()
		content = append(content, root[:]...)
	}
	return content
}

// TestPartialTiles requests every width of every tile, at sizes around full tiles.
func TestPartialTiles(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	for _, n := range []int{1, 6, 248, 1, 1, 300} { // 1, 7, 255, 256, 257, 557 entries
		tr.append(l, n)
		size := uint64(len(tr.entries))
		for level := int8(-1); level <= 1; level++ {
			for index := range uint64(4) {
				for width := range audit.TileWidth + 1 {
					if tile := (audit.Tile{Level: level, Index: index, Width: width}); tile.In(size) {
						tr.checkTile(tile)
					} else if width == 0 || width%50 == 1 {
						tr.checkNoTile(tile)
					}
				}
			}
		}
	}
}

// TestNothingAppended tests an append without entries.
func TestNothingAppended(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	for range 3 {
		if a, err := l.Append(t.Context(), noEntries, func(*pglog.Batch) error { return nil }); a != nil || err != nil {
			t.Fatalf("appended %v, %v", a, err)
		}
	}
	if _, err := tr.store.Checkpoint(t.Context(), tr.room); !errors.Is(err, pglog.ErrNotFound) {
		t.Errorf("checkpoint of an empty log: %v, want ErrNotFound", err)
	}
	tr.append(l, 2)
	tr.check()
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	tr, other := newTranscript(t), newTranscript(t)
	tr.append(tr.open(), 3)
	ctx := t.Context()
	l := tr.store.Open(other.room, origin, tr.signer)
	_, errAppend := l.Append(ctx, noEntries, add(tr.make(1)))
	_, errCheckpoint := tr.store.Checkpoint(ctx, other.room)
	_, errTile := tr.store.Tile(ctx, other.room, audit.Tile{Width: 1})
	_, errReceipt := tr.store.Receipt(ctx, other.room, 0)
	_, errBeyond := tr.store.Receipt(ctx, tr.room, 3)
	for i, err := range []error{errAppend, l.Tail(ctx, noEntries), errCheckpoint, errTile, errReceipt, errBeyond} {
		if !errors.Is(err, pglog.ErrNotFound) {
			t.Errorf("question %d about a log that is not there: %v, want ErrNotFound", i, err)
		}
	}
	if err := tr.store.Publish(ctx, []uuid.UUID{other.room}); err != nil {
		t.Errorf("publish a log that is not there: %v", err)
	}
	if err := pgx.BeginFunc(ctx, tr.connect(), func(tx pgx.Tx) error { return tr.store.Create(ctx, tx, tr.room) }); !errors.Is(err, pglog.ErrExists) {
		t.Errorf("create twice: %v, want ErrExists", err)
	}
	tr.check()
}

// TestBuildError tests an append whose build function fails: nothing is stored, and the handle still works.
func TestBuildError(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	tr.append(l, 300)
	refused := errors.New("refused")
	_, err := l.Append(t.Context(), noEntries, func(b *pglog.Batch) error {
		b.Publish()
		_ = b.Root()
		return errors.Join(add(tr.make(5))(b), refused)
	})
	if !errors.Is(err, refused) {
		t.Fatalf("append: %v, want the error of build", err)
	}
	tr.check()
	if _, err := l.Append(t.Context(), noEntries, add([][]byte{bytes.Repeat([]byte("x"), audit.MaxEntrySize+1)})); !errors.Is(err, audit.ErrEntrySize) {
		t.Errorf("append too much: %v, want ErrEntrySize", err)
	}
	tr.append(l, 1)
	tr.check()
}

// TestBatchRoot requests the root between entries, as a freeze does.
func TestBatchRoot(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	tr.append(l, 255)
	entries := tr.make(10)
	_, err := l.Append(t.Context(), noEntries, func(b *pglog.Batch) error {
		for i, e := range entries {
			if i%3 == 0 && b.Root() != tr.root(len(tr.entries)) {
				return fmt.Errorf("root before entry %d of the batch is wrong", i)
			}
			if err := b.Add(e); err != nil {
				return err
			}
			tr.entries = append(tr.entries, e)
			e[0] = '!' // the batch keeps a copy
			tr.entries[len(tr.entries)-1] = append([]byte("e"), e[1:]...)
		}
		if b.Len() != len(entries) {
			return fmt.Errorf("len %d", b.Len())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tr.check()
}

// TestPublication checks when a new checkpoint is published.
func TestPublication(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	publishNow := func() {
		t.Helper()
		if err := tr.store.Publish(t.Context(), []uuid.UUID{tr.room}); err != nil {
			t.Fatal(err)
		}
	}
	append1 := func(publish bool) {
		t.Helper()
		entries := tr.make(1)
		_, err := l.Append(t.Context(), noEntries, func(b *pglog.Batch) error {
			if publish {
				b.Publish()
			}
			return add(entries)(b)
		})
		if err != nil {
			t.Fatal(err)
		}
		tr.entries = append(tr.entries, entries...)
	}
	want := func(size uint64) {
		t.Helper()
		if c := tr.published(); c.Size != size || c.Root != tr.root(int(size)) {
			t.Fatalf("published size %d with root %v, want %d", c.Size, c.Root, size)
		}
	}
	append1(true)
	want(1) // at once
	append1(false)
	want(1) // later
	publishNow()
	want(2)
	publishNow()
	want(2)
	append1(false)
	tr.superuser(`update log_heads set published_at = clock_timestamp() - interval '1 second'`)
	append1(false)
	want(4) // a second has passed
	tr.superuser(`update log_heads set published_at = clock_timestamp() + interval '1 hour'`)
	append1(false)
	want(5) // the clock was set back
	append1(false)
	want(5)
}

// TestPublishedNeverShrinks publishes and appends concurrently, while a reader watches the
// checkpoint.
func TestPublishedNeverShrinks(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	tr.append(l, 1)
	if err := tr.store.Publish(t.Context(), []uuid.UUID{tr.room}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for !closed(done) {
				if err := tr.store.Publish(t.Context(), []uuid.UUID{tr.room}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	others.Go(func() {
		for last := uint64(0); !closed(done); {
			size := tr.published().Size
			if size < last {
				t.Errorf("published %d after %d", size, last)
			}
			last = size
		}
	})
	for range 200 {
		tr.append(l, 1)
	}
	close(done)
	others.Wait()
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestTime checks the clock of appends: it is the database's, and never goes back, even if the head's time is
// in the future.
func TestTime(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	l := tr.open()
	appendAt := func() (now int64) {
		t.Helper()
		_, err := l.Append(t.Context(), noEntries, func(b *pglog.Batch) error {
			now = b.Now
			return b.Add([]byte("entry"))
		})
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	heads, clock, err := tr.store.Heads(t.Context(), nil)
	if err != nil || len(heads) != 0 {
		t.Fatalf("heads of no rooms: %v, %v", heads, err)
	}
	if now := appendAt(); now < clock.UnixMilli() || now > clock.UnixMilli()+60_000 {
		t.Errorf("append at %d, the database's clock said %d before", now, clock.UnixMilli())
	}
	future := time.Now().Add(time.Hour).UnixMilli()
	tr.superuser(`update log_heads set time_ms = $1`, future)
	for range 3 {
		if now := appendAt(); now != future {
			t.Errorf("append at %d, the head is at %d", now, future)
		}
	}
}

// TestTwoHandles appends through two handles at once, like two nodes. Each reads the entries of the other,
// and both end with the same tree.
func TestTwoHandles(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	const appends = 60
	var nodes sync.WaitGroup
	logs := make([]*pglog.Log, 2)
	seen := make([][]string, 2)
	for n := range logs {
		logs[n] = tr.store.Open(tr.room, origin, tr.signer)
		nodes.Go(func() {
			l := logs[n]
			read := func(entry []byte) error { seen[n] = append(seen[n], string(entry)); return nil }
			last := int64(0)
			for i := range appends {
				size := 0
				a, err := l.Append(t.Context(), read, func(b *pglog.Batch) error {
					size = len(seen[n])
					if b.Now < last {
						return fmt.Errorf("time %d after %d", b.Now, last)
					}
					last = b.Now
					for k := range i%7 + 1 {
						seen[n] = append(seen[n], fmt.Sprintf("node %d append %d entry %d", n, i, k))
						if err := b.Add([]byte(seen[n][len(seen[n])-1])); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				if a.Start() != uint64(size) {
					t.Errorf("append at %d, read %d", a.Start(), size)
				}
				if i%10 == 0 {
					if err := l.Tail(t.Context(), read); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	nodes.Wait()
	for n, l := range logs {
		if err := l.Tail(t.Context(), func(entry []byte) error { seen[n] = append(seen[n], string(entry)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if logs[0].Root() != logs[1].Root() || fmt.Sprint(seen[0]) != fmt.Sprint(seen[1]) {
		t.Fatal("the nodes saw different logs")
	}
	for _, e := range seen[0] {
		tr.entries = append(tr.entries, []byte(e))
	}
	tr.check()
}

// TestProtocols reads and appends with each protocol mode of pgx, because a pooler in front of the database
// may allow only some.
func TestProtocols(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			tr := newTranscript(t, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			l := tr.open()
			tr.append(l, 300)
			tr.append(l, 300)
			tr.check()
			tr.checkTiles()
			receipt, err := tr.store.Receipt(t.Context(), tr.room, 299)
			if err != nil {
				t.Fatal(err)
			}
			tr.checkReceipt(receipt, 299, 600)
			heads, now, err := tr.store.Heads(t.Context(), []uuid.UUID{uuid.New(), tr.room})
			want := []pglog.Head{{Room: tr.room, Size: 600, Published: 0}}
			for i := range heads {
				if age := now.Sub(heads[i].PublishedAt); age < 0 || age > time.Minute {
					t.Errorf("published %v ago", age)
				}
				want[i].PublishedAt = heads[i].PublishedAt
			}
			if diff := cmp.Diff(want, heads); err != nil || diff != "" || time.Since(now).Abs() > time.Minute {
				t.Errorf("heads (-want +got) at %v, %v\n%s", now, err, diff)
			}
			if use := tr.store.PoolUse(); use.Max < 1 || use.Open < 1 || use.InUse > use.Open {
				t.Errorf("pool %+v", use)
			}
		})
	}
}

// TestIsolation lets one handle wait for another in a database with a stricter default isolation level. It
// must see the entries that the other stored.
func TestIsolation(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	})
	var second sync.WaitGroup
	_, err := tr.open().Append(t.Context(), noEntries, func(b *pglog.Batch) error {
		second.Go(func() {
			a, err := tr.open().Append(t.Context(), func([]byte) error { return nil }, add([][]byte{[]byte("second")}))
			if err != nil || a.Start() != 1 {
				t.Errorf("appended %+v, %v", a, err)
			}
		})
		time.Sleep(100 * time.Millisecond) // it waits for the lock
		return b.Add([]byte("first"))
	})
	if err != nil {
		t.Error(err)
	}
	second.Wait()
}
