package proxy

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counters are the proxy's Prometheus metrics of requests. Those that the proxy
// answers itself, such as for [HealthPath], are not counted.
type counters struct {
	classes [6]prometheus.Counter // counters by the first digit of the status; 0: the client went away
	took    prometheus.Histogram
	all     []prometheus.Collector
}

func newCounters() *counters {
	f := &counters{took: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "proofline_proxy_request_seconds",
		Help:    "Duration of requests until the response was sent, without upgraded connections.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	})}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proofline_proxy_requests_total",
		Help: "Requests by status class; gone: the client did not wait for the response.",
	}, []string{"class"})
	for i, class := range []string{"gone", "1xx", "2xx", "3xx", "4xx", "5xx"} {
		f.classes[i] = requests.WithLabelValues(class)
	}
	f.all = []prometheus.Collector{f.took, requests}
	return f
}

// count counts a finished exchange.
func (f *counters) count(status int, took time.Duration) {
	class := status / 100
	if status == statusGone || class >= len(f.classes) {
		class = 0
	}
	f.classes[class].Inc()
	if status != http.StatusSwitchingProtocols {
		f.took.Observe(took.Seconds())
	}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("proofline_proxy_"+name, help, labels, nil)
}

var (
	descUpgraded = describe("upgraded_connections", "Open WebSockets.")
	descUp       = describe("address_up", "1 if an address of the site is up.", "to")
	descWaiting  = describe("address_waiting", "Requests that an address has not responded to yet.", "to")
	descRequests = describe("address_requests_total", "Requests sent to an address.", "to")
	descFailures = describe("address_failures_total", "Requests that an address failed to answer.", "to")
)

// Describe implements [prometheus.Collector].
func (p *Proxy) Describe(to chan<- *prometheus.Desc) {
	for _, c := range p.counters.all {
		c.Describe(to)
	}
	for _, d := range []*prometheus.Desc{descUpgraded, descUp, descWaiting, descRequests, descFailures} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (p *Proxy) Collect(to chan<- prometheus.Metric) {
	for _, c := range p.counters.all {
		c.Collect(to)
	}
	add := func(d *prometheus.Desc, kind prometheus.ValueType, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, n, labels...)
	}
	add(descUpgraded, prometheus.GaugeValue, float64(p.upgraded.count()))
	if p.site == nil {
		return
	}
	for _, a := range p.site.addresses {
		isUp := 0.0
		if health(a.health.Load()) == up {
			isUp = 1
		}
		host := a.url.Host
		add(descUp, prometheus.GaugeValue, isUp, host)
		add(descWaiting, prometheus.GaugeValue, float64(a.waiting.Load()), host)
		add(descRequests, prometheus.CounterValue, float64(a.requests.Load()), host)
		add(descFailures, prometheus.CounterValue, float64(a.failures.Load()), host)
	}
}
