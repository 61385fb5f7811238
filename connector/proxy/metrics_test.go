package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/internal/freeport"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	dead := freeport.Addr(t)
	p := New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, dead), Log: quiet})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(p)
	addr := "http://" + start(t, p)
	for _, want := range []int{http.StatusBadGateway, http.StatusBadGateway, http.StatusFound, http.StatusOK} {
		path := map[int]string{http.StatusBadGateway: "/about", http.StatusFound: "/tickets", http.StatusOK: HealthPath}[want]
		if r := get(t, addr+path, "Accept: text/html"); r.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, r.StatusCode, want)
		}
	}
	text := `
# HELP proofline_proxy_requests_total Requests by status class; gone: the client did not wait for the response.
# TYPE proofline_proxy_requests_total counter
proofline_proxy_requests_total{class="1xx"} 0
proofline_proxy_requests_total{class="2xx"} 0
proofline_proxy_requests_total{class="3xx"} 1
proofline_proxy_requests_total{class="4xx"} 0
proofline_proxy_requests_total{class="5xx"} 2
proofline_proxy_requests_total{class="gone"} 0
# HELP proofline_proxy_address_failures_total Requests that an address failed to answer.
# TYPE proofline_proxy_address_failures_total counter
proofline_proxy_address_failures_total{to="ADDRESS"} 2
# HELP proofline_proxy_address_up 1 if an address of the site is up.
# TYPE proofline_proxy_address_up gauge
proofline_proxy_address_up{to="ADDRESS"} 0
# HELP proofline_proxy_upgraded_connections Open WebSockets.
# TYPE proofline_proxy_upgraded_connections gauge
proofline_proxy_upgraded_connections 0
`
	names := []string{"proofline_proxy_requests_total", "proofline_proxy_address_failures_total", "proofline_proxy_address_up", "proofline_proxy_upgraded_connections"}
	eventually(t, "each response is counted", func() bool {
		return testutil.GatherAndCompare(registry, strings.NewReader(strings.ReplaceAll(text, "ADDRESS", dead)),
			names...) == nil
	})
	if n, err := testutil.GatherAndCount(registry, "proofline_proxy_request_seconds"); n != 1 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}
