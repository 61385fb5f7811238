package metrics

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/rules"
)

func TestCollector(t *testing.T) {
	t.Parallel()
	site, err := rules.Parse([]byte(`{"version":1,"rooms":{"sale":{"url":"http://127.0.0.1:1/r/sale"}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"},{"name":"secret","when":{"path":{"prefix":"/secret"}},"action":"block"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := connector.New(connector.Options{Site: site, Key: []byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h := c.Middleware(http.NotFoundHandler())
	for _, path := range []string{"/free", "/free/2", "/secret"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(Collector(c)); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP proofline_connector_requests_total Requests by outcome.
# TYPE proofline_connector_requests_total counter
proofline_connector_requests_total{outcome="blocked"} 1
proofline_connector_requests_total{outcome="bypassed"} 2
proofline_connector_requests_total{outcome="unavailable"} 0
proofline_connector_requests_total{outcome="failed_open"} 0
proofline_connector_requests_total{outcome="passed"} 0
proofline_connector_requests_total{outcome="queued"} 0
proofline_connector_requests_total{outcome="started"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"proofline_connector_requests_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 23 {
		t.Errorf("%d figures, %v", n, err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestGate tests the metrics of a room with an open gate.
func TestGate(t *testing.T) {
	t.Parallel()
	var address string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/connectors/report" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"rooms":[{"room":"`+address+`/r/sale","gate":"open","share":1,"per_minute":60,"max_active":0,"nodes":1,"session_ms":60000}],"token_ends":1000}`)
	}))
	defer server.Close()
	address = server.URL
	site, err := rules.Parse([]byte(`{"version":1,"rooms":{"sale":{"url":"` + address + `/r/sale","mode":"safety-net"}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := connector.New(connector.Options{Site: site, Server: address, Token: "token", Key: []byte(strings.Repeat("k", 32)), Probe: time.Hour, Now: func() time.Time { return time.Unix(3, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for end := time.Now().Add(10 * time.Second); c.Stats().Rooms["sale"].DownSince.IsZero(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the room is not found to be out of reach")
		}
	}
	h := c.Middleware(http.NotFoundHandler())
	for range 2 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/tickets", nil))
	}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(Collector(c)); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP proofline_connector_cut_total Upgraded connections closed because the session ended.
# TYPE proofline_connector_cut_total counter
proofline_connector_cut_total 0
# HELP proofline_connector_room_crowded_total Visitors sent to the room because their network was over its limit.
# TYPE proofline_connector_room_crowded_total counter
proofline_connector_room_crowded_total{room="sale"} 0
# HELP proofline_connector_room_free_sessions Active sessions known to this node that began without a pass.
# TYPE proofline_connector_room_free_sessions gauge
proofline_connector_room_free_sessions{room="sale"} 1
# HELP proofline_connector_room_gate_open 1 if the gate of a safety-net room was open in the latest reply.
# TYPE proofline_connector_room_gate_open gauge
proofline_connector_room_gate_open{room="sale"} 1
# HELP proofline_connector_room_turned_total Visitors sent to the room because this node's share was used up.
# TYPE proofline_connector_room_turned_total counter
proofline_connector_room_turned_total{room="sale"} 1
# HELP proofline_connector_room_up 1 if the room can be reached.
# TYPE proofline_connector_room_up gauge
proofline_connector_room_up{room="sale"} 0
# HELP proofline_connector_token_left_seconds Seconds until the server token expires; negative: since its expiry. Missing if it never expires, or before the first reply.
# TYPE proofline_connector_token_left_seconds gauge
proofline_connector_token_left_seconds -2
`
	names := []string{"proofline_connector_cut_total", "proofline_connector_room_crowded_total", "proofline_connector_room_free_sessions", "proofline_connector_room_gate_open", "proofline_connector_room_turned_total", "proofline_connector_room_up", "proofline_connector_token_left_seconds"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}
