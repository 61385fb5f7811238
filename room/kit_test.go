package room

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/pgroom"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const publicURL = "https://example.com"

// node starts one server's rooms on a database, as the role the server has.
func node(t testing.TB, url string, master *MasterKey) *Rooms {
	t.Helper()
	rs := New(Options{
		Logs: nil, Rooms: nil, MasterKey: master, PublicURL: publicURL,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	pool := connect(t, url)
	rs.Logs, rs.Options.Rooms = pglog.NewStore(pool), pgroom.NewStore(pool)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); rs.Run(ctx) }()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := rs.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		<-stopped
	})
	return rs
}

func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
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
	return pool
}

func newMaster(t testing.TB) *MasterKey {
	t.Helper()
	m, err := ParseMasterKey(NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// visitor is somebody with a secret.
type visitor struct {
	secret [fairness.SecretSize]byte
	ticket fairness.Ticket
}

func newVisitor(r *Room) visitor {
	var v visitor
	_, _ = rand.Read(v.secret[:])
	v.ticket = fairness.NewTicket(r.Origin, v.secret)
	return v
}

func at(t time.Time) *time.Time      { return &t }
func span(d time.Duration) *Duration { return (*Duration)(&d) }

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 15 s: %s", what)
}
