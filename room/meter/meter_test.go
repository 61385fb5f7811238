package meter

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func TestMeter(t *testing.T) {
	m := New()
	m.Appended(Append{Entries: 3, Took: 5 * time.Millisecond, Freezes: []time.Duration{time.Second}, Draws: []time.Duration{3 * time.Second, time.Second}})
	m.Appended(Append{Entries: 1, Took: time.Millisecond})
	m.Refused("full")
	m.Refused("full")
	m.Cosigned("alice.example", 2*time.Second)
	m.Cosigned("bob.example", 0)
	m.Failed("bob.example")
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	lines := strings.Split(answer.Body.String(), "\n")
	for _, want := range []string{
		"proofline_append_seconds_count 2", "proofline_append_seconds_sum 0.006", `proofline_append_seconds_bucket{le="0.001"} 1`,
		"proofline_append_entries_count 2", "proofline_append_entries_sum 4",
		"proofline_freeze_delay_seconds_count 1", "proofline_freeze_delay_seconds_sum 1",
		"proofline_draw_delay_seconds_count 2", "proofline_draw_delay_seconds_sum 4",
		`proofline_joins_refused_total{reason="full"} 2`,
		`proofline_witness_up{witness="alice.example"} 1`, `proofline_witness_clock_offset_seconds{witness="alice.example"} 2`,
		`proofline_witness_up{witness="bob.example"} 0`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, answer.Body)
		}
	}
}

// TestNil: a server that measures nothing calls the same methods.
func TestNil(*testing.T) {
	var m *Meter
	m.Appended(Append{Draws: []time.Duration{0}})
	m.Refused("full")
	m.Cosigned("alice.example", 0)
	m.Failed("alice.example")
}

func BenchmarkAppended(b *testing.B) {
	m := New()
	for b.Loop() {
		m.Appended(Append{Entries: 30, Took: 3 * time.Millisecond})
	}
}
