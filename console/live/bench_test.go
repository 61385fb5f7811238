package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/proofline/proofline/room"
)

// BenchmarkFigures measures the cost per second of a watched room: its vitals, its sample and its
// document. It does not depend on the length of the line.
func BenchmarkFigures(b *testing.B) {
	for _, people := range []int{100, 10_000} {
		b.Run(fmt.Sprint(people), func(b *testing.B) {
			s := newServer(b)
			r := create(b, s.rooms, room.Config{Slug: "bench",
				Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}})
			join(b, r, people)
			t := s.live.track(r)
			for i := range ringSize {
				t.ring.add(sample{at: int64(i)})
			}
			b.ReportAllocs()
			for b.Loop() {
				v := r.Metrics()
				s.live.collect(t, &v)
				_ = s.live.encode(t, &v)
			}
		})
	}
}
