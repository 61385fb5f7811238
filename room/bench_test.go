package room

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
)

// BenchmarkJoin is durable joins with receipts, 400 at a time, without HTTP.
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
