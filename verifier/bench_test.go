package verifier_test

import (
	"testing"

	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// BenchmarkAudit audits a room of 20,000 visitors in memory.
func BenchmarkAudit(b *testing.B) {
	keys := newKeys(b, origin, "honest")
	files := roomtest.Files{}
	if err := roomtest.Generate(keys, files, roomtest.Size{Visitors: 20_000, Windows: 10}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var entries uint64
	for b.Loop() {
		r := auditOf(b, files, verifier.Trust{VKey: keys.VKey})
		if !r.OK {
			b.Fatalf("%+v", r)
		}
		entries += r.Entries
	}
	b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
}
