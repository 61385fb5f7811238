package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
# HELP proofline_connector_requests_total Requests by what happened to them.
# TYPE proofline_connector_requests_total counter
proofline_connector_requests_total{outcome="blocked"} 1
proofline_connector_requests_total{outcome="bypassed"} 2
proofline_connector_requests_total{outcome="held"} 0
proofline_connector_requests_total{outcome="opened"} 0
proofline_connector_requests_total{outcome="passed"} 0
proofline_connector_requests_total{outcome="queued"} 0
proofline_connector_requests_total{outcome="started"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "proofline_connector_requests_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 18 {
		t.Errorf("%d figures, %v", n, err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
