package live

import (
	"time"

	"github.com/proofline/proofline/room"
)

// sample is the state of a room in one second. It holds only what later figures need, because a
// room keeps 900 of them. Sums count from the creation of the room.
type sample struct {
	at       int64 // milliseconds since the Unix epoch
	arrivals uint32
	called   uint32
	admitted uint32
	noShows  uint32
	waiting  uint32
	active   uint32
	size     uint32 // entries modulo 2^32; only differences are used
	target   uint32 // outflow per minute; 0 while paused
	limit    uint32 // maximum of active visitors; 0: no limit
}

func sampleOf(v *room.Metrics) sample {
	n := &v.Snapshot.Counts
	return sample{
		at: v.Now.UnixMilli(), arrivals: narrow(n.Arrivals), called: narrow(v.Snapshot.Passed),
		admitted: narrow(n.Admitted), noShows: narrow(n.NoShows),
		waiting: narrow(v.Snapshot.Counts.InLine), active: narrow(v.Active), size: uint32(v.Snapshot.Size), //nolint:gosec // modulo 2^32
		target: target(v.Snapshot), limit: v.Snapshot.Outflow.MaxActive,
	}
}

// target returns the outflow in force, per minute.
func target(s *room.Snapshot) uint32 {
	if s.Paused {
		return 0
	}
	return s.Outflow.PerMinute
}

// narrow converts a number of visitors, of whom a room has fewer than 2^32.
func narrow(n uint64) uint32 { return uint32(min(n, 1<<32-1)) } //nolint:gosec // bounded

// ringSize is the number of samples in a full ring.
const ringSize = int(ringSpan / sampleInterval)

// ring holds the latest samples. It grows to 43 kB. It is not safe for concurrent use.
type ring struct {
	samples []sample
	next    int // index of the next sample once the ring is full
}

// add appends a sample. It drops one that is not later than the previous sample, because the
// database's clock may have been set back.
func (r *ring) add(s sample) {
	if r.len() > 0 && s.at <= r.at(r.len()-1).at {
		return
	}
	if len(r.samples) < ringSize {
		r.samples = append(r.samples, s)
		return
	}
	r.samples[r.next] = s
	r.next = (r.next + 1) % ringSize
}

func (r *ring) len() int { return len(r.samples) }

// at returns sample i, counted from the oldest.
func (r *ring) at(i int) sample {
	if len(r.samples) < ringSize {
		return r.samples[i]
	}
	return r.samples[(r.next+i)%ringSize]
}

// since returns the latest sample and the one d before it, or the oldest; false with fewer than two
// samples.
func (r *ring) since(d time.Duration) (from, to sample, ok bool) {
	n := r.len()
	if n < 2 {
		return from, to, false
	}
	to = r.at(n - 1)
	low, high := 0, n-1 // binary search for the first sample within d
	for low < high {
		if i := (low + high) / 2; r.at(i).at < to.at-d.Milliseconds() {
			low = i + 1
		} else {
			high = i
		}
	}
	if low == n-1 {
		low--
	}
	return r.at(low), to, true
}

// perSecond returns the growth of a sum per second between two samples.
func perSecond(from, to sample, sum func(sample) uint32) float64 {
	return float64(sum(to)-sum(from)) * 1000 / float64(max(to.at-from.at, 1))
}

func arrivals(s sample) uint32 { return s.arrivals }
func admitted(s sample) uint32 { return s.admitted }
func noShows(s sample) uint32  { return s.noShows }
func entries(s sample) uint32  { return s.size }

// Series is the data of the last 15 minutes for charts, with one value per second in each list.
type Series struct {
	At       []float64 `json:"at"`       // seconds since the Unix epoch
	Arrivals []float64 `json:"arrivals"` // per second, over the preceding second
	Waiting  []uint32  `json:"waiting"`
	Admitted []float64 `json:"admitted"` // per minute, over the preceding minute
	Active   []uint32  `json:"active"`
	Target   []uint32  `json:"target"` // outflow per minute at that time; 0 while paused
	Limit    []uint32  `json:"limit"`  // maximum of active at that time; 0: no limit
}

// series returns the content of the ring, without the first sample, which has no rates.
func (r *ring) series() Series {
	n := max(r.len()-1, 0)
	s := Series{
		make([]float64, 0, n), make([]float64, 0, n), make([]uint32, 0, n), make([]float64, 0, n), make([]uint32, 0, n),
		make([]uint32, 0, n), make([]uint32, 0, n),
	}
	minute := 0 // index of the sample one minute earlier
	for i := 1; i < r.len(); i++ {
		before, now := r.at(i-1), r.at(i)
		for minute < i-1 && r.at(minute).at < now.at-time.Minute.Milliseconds() {
			minute++
		}
		s.At = append(s.At, float64(now.at)/1000)
		s.Arrivals = append(s.Arrivals, round(perSecond(before, now, arrivals)))
		s.Waiting = append(s.Waiting, now.waiting)
		s.Admitted = append(s.Admitted, round(60*perSecond(r.at(minute), now, admitted)))
		s.Active = append(s.Active, now.active)
		s.Target = append(s.Target, now.target)
		s.Limit = append(s.Limit, now.limit)
	}
	return s
}

// round keeps one decimal, to keep documents short.
func round(f float64) float64 { return float64(int64(f*10+0.5)) / 10 }
