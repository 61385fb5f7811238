package room

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/safetynet"
)

// BenchmarkJoin measures durable joins with receipts, 400 at a time, without HTTP.
func BenchmarkJoin(b *testing.B) {
	rs := node(b, pgtest.URL(b), newMaster(b))
	r, err := rs.Create(b.Context(), Config{Slug: "join", Windows: []WindowRule{{Length: Duration(24 * time.Hour)}}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(200)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var receipt []byte
		for pb.Next() {
			var secret [fairness.SecretSize]byte
			_, _ = rand.Read(secret[:])
			j, err := r.Join(b.Context(), fairness.NewTicket(r.Origin, secret))
			if err == nil {
				receipt, err = j.AppendReceipt(b.Context(), receipt[:0])
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkReplay reads a room back from its log, and reports entries.
func BenchmarkReplay(b *testing.B) {
	rs := node(b, pgtest.URL(b), newMaster(b))
	r, err := rs.Create(b.Context(), Config{Slug: "replay", Windows: []WindowRule{{Length: Duration(24 * time.Hour)}}})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 400 {
		wg.Go(func() {
			for range 1 + b.N/400 {
				if _, err := r.Join(b.Context(), newVisitor(r).ticket); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportAllocs()
	b.ResetTimer()
	if err := r.sequencer.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAdopt starts a node with 200 rooms of one visitor each.
func BenchmarkAdopt(b *testing.B) {
	url, master := pgtest.URL(b), newMaster(b)
	first := node(b, url, master)
	for i := range 200 {
		r, err := first.Create(b.Context(), Config{Slug: fmt.Sprintf("room-%d", i)})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Join(b.Context(), newVisitor(r).ticket); err != nil {
			b.Fatal(err)
		}
	}
	pool := connect(b, url)
	for b.Loop() {
		rs := New(Options{Logs: pglog.NewStore(pool), Store: pgroom.NewStore(pool), MasterKey: master, PublicURL: publicURL,
			MaxClockStep: clock.AnyStep, Log: slog.New(slog.DiscardHandler)})
		rs.adopt(b.Context())
		if len(rs.loaded) != 200 {
			b.Fatalf("%d rooms are loaded", len(rs.loaded))
		}
		rs.Abandon()
	}
}

// BenchmarkReport measures connectors' reports, 100 at a time. Each has 17 new sessions and 17 active ones:
// 10 nodes send that once a second when 10,000 sessions begin per minute.
func BenchmarkReport(b *testing.B) {
	for name, live := range map[string]int{"empty": 0, "100000-live": 100_000} {
		b.Run(name, func(b *testing.B) {
			r, err := node(b, pgtest.URL(b), newMaster(b)).Create(b.Context(), Config{
				Slug: "report", Session: span(time.Hour), Outflow: Outflow{PerMinute: 600_000}, Windows: []WindowRule{{Length: Duration(24 * time.Hour)}},
			})
			for began := 0; began < live && err == nil; began += safetynet.MaxSessions {
				_, err = r.SafetyNet.Report(b.Context(), safetynet.Report{Node: uuid.New(), Shares: true, Started: newIDs(safetynet.MaxSessions)})
			}
			if err != nil {
				b.Fatal(err)
			}
			b.SetParallelism(50)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				node := uuid.New()
				for active := newIDs(17); pb.Next(); {
					started := newIDs(17)
					if _, err := r.SafetyNet.Report(b.Context(), safetynet.Report{Node: node, Shares: true, Started: started, Active: active}); err != nil {
						b.Error(err)
						return
					}
					active = started
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reports/s")
		})
	}
}
