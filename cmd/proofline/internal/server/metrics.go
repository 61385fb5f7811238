package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/proofline/proofline/cmd/proofline/internal/https"
	"github.com/proofline/proofline/cmd/proofline/internal/listen"
	"github.com/proofline/proofline/console/issuers"
	"github.com/proofline/proofline/console/outsider"
	"github.com/proofline/proofline/console/retention"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/web/limit"
)

// ErrMetricsAddr is returned when the server cannot listen on the metrics address.
var ErrMetricsAddr = errors.New("cannot serve metrics")

// listenForMetrics listens on the metrics address, if there is one.
func (s *Server) listenForMetrics(ctx context.Context) (err error) {
	if s.cfg.MetricsAddr == "" {
		return nil
	}
	var lc net.ListenConfig
	if s.metrics, err = lc.Listen(ctx, "tcp", s.cfg.MetricsAddr); err != nil {
		return fmt.Errorf("%w on %s: %w", ErrMetricsAddr, s.cfg.MetricsAddr, err)
	}
	s.MetricsURL = "http://" + listen.Address(s.metrics.Addr()) + "/metrics"
	s.atStop(func(context.Context) error { return closed(s.metrics.Close()) })
	return nil
}

// serveMetrics serves /metrics, /livez, /readyz and /debug/pprof/ on a separate address. It requires no credentials
// and is therefore off by default.
func (s *Server) serveMetrics(context.Context) error {
	if s.metrics == nil {
		return nil
	}
	m := metrics{s.rooms, s.limits, &s.streams, &s.watch, s.issuers, &s.retention}
	handler, err := metricsHandler(m, s.meter, s.cfg.HTTPS, http.HandlerFunc(s.answerHealth))
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.metrics) }()
	s.atStop(func(context.Context) error {
		_ = server.Close() // does not wait for a running profile
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}

// answerHealth answers /livez and /readyz as on the server's own address.
func (s *Server) answerHealth(w http.ResponseWriter, r *http.Request) {
	if handler := s.handler.Load(); handler != nil {
		handler.ServeHTTP(w, r)
		return
	}
	waitingAnswer(w, r)
}

func metricsHandler(m metrics, meter *meter.Meter, tls *https.Server, health http.Handler) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		m, meter, tls, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	// Compression costs CPU, and saves little on a private network.
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry,
		promhttp.HandlerOpts{MaxRequestsInFlight: 4, DisableCompression: true}))
	mux.Handle("GET /livez", health)
	mux.Handle("GET /readyz", health)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux, nil
}

// maxMeasured is the number of rooms with metrics of their own. The others are counted in proofline_rooms_unmeasured.
const maxMeasured = 1_000

// metrics collects metrics of the server and of the rooms in its memory.
type metrics struct {
	rooms   *room.Rooms
	limits  *limit.Limits
	streams *atomic.Int64
	watch   *atomic.Pointer[outsider.Watch]
	issuers *issuers.Watch // nil: none
	// retention is nil until the job runs.
	retention *atomic.Pointer[retention.Job]
}

// metric is one metric family: its description, its type, and a function that reads
// its value from a source.
type metric[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(S) float64
}

func gauge[S any](name, help string, read func(S) float64, labels ...string) metric[S] {
	return metric[S]{prometheus.NewDesc("proofline_"+name, help, labels, nil), prometheus.GaugeValue, read}
}

func counter[S any](name, help string, read func(S) float64, labels ...string) metric[S] {
	m := gauge(name, help, read, labels...)
	m.kind = prometheus.CounterValue
	return m
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

type health = room.Health

var serverMetrics = []metric[health]{
	gauge("ready", "Whether the server can take joins.", func(h health) float64 { return bit(h.Ready) }),
	gauge("database_up", "Whether the database answered within the last two seconds.",
		func(h health) float64 { return bit(h.Answers) }),
	gauge("database_answer_seconds", "How long the database's latest answer took.",
		func(h health) float64 { return h.Took.Seconds() }),
	gauge("database_connections", "Open connections of the pool.",
		func(h health) float64 { return float64(h.Pool.Open) }),
	gauge("database_connections_busy", "Connections of the pool in use.",
		func(h health) float64 { return float64(h.Pool.InUse) }),
	gauge("database_connections_max", "Connections that the pool may open.",
		func(h health) float64 { return float64(h.Pool.Max) }),
	counter("database_waits_total", "Times that a query had to wait for a connection.",
		func(h health) float64 { return float64(h.Pool.Waited) }),
	gauge("clock_ahead_seconds", "How far the rooms' time is ahead of this machine's clock.",
		func(h health) float64 { return h.Ahead.Seconds() }),
	gauge("clock_step_seconds", "Jump of the database's clock that rooms do not follow; 0: none.",
		func(h health) float64 { return h.Step.Seconds() }),
	gauge("marks_kept", "Whether the server writes marks of the logs to the data directory.",
		func(h health) float64 { return bit(h.Marked) }),
	gauge("marks_store_away_seconds", "How long the object storage of marks has not answered; 0: it answers, or none is set.",
		func(h health) float64 { return h.Away.Seconds() }),
	gauge("marks_store_lag_seconds", "How long the oldest mark that object storage lacks has waited; 0: it lacks none.",
		func(h health) float64 { return h.Lag.Seconds() }),
	gauge("rooms_loaded", "Rooms in memory.", func(h health) float64 { return float64(h.Rooms) }),
	gauge("rooms_stuck", "Rooms that cannot store entries that are due.",
		func(h health) float64 { return float64(h.Stuck) }),
	gauge("rooms_held", "Rooms whose database lacks entries that were published.",
		func(h health) float64 { return float64(h.Held) }),
}

type vitals = room.Metrics

var roomMetrics = []metric[vitals]{
	counter("room_arrivals_total", "Visitors who joined.",
		func(v vitals) float64 { return float64(v.Snapshot.Counts.Arrivals) }, "room"),
	counter("room_called_total", "Visitors who were called.",
		func(v vitals) float64 { return float64(v.Snapshot.Passed) }, "room"),
	counter("room_admitted_total", "Visitors who were admitted.",
		func(v vitals) float64 { return float64(v.Snapshot.Counts.Admitted) }, "room"),
	counter("room_no_shows_total", "Called visitors who did not claim in time.",
		func(v vitals) float64 { return float64(v.Snapshot.Counts.NoShows) }, "room"),
	gauge("room_in_line", "Visitors in line who were not called yet.",
		func(v vitals) float64 { return float64(v.Snapshot.Counts.InLine) }, "room"),
	gauge("room_active", "Visitors called or at the site.", func(v vitals) float64 { return float64(v.Active) },
		"room"),
	gauge("room_entries", "Entries of the transcript.", func(v vitals) float64 { return float64(v.Snapshot.Size) },
		"room"),
	gauge("room_published_entries", "Entries that the published checkpoint covers.",
		func(v vitals) float64 { return float64(v.Published.Size) }, "room"),
	gauge("room_queued", "Requests waiting for an append.", func(v vitals) float64 { return float64(v.Queued) },
		"room"),
	gauge("room_stuck_seconds", "How long this server has failed to store entries that are due; 0: it stores them.",
		func(v vitals) float64 { return v.Stuck.Seconds() }, "room"),
	gauge("room_view_age_seconds", "Time since this server last knew every entry that was stored for the room.",
		func(v vitals) float64 { return v.Age.Seconds() }, "room"),
	gauge("room_draws_pending", "Draws waiting for a beacon round.",
		func(v vitals) float64 { return float64(v.Pending) }, "room"),
	gauge("room_draw_late_seconds", "How long the earliest pending draw has been late; 0: it is not.", drawLate, "room"),
	gauge("room_paused", "Whether calls are paused.", func(v vitals) float64 { return bit(v.Snapshot.Paused) }, "room"),
	gauge("room_ended", "Whether the room has ended.", func(v vitals) float64 { return bit(v.Snapshot.Ended) }, "room"),
}

var (
	beaconUp = prometheus.NewDesc("proofline_beacon_up", "Whether the relays of the beacon served it when they were last asked.",
		[]string{"beacon"}, nil)
	streams     = prometheus.NewDesc("proofline_streams", "Open event streams of visitors.", nil, nil)
	watchAlarms = prometheus.NewDesc("proofline_watch_alarms",
		"Rooms whose public pages show a violation, as this server's watch of its own rooms has found.", nil, nil)
	watchEntries = prometheus.NewDesc("proofline_watch_entries",
		"Entries of the checkpoints that this server's watch has read of its own rooms.", nil, nil)
	watchUnread = prometheus.NewDesc("proofline_watch_unread",
		"Rooms whose public pages this server's watch has not been able to read for two minutes.", nil, nil)
	issuersAway = prometheus.NewDesc("proofline_issuers_away",
		"Issuers, and services of the own issuer, that do not answer, of those that rooms need that are open or open within a day.", nil, nil)
	personalFailing = prometheus.NewDesc("proofline_personal_failing_seconds",
		"How long deleting expired personal data has been failing on this server; 0: it works.", nil, nil)
	personalDeleted = prometheus.NewDesc("proofline_personal_deleted_total",
		"Rows that this server has deleted, or blanked, because it was expired personal data.", []string{"table"}, nil)
	unmeasured = prometheus.NewDesc("proofline_rooms_unmeasured", "Rooms in memory without metrics of their own, as there are too many.",
		nil, nil)
)

var refused = prometheus.NewDesc("proofline_refused_total",
	"Requests refused because their network had used up a budget.", []string{"budget"}, nil)

// Describe implements [prometheus.Collector].
func (metrics) Describe(to chan<- *prometheus.Desc) {
	for _, m := range serverMetrics {
		to <- m.desc
	}
	for _, m := range roomMetrics {
		to <- m.desc
	}
	to <- refused
	to <- beaconUp
	to <- streams
	to <- unmeasured
	to <- issuersAway
	to <- watchAlarms
	to <- watchUnread
	to <- watchEntries
	to <- personalFailing
	to <- personalDeleted
}

// Collect implements [prometheus.Collector].
func (c metrics) Collect(to chan<- prometheus.Metric) {
	h := c.rooms.Health()
	for _, m := range serverMetrics {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.read(h))
	}
	loaded := c.rooms.Loaded()
	measured := mostInLine(loaded)
	// The registry sorts each metric by its labels, which is faster if they come sorted.
	slices.SortFunc(measured, func(a, b *room.Room) int { return strings.Compare(a.Slug, b.Slug) })
	for _, r := range measured {
		v := r.Metrics()
		for _, m := range roomMetrics {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.read(v), r.Slug)
		}
	}
	constant := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, chain := range c.rooms.Chains {
		constant(beaconUp, bit(chain.Err() == nil), chain.Name())
	}
	constant(streams, float64(c.streams.Load()))
	if c.watch != nil {
		n := c.watch.Load().Counts()
		constant(watchAlarms, float64(n.Alarms))
		constant(watchUnread, float64(n.Unread))
		constant(watchEntries, float64(n.Entries))
	}
	constant(issuersAway, float64(c.issuers.Count()))
	if c.retention != nil {
		if job := c.retention.Load(); job != nil {
			constant(personalFailing, job.Failing().Seconds())
			for table, n := range job.Deleted() {
				to <- prometheus.MustNewConstMetric(personalDeleted, prometheus.CounterValue, float64(n), table)
			}
		}
	}
	constant(unmeasured, float64(len(loaded)-len(measured)))
	for budget, n := range c.limits.Refused() {
		to <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(n), budget)
	}
}

// drawLate returns how long ago the beacon round appeared that the earliest pending draw needs, in seconds.
func drawLate(v vitals) float64 {
	if len(v.Awaited) == 0 {
		return 0
	}
	return max(0, v.Now.Sub(v.Awaited[0].Due).Seconds())
}

// mostInLine returns the rooms with the most visitors in line, at most maxMeasured.
func mostInLine(rooms []*room.Room) []*room.Room {
	if len(rooms) <= maxMeasured {
		return rooms
	}
	inLine := make(map[*room.Room]uint64, len(rooms))
	for _, r := range rooms {
		inLine[r] = r.Snapshot().Counts.InLine
	}
	slices.SortFunc(rooms, func(a, b *room.Room) int {
		return cmp.Or(cmp.Compare(inLine[b], inLine[a]), strings.Compare(a.Slug, b.Slug))
	})
	return rooms[:maxMeasured]
}
