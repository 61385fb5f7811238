// Package meter measures what a node does, for /metrics: how long appends take and how many entries they have, how late
// windows are frozen and drawn, which joins are refused, and what witnesses answer.
package meter

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Meter measures all rooms of a node. It is safe for concurrent use. A nil Meter measures nothing.
type Meter struct {
	appendTime, appended   prometheus.Histogram
	freezeDelay, drawDelay prometheus.Histogram
	refused                *prometheus.CounterVec
	up, offset             *prometheus.GaugeVec
	all                    []prometheus.Collector

	mu        sync.Mutex // guards witnesses
	witnesses map[string]Answer
}

// Answer is what a witness answered when it was last asked.
type Answer struct {
	Cosigned bool
	Ahead    time.Duration // how far its clock was ahead of the rooms' time at its latest cosignature
}

// Witnesses returns the latest answers, by the name of the witness.
func (m *Meter) Witnesses() map[string]Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.witnesses)
}

func (m *Meter) note(witness string, a Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.witnesses == nil {
		m.witnesses = map[string]Answer{}
	}
	m.witnesses[witness] = a
}

// New returns a meter that has seen nothing.
func New() *Meter {
	m := &Meter{}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "proofline_" + name, Help: help, Buckets: buckets})
		m.all = append(m.all, h)
		return h
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "proofline_" + name, Help: help}, []string{"witness"})
		m.all = append(m.all, g)
		return g
	}
	m.appendTime = histogram("append_seconds", "Duration of appends to a transcript, until they are durable.",
		prometheus.ExponentialBuckets(0.001, 2, 14)) // to 8 s
	m.appended = histogram("append_entries", "Entries of an append.",
		prometheus.ExponentialBuckets(1, 4, 9)) // to 65,536
	m.freezeDelay = histogram("freeze_delay_seconds", "Time from a window's end until its freeze was appended.",
		prometheus.ExponentialBuckets(0.05, 2, 14)) // to 7 minutes
	m.drawDelay = histogram("draw_delay_seconds", "Time from a draw's beacon round, or its freeze without a beacon, until the draw was appended.",
		prometheus.ExponentialBuckets(0.05, 2, 14))
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proofline_joins_refused_total",
		Help: "Joins that rooms refused although they were open, by reason."}, []string{"reason"})
	m.all = append(m.all, m.refused)
	m.up = gauge("witness_up", "Whether the witness's latest answer was a cosignature.")
	m.offset = gauge("witness_clock_offset_seconds", "How far the witness's clock was ahead of the rooms' time at its latest cosignature.")
	return m
}

// Append is what an append did.
type Append struct {
	Entries int
	Took    time.Duration
	Freezes []time.Duration // delay of each freeze after the end of its window
	Draws   []time.Duration // delay of each draw after its round or, without a beacon, its freeze
}

// Appended notes an append that is durable.
func (m *Meter) Appended(a Append) {
	if m == nil {
		return
	}
	m.appendTime.Observe(a.Took.Seconds())
	m.appended.Observe(float64(a.Entries))
	for _, d := range a.Freezes {
		m.freezeDelay.Observe(d.Seconds())
	}
	for _, d := range a.Draws {
		m.drawDelay.Observe(d.Seconds())
	}
}

// Refused notes a join that was refused for a reason.
func (m *Meter) Refused(reason string) {
	if m != nil {
		m.refused.WithLabelValues(reason).Inc()
	}
}

// Cosigned notes a cosignature and how far the witness's clock was ahead, to the second.
func (m *Meter) Cosigned(witness string, ahead time.Duration) {
	if m != nil {
		m.up.WithLabelValues(witness).Set(1)
		m.offset.WithLabelValues(witness).Set(ahead.Seconds())
		m.note(witness, Answer{true, ahead})
	}
}

// Failed notes that a witness did not cosign.
func (m *Meter) Failed(witness string) {
	if m != nil {
		m.up.WithLabelValues(witness).Set(0)
		m.note(witness, Answer{})
	}
}

// Describe implements [prometheus.Collector].
func (m *Meter) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (m *Meter) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(to)
	}
}
