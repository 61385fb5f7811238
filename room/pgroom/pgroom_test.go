package pgroom_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/pgroom"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// store returns a store with the server's role, and its pool.
func store(t *testing.T) (*pgroom.Store, *pgxpool.Pool) {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.AsServer(pgtest.URL(t)))
	if err != nil {
		t.Fatal(err)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set role "+pglog.Role)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pgroom.NewStore(pool), pool
}

func record(slug string) pgroom.Room {
	return pgroom.Room{ID: pgroom.RoomID(slug), Slug: slug, Origin: "example.com/r/" + slug, Title: "Title of " + slug}
}

func nothing(pgx.Tx) error { return nil }

func TestRooms(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	ctx := t.Context()
	sealed := []pgroom.Key{{Purpose: "log", Sealed: []byte{1}}, {Purpose: "vrf", Sealed: []byte{2, 0, 2}}}
	if isNew, err := s.Insert(ctx, record("a"), sealed, nothing); err != nil || !isNew {
		t.Fatalf("insert: %t, %v", isNew, err)
	}
	other := record("a")
	other.Title = "Another"
	ran := false
	if isNew, err := s.Insert(ctx, other, sealed, func(pgx.Tx) error { ran = true; return nil }); err != nil || isNew || ran {
		t.Fatalf("insert again: %t, ran %t, %v", isNew, ran, err)
	}
	refused := errors.New("refused")
	if _, err := s.Insert(ctx, record("b"), sealed, func(pgx.Tx) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("insert with a failure: %v", err)
	}
	if _, err := s.Get(ctx, "b"); !errors.Is(err, pgroom.ErrNotFound) {
		t.Errorf("get a room that was not inserted: %v, want ErrNotFound", err)
	}
	got, err := s.Get(ctx, "a")
	if diff := cmp.Diff(record("a"), got, cmpopts.IgnoreFields(pgroom.Room{}, "Created")); err != nil || diff != "" {
		t.Errorf("get (-want +got) %v:\n%s", err, diff)
	}
	if time.Since(got.Created).Abs() > time.Minute {
		t.Errorf("created %v", got.Created)
	}
	keys, err := s.Keys(ctx, got.ID)
	if diff := cmp.Diff(sealed, keys, cmpopts.SortSlices(func(a, b pgroom.Key) bool { return a.Purpose < b.Purpose })); err != nil || diff != "" {
		t.Errorf("keys (-want +got) %v:\n%s", err, diff)
	}
	if keys, err := s.Keys(ctx, pgroom.RoomID("b")); err != nil || len(keys) != 0 {
		t.Errorf("keys of no room: %v, %v", keys, err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	ctx := t.Context()
	for _, slug := range []string{"a", "b", "c"} {
		if _, err := s.Insert(ctx, record(slug), nil, nothing); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetTitle(ctx, pgroom.RoomID("c"), "New"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.MarkEnded(ctx, pgroom.RoomID("b")); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.List(ctx)
	if err != nil || slugs(all) != "c b a" || all[0].Title != "New" || all[1].Ended == nil || all[0].Ended != nil {
		t.Errorf("list %v, %v", all, err)
	}
	if open, err := s.ListOpen(ctx); err != nil || slugs(open) != "c a" {
		t.Errorf("open rooms %v, %v", open, err)
	}
}

func slugs(rooms []pgroom.Room) string {
	var list []string
	for _, r := range rooms {
		list = append(list, r.Slug)
	}
	return strings.Join(list, " ")
}

// TestInsertTogether creates one room many times at once: one call creates it.
func TestInsertTogether(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	var all sync.WaitGroup
	var made atomic.Int32
	for range 20 {
		all.Go(func() {
			isNew, err := s.Insert(t.Context(), record("a"), []pgroom.Key{{Purpose: "log", Sealed: []byte{1}}}, nothing)
			if err != nil {
				t.Error(err)
			}
			if isNew {
				made.Add(1)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	ctx, id := t.Context(), pgroom.RoomID("a")
	for _, text := range []string{"We are late.\nSorry.", "Ünïcode 😀 \x01", strings.Repeat("x", 10_000), "We are late.\nSorry."} {
		hash, err := s.AddMessage(ctx, id, text)
		if err != nil || hash != sha256.Sum256([]byte(text)) {
			t.Fatalf("add: %x, %v", hash, err)
		}
		if got, err := s.Message(ctx, id, hash); err != nil || got != text {
			t.Errorf("message %q, %v", got, err)
		}
		if _, err := s.Message(ctx, pgroom.RoomID("b"), hash); !errors.Is(err, pgroom.ErrNotFound) {
			t.Errorf("message of another room: %v, want ErrNotFound", err)
		}
	}
}

// TestRights tries, with the server's role, statements that would remove keys, messages or rooms.
func TestRights(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	if _, err := s.Insert(t.Context(), record("a"), []pgroom.Key{{Purpose: "log", Sealed: []byte{1}}}, nothing); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`update room_keys set sealed = ''`, `delete from room_keys`, `truncate room_keys`,
		`update room_messages set text = ''`, `delete from room_messages`,
		`delete from rooms`, `truncate rooms`, `drop table rooms`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" { // insufficient_privilege
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
	if keys, err := s.Keys(t.Context(), pgroom.RoomID("a")); err != nil || len(keys) != 1 || !bytes.Equal(keys[0].Sealed, []byte{1}) {
		t.Errorf("keys %v, %v", keys, err)
	}
}

// TestAway queries a database that is unavailable: every query returns an error, and none an empty result.
func TestAway(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	pool.Close()
	ctx, id := t.Context(), pgroom.RoomID("a")
	_, errInsert := s.Insert(ctx, record("a"), nil, nothing)
	_, errGet := s.Get(ctx, "a")
	_, errList := s.List(ctx)
	_, errKeys := s.Keys(ctx, id)
	_, errAdd := s.AddMessage(ctx, id, "a")
	_, errMessage := s.Message(ctx, id, [32]byte{})
	for i, err := range []error{errInsert, errGet, errList, errKeys, errAdd, errMessage, s.SetTitle(ctx, id, "a"), s.MarkEnded(ctx, id)} {
		if err == nil || errors.Is(err, pgroom.ErrNotFound) {
			t.Errorf("question %d: %v", i, err)
		}
	}
}
