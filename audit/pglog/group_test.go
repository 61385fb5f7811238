package pglog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestGroupCancelled checks that an append which waits for a connection, to share a transaction with others,
// ends when its caller gives up.
func TestGroupCancelled(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t, func(c *pgxpool.Config) { c.MaxConns = 1 })
	l := tr.open()
	tr.append(l, 1) // small: the next append shares a transaction
	tr.append(l, 1)
	conn, err := tr.store.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := l.Append(ctx, noEntries, add(tr.make(1))); !errors.Is(err, context.DeadlineExceeded) &&
		!errors.Is(err, context.Canceled) {
		t.Errorf("without a connection: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("cancelled after %s", took)
	}
	conn.Release()
	tr.append(l, 1)
	tr.check()
}
