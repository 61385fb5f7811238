package rehearse

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// server is a database with the rooms of one node and their rehearsals.
type server struct {
	store *pgroom.Store
	rooms *room.Rooms
	*Rehearsals
}

func newServer(t *testing.T) *server {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.URL(t))
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
	master, err := room.ParseMasterKey(room.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s := &server{store: pgroom.NewStore(pool)}
	s.rooms = room.New(room.Options{Logs: pglog.NewStore(pool), Rooms: s.store, MasterKey: master, PublicURL: "https://example.com", Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.rooms.Run(ctx) }()
	s.Rehearsals = New(s.rooms, log)
	s.lead = time.Second
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := s.rooms.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		<-stopped
	})
	return s
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 30 s: %s", what)
}
