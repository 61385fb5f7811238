package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/outbound"
)

// ping sends a test to an endpoint, and returns its id.
func (b *bench) ping(e Endpoint) uuid.UUID {
	b.t.Helper()
	d, err := b.Endpoints.Ping(b.t.Context(), operator, e.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return d.ID
}

// TestSigned checks that a delivery is signed according to Standard Webhooks and that the log
// contains the response.
func TestSigned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "thanks\x00\x07 \xff"+strings.Repeat("é", 5000))
	})
	e, secret := b.endpoint(r.URL + "/in?x=1")
	id := b.ping(e)
	pass(t, b.Service)
	got := r.requests()
	if len(got) != 1 || got[0].Type != TestPing || got[0].ID != "msg_"+id.String() {
		t.Fatalf("got %+v", got)
	}
	if err := verify(t, secret, got[0]); err != nil {
		t.Errorf("signature: %v", err)
	}
	got[0].Body = append(got[0].Body, ' ')
	if verify(t, secret, got[0]) == nil {
		t.Error("a changed body verifies")
	}
	d := b.detail(id)
	if d.State != Delivered || len(d.Log) != 1 || d.Log[0].Status != 200 || d.Log[0].Error != "" {
		t.Errorf("delivery %+v", d)
	}
	if !strings.HasPrefix(d.Log[0].Response, "thanks    éé") || len([]rune(d.Log[0].Response)) != maxKept {
		t.Errorf("response %q", d.Log[0].Response)
	}
}

// TestRetries checks that a failing delivery is retried on schedule under the same id, then given
// up, and that redelivery starts over.
func TestRetries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ok atomic.Bool
	r := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		if !ok.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	e, _ := b.endpoint(r.URL)
	id := b.ping(e)
	for n, wait := range append(retries, 0) {
		pass(t, b.Service)
		d := b.detail(id)
		if len(r.requests()) != n+1 || d.Attempts != n+1 {
			t.Fatalf("after %d attempts: %d requests, %+v", n+1, len(r.requests()), d)
		}
		if wait == 0 {
			break
		}
		if d.State != Waiting || d.Next.Sub(b.clock.Now()).Round(time.Millisecond) != wait {
			t.Fatalf("attempt %d: %s, next in %v, want %v", n+1, d.State, d.Next.Sub(b.clock.Now()), wait)
		}
		b.clock.advance(wait - time.Millisecond)
		pass(t, b.Service) // not due yet
		b.clock.advance(2 * time.Millisecond)
	}
	d := b.detail(id)
	if d.State != Failed || d.Next != nil || len(d.Log) != len(retries)+1 ||
		d.Log[3].Error != "responded with 500 Internal Server Error" || d.Log[3].Status != 500 {
		t.Fatalf("at the end %+v", d)
	}
	b.clock.advance(100 * 24 * time.Hour)
	pass(t, b.Service)
	ok.Store(true)
	if err := b.Deliveries.Redeliver(t.Context(), operator, id); err != nil {
		t.Fatal(err)
	}
	pass(t, b.Service)
	got := r.requests()
	if d := b.detail(id); d.State != Delivered || d.Attempts != len(retries)+2 || len(d.Log) != len(retries)+2 ||
		len(got) != len(retries)+2 {
		t.Errorf("redelivered: %+v, %d requests", d, len(got))
	}
	for _, req := range got {
		if req.ID != "msg_"+id.String() {
			t.Errorf("id %s", req.ID)
		}
	}
	if now, err := b.Endpoints.Get(t.Context(), operator, e.ID); err != nil || now.Failures != 0 || now.FailingSince != nil {
		t.Errorf("endpoint %+v, %v", now, err)
	}
}

// TestJitter checks that retries vary by 10 % in both directions.
func TestJitter(t *testing.T) {
	t.Parallel()
	clock := &clockwork{now: time.Now()}
	for jitter, want := range map[float64]time.Duration{0: 4500 * time.Millisecond, 0.5: 5 * time.Second,
		0.9999999: 5500 * time.Millisecond} {
		rs := retry{clock.Now, func() float64 { return jitter }}
		due := rs.next(&pgwebhook.Taken{Delivery: pgwebhook.Delivery{Tries: 1}}, result{failure: "x"})
		if got := due.Sub(clock.now).Round(time.Millisecond); got != want {
			t.Errorf("jitter %v: %v, want %v", jitter, got, want)
		}
	}
}

// TestRefusedAddresses checks that resolved addresses are checked, redirects are not followed, and
// the log contains no address.
func TestRefusedAddresses(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inside.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(inside.URL, "https://"), ":")
	b := newBench(t, func(o *Options) { o.Allowed = nil })
	e, _ := b.endpoint("https://localhost:" + port)
	id := b.ping(e)
	pass(t, b.Service)
	d := b.detail(id)
	if reached.Load() != 0 || d.State != Waiting || d.Log[0].Error != outbound.ErrAddress.Error() {
		t.Errorf("reached %d times: %+v", reached.Load(), d)
	}
	b2 := newBench(t, func(o *Options) { o.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	out := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside.URL, http.StatusTemporaryRedirect)
	})
	e, _ = b2.endpoint(out.URL)
	id = b2.ping(e)
	pass(t, b2.Service)
	if d := b2.detail(id); reached.Load() != 0 || d.Log[0].Error != "responded with 307 Temporary Redirect" {
		t.Errorf("reached %d times: %+v", reached.Load(), d)
	}
	e, _ = b2.endpoint(inside.URL)
	id = b2.ping(e)
	pass(t, b2.Service)
	if d := b2.detail(id); reached.Load() != 0 || d.Log[0].Error != "the host's certificate is not trusted" {
		t.Errorf("reached %d times: %+v", reached.Load(), d)
	}
}

// TestGone checks that a 410 response disables the endpoint and alerts its organization.
func TestGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gone := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	other := newReceiver(t, nil)
	e, _ := b.endpoint(gone.URL)
	alerts, _ := b.endpoint(other.URL, RoomOpened)
	set := AlertSettings{Endpoints: []uuid.UUID{alerts.ID}, Kinds: AlertKinds()}
	if err := b.Alerts.SetSettings(t.Context(), operator, set); err != nil {
		t.Fatal(err)
	}
	first, second := b.ping(e), b.ping(e)
	pass(t, b.Service)
	pass(t, b.Service)
	now, err := b.Endpoints.Get(t.Context(), operator, e.ID)
	if err != nil || now.Enabled || now.Disabled != DisabledGone {
		t.Errorf("endpoint %+v, %v", now, err)
	}
	for _, id := range []uuid.UUID{first, second} {
		if d := b.detail(id); d.State != Failed {
			t.Errorf("delivery %+v", d)
		}
	}
	if got := other.of(alertEvent); len(got) != 1 || got[0].Data["kind"] != string(AlertEndpointDisabled) ||
		!strings.Contains(fmt.Sprint(got[0].Data["text"]), gone.URL) {
		t.Errorf("alerts %+v", got)
	}
	if _, err := b.Endpoints.Ping(t.Context(), operator, e.ID); !errors.Is(err, ErrDisabled) {
		t.Errorf("ping: %v", err)
	}
	if err := b.Deliveries.Redeliver(t.Context(), operator, first); !errors.Is(err, ErrDisabled) {
		t.Errorf("redeliver: %v", err)
	}
	yes := true
	if now, err = b.Endpoints.Update(t.Context(), operator, e.ID, EndpointChange{Enabled: &yes}); err != nil ||
		!now.Enabled || now.Failures != 0 {
		t.Errorf("enabled again: %+v, %v", now, err)
	}
}

// TestFailingForDays checks that an endpoint is disabled when all attempts fail for three days, but
// not for an old failure.
func TestFailingForDays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, func(_ int, w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	e, _ := b.endpoint(r.URL)
	b.ping(e)
	pass(t, b.Service)
	b.clock.advance(4 * 24 * time.Hour)
	pass(t, b.Service)
	if now, _ := b.Endpoints.Get(t.Context(), operator, e.ID); !now.Enabled || now.Failures != 2 {
		t.Fatalf("after two failures: %+v", now)
	}
	for now := e; now.Enabled && len(r.requests()) < 50; now, _ = b.Endpoints.Get(t.Context(), operator, e.ID) {
		b.ping(e)
		b.clock.advance(time.Minute)
		pass(t, b.Service)
	}
	if n := len(r.requests()); n != minFailures {
		t.Errorf("%d attempts", n)
	}
	if now, _ := b.Endpoints.Get(t.Context(), operator, e.ID); now.Enabled || now.Disabled != DisabledFailing {
		t.Errorf("after many: %+v", now)
	}
}

// TestRotation checks that both secrets verify for a day, then only the new one.
func TestRotation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, nil)
	e, before := b.endpoint(r.URL)
	after, err := b.Endpoints.RotateSecret(t.Context(), operator, e.ID)
	if err != nil || after == before {
		t.Fatal(after, err)
	}
	for i, c := range []struct {
		wait   time.Duration
		former bool
	}{{0, true}, {rotationOverlap - time.Second, true}, {time.Second, false}} {
		b.clock.advance(c.wait)
		b.ping(e)
		pass(t, b.Service)
		got := r.requests()[i]
		if err := verify(t, after, got); err != nil {
			t.Errorf("%d: the new secret: %v", i, err)
		}
		if err := verify(t, before, got); (err == nil) != c.former {
			t.Errorf("%d: the former secret: %v, want %t", i, err, c.former)
		}
	}
}

// TestSlowEndpoint checks that endpoints that never respond delay no others and get only their
// share.
func TestSlowEndpoint(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop := make(chan struct{})
	release := sync.OnceFunc(func() { close(stop) })
	var under, most atomic.Int32
	slow := newReceiver(t, func(int, http.ResponseWriter, *http.Request) {
		n := under.Add(1)
		defer under.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		<-stop
	})
	t.Cleanup(release) // before the receiver's cleanup waits for its requests
	quick := newReceiver(t, nil)
	dead, _ := b.endpoint(slow.URL)
	live, _ := b.endpoint(quick.URL)
	for range 40 {
		b.ping(dead)
	}
	for range 40 {
		b.ping(live)
	}
	other := b.node() // a second server
	for range 30 {
		if err := errors.Join(b.sender.dispatch(t.Context()), other.sender.dispatch(t.Context())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	eventually(t, "the other endpoint gets all", func() bool {
		_ = b.sender.dispatch(t.Context())
		return len(quick.requests()) == 40
	})
	if n := most.Load(); n != perEndpoint {
		t.Errorf("%d requests at once to one endpoint", n)
	}
	release()
	b.sender.sending.Wait()
	other.sender.sending.Wait()
}

// TestFailingShare checks that failing endpoints take at most half of the slots, one each.
func TestFailingShare(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range MaxEndpoints {
		e, _ := b.endpoint("http://127.0.0.1:9999")
		b.ping(e)
		b.ping(e)
		if _, err := b.Store.Endpoints.Update(t.Context(), operator.Org, e.ID,
			func(e *pgwebhook.Endpoint) error { e.Failures = 1; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	now := b.clock.Now()
	limits := pgwebhook.Limits{Now: now, Until: now.Add(lease), Lane: perEndpoint, Healthy: maxSending,
		Failing: maxSendingFailing}
	taken, err := b.Store.Outbox.Take(t.Context(), limits)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uuid.UUID]int{}
	for _, d := range taken {
		seen[d.Target]++
	}
	if len(taken) != maxSendingFailing || len(seen) != maxSendingFailing {
		t.Errorf("%d taken of %d endpoints", len(taken), len(seen))
	}
	again, err := b.Store.Outbox.Take(t.Context(), limits)
	if err != nil || len(again) != MaxEndpoints-maxSendingFailing {
		t.Errorf("then %d, error %v", len(again), err)
	}
	limits.Now = limits.Until.Add(time.Second)
	if late, err := b.Store.Outbox.Take(t.Context(), limits); err != nil || len(late) != maxSendingFailing {
		t.Errorf("after the lease %d, error %v", len(late), err)
	}
}

// TestLog checks that the log is paged and pruned.
func TestLog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, nil)
	e, _ := b.endpoint(r.URL)
	var want []uuid.UUID
	for range 7 {
		want = append([]uuid.UUID{b.ping(e)}, want...)
		b.clock.advance(time.Second)
	}
	var got []uuid.UUID
	for page, after := 0, ""; page < 10; page++ {
		p, err := b.Deliveries.List(t.Context(), operator,
			DeliveryFilter{Limit: 3, After: after, Endpoint: &e.ID, State: Waiting, Type: TestPing})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range p.Deliveries {
			got = append(got, d.ID)
		}
		if after = p.Next; after == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, f := range []DeliveryFilter{{State: Failed}, {Type: RoomEnded}, {Room: "x"}, {Endpoint: &uuid.UUID{}}} {
		if p, err := b.Deliveries.List(t.Context(), operator, f); err != nil || len(p.Deliveries) != 0 || p.Next != "" {
			t.Errorf("%+v: %+v, %v", f, p, err)
		}
	}
	for _, f := range []DeliveryFilter{{Limit: -1}, {Limit: maxPage + 1}, {After: "x"}, {After: uuid.Nil.String()}} {
		if _, err := b.Deliveries.List(t.Context(), operator, f); !isInvalid(err) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	pass(t, b.Service)
	b.clock.advance(logAge - 2*time.Second)
	if err := b.tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, _ := b.Deliveries.List(t.Context(), operator, DeliveryFilter{}); len(p.Deliveries) == 0 || len(p.Deliveries) >= 7 {
		t.Errorf("%d left", len(p.Deliveries))
	}
	b.clock.advance(time.Hour)
	if err := b.tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, _ := b.Deliveries.List(t.Context(), operator, DeliveryFilter{}); len(p.Deliveries) != 0 {
		t.Errorf("%d left at the end", len(p.Deliveries))
	}
	if n := b.rows("delivery_attempts"); n != 0 {
		t.Errorf("%d attempts left", n)
	}
}

// rows returns the number of rows in a table.
func (b *bench) rows(table string) (n int) {
	b.t.Helper()
	if err := b.pool.QueryRow(b.t.Context(), "select count(*) from "+table).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// TestOverfull checks that an endpoint with too many waiting deliveries is disabled.
func TestOverfull(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, _ := b.endpoint("http://127.0.0.1:9999")
	for range 3 {
		b.ping(e)
	}
	for most, want := range map[int]int{2: 1, 3: 0} {
		if full, err := b.Store.Endpoints.Overfull(t.Context(), most); err != nil || len(full) != want {
			t.Errorf("more than %d: %d, %v", most, len(full), err)
		}
	}
	if err := b.Endpoints.disable(t.Context(), operator.Org, e.ID, DisabledOverfull); err != nil {
		t.Fatal(err)
	}
	if now, _ := b.Endpoints.Get(t.Context(), operator, e.ID); now.Disabled != DisabledOverfull {
		t.Errorf("%+v", now)
	}
	if full, err := b.Store.Endpoints.Overfull(t.Context(), 0); err != nil || len(full) != 0 {
		t.Errorf("afterwards %d, %v", len(full), err)
	}
}

// TestStopping checks that a delivery interrupted by shutdown is due at once, and its attempt does
// not count.
func TestStopping(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop, reached := make(chan struct{}), make(chan struct{}, 1)
	r := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	e, _ := b.endpoint(r.URL)
	id := b.ping(e)
	t.Run("serving", func(t *testing.T) {
		run(t, b.Service)
		<-reached
	})
	close(stop)
	d := b.detail(id)
	if d.State != Waiting || d.Attempts != 0 || len(d.Log) != 0 {
		t.Fatalf("%+v", d)
	}
	pass(t, b.node())
	if d := b.detail(id); d.State != Delivered || d.Attempts != 1 {
		t.Errorf("%+v", d)
	}
}

// TestUnreachable checks the texts of connection failures.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for url, want := range map[string]string{
		closed.URL:                           "the connection failed",
		"https://no-such-host.invalid/hooks": "the host name cannot be resolved",
	} {
		e, _ := b.endpoint(url)
		id := b.ping(e)
		pass(t, b.Service)
		if d := b.detail(id); len(d.Log) != 1 || d.Log[0].Error != want || d.Log[0].Status != 0 {
			t.Errorf("%s: %+v", url, d.Log)
		}
	}
}
