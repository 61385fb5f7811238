// Package metrics exports a connector's counts to Prometheus:
//
//	registry.MustRegister(metrics.Collector(c))
//
// All names begin with proofline_connector_. Requests are counted by outcome;
// metrics of a room have the label room, its name in the rules.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/proofline/proofline/connector"
)

// Collector returns a collector for [connector.Connector.Stats].
func Collector(c *connector.Connector) prometheus.Collector { return collector{c} }

type collector struct{ *connector.Connector }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("proofline_connector_"+name, help, labels, nil)
}

var (
	requests = describe("requests_total", "Requests by outcome.", "outcome")
	passes   = describe("passes_total", "Passes by result.", "result")
	touches  = describe("touches_total", "Sessions extended at their room.")
	releases = describe("releases_total", "Sessions ended by the site or the visitor.")
	dropped  = describe("dropped_total", "Touches and releases that could not be delivered.")
	copied   = describe("copied_total", "Requests refused because too many clients share the session.")
	sharing  = describe("session_clients_most", "Largest number of clients of one session in the last 10 minutes.")
	cut      = describe("cut_total", "Upgraded connections closed because the session ended.")
	faults   = describe("faults_total", "Panics of the connector that were recovered.")
	reports  = describe("reports_total", "Reports that the server accepted.")
	hasRules = describe("rules_known",
		"1 if there are rules; 0: none received since the start, visitors get the retry page.")
	version   = describe("rules_version", "Version of the signed rules in force; 0: unsigned rules.")
	tokenLeft = describe("token_left_seconds",
		"Seconds until the server token expires; negative: since its expiry. "+
			"Missing if it never expires, or before the first reply.")
	up                = describe("room_up", "1 if the room can be reached.", "room")
	failOpenIntervals = describe("room_fail_open_intervals", "Fail-open intervals, of those remembered.", "room")
	failOpenRequests  = describe("room_fail_open_requests",
		"Requests admitted without a pass in these intervals.", "room")
	observed = describe("room_observed_total",
		"Requests that would have needed a session if the room were on.", "room")
	open = describe("room_gate_open",
		"1 if the gate of a safety-net room was open in the latest reply.", "room")
	heard = describe("room_gate_heard_seconds", "Time of the latest reply, in seconds since 1970.", "room")
	free  = describe("room_free_sessions",
		"Active sessions known to this node that began without a pass.", "room")
	started = describe("room_free_sessions_started_total", "Sessions that began here without a pass.", "room")
	turned  = describe("room_turned_total",
		"Visitors sent to the room because this node's share was used up.", "room")
	crowded = describe("room_crowded_total",
		"Visitors sent to the room because their network was over its limit.", "room")
)

// Describe implements [prometheus.Collector].
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requests, passes, touches, releases, dropped, copied, sharing, cut, faults, reports, hasRules, version,
		tokenLeft,
		up, failOpenIntervals, failOpenRequests, observed, open, heard, free, started, turned, crowded,
	} {
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
		"bypassed": s.Bypassed, "passed": s.Passed, "started": s.Started, "queued": s.Queued, "blocked": s.Blocked,
		"unavailable": s.Unavailable, "failed_open": s.FailedOpen,
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
	add(version, prometheus.GaugeValue, float64(s.RulesVersion))
	if !s.TokenEnds.IsZero() {
		add(tokenLeft, prometheus.GaugeValue, s.TokenLeft.Seconds())
	}
	for name, r := range s.Rooms {
		add(up, prometheus.GaugeValue, oneIf(r.DownSince.IsZero()), name)
		var admitted uint64
		for _, o := range r.FailOpen {
			admitted += o.Requests
		}
		add(failOpenIntervals, prometheus.GaugeValue, float64(len(r.FailOpen)), name)
		add(failOpenRequests, prometheus.GaugeValue, float64(admitted), name)
		add(observed, prometheus.CounterValue, float64(r.Observed), name)
		if r.Gate == "" {
			continue
		}
		add(open, prometheus.GaugeValue, oneIf(r.Gate == connector.GateOpen), name)
		add(heard, prometheus.GaugeValue, float64(r.HeardAt.Unix()), name)
		add(free, prometheus.GaugeValue, float64(r.Unqueued), name)
		add(started, prometheus.CounterValue, float64(r.Started), name)
		add(turned, prometheus.CounterValue, float64(r.TurnedAway), name)
		add(crowded, prometheus.CounterValue, float64(r.Crowded), name)
	}
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
