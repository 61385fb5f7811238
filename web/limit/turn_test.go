package limit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns checks that many requests of one network wait for each other, and do not delay another
// network.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Log: quiet})
		var all sync.WaitGroup
		served := 0
		var mu sync.Mutex // guards served
		for range 2_000 {
			all.Go(func() {
				done, err := l.Turn(t.Context(), addr("192.0.2.7"))
				if err != nil {
					t.Error(err)
					return
				}
				defer done()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				served++
			})
		}
		synctest.Wait()
		began := time.Now()
		done, err := l.Turn(t.Context(), addr("192.0.3.7"))
		if err != nil || time.Since(began) != 0 {
			t.Fatalf("another network waits %v: %v", time.Since(began), err)
		}
		done()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := l.Turn(ctx, addr("192.0.2.8")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request with a short deadline: %v", err)
		}
		all.Wait()
		if took := time.Since(began); served != 2_000 || took != 2_000/turnsAtOnce*time.Second {
			t.Errorf("%d served in %v", served, took)
		}
		if n := len(l.queues.of); n != 0 {
			t.Errorf("%d queues are left", n)
		}
	})
	var none *Limits
	if done, err := none.Turn(t.Context(), addr("192.0.2.1")); err != nil {
		t.Error(err)
	} else {
		done()
	}
}
