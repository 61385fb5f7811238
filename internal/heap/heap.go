// Package heap sets the pace of the garbage collector for a server. Go's default collects when the
// heap has doubled: a server with a small heap and many requests then collects dozens of times a
// second, and one with a large heap needs twice its size. [Tune] gives garbage a fixed amount of
// memory instead.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The heap may grow by allowance bytes between two collections, and by at least least percent, so
// that a large heap is not collected all the time.
const (
	allowance = 64 << 20
	least     = 40
	most      = 1600
)

// Tune sets the pace from now on, after each collection by what the collection has left. It does
// nothing if the environment sets GOGC.
func Tune() {
	if os.Getenv("GOGC") != "" {
		return
	}
	p := &pace{sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	p.set()
	watch(p)
}

// pace is what Tune has set.
type pace struct {
	sample  []metrics.Sample
	percent int
}

// watch calls set after the next collection, and after all that follow.
func watch(p *pace) {
	runtime.AddCleanup(new(*pace), func(p *pace) {
		p.set()
		watch(p)
	}, p)
}

// set sets the pace. Small changes are not worth stopping the program for.
func (p *pace) set() {
	metrics.Read(p.sample)
	percent := percentFor(p.sample[0].Value.Uint64())
	if percent*10 < p.percent*9 || percent*9 > p.percent*10 {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentFor returns the growth in percent that live bytes may have.
func percentFor(live uint64) int {
	return int(min(max(allowance*100/max(live, 1), least), most)) //nolint:gosec // at most 1600
}
