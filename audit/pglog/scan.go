package pglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// maxScan is the maximum number of entries that [Store.Scan] looks at.
const maxScan = 1 << 16

// Entry is an entry and its index in the log.
type Entry struct {
	Index uint64
	Text  string
}

var errEnough = errors.New("enough entries")

// Scan returns at most limit entries from an index on, except those whose first word is in without.
// It also returns the index to continue from, which is from itself at the end of the log. A log
// that does not exist is empty. The entries are not checked against the log's root.
func (s *Store) Scan(ctx context.Context, room uuid.UUID, from uint64, limit int,
	without ...string) (entries []Entry, next uint64, err error) {
	var size int64
	err = s.pool.QueryRow(ctx, `select size from log_heads where room_id = $1`, room).Scan(&size)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && uint64(size) <= from { //nolint:gosec // never negative
		return nil, from, nil
	}
	if err != nil {
		return nil, from, fmt.Errorf("scan log: %w", err)
	}
	next = min(uint64(size), from+maxScan) //nolint:gosec // never negative
	index := from
	err = s.eachStored(ctx, s.pool, room, from, next, func(entry []byte) error {
		kind, _, _ := bytes.Cut(entry, []byte(" "))
		if !slices.Contains(without, string(kind)) {
			entries = append(entries, Entry{index, string(entry)})
		}
		if index++; len(entries) == limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, from, fmt.Errorf("scan log: %w", err)
	}
	if len(entries) == limit {
		next = index
	}
	return entries, next, nil
}
