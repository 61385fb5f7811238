package webhook

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/internal/testlog"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	operator = account.Actor{Kind: account.Person, ID: uuid.New(), Name: "op@example.com", Org: account.MainOrg,
		Scopes: account.Operator.Scopes()}
	viewer = account.Actor{Kind: account.Person, ID: uuid.New(), Name: "view@example.com", Org: account.MainOrg,
		Scopes: account.Viewer.Scopes()}
	stranger = account.Actor{Kind: account.Person, ID: uuid.New(), Name: "op@example.org", Org: uuid.New(),
		Scopes: account.Owner.Scopes()}
)

// clockwork is a clock set by the test.
type clockwork struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clockwork) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clockwork) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// activity is an activity log entry.
type activity struct{ Verb, Object string }

// activityLog records activity log entries in memory.
type activityLog struct {
	mu   sync.Mutex
	list []activity
	text string
}

func (d *activityLog) Record(_ context.Context, _ account.Actor, verb, object string, detail map[string]any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, activity{verb, object})
	b, err := json.Marshal(detail)
	d.text += string(b)
	return err
}

// bench is a webhook service on its own database.
type bench struct {
	*Service
	Rooms    *room.Rooms
	Store    *pgwebhook.Store
	t        testing.TB
	url      string
	pool     *pgxpool.Pool
	clock    *clockwork
	activity *activityLog
	key      *keys.MasterKey
}

// newBench returns a service that is not running. Rooms do not run either unless a test runs them.
func newBench(t testing.TB, change ...func(*Options)) *bench {
	t.Helper()
	url := pgtest.URL(t)
	key := servertest.MasterKey(t)
	b := &bench{t: t, url: url, key: key, clock: &clockwork{now: time.Now()}, activity: &activityLog{}}
	b.pool = connect(t, url)
	b.Service = b.node(change...)
	return b
}

// node returns the service of another server on the same database.
func (b *bench) node(change ...func(*Options)) *Service {
	log := testlog.New(b.t, slog.LevelInfo)
	rooms := room.New(room.Options{
		Logs: pglog.NewStore(b.pool), Store: pgroom.NewStore(b.pool), MasterKey: b.key,
		PublicURL: "https://example.com", Log: log, MaxClockStep: clock.AnyStep,
	})
	o := Options{
		Store: pgwebhook.NewStore(b.pool), Rooms: rooms, Sealer: b.key, Activity: b.activity, Log: log, Allowed: loopback,
		Now: b.clock.Now, Jitter: func() float64 { return 0.5 },
	}
	for _, c := range change {
		c(&o)
	}
	if b.Rooms == nil {
		b.Rooms, b.Store = o.Rooms, o.Store
	}
	return New(o)
}

func connect(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.AsServer(url))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 16
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

// run runs the service until the test ends.
func run(t testing.TB, h *Service) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); h.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-stopped })
}

// request is a request to a receiver.
type request struct {
	ID     string
	Header http.Header
	Body   []byte
	Type   EventKind
	Data   map[string]any
}

// receiver is a webhook receiver.
type receiver struct {
	*httptest.Server
	answer func(n int, w http.ResponseWriter, r *http.Request) // nil: respond with 204

	mu  sync.Mutex
	got []request
}

func newReceiver(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	got := request{ID: req.Header.Get("webhook-id"), Header: req.Header, Body: body}
	var p struct {
		Type EventKind
		Data map[string]any
	}
	_ = json.Unmarshal(body, &p)
	got.Type, got.Data = p.Type, p.Data
	r.mu.Lock()
	r.got = append(r.got, got)
	n := len(r.got)
	r.mu.Unlock()
	if r.answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	r.answer(n, w, req)
}

// requests returns the requests so far.
func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// of returns the requests of a kind.
func (r *receiver) of(k EventKind) (list []request) {
	for _, req := range r.requests() {
		if req.Type == k {
			list = append(list, req)
		}
	}
	return list
}

// verify checks the signature of a request.
func verify(t testing.TB, secret string, r request) error {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return w.VerifyIgnoringTimestamp(r.Body, r.Header)
}

// endpoint creates an endpoint.
func (b *bench) endpoint(url string, events ...EventKind) (Endpoint, string) {
	b.t.Helper()
	e, secret, err := b.Endpoints.Create(b.t.Context(), operator, EndpointConfig{URL: url, Events: events})
	if err != nil {
		b.t.Fatal(err)
	}
	return e, secret
}

// pass sends due deliveries once and waits for the responses.
func pass(t testing.TB, h *Service) {
	t.Helper()
	if err := h.sender.dispatch(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.sender.sending.Wait()
}

// detail reads a delivery.
func (b *bench) detail(id uuid.UUID) DeliveryDetail {
	b.t.Helper()
	d, err := b.Deliveries.Get(b.t.Context(), operator, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within three minutes: %s", what)
}
