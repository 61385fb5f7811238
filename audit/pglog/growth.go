package pglog

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
)

// Growth returns the root of the first size entries of a log, and the consistency proof from size
// old. It returns [ErrNotFound] if the log has fewer entries or old is larger than size.
func (s *Store) Growth(
	ctx context.Context, room uuid.UUID, old, size uint64,
) (root audit.Hash, proof []audit.Hash, err error) {
	if old > size || size > audit.MaxSize {
		return root, nil, ErrNotFound
	}
	hashes := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return s.hashes(ctx, room, indexes) })
	if root, err = tlog.TreeHash(int64(size), hashes); err != nil { //nolint:gosec // at most MaxSize
		return root, nil, fmt.Errorf("root of %d entries: %w", size, err)
	}
	if old == 0 || old == size {
		return root, nil, nil
	}
	if proof, err = tlog.ProveTree(int64(size), int64(old), hashes); err != nil { //nolint:gosec // at most MaxSize
		return root, nil, fmt.Errorf("prove growth from %d to %d: %w", old, size, err)
	}
	return root, proof, nil
}

// hashes reads hashes of the tree by their tlog indexes.
func (s *Store) hashes(ctx context.Context, room uuid.UUID, indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		// Tiles exist for every eighth level; hashes in between are computed from them.
		lowest, count := uint64(n)<<(level%8), 1<<(level%8) //nolint:gosec // never negative
		at := int(lowest % audit.TileWidth)
		content, err := s.Tile(ctx, room, audit.Tile{Level: int8(level / 8), Index: lowest / audit.TileWidth, Width: at + count}) //nolint:gosec // at most 7
		if err != nil {
			return nil, err
		}
		row := make([]tlog.Hash, count)
		for k := range row {
			row[k] = tlog.Hash(content[(at+k)*tlog.HashSize:][:tlog.HashSize])
		}
		for ; len(row) > 1; row = row[:len(row)/2] {
			for k := range len(row) / 2 {
				row[k] = tlog.NodeHash(row[2*k], row[2*k+1])
			}
		}
		list[i] = row[0]
	}
	return list, nil
}

// Cosign adds a witness's signature line to the published checkpoint, if that still has this size
// and no line of the witness yet. Starting nodes request cosignatures repeatedly, and note readers
// accept no more than 100 signatures.
func (s *Store) Cosign(ctx context.Context, room uuid.UUID, size uint64, line string) error {
	const keyed = 5 // base64 characters after the name that depend on the key ID alone
	key := line[:min(strings.LastIndexByte(line, ' ')+1+keyed, len(line))]
	_, err := s.pool.Exec(ctx, `update log_heads set published = published || $3
		where room_id = $1 and published_size = $2 and strpos(published, $4) = 0`, room, int64(size), line, "\n"+key) //nolint:gosec // at most MaxSize
	if err != nil {
		return fmt.Errorf("cosign checkpoint: %w", err)
	}
	return nil
}
