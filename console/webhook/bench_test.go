package webhook

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
)

// BenchmarkFollow measures one pass over 1,000 rooms: without listeners, without news, and with
// news in each room.
func BenchmarkFollow(b *testing.B) {
	const rooms = 1_000
	k := newBench(b, real)
	servertest.Run(b, k.Rooms)
	list := make([]*room.Room, rooms)
	var making sync.WaitGroup
	for part := range 8 {
		making.Go(func() {
			for i := part; i < rooms; i += 8 {
				opens := time.Now().Add(time.Hour)
				r, err := k.Rooms.Create(b.Context(),
					room.Config{Slug: fmt.Sprintf("room-%d", i), Opens: &opens, Beacon: "none"})
				if err != nil {
					b.Error(err)
					return
				}
				list[i] = r
			}
		})
	}
	making.Wait()
	look := func(b *testing.B) {
		b.Helper()
		if err := k.follower.followAll(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("no endpoint", func(b *testing.B) {
		for b.Loop() {
			look(b)
		}
	})
	if _, _, err := k.Endpoints.Create(b.Context(), operator, EndpointConfig{URL: "https://example.com"}); err != nil {
		b.Fatal(err)
	}
	look(b) // stores the cursors
	b.Run("nothing new", func(b *testing.B) {
		for b.Loop() {
			look(b)
		}
	})
	b.Run("news everywhere", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			for _, r := range list {
				do := r.Pause
				if n%2 == 1 {
					do = r.Resume
				}
				if err := do(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			time.Sleep(followInterval)
			b.StartTimer()
			look(b)
		}
	})
}
