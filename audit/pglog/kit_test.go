package pglog_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

const origin = "example.com/r/test"

// transcript is a log in a database, with the entries that a test expects in it.
type transcript struct {
	t        testing.TB
	url      string // as the owner of the schema
	store    *pglog.Store
	room     uuid.UUID
	signer   note.Signer
	verifier note.Verifier
	entries  [][]byte
}

// newTranscript creates an empty log. Change adapts how the server connects.
func newTranscript(t testing.TB, change ...func(*pgxpool.Config)) *transcript {
	t.Helper()
	seed := make([]byte, 32)
	_, _ = rand.Read(seed)
	signer, vkey, err := audit.NewSigner(origin, seed)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	tr := &transcript{t: t, url: pgtest.URL(t), room: uuid.New(), signer: signer, verifier: verifier}
	pool := tr.connect(change...)
	tr.store = pglog.NewStore(pool)
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return tr.store.Create(t.Context(), tx, tr.room) }); err != nil {
		t.Fatal(err)
	}
	return tr
}

// connect opens a pool as the role that the server uses.
func (tr *transcript) connect(change ...func(*pgxpool.Config)) *pgxpool.Pool {
	tr.t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.AsServer(tr.url))
	if err != nil {
		tr.t.Fatal(err)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set role "+pglog.Role)
		return err
	}
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(tr.t.Context(), config)
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(pool.Close)
	return pool
}

// superuser runs a statement that the server's role has no right to.
func (tr *transcript) superuser(sql string, args ...any) {
	tr.t.Helper()
	conn, err := pgx.Connect(tr.t.Context(), tr.url)
	if err == nil {
		_, err = conn.Exec(tr.t.Context(), sql, args...)
		err = errors.Join(err, conn.Close(tr.t.Context()))
	}
	if err != nil {
		tr.t.Fatal(err)
	}
}

// rewrite replaces a stored entry by others, or by none, in its row.
func (tr *transcript) rewrite(index uint64, by ...string) {
	tr.t.Helper()
	conn, err := pgx.Connect(tr.t.Context(), tr.url)
	if err != nil {
		tr.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var first uint64
	var old, changed []byte
	if err := conn.QueryRow(tr.t.Context(), `select first, entries from log_bundles where first <= $1
		order by first desc limit 1`, index).Scan(&first, &old); err != nil {
		tr.t.Fatal(err)
	}
	for i := first; len(old) > 0; i++ {
		end := 2 + int(binary.BigEndian.Uint16(old))
		if i != index {
			changed = append(changed, old[:end]...)
		} else {
			for _, entry := range by {
				changed, _ = audit.AppendBundle(changed, []byte(entry))
			}
		}
		old = old[end:]
	}
	if _, err := conn.Exec(tr.t.Context(), `update log_bundles set entries = $2 where first = $1`, first, changed); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *transcript) open() *pglog.Log { return tr.store.Open(tr.room, origin, tr.signer) }

// noEntries is for a handle that has nothing to catch up on.
func noEntries(entry []byte) error { return fmt.Errorf("unexpected entry %.40q", entry) }

// make returns n entries of many lengths that differ from all others.
func (tr *transcript) make(n int) [][]byte {
	entries := make([][]byte, n)
	for i := range entries {
		number := len(tr.entries) + i
		entries[i] = fmt.Appendf(nil, "entry %d\n%s", number, bytes.Repeat([]byte("é"), number%40))
	}
	return entries
}

// add returns a build function that adds entries.
func add(entries [][]byte) func(*pglog.Batch) error {
	return func(b *pglog.Batch) error {
		for _, e := range entries {
			if err := b.Add(e); err != nil {
				return err
			}
		}
		return nil
	}
}

// append appends n entries with a handle that has read everything.
func (tr *transcript) append(l *pglog.Log, n int) *pglog.Appended {
	tr.t.Helper()
	entries := tr.make(n)
	a, err := l.Append(tr.t.Context(), noEntries, add(entries))
	if err != nil {
		tr.t.Fatalf("append %d entries: %v", n, err)
	}
	tr.entries = append(tr.entries, entries...)
	return a
}

// root returns the root of the first n entries.
func (tr *transcript) root(n int) audit.Hash {
	tree := &audit.Tree{}
	for _, e := range tr.entries[:n] {
		tree.Append(audit.LeafHash(e))
	}
	return tree.Root()
}

// check reads the log with a new handle and compares it with the entries.
func (tr *transcript) check() *pglog.Log {
	tr.t.Helper()
	l, n := tr.open(), 0
	err := l.Tail(tr.t.Context(), func(entry []byte) error {
		if n >= len(tr.entries) || !bytes.Equal(entry, tr.entries[n]) {
			return fmt.Errorf("entry %d is %.40q", n, entry)
		}
		n++
		return nil
	})
	if err != nil || n != len(tr.entries) {
		tr.t.Fatalf("log has %d of %d entries: %v", n, len(tr.entries), err)
	}
	if l.Size() != uint64(n) || l.Root() != tr.root(n) {
		tr.t.Fatalf("handle says %d entries with root %v", l.Size(), l.Root())
	}
	return l
}

// published opens the published checkpoint.
func (tr *transcript) published() audit.Checkpoint {
	tr.t.Helper()
	signed, err := tr.store.Checkpoint(tr.t.Context(), tr.room)
	if err != nil {
		tr.t.Fatal(err)
	}
	return tr.openCheckpoint(signed)
}

func (tr *transcript) openCheckpoint(signed []byte) audit.Checkpoint {
	tr.t.Helper()
	c, _, err := audit.OpenCheckpoint(signed, tr.verifier)
	if err != nil {
		tr.t.Fatal(err)
	}
	return c
}

// checkReceipt verifies a receipt of an entry.
func (tr *transcript) checkReceipt(text []byte, index, atLeast uint64) {
	tr.t.Helper()
	p, err := audit.ParseProof(text)
	if err != nil {
		tr.t.Fatal(err)
	}
	c, err := p.Verify(audit.LeafHash(tr.entries[index]), tr.verifier)
	if err != nil || p.Index != index || c.Size < atLeast {
		tr.t.Fatalf("receipt of entry %d: index %d, size %d: %v", index, p.Index, c.Size, err)
	}
}
