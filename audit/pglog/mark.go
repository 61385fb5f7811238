package pglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit"
)

// ErrHeld is returned for a log that lacks entries that were seen.
var ErrHeld = errors.New("the log is held: entries that were seen are missing")

// Mark is the size and root of a log that was seen.
type Mark struct {
	Size uint64
	Root audit.Hash // zero where only the size is known
}

// IsZero reports whether nothing was seen.
func (m Mark) IsZero() bool { return m.Size == 0 }

// Hold is the reason why a log is held.
type Hold struct {
	Mark          // the log that was seen
	By     string // node or witness that saw it; empty: the log is not held
	Ended  string // operator's signed statement that the log ends here; empty: it may be recovered
	Ignore uint64 // witnesses' claims about sizes up to this are ignored
}

// IsHeld reports whether the log must not be appended to.
func (h Hold) IsHeld() bool { return h.By != "" || h.Ended != "" }

// Hold makes all nodes stop appending to a log, because one has seen a longer or different log. It waits for an
// append in progress.
func (s *Store) Hold(ctx context.Context, room uuid.UUID, m Mark, by string) error {
	var root []byte
	if m.Root != (audit.Hash{}) {
		root = m.Root[:]
	}
	_, err := s.pool.Exec(ctx, `update log_heads set held_size = $2, held_root = $3, held_by = $4
		where room_id = $1 and (held_size is null or held_size < $2)`, room, int64(m.Size), root, by) //nolint:gosec // at most MaxSize
	if err != nil {
		return fmt.Errorf("hold log: %w", err)
	}
	return nil
}

// Release allows appends to a log again. From then on, claims of witnesses about sizes up to ignore are ignored; 0
// changes nothing.
func (s *Store) Release(ctx context.Context, room uuid.UUID, ignore uint64) error {
	_, err := s.pool.Exec(ctx,
		`update log_heads set held_size = null, held_root = null, held_by = '', overruled = greatest(overruled, $2)
		where room_id = $1`, room, int64(ignore)) //nolint:gosec // at most MaxSize
	if err != nil {
		return fmt.Errorf("release log: %w", err)
	}
	return nil
}

// Abandon ends a log for good with the operator's signed statement.
func (s *Store) Abandon(ctx context.Context, room uuid.UUID, statement string) error {
	if _, err := s.pool.Exec(ctx, `update log_heads set abandoned = $2 where room_id = $1`, room,
		statement); err != nil {
		return fmt.Errorf("abandon log: %w", err)
	}
	return nil
}

// OtherRoot represents the unknown root of a log that is known to differ.
var OtherRoot = audit.Hash(bytes.Repeat([]byte{0xff}, len(audit.Hash{})))

// Marks returns the sizes and roots of the rooms' logs.
func (s *Store) Marks(ctx context.Context, rooms []uuid.UUID) (map[uuid.UUID]Mark, error) {
	rows, _ := s.pool.Query(ctx, `select room_id, size, root from log_heads where room_id = any($1::uuid[])`,
		uuid.UUIDs(rooms).Strings())
	marks := map[uuid.UUID]Mark{}
	var id uuid.UUID
	var size int64
	var root []byte
	if _, err := pgx.ForEachRow(rows, []any{&id, &size, &root}, func() error {
		marks[id] = Mark{uint64(size), audit.Hash(root)} //nolint:gosec // never negative
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read heads: %w", err)
	}
	return marks, nil
}

// State returns the size and root of a log, and why it is held, or [ErrNotFound].
func (s *Store) State(ctx context.Context, room uuid.UUID) (m Mark, h Hold, err error) {
	var size, held, ignore int64
	var root, heldRoot []byte
	err = s.pool.QueryRow(ctx,
		`select size, root, coalesce(held_size, 0), held_root, held_by, abandoned, overruled from log_heads where room_id = $1`, room).
		Scan(&size, &root, &held, &heldRoot, &h.By, &h.Ended, &ignore)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, h, ErrNotFound
	}
	if err != nil {
		return m, h, fmt.Errorf("read head: %w", err)
	}
	m.Size, h.Size, h.Ignore = uint64(size), uint64(held), uint64(ignore) //nolint:gosec // never negative
	copy(m.Root[:], root)
	copy(h.Root[:], heldRoot)
	return m, h, nil
}
