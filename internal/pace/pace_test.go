package pace

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLimit: a minute's events happen at once, and after that one whenever its wait is over.
func TestLimit(t *testing.T) {
	var l Limit
	now := time.Unix(1_000_000_000, 0)
	take := func() (n int) {
		for l.Take(now, 60) == 0 {
			n++
		}
		return n
	}
	if got := take(); got != 60 {
		t.Errorf("%d at once, want 60", got)
	}
	wait := l.Take(now, 60)
	if now = now.Add(wait - 1); take() != 0 {
		t.Error("the wait is too long")
	}
	if now = now.Add(1); take() != 1 {
		t.Errorf("the wait of %v is too short", wait)
	}
	l.GiveBack(60)
	if got := take(); got != 1 {
		t.Errorf("%d after a refund", got)
	}
	if now = now.Add(time.Hour); take() != 60 {
		t.Error("an idle hour gives more or less than a minute's events")
	}
	for range 1_000 {
		if l.Take(now, 0) != 0 {
			t.Fatal("0 is a limit")
		}
	}
}

// TestConcurrent: concurrent callers take no more than the limit, and refunds are not lost.
func TestConcurrent(t *testing.T) {
	var l Limit
	var taken atomic.Int64
	var all sync.WaitGroup
	now := time.Unix(1_000_000_000, 0)
	for range 16 {
		all.Go(func() {
			for range 2_000 {
				if l.Take(now, 10_000) == 0 {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	if taken.Load() != 10_000 {
		t.Errorf("%d taken, want 10000", taken.Load())
	}
	for range 16 {
		all.Go(func() {
			for range 100 {
				l.GiveBack(10_000)
			}
		})
	}
	all.Wait()
	again := 0
	for l.Take(now, 10_000) == 0 {
		again++
	}
	if again != 1_600 {
		t.Errorf("%d taken after 1600 refunds", again)
	}
}

func BenchmarkTake(b *testing.B) {
	var l Limit
	now := time.Now()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			l.Take(now, 1<<30)
		}
	})
}
