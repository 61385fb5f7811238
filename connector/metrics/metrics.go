// Package metrics gives what a connector counts to Prometheus:
//
//	registry.MustRegister(metrics.Collector(c))
//
// All names begin with proofline_connector_. Requests are counted by outcome,
// what is known of rooms has the label room, the room's name in the rules.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/proofline/proofline/connector"
)

// Collector returns a collector of [connector.Connector.Stats].
func Collector(c *connector.Connector) prometheus.Collector { return collector{c} }

type collector struct{ *connector.Connector }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("proofline_connector_"+name, help, labels, nil)
}

var (
	requests  = describe("requests_total", "Requests by what happened to them.", "outcome")
	passes    = describe("passes_total", "Passes by whether they were good.", "result")
	touches   = describe("touches_total", "Sessions told to go on.")
	releases  = describe("releases_total", "Sessions ended by the site.")
	dropped   = describe("dropped_total", "Touches and releases that were lost.")
	copied    = describe("copied_total", "Requests with a session that too many clients share.")
	sharing   = describe("session_clients_most", "The most clients that used one session without a key in the last 10 minutes.")
	cut       = describe("cut_total", "Upgraded connections that were closed, as the session was over.")
	faults    = describe("faults_total", "Faults of the connector itself.")
	reports   = describe("reports_total", "Reports that the server answered.")
	hasRules  = describe("rules_known", "Whether there are rules; 0: their server has not answered since the start, and visitors are held.")
	serial    = describe("rules_serial", "Serial of the signed rules in force; 0: they are not signed.")
	tokenLeft = describe("token_left_seconds", "Seconds until the token for the server ends; below 0: since then. Missing if it never does, or no report was answered.")
	up        = describe("room_up", "Whether the room can be reached.", "room")
	openings  = describe("room_openings", "Times in which everybody was let through, of those that are remembered.", "room")
	unguarded = describe("room_unguarded_requests", "Requests let through in these times.", "room")
	observed  = describe("room_observed_total", "Requests that would have waited, if the room were not off.", "room")
	open      = describe("room_gate_open", "Whether the gate of a room in mode safety-net is open, as last heard.", "room")
	heard     = describe("room_gate_heard_seconds", "When that was, in seconds since 1970.", "room")
	free      = describe("room_free_sessions", "Free sessions that go on, as far as they were here.", "room")
	started   = describe("room_free_sessions_started_total", "Free sessions that began here.", "room")
	turned    = describe("room_turned_total", "Visitors led to the line as the gate was open, but not for more of them here.", "room")
	crowded   = describe("room_crowded_total", "Visitors led to the line as the gate was open, but not for more of their network here.", "room")
)

// Describe implements [prometheus.Collector].
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requests, passes, touches, releases, dropped, copied, sharing, cut, faults, reports, hasRules, serial, tokenLeft, up, openings, unguarded, observed, open, heard, free, started, turned, crowded} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(to chan<- prometheus.Metric) {
	s := c.Stats()
	add := func(d *prometheus.Desc, kind prometheus.ValueType, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, n, labels...)
	}
	for outcome, n := range map[string]uint64{
		"bypassed": s.Bypassed, "passed": s.Passed, "started": s.Started, "queued": s.Queued, "blocked": s.Blocked, "held": s.Held, "opened": s.FailedOpen,
	} {
		add(requests, prometheus.CounterValue, float64(n), outcome)
	}
	add(passes, prometheus.CounterValue, float64(s.Redeemed), "redeemed")
	add(passes, prometheus.CounterValue, float64(s.Refused), "refused")
	add(touches, prometheus.CounterValue, float64(s.Touches))
	add(releases, prometheus.CounterValue, float64(s.Released))
	add(dropped, prometheus.CounterValue, float64(s.Dropped))
	add(copied, prometheus.CounterValue, float64(s.Copied))
	add(sharing, prometheus.GaugeValue, float64(s.Sharing))
	add(cut, prometheus.CounterValue, float64(s.Cut))
	add(faults, prometheus.CounterValue, float64(s.Panics))
	add(reports, prometheus.CounterValue, float64(s.Reports))
	add(hasRules, prometheus.GaugeValue, oneIf(s.HasRules))
	add(serial, prometheus.GaugeValue, float64(s.Serial))
	if !s.TokenEnds.IsZero() {
		add(tokenLeft, prometheus.GaugeValue, s.TokenLeft.Seconds())
	}
	for name, r := range s.Rooms {
		add(up, prometheus.GaugeValue, oneIf(r.DownSince.IsZero()), name)
		var let uint64
		for _, o := range r.FailOpen {
			let += o.Requests
		}
		add(openings, prometheus.GaugeValue, float64(len(r.FailOpen)), name)
		add(unguarded, prometheus.GaugeValue, float64(let), name)
		add(observed, prometheus.CounterValue, float64(r.Observed), name)
		if r.Gate == "" {
			continue
		}
		add(open, prometheus.GaugeValue, oneIf(r.Gate == connector.GateOpen), name)
		add(heard, prometheus.GaugeValue, float64(r.HeardAt.Unix()), name)
		add(free, prometheus.GaugeValue, float64(r.Unqueued), name)
		add(started, prometheus.CounterValue, float64(r.Started), name)
		add(turned, prometheus.CounterValue, float64(r.Turned), name)
		add(crowded, prometheus.CounterValue, float64(r.Crowded), name)
	}
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
