package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 1600, 1 << 20: 1600, 16 << 20: 400, 64 << 20: 100, 256 << 20: 25, 1 << 30: 12} {
		if got := percentFor(64<<20, live); got != want {
			t.Errorf("%d MB may grow by %d %%, want %d %%", live>>20, got, want)
		}
	}
}

// TestTune checks that the pace follows a heap that grows and shrinks.
func TestTune(t *testing.T) { //nolint:paralleltest // it changes the collector
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "")
	Tune(16 << 20)
	large := make([]byte, 256<<20)
	follows(t, "a large heap", func(percent int) bool { return percent == least })
	runtime.KeepAlive(large)
	follows(t, "a small heap", func(percent int) bool { return percent > 200 })
}

func follows(t *testing.T, what string, ok func(percent int) bool) {
	t.Helper()
	for range 100 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // cleanups run in the background
		percent := debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		if ok(percent) {
			return
		}
	}
	t.Errorf("%s: the pace does not follow", what)
}

func TestTuneLeavesGOGC(t *testing.T) { //nolint:paralleltest // it changes the environment
	t.Setenv("GOGC", "77")
	before := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	Tune(16 << 20)
	if now := debug.SetGCPercent(77); now != 77 {
		t.Errorf("the pace is %d", now)
	}
}
