package pglog_test

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
)

// TestStalledHolder lets a node take the room's lock and fall silent. Another node's append must end that
// connection after about two seconds, if the holder is a node.
func TestStalledHolder(t *testing.T) {
	t.Parallel()
	copying := func(ctx context.Context, conn *pgx.Conn) {
		silent, _ := io.Pipe() // its writer never writes
		go func() { _, _ = conn.PgConn().CopyFrom(ctx, silent, `copy log_bundles from stdin`) }()
	}
	for name, test := range map[string]struct {
		application string
		hold        func(context.Context, *pgx.Conn)
		ended       bool
	}{
		"idle in a transaction": {"proofline", func(context.Context, *pgx.Conn) {}, true},
		"inside a COPY":         {"proofline", copying, true},
		"at work": {"proofline", func(ctx context.Context, conn *pgx.Conn) {
			go func() { _, _ = conn.Exec(ctx, `select pg_sleep(60); commit`) }()
		}, false},
		"another application": {"psql", copying, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testStalledHolder(t, test.application, test.hold, test.ended)
		})
	}
}

// lines receives the log lines.
type lines chan string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

func testStalledHolder(t *testing.T, application string, hold func(context.Context, *pgx.Conn), ended bool) {
	tr := newTranscript(t)
	tr.append(tr.open(), 3)
	config, err := pgx.ParseConfig(tr.url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = application
	holder, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	silence, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	if _, err := holder.Exec(t.Context(), `begin; select from log_heads for update`); err != nil {
		t.Fatal(err)
	}
	pid := holder.PgConn().PID()
	hold(silence, holder)

	said := make(lines, 8)
	store := pglog.NewStore(tr.connect(func(c *pgxpool.Config) { c.MaxConns = 1 })) // the waiting append has the lock
	store.LogTo(slog.New(slog.NewTextHandler(said, nil)))
	l := store.Open(tr.room, origin, tr.signer)
	limit := 3500 * time.Millisecond
	if ended {
		limit = time.Minute // less than three seconds if the machine is not busy
	}
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	began := time.Now()
	entries := tr.make(2)
	_, err = l.Append(ctx, func([]byte) error { return nil }, add(entries))
	if took := time.Since(began); ended && (err != nil || took < 2*time.Second) || !ended && err == nil {
		t.Errorf("after %s the append returns %v", took, err)
	}
	if ended && err == nil {
		tr.entries = append(tr.entries, entries...)
		select {
		case line := <-said:
			if !strings.Contains(line, "terminated a connection") {
				t.Errorf("the store logs %q", line)
			}
		case <-time.After(time.Minute):
			t.Error("the store logs nothing")
		}
	}
	var alive bool
	other, err := pgx.Connect(t.Context(), tr.url)
	if err == nil {
		err = other.QueryRow(t.Context(), `select exists (select from pg_stat_activity where pid = $1)`, int32(pid)).Scan(&alive)
		_, errEnd := other.Exec(t.Context(), `select pg_terminate_backend($1, 5000)`, int32(pid))
		if err == nil {
			err = errEnd
		}
		_ = other.Close(t.Context())
	}
	if err != nil || alive == ended {
		t.Errorf("the holder is there: %t, %v", alive, err)
	}
	runtime.KeepAlive(holder) // its socket closes when it is garbage-collected
	tr.check()
}
