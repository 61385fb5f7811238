package room

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/table"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/testlog"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/verifier"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

const publicURL = "https://example.com"

// node starts one server's rooms on a database, with the server's role.
func node(t testing.TB, url string, master *keys.MasterKey, change ...func(*pgxpool.Config)) *Rooms {
	t.Helper()
	return start(t, connect(t, url, change...), Options{MasterKey: master})
}

// start runs rooms with these options.
func start(t testing.TB, pool *pgxpool.Pool, o Options) *Rooms {
	t.Helper()
	o.Logs, o.Store, o.PublicURL = pglog.NewStore(pool), pgroom.NewStore(pool), publicURL
	if o.MaxClockStep == 0 {
		o.MaxClockStep = clock.AnyStep
	}
	if o.Log == nil {
		o.Log = testlog.New(t, slog.LevelInfo)
	}
	rs := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); rs.Run(ctx) }()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
		defer stop()
		if err := rs.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		<-stopped
	})
	return rs
}

func connect(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.AsServer(url))
	if err != nil {
		t.Fatal(err)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set role "+pglog.Role)
		return err
	}
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// dial is a database whose clock a test sets ahead.
type dial struct {
	*pgtest.Clock
	t   testing.TB
	url string
}

func newDial(t testing.TB) *dial {
	t.Helper()
	c := pgtest.NewClock(t)
	return &dial{c, t, c.URL}
}

// pass lets time pass, and returns when these nodes have noticed.
func (d *dial) pass(by time.Duration, nodes ...*Rooms) {
	d.t.Helper()
	d.Pass(by)
	for _, rs := range nodes {
		eventually(d.t, "the node follows the clock", func() bool { return (rs.clock.Ahead() - d.Ahead()).Abs() < 30*time.Second })
	}
}

// create creates a room.
func create(t testing.TB, rs *Rooms, c Config) *Room {
	t.Helper()
	r, err := rs.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// get finds a room on another node.
func get(t testing.TB, rs *Rooms, slug string) *Room {
	t.Helper()
	r, err := rs.Get(t.Context(), slug)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// superuser runs a statement that the server's role has no right to run.
func superuser(t testing.TB, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_, err = conn.Exec(t.Context(), sql, args...)
		err = errors.Join(err, conn.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lock holds a room's lock until release, like the append of another node that does not finish.
func lock(t testing.TB, url string, r *Room) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_, err = conn.Exec(t.Context(), `begin`)
	}
	if err == nil {
		_, err = conn.Exec(t.Context(), `select from log_heads where room_id = $1 for update`, r.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = conn.Close(context.Background()) })
	t.Cleanup(release)
	return release
}

// auditRoom audits the whole transcript independently, and compares the room's state with that of a new room
// that reads the log. It returns the report.
func auditRoom(t testing.TB, r *Room) *verifier.Report {
	t.Helper()
	if err := r.store.Publish(t.Context(), []uuid.UUID{r.ID}); err != nil {
		t.Fatal(err)
	}
	report, err := verifier.Audit(t.Context(), r.Transcript, verifier.Trust{VKey: r.VKey})
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range report.Checks {
		if check.Status == verifier.Fail {
			t.Errorf("audit: %s: %s", check.Title, check.Detail)
		}
	}
	if !report.OK {
		t.Fatal("the audit failed")
	}
	eventually(t, "the room is what its transcript says", func() bool {
		fresh := replay(t, r)
		isSame := false
		r.view.Read(func(p *projection.Projection, durable uint64) {
			if p.Size() != fresh.Size() || durable != fresh.Size() {
				return // it continues
			}
			if isSame = isSameState(p.State, fresh.State); !isSame {
				t.Fatal("the room's state is not what a replay of its transcript gives")
			}
		})
		return isSame
	})
	return report
}

// isSameState compares two states. Verifiers of credentials contain functions, which are never equal.
func isSameState(a, b *fairness.State) bool {
	if reflect.DeepEqual(a, b) { // much faster
		return true
	}
	verifiers := cmp.Comparer(func(a, b *credential.Verifier) bool { return (a == nil) == (b == nil) })
	// The order of an index's slots, and their number, depend on joins that were taken back.
	indexes := cmp.Comparer(func(a, b table.Index) bool { return a.Equal(&b) })
	return cmp.Equal(a, b, cmp.Exporter(func(reflect.Type) bool { return true }), verifiers, indexes)
}

// replay reads the room's log into a new state.
func replay(t testing.TB, r *Room) *projection.Projection {
	t.Helper()
	p, log := projection.New(nil, nil), r.store.Open(r.ID, r.Origin, r.keys.Log)
	err := log.Tail(t.Context(), func(text []byte) error { return p.Read(text, log.Root) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// count returns the number of entries of a kind in the room's log.
func count(t testing.TB, url string, r *Room, kind fairness.Kind) (n int) {
	t.Helper()
	err := connect(t, url).QueryRow(t.Context(), `select count(*) from log_entries where room_id = $1 and entry like $2`, r.ID, string(kind)+" %").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newMaster(t testing.TB) *keys.MasterKey {
	t.Helper()
	m, err := keys.ParseMasterKey(keys.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// visitor is a visitor with a secret.
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

// steadily runs a test that may fail because the machine is slow, which shows nothing: after a failure it runs the
// test again. It fails after too many failures, unless the machine stalled for too long to conclude anything.
func steadily(t *testing.T, try func(t *testing.T) (wrong string)) {
	t.Helper()
	const often, hopeless, attempts = 20 * time.Millisecond, time.Second, 4
	for attempt := 1; ; attempt++ {
		over := make(chan struct{})
		longest := make(chan time.Duration)
		go func() {
			most, last := time.Duration(0), time.Now()
			for {
				select {
				case <-over:
					longest <- max(most, time.Since(last))
					return
				case <-time.After(often):
					most, last = max(most, time.Since(last)), time.Now()
				}
			}
		}()
		wrong := try(t)
		close(over)
		stalled := <-longest
		if wrong == "" {
			return
		}
		t.Logf("the machine stalled for %v: %s", stalled, wrong)
		switch {
		case attempt < attempts:
		case stalled < hopeless:
			t.Fatal(wrong)
		default:
			t.Skip("the machine stalls all the time")
		}
	}
}
