package pglog

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/proofline/proofline/audit"
)

// selectBundles reads the rows of a room that begin at or after one index and before another. A row
// has entries of one tile, so the rows of all entries from an index on begin at the start of its
// tile. Of an archived log there are none.
const selectBundles = `select first, entries from log_bundles where room_id = $1 and first >= $2 and first < $3
	and ` + isHere + ` order by first`

// isHere is a condition that a log is in the database. An archived one is read from its files alone.
const isHere = `not exists (select from log_heads where room_id = $1 and archived <> '')`

// tileStart returns the index of the first entry in the tile of an entry.
func tileStart(index uint64) uint64 { return index - index%audit.TileWidth }

// eachEntry passes the entries with indexes from from to to-1 to read, as far as the rows of
// [selectBundles] have them without a gap. It closes rows. The entry is only valid during the call.
func eachEntry(rows pgx.Rows, from, to uint64, read func(entry []byte) error) error {
	defer rows.Close()
	var first int64
	var entries pgtype.DriverBytes
	next := tileStart(from) // index of the next entry
	for rows.Next() {
		if err := rows.Scan(&first, &entries); err != nil {
			return fmt.Errorf("read entries: %w", err)
		}
		if uint64(first) > next { //nolint:gosec // never negative
			return nil
		}
		if uint64(first) < next { //nolint:gosec // never negative
			return fmt.Errorf("%w: entry %d is stored twice", ErrCorrupt, first)
		}
		for rest := []byte(entries); len(rest) > 0 && next < to; next++ {
			if len(rest) < 2 || len(rest) < 2+int(binary.BigEndian.Uint16(rest)) {
				return fmt.Errorf("%w: the row of entry %d is truncated", ErrCorrupt, first)
			}
			end := 2 + int(binary.BigEndian.Uint16(rest))
			if next >= from {
				if err := read(rest[2:end]); err != nil {
					return err
				}
			}
			rest = rest[end:]
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read entries: %w", err)
	}
	return nil
}
