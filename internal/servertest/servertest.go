// Package servertest provides tests with database connections that have the server's role, and with
// rooms whose clock runs.
package servertest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/testlog"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

// Timeouts for closing rooms and for learning the time.
const (
	closeTimeout = 3 * time.Minute
	clockTimeout = 3 * time.Minute
)

// Pool returns a connection pool with the server's role, closed at the end of the test.
func Pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pglog.PoolConfig(pgtest.AsServer(url))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// MasterKey returns a new master key.
func MasterKey(t testing.TB) *keys.MasterKey {
	t.Helper()
	key, err := keys.ParseMasterKey(keys.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Log returns a logger that writes to the test's output.
func Log(t testing.TB) *slog.Logger { return testlog.New(t, slog.LevelInfo) }

// Rooms returns a server's rooms, published under https://example.com by default. Their clock runs
// until the test ends.
func Rooms(t testing.TB, pool *pgxpool.Pool, change ...func(*room.Options)) *room.Rooms {
	t.Helper()
	o := room.Options{
		Logs: pglog.NewStore(pool), Store: pgroom.NewStore(pool), PublicURL: "https://example.com", Log: Log(t),
		MaxClockStep: clock.AnyStep,
	}
	for _, f := range change {
		f(&o)
	}
	if o.MasterKey == nil {
		o.MasterKey = MasterKey(t)
	}
	rooms := room.New(o)
	Run(t, rooms)
	return rooms
}

// Pass advances the clock of a database and waits until its rooms have noticed.
func Pass(t testing.TB, c *pgtest.Clock, by time.Duration, rooms *room.Rooms) {
	t.Helper()
	c.Pass(by)
	end := time.Now().Add(clockTimeout)
	for ; (rooms.Health().Ahead - c.Ahead()).Abs() > 30*time.Second; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the rooms did not notice the new time")
		}
	}
}

// Run runs the clock of rooms until the test ends.
func Run(t testing.TB, rooms *room.Rooms) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); rooms.Run(ctx) }()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), closeTimeout)
		defer stop()
		if err := rooms.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		<-stopped
	})
}
