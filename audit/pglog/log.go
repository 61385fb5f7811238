package pglog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
)

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
	leaves []audit.Hash // hashes of entries that follow the tree, while a chunk is applied

	// More, if not nil, reports whether there is already work for the next append; see [Log.Append].
	More func() bool

	recovers bool         // may append to a held log
	held     bool         // whether the log was held at the latest read
	isSmall  bool         // the last append stored a small batch
	shared   time.Time    // when another node's entries were read
	next     *transaction // holds the lock for the next append, or waits for it; nil: none
	rides    int          // consecutive appends whose lock was requested like that
}

// Open returns a handle that has read nothing yet.
func (s *Store) Open(room uuid.UUID, origin string, signer note.Signer) *Log {
	return &Log{store: s, room: room, origin: origin, signer: signer, tree: &audit.Tree{}, isSmall: true}
}

// Recover returns a handle that can append to a held log.
func (s *Store) Recover(room uuid.UUID, origin string, signer note.Signer) *Log {
	l := s.Open(room, origin, signer)
	l.recovers = true
	return l
}

// Reader receives the entries of a log in order. The entry is only valid during the call.
type Reader func(entry []byte) error

// RunReader receives the entries of a log in order, up to 256 at once. It calls next after each
// entry that it has read, which adds the entry to the handle's tree. The entries are only valid
// during the call.
type RunReader func(entries [][]byte, next func()) error

// runs reads the entries of each run one by one.
func (read Reader) runs(entries [][]byte, next func()) error {
	for _, entry := range entries {
		if err := read(entry); err != nil {
			return err
		}
		next()
	}
	return nil
}

// Root returns the root of the entries the handle has read or appended.
func (l *Log) Root() audit.Hash {
	l.hash()
	return l.tree.Root()
}

// IsHeld reports whether the log was held at the latest read; see [Store.Hold].
func (l *Log) IsHeld() bool { return l.held }

// Size returns how many entries the handle has read or appended.
func (l *Log) Size() uint64 { return l.tree.Size() + uint64(len(l.leaves)) }

// Tail passes all entries that the handle has not read yet to read. It returns [ErrCorrupt] if they
// do not hash to the stored root.
func (l *Log) Tail(ctx context.Context, read Reader) error { return l.TailRuns(ctx, read.runs) }

// TailRuns is [Log.Tail] for a reader of many entries at once.
func (l *Log) TailRuns(ctx context.Context, read RunReader) error {
	l.Release()
	conn, err := l.store.acquire(ctx, toRead)
	if err != nil {
		return fmt.Errorf("tail log: %w", err)
	}
	defer conn.Release()
	h, err := scanHead(conn.QueryRow(ctx, `select size, root, time_ms, published_at, held_size is not null or abandoned <> '', clock_timestamp() from log_heads where room_id = $1`, l.room))
	if err != nil {
		return fmt.Errorf("tail log: %w", err)
	}
	return l.catchUp(ctx, conn, h, read)
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

// catchUp reads the entries up to h and compares the root.
func (l *Log) catchUp(ctx context.Context, from querier, h head, read RunReader) error {
	l.held = h.held
	if h.size < l.tree.Size() {
		return fmt.Errorf("%w: %w: it has %d entries, but %d were seen before", ErrCorrupt, ErrWentBack, h.size,
			l.tree.Size())
	}
	if h.size > l.tree.Size() {
		if err := l.readEntries(ctx, from, h.size, read); err != nil {
			return err
		}
	}
	if l.tree.Size() != h.size || l.tree.Root() != h.root {
		return fmt.Errorf("%w: %d entries with root %v, but the head has size %d and root %v", ErrCorrupt,
			l.tree.Size(), l.tree.Root(), h.size, h.root)
	}
	return nil
}
