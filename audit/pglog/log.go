package pglog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
)

// publishInterval is how long the published checkpoint may lag behind the log during appends. After
// the last one, [Store.Publish] catches up.
const publishInterval = time.Second

// appendTimeout is the time limit for the work of an append, and for its commit if that does not
// wait for a standby. A slower database is treated as unavailable.
const appendTimeout = 10 * time.Second

// uniqueViolation is PostgreSQL's code for a duplicate key
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const uniqueViolation = "23505"

// Log is a handle on one room's log. It holds the tree of the entries it has read or appended, and
// may be used by one goroutine at a time. After a failed append its entries may be stored or not,
// and the handle does not have them: the next Tail or Append reads them if they are. After
// [ErrCorrupt] discard the handle.
type Log struct {
	store  *Store
	room   uuid.UUID
	origin string
	signer note.Signer
	tree   *audit.Tree

	recovers bool // may append to a held log
	held     bool // whether the log was held at the latest read
}

// Open returns a handle that has read nothing yet.
func (s *Store) Open(room uuid.UUID, origin string, signer note.Signer) *Log {
	return &Log{store: s, room: room, origin: origin, signer: signer, tree: &audit.Tree{}}
}

// Recover returns a handle that can append to a held log.
func (s *Store) Recover(room uuid.UUID, origin string, signer note.Signer) *Log {
	l := s.Open(room, origin, signer)
	l.recovers = true
	return l
}

// Reader receives the entries of a log in order. The entry is only valid during the call.
type Reader func(entry []byte) error

// Root returns the root of the entries the handle has read or appended.
func (l *Log) Root() audit.Hash { return l.tree.Root() }

// IsHeld reports whether the log was held at the latest read; see [Store.Hold].
func (l *Log) IsHeld() bool { return l.held }

// Size returns how many entries the handle has read or appended.
func (l *Log) Size() uint64 { return l.tree.Size() }

// Tail passes all entries that the handle has not read yet to read. It returns [ErrCorrupt] if they
// do not hash to the stored root.
func (l *Log) Tail(ctx context.Context, read Reader) error {
	conn, err := l.store.acquire(ctx, false)
	if err != nil {
		return fmt.Errorf("tail log: %w", err)
	}
	defer conn.Release()
	h, err := scanHead(conn.QueryRow(ctx, `select size, root, time_ms, published_at, held_size is not null or abandoned <> '', clock_timestamp() from log_heads where room_id = $1`, l.room))
	if err != nil {
		return fmt.Errorf("tail log: %w", err)
	}
	return l.catchUp(ctx, conn.Conn(), h, read)
}

// Batch collects the entries of one append.
type Batch struct {
	// Now is the database's clock in milliseconds since the Unix epoch, read
	// under the room's lock, and never less than in an earlier append.
	Now int64

	text    []byte // all entries, concatenated
	ends    []int  // end of each entry in text
	leaves  []audit.Hash
	tree    *audit.Tree // tree before the batch, plus the first hashed leaves
	hashed  int
	publish bool
}

// Add adds the next entry; it copies the bytes.
func (b *Batch) Add(entry []byte) error {
	if len(entry) > audit.MaxEntrySize {
		return audit.ErrEntrySize
	}
	b.text = append(b.text, entry...)
	b.ends = append(b.ends, len(b.text))
	b.leaves = append(b.leaves, audit.LeafHash(entry))
	return nil
}

// Len returns the number of entries added.
func (b *Batch) Len() int { return len(b.ends) }

// Root returns the root of the tree with the entries added so far.
func (b *Batch) Root() audit.Hash {
	for ; b.hashed < len(b.leaves); b.hashed++ {
		b.tree.Append(b.leaves[b.hashed])
	}
	return b.tree.Root()
}

// Publish requests that the batch's checkpoint be published at once.
func (b *Batch) Publish() { b.publish = true }

func (b *Batch) entry(i int) []byte {
	from := 0
	if i > 0 {
		from = b.ends[i-1]
	}
	return b.text[from:b.ends[i]]
}

// Appended is a durable batch. It is safe for concurrent use.
type Appended struct {
	*audit.Extension
	Checkpoint []byte // signed checkpoint of the tree that ends with the batch
}

// AppendReceipt appends the tlog-proof of one of the batch's entries to dst.
func (a *Appended) AppendReceipt(dst []byte, index uint64) ([]byte, error) {
	return a.AppendProofText(dst, index, a.Checkpoint)
}

// Append performs one append: under the room's lock it passes entries of other nodes to read, calls
// build to add new ones, and stores them. It returns nil if build added none. An error of build is
// returned wrapped, and nothing is stored; for any other error see [Log].
func (l *Log) Append(ctx context.Context, read Reader, build func(*Batch) error) (*Appended, error) {
	if err := l.store.await(ctx); err != nil {
		return nil, fmt.Errorf("append to log: %w", err)
	}
	conn, err := l.store.acquire(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("append to log: %w", err)
	}
	defer conn.Release()
	appended, err := l.append(ctx, conn, read, build)
	if err != nil || appended == nil {
		err = errors.Join(err, rollback(conn))
	}
	if err != nil {
		return nil, fmt.Errorf("append to log: %w", err)
	}
	return appended, nil
}

func (l *Log) append(ctx context.Context, conn *pgxpool.Conn, read Reader,
	build func(*Batch) error) (*Appended, error) {
	working, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	h, err := l.lock(working, conn)
	if err != nil {
		return nil, err
	}
	if err := l.catchUp(working, conn.Conn(), h, read); err != nil {
		return nil, err
	}
	if h.held && !l.recovers {
		return nil, ErrHeld
	}
	now := h.now
	if l.store.stamp != nil {
		if now, err = l.store.stamp(h.now); err != nil {
			return nil, err
		}
	}
	b := &Batch{Now: max(now.UnixMilli(), h.time), tree: l.tree.Clone()}
	if err := build(b); err != nil {
		return nil, err
	}
	if b.Len() == 0 {
		return nil, nil
	}
	tree := l.tree.Clone()
	ext := tree.Extend(b.leaves)
	signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: l.origin, Size: ext.Size(), Root: ext.Root()},
		l.signer)
	if err != nil {
		return nil, err
	}
	if err := l.copy(working, conn.Conn(), b, ext.Start()); err != nil {
		return nil, err
	}
	ctx, cancel = context.WithTimeout(ctx, l.store.commitTimeout())
	defer cancel()
	publish := b.publish || h.now.Sub(h.published).Abs() >= publishInterval // the clock may have been set back
	if err := l.commit(ctx, conn, b.Now, ext, signed, publish); err != nil {
		return nil, err
	}
	l.tree = tree
	return &Appended{ext, signed}, nil
}

// head is a row of log_heads and the database time when it was read.
type head struct {
	size      uint64
	root      audit.Hash
	time      int64
	published time.Time
	held      bool
	now       time.Time
}

func scanHead(row pgx.Row) (h head, err error) {
	var size int64
	var root []byte
	if err = row.Scan(&size, &root, &h.time, &h.published, &h.held, &h.now); errors.Is(err, pgx.ErrNoRows) {
		return h, ErrNotFound
	} else if err != nil {
		return h, fmt.Errorf("read head: %w", err)
	}
	h.size, h.root = uint64(size), audit.Hash(root) //nolint:gosec // never negative
	return h, nil
}

// lock begins the transaction and takes the room's lock. It needs this isolation level: only there
// does a waiting transaction see the entries stored by the previous lock holder. The clock is read
// outside the locking sub-select, because inside it would be read before the wait.
func (l *Log) lock(ctx context.Context, conn *pgxpool.Conn) (head, error) {
	defer l.store.stalls.watch(conn.Conn().PgConn().PID())()
	batch := &pgx.Batch{}
	batch.Queue(`begin isolation level read committed read write`)
	batch.Queue(`with head as materialized (
			select size, root, time_ms, published_at, held_size is not null or abandoned <> '' as held from log_heads where room_id = $1 for update)
		select size, root, time_ms, published_at, held, clock_timestamp() from head`, l.room)
	results := conn.SendBatch(ctx, batch)
	_, err := results.Exec()
	h, errHead := scanHead(results.QueryRow())
	return h, cmp.Or(err, errHead, results.Close()) // the first error causes the others
}

// catchUp reads the entries up to h and compares the root.
func (l *Log) catchUp(ctx context.Context, conn *pgx.Conn, h head, read Reader) error {
	l.held = h.held
	if h.size < l.tree.Size() {
		return fmt.Errorf("%w: %w: it has %d entries, but %d were seen before", ErrCorrupt, ErrWentBack, h.size,
			l.tree.Size())
	}
	if h.size > l.tree.Size() {
		if err := l.readEntries(ctx, conn, h.size, read); err != nil {
			return err
		}
	}
	if l.tree.Size() != h.size || l.tree.Root() != h.root {
		return fmt.Errorf("%w: %d entries with root %v, but the head has size %d and root %v", ErrCorrupt,
			l.tree.Size(), l.tree.Root(), h.size, h.root)
	}
	return nil
}

func (l *Log) readEntries(ctx context.Context, conn *pgx.Conn, to uint64, read Reader) error {
	rows, err := conn.Query(ctx,
		`select entry from log_entries where room_id = $1 and index >= $2 and index < $3 order by index`,
		l.room, int64(l.tree.Size()), int64(to)) //nolint:gosec // both below MaxSize
	if err != nil {
		return fmt.Errorf("read entries: %w", err)
	}
	defer rows.Close()
	var entry pgtype.DriverBytes
	for rows.Next() {
		if err := rows.Scan(&entry); err != nil {
			return fmt.Errorf("read entries: %w", err)
		}
		if err := read(entry); err != nil {
			return fmt.Errorf("%w: entry %d: %w", ErrCorrupt, l.tree.Size(), err)
		}
		l.tree.Append(audit.LeafHash(entry))
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read entries: %w", err)
	}
	return nil
}

// copy writes the entries of a batch.
func (l *Log) copy(ctx context.Context, conn *pgx.Conn, b *Batch, start uint64) error {
	row := []any{pgtype.UUID{Bytes: l.room, Valid: true}, nil, nil, nil} // pgx would encode uuid.UUID as text
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"log_entries"}, []string{"room_id", "index", "entry", "leaf"},
		pgx.CopyFromSlice(b.Len(), func(i int) ([]any, error) {
			row[1], row[2], row[3] = int64(start)+int64(i), b.entry(i), b.leaves[i][:] //nolint:gosec // below MaxSize
			return row, nil
		}))
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == uniqueViolation {
		err = fmt.Errorf("%w: it has entries from %d on, but the head ends there: %w", ErrCorrupt, start, err)
	}
	if err != nil {
		return fmt.Errorf("copy entries: %w", err)
	}
	return nil
}

// commit stores tile roots and the new head and commits, in one round trip.
func (l *Log) commit(ctx context.Context, conn *pgxpool.Conn, now int64, ext *audit.Extension, signed []byte,
	publish bool) error {
	batch := &pgx.Batch{}
	ext.TileRoots(func(level uint8, index uint64, h audit.Hash) {
		batch.Queue(`insert into log_tile_roots (room_id, level, index, hash) values ($1, $2, $3, $4)`,
			l.room, int16(level), int64(index), h[:]) //nolint:gosec // below MaxSize
	})
	root := ext.Root()
	batch.Queue(`update log_heads set size = $2, root = $3, time_ms = $4, checkpoint = $5,
			published = case when $6 then $5 else published end,
			published_size = case when $6 then $2 else published_size end,
			published_at = case when $6 then clock_timestamp() else published_at end
		where room_id = $1`,
		l.room, int64(ext.Size()), root[:], now, string(signed), publish) //nolint:gosec // below MaxSize
	batch.Queue(`commit`)
	if err := errors.Join(conn.SendBatch(ctx, batch).Close(), sure(conn.Conn())); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// rollback ends the transaction, unless the broken connection has already ended it.
func rollback(conn *pgxpool.Conn) error {
	if conn.Conn().IsClosed() || conn.Conn().PgConn().TxStatus() == 'I' {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, `rollback`); err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}
