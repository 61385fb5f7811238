package stats

import (
	"testing"

	"github.com/proofline/proofline/fairness"
)

// BenchmarkCollector collects the entries of 100,000 visitors, in one window or many.
func BenchmarkCollector(b *testing.B) {
	for name, r := range map[string]room{
		"one window":      newRoom("bench", 1, 100_000, fair),
		"100 windows":     newRoom("bench", 100, 1000, fair),
		"20,000 windows":  newRoom("bench", 20_000, 5, fair),
		"100,000 windows": newRoom("bench", 100_000, 1, fair),
	} {
		b.Run(name, func(b *testing.B) {
			var entries []fairness.Entry
			r.play(func(e fairness.Entry) { entries = append(entries, e) })
			b.ReportAllocs()
			for b.Loop() {
				c := New(Lists{})
				for _, e := range entries {
					if err := c.Add(e); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := c.Result(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(len(entries))/b.Elapsed().Seconds(), "entries/s")
		})
	}
}
