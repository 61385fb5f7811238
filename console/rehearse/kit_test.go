package rehearse

import (
	"context"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
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

func newServer(t *testing.T, change ...func(*room.Options)) *server {
	t.Helper()
	pool := servertest.Pool(t, pgtest.URL(t))
	log := servertest.Log(t)
	s := &server{store: pgroom.NewStore(pool), rooms: servertest.Rooms(t, pool, change...)}
	s.Rehearsals = New(s.rooms, nil, log)
	s.lead = time.Second
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within three minutes: %s", what)
}
