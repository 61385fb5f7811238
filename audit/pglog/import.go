package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit"
)

// Import is a whole log that another server has written. Its signer stays there, so nothing can be appended to it.
type Import struct {
	Head   audit.Checkpoint
	Signed []byte // the checkpoint
	Time   int64  // of the newest entry
	Ended  string // operator's signed statement that the log ends here; empty: its last entry ends it
	// Bundle returns the entry bundle with an index and a number of entries.
	Bundle audit.TileFetcher
}

// Store stores the log inside the caller's transaction. It reads one bundle at a time, and returns [ErrCorrupt] if the
// entries do not hash to the checkpoint, and [ErrExists] if the log exists.
func (i Import) Store(ctx context.Context, tx pgx.Tx, room uuid.UUID) error {
	tag, err := tx.Exec(ctx, `insert into log_heads
		(room_id, size, root, time_ms, checkpoint, published_size, published, abandoned)
		values ($1, $2, $3, $4, $5, $2, $5, $6) on conflict do nothing`,
		room, int64(i.Head.Size), i.Head.Root[:], i.Time, string(i.Signed), i.Ended) //nolint:gosec // at most MaxSize
	if err != nil {
		return fmt.Errorf("import log: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrExists
	}
	bundles := &importedBundles{Import: i, ctx: ctx, room: room, tree: &audit.Tree{}}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"log_bundles"}, []string{"room_id", "first", "count", "entries"},
		bundles); err != nil {
		return fmt.Errorf("import log: %w", errors.Join(err, bundles.err))
	}
	if bundles.tree.Size() != i.Head.Size || bundles.tree.Root() != i.Head.Root {
		return fmt.Errorf("import log: %w: %d entries hash to %v, signed is %v", ErrCorrupt, bundles.tree.Size(),
			bundles.tree.Root(), i.Head.Root)
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"log_tile_roots"}, []string{"room_id", "level", "index", "hash"},
		pgx.CopyFromRows(bundles.roots))
	if err != nil {
		return fmt.Errorf("import log: %w", err)
	}
	return nil
}

// importedBundles are the rows of log_bundles for a log. It is a [pgx.CopyFromSource].
type importedBundles struct {
	Import
	ctx   context.Context
	room  uuid.UUID
	tree  *audit.Tree
	roots [][]any // rows of log_tile_roots: one for each full tile
	row   []any
	err   error
}

// Next reads the next bundle.
func (b *importedBundles) Next() bool {
	first := b.tree.Size()
	if b.err != nil || first >= b.Head.Size {
		return false
	}
	t := audit.Tile{Level: -1, Index: first / audit.TileWidth, Width: int(min(audit.TileWidth, b.Head.Size-first))}
	bundle, err := b.Bundle(b.ctx, t)
	if err != nil {
		b.err = err
		return false
	}
	leaves := make([]audit.Hash, 0, t.Width)
	if b.err = audit.SplitBundle(bundle, t.Width, func(entry []byte) error {
		leaves = append(leaves, audit.LeafHash(entry))
		return nil
	}); b.err != nil {
		return false
	}
	b.tree.Extend(leaves).TileRoots(func(level uint8, index uint64, h audit.Hash) {
		b.roots = append(b.roots, []any{b.room, int16(level), int64(index), h[:]}) //nolint:gosec // at most MaxSize
	})
	b.row = []any{b.room, int64(first), int32(t.Width), bundle} //nolint:gosec // at most MaxSize
	return true
}

// Values returns the row that Next has read.
func (b *importedBundles) Values() ([]any, error) { return b.row, nil }

// Err returns the error that has ended Next.
func (b *importedBundles) Err() error { return b.err }

// Newest returns the checkpoint of the whole log, with the cosignatures of witnesses if it is published, or
// [ErrNotFound].
func (s *Store) Newest(ctx context.Context, room uuid.UUID) ([]byte, error) {
	var note string
	err := s.pool.QueryRow(ctx, `select case when published_size = size then published else checkpoint end
		from log_heads where room_id = $1 and size > 0`, room).Scan(&note)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	return []byte(note), nil
}
