package background

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestGo tests that work is restarted after a panic, and runs once more in the end.
func TestGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(slog.New(brokenLog{}))
		ctx, cancel := context.WithCancel(t.Context())
		began, turns := time.Now(), 0
		g.Go(ctx, "a test", func(ctx context.Context) {
			if turns++; turns < 4 {
				panic(errors.New("fault"))
			}
			<-ctx.Done()
			if turns++; turns == 5 {
				panic("at the end")
			}
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if turns != 4 || g.Panics() != 3 {
			t.Errorf("%d turns and %d faults in %v", turns, g.Panics(), time.Since(began))
		}
		cancel()
		g.Wait()
		if turns != 7 { // once more, for what is left to do
			t.Errorf("%d turns in the end", turns)
		}
	})
}

// brokenLog is a log handler that panics.
type brokenLog struct{ slog.Handler }

func (brokenLog) Enabled(context.Context, slog.Level) bool { panic("the log") }
