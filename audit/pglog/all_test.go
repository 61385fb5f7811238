package pglog_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit/pglog"
)

// sizes returns the numbers of entries that logs have in the database.
func (tr *transcript) sizes(logs ...uuid.UUID) (sizes []uint64) {
	tr.t.Helper()
	marks, err := tr.store.Marks(tr.t.Context(), logs)
	if err != nil {
		tr.t.Fatal(err)
	}
	for _, id := range logs {
		sizes = append(sizes, marks[id].Size)
	}
	return sizes
}

// TestAppendAll checks that a joint append stores all its parts or none, in the order of the logs' ids.
func TestAppendAll(t *testing.T) {
	t.Parallel()
	tr := newTranscript(t)
	last := uuid.Max
	if err := pgx.BeginFunc(t.Context(), tr.connect(), func(tx pgx.Tx) error { return tr.store.Create(t.Context(), tx, last) }); err != nil {
		t.Fatal(err)
	}
	handles := func() (a, b *pglog.Log) { return tr.open(), tr.store.Open(last, origin, tr.signer) }
	a, b := handles()
	broken := errors.New("broken")
	fails := func(*pglog.Batch) error { return broken }
	entry := add([][]byte{[]byte("entry")})
	var order []string
	note := func(name string, build func(*pglog.Batch) error) func(*pglog.Batch) error {
		return func(b *pglog.Batch) error {
			order = append(order, name)
			return build(b)
		}
	}
	for _, test := range []struct {
		name        string
		first, last func(*pglog.Batch) error
		isBroken    bool
	}{
		{"the first fails", fails, entry, true},
		{"the last fails", entry, fails, true},
		{"the last adds nothing", entry, add(nil), false},
	} {
		err := tr.store.AppendAll(t.Context(), pglog.Addition{Log: b, Read: noEntries, Build: test.last},
			pglog.Addition{Log: a, Read: noEntries, Build: test.first})
		if err == nil || errors.Is(err, broken) != test.isBroken {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if sizes := tr.sizes(tr.room, last); sizes[0] != 0 || sizes[1] != 0 {
		t.Errorf("%v entries after failures", sizes)
	}
	if err := tr.store.AppendAll(t.Context(), pglog.Addition{Log: b, Read: noEntries, Build: note("last", entry)},
		pglog.Addition{Log: a, Read: noEntries, Build: note("first", entry)}); err != nil {
		t.Fatal(err)
	}
	if sizes := tr.sizes(tr.room, last); sizes[0] != 1 || sizes[1] != 1 || order[0] != "first" || a.Size() != 1 || b.Root() != a.Root() {
		t.Errorf("%v entries, built in the order %v", sizes, order)
	}

	// Two nodes append to both logs and to one of them at once.
	const times = 25
	var nodes sync.WaitGroup
	for range 2 {
		nodes.Go(func() {
			a, b := handles()
			read := func(entry []byte) error {
				if !bytes.Equal(entry, []byte("entry")) {
					return broken
				}
				return nil
			}
			for range times {
				if err := tr.store.AppendAll(t.Context(), pglog.Addition{Log: a, Read: read, Build: entry},
					pglog.Addition{Log: b, Read: read, Build: entry}); err != nil {
					t.Error(err)
				}
				if _, err := a.Append(t.Context(), read, entry); err != nil {
					t.Error(err)
				}
			}
		})
	}
	nodes.Wait()
	if sizes := tr.sizes(tr.room, last); sizes[0] != 1+4*times || sizes[1] != 1+2*times {
		t.Errorf("%v entries in the end", sizes)
	}
	if err := tr.store.AppendAll(t.Context(), pglog.Addition{Log: tr.store.Open(uuid.New(), origin, tr.signer), Read: noEntries, Build: entry},
		pglog.Addition{Log: b, Read: func([]byte) error { return nil }, Build: entry}); !errors.Is(err, pglog.ErrNotFound) {
		t.Errorf("a log that does not exist: %v", err)
	}
	if sizes := tr.sizes(last); sizes[0] != 1+2*times {
		t.Errorf("%v entries after that", sizes)
	}
}
