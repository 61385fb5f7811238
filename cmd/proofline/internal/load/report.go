package load

import (
	"math"
	"strconv"
	"time"

	"github.com/proofline/proofline/internal/rawhttp"
)

// Report holds the results of a run.
type Report struct {
	URL         string  `json:"url"`
	Visitors    int     `json:"visitors"`
	Rate        float64 `json:"rate"` // requested visitors per second; 0: as fast as the server answers
	Concurrency int     `json:"concurrency"`
	Seconds     float64 `json:"seconds"`

	Joined         int64   `json:"joined"`
	JoinsPerSecond float64 `json:"joins_per_second"` // mean rate until the last join
	Again          uint64  `json:"joined_again"`     // of Joined, joins repeated after an attempt without an answer
	Admitted       int64   `json:"admitted"`
	Expired        uint64  `json:"expired"`    // called visitors who did not claim in time
	Unfinished     int64   `json:"unfinished"` // visitors who gave up or were refused

	// Latency holds the response times by kind of request: join, ticket, state, claim.
	Latency map[string]Latency `json:"latency"`
	// Errors counts failures by kind of request, then by status; "network": no answer.
	Errors map[string]map[string]uint64 `json:"errors"`
}

// Latency summarizes response times in milliseconds, to within 2 %.
type Latency struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func (r *run) report(workers []*worker) *Report {
	p := &Report{
		URL: r.URL.String(), Visitors: r.Visitors, Rate: r.Rate, Concurrency: len(workers),
		Seconds: round(time.Since(r.start).Seconds()), Joined: r.joined.Load(), Admitted: r.admitted.Load(),
		Latency: map[string]Latency{}, Errors: map[string]map[string]uint64{},
	}
	var latency [kinds]rawhttp.Histogram
	var lastJoin time.Duration
	for _, w := range workers {
		for k := range latency {
			latency[k].Merge(&w.latency[k])
		}
		lastJoin = max(lastJoin, w.lastJoin)
		p.Again += w.again
		p.Expired += w.expired
		p.count(w.failures)
	}
	p.Unfinished = int64(p.Visitors) - p.Admitted - int64(p.Expired) //nolint:gosec // at most the visitors
	if lastJoin > 0 {
		p.JoinsPerSecond = round(float64(p.Joined) / lastJoin.Seconds())
	}
	for k := range latency {
		if h := &latency[k]; h.Count > 0 {
			p.Latency[kind(k).String()] = sum(h)
		}
	}
	return p
}

func (p *Report) count(failures map[failure]uint64) {
	for f, n := range failures {
		status := "network"
		if f.status != 0 {
			status = strconv.Itoa(f.status)
		}
		byStatus := p.Errors[f.kind.String()]
		if byStatus == nil {
			byStatus = map[string]uint64{}
			p.Errors[f.kind.String()] = byStatus
		}
		byStatus[status] += n
	}
}

func sum(h *rawhttp.Histogram) Latency {
	ms := func(d time.Duration) float64 { return round(d.Seconds() * 1000) }
	return Latency{h.Count, ms(h.Quantile(0.5)), ms(h.Quantile(0.9)), ms(h.Quantile(0.99)), ms(h.Max)}
}

// round rounds to three decimals.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }
