package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// scanMost is how many entries [Store.Scan] looks at, at most.
const scanMost = 1 << 16

// Entry is an entry with its place in the log.
type Entry struct {
	Index uint64
	Text  string
}

// Scan returns entries from a place on, at most limit, and leaves out those
// whose first word is one of these. What is next is the place from which to go
// on; it is from itself at the end of the log. A log that does not exist is
// empty. Nothing is checked against the log's root.
func (s *Store) Scan(ctx context.Context, room uuid.UUID, from uint64, limit int, without ...string) (entries []Entry, next uint64, err error) {
	var size int64
	err = s.pool.QueryRow(ctx, `select size from log_heads where room_id = $1`, room).Scan(&size)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && uint64(size) <= from { //nolint:gosec // never negative
		return nil, from, nil
	}
	if err != nil {
		return nil, from, fmt.Errorf("scan log: %w", err)
	}
	next = min(uint64(size), from+scanMost) //nolint:gosec // never negative
	rows, _ := s.pool.Query(ctx, `select index, entry from log_entries where room_id = $1 and index >= $2 and index < $3
		and split_part(entry, ' ', 1) <> all(coalesce($4::text[], '{}')) order by index limit $5`, room, int64(from), int64(next), without, limit) //nolint:gosec // at most MaxSize
	if entries, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Entry]); err != nil {
		return nil, from, fmt.Errorf("scan log: %w", err)
	}
	if n := len(entries); n == limit {
		next = entries[n-1].Index + 1
	}
	return entries, next, nil
}
