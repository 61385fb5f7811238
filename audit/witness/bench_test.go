package witness

import (
	"testing"
	"time"
)

// One cosignature, stored on disk before it is sent.
func BenchmarkAddCheckpoint(b *testing.B) {
	const most = 1 << 14
	l := newLog(b, testOrigin, 1, most, most)
	h := newHouse(b, l)
	old := 0
	for b.Loop() {
		b.StopTimer()
		size := old%most + 1
		r := l.request(old, size)
		b.StartTimer()
		h.cosigned(b, r)
		if old = size; old == most {
			b.StopTimer()
			h, old = newHouse(b, l), 0
			b.StartTimer()
		}
	}
}

// A refused request costs no disk access.
func BenchmarkConflict(b *testing.B) {
	l := newLog(b, testOrigin, 1, 40, 40)
	h := newHouse(b, l)
	h.cosigned(b, l.request(0, 10))
	h.clock.add(time.Second)
	r := l.request(5, 12)
	for b.Loop() {
		h.conflicts(b, r, 10)
	}
}
