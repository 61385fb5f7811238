package live

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/internal/testlog"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// server is a database with the rooms of one node and their figures. Samples are taken only by the
// test, or once it calls run.
type server struct {
	url    string
	master *keys.MasterKey
	pool   *pgxpool.Pool
	rooms  *room.Rooms
	live   *Live
}

func newServer(t testing.TB) *server {
	t.Helper()
	master := servertest.MasterKey(t)
	return (&server{url: pgtest.URL(t), master: master}).node(t, "one")
}

// node starts another node on the same database.
func (s *server) node(t testing.TB, name string) *server {
	t.Helper()
	pool := servertest.Pool(t, s.url)
	log := testlog.New(t, slog.LevelInfo)
	rooms := room.New(room.Options{Logs: pglog.NewStore(pool), Store: pgroom.NewStore(pool), MasterKey: s.master,
		PublicURL: "https://example.com", Log: log, MaxClockStep: clock.AnyStep})
	run(t, rooms.Run)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := rooms.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return &server{s.url, s.master, pool, rooms, New(Options{Rooms: rooms, Store: pglive.NewStore(pool), Records: pgroom.NewStore(pool), Name: name,
		Version: "v1.2.3", Log: log, Refused: refusals})}
}

// refusals are the refused requests reported by every node.
func refusals() map[string]uint64 { return map[string]uint64{"joins": 7, "pages": 5} }

// run runs f until the end of the test.
func run(t testing.TB, what func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); what(ctx) }()
	t.Cleanup(func() { cancel(); <-stopped })
}

// quick returns a configuration with short windows and a short claim time.
func quick(slug string) room.Config {
	claim := room.Duration(time.Second)
	return room.Config{Slug: slug, Title: "Title of " + slug,
		Windows: []room.WindowRule{{Length: room.Duration(200 * time.Millisecond)}}, Outflow: room.Outflow{PerMinute: 600_000}, Claim: &claim}
}

func create(t testing.TB, rooms *room.Rooms, c room.Config) *room.Room {
	t.Helper()
	r, err := rooms.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// visitor is a visitor with a secret.
type visitor struct {
	secret [fairness.SecretSize]byte
	ticket fairness.Ticket
}

// join lets n visitors join.
func join(t testing.TB, r *room.Room, people int) []visitor {
	t.Helper()
	list := make([]visitor, people)
	for i := range list {
		v := &list[i]
		_, _ = rand.Read(v.secret[:])
		v.ticket = fairness.NewTicket(r.Origin, v.secret)
		if _, err := r.Join(t.Context(), v.ticket); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// claim returns a condition that claims for called visitors.
func claim(t testing.TB, r *room.Room, people []visitor) {
	t.Helper()
	for _, v := range people {
		if _, err := r.Claim(t.Context(), v.ticket, v.secret); err != nil {
			t.Fatal(err)
		}
	}
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within three minutes: %s", what)
}

func newHolder() uuid.UUID { return uuid.New() }

func near(t testing.TB, what string, got *float64, want, within float64) {
	t.Helper()
	if got == nil || *got < want-within || *got > want+within {
		t.Errorf("%s: %v, want %v", what, deref(got), want)
	}
}

func deref(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}
