// Package heap sets the pace of the garbage collector. Go's default collects when the heap has
// doubled: a server with a small heap and many requests then collects dozens of times a second, and
// an audit of a large room needs twice the memory that the room takes. [Tune] gives garbage a fixed
// amount of memory instead.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Bounds of the heap's growth in percent: a large heap must not be collected all the time.
const (
	least = 12
	most  = 1600
)

// Tune lets the heap grow by allowance bytes between two collections. After each collection it sets
// the pace by what is left. It does nothing if the environment sets GOGC.
func Tune(allowance uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	p := &pace{allowance: allowance, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	p.set()
	watch(p)
}

// pace is what Tune has set.
type pace struct {
	allowance uint64 // bytes
	sample    []metrics.Sample
	percent   int
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
	percent := percentFor(p.allowance, p.sample[0].Value.Uint64())
	if percent*10 < p.percent*9 || percent*9 > p.percent*10 {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentFor returns the growth in percent that live bytes may have.
func percentFor(allowance, live uint64) int {
	return int(min(max(allowance*100/max(live, 1), least), most)) //nolint:gosec // at most 1600
}
