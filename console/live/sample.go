package live

import (
	"time"

	"github.com/proofline/proofline/room"
)

// sample is a room in one second: what the figures need of the past, and no
// more, for there are 900 of them a room. Sums are since the room was made.
type sample struct {
	at       int64 // milliseconds since the Unix epoch
	arrivals uint32
	called   uint32
	admitted uint32
	noShows  uint32
	waiting  uint32
	active   uint32
	size     uint32 // entries, modulo 2^32: it is only ever subtracted
	target   uint32 // people to let in a minute; 0 in a pause
	limit    uint32 // people in the shop at once; 0 for none
}

func sampleOf(v *room.Vitals) sample {
	n := &v.Snapshot.Counts
	return sample{
		at: v.Now.UnixMilli(), arrivals: narrow(n.Arrivals), called: narrow(n.Called), admitted: narrow(n.Admitted), noShows: narrow(n.NoShows),
		waiting: narrow(waiting(v.Snapshot)), active: narrow(v.Active), size: uint32(v.Snapshot.Size), //nolint:gosec // modulo 2^32
		target: target(v.Snapshot), limit: v.Snapshot.Outflow.MaxActive,
	}
}

// target returns how many people a minute the room lets in at this moment.
func target(s *room.Snapshot) uint32 {
	if s.Paused {
		return 0
	}
	return s.Outflow.PerMinute
}

// narrow fits a number of people, who are fewer than 2^32 in a room.
func narrow(n uint64) uint32 { return uint32(min(n, 1<<32-1)) } //nolint:gosec // bounded

// waiting returns how many people are in line and not called.
func waiting(s *room.Snapshot) uint64 {
	n := &s.Counts
	return n.Arrivals - n.Admitted - n.NoShows - n.Left - n.Revoked - n.Waiting
}

// ringSize is how many samples a ring holds.
const ringSize = int(kept / sampleEvery)

// ring is the latest samples. It grows as it is filled, up to 43 kB. Not safe for
// concurrent use.
type ring struct {
	samples []sample
	next    int // where the next one goes, once it is full
}

// add takes a sample unless its time is not after the latest one's: the
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

// at returns sample i, the oldest one first.
func (r *ring) at(i int) sample {
	if len(r.samples) < ringSize {
		return r.samples[i]
	}
	return r.samples[(r.next+i)%ringSize]
}

// since returns the latest sample and the one from that long before, or the
// oldest; false when there are not two.
func (r *ring) since(d time.Duration) (from, to sample, ok bool) {
	n := r.len()
	if n < 2 {
		return from, to, false
	}
	to = r.at(n - 1)
	low, high := 0, n-1 // the first that is late enough
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

// perSecond returns how fast a sum grew from one sample to another.
func perSecond(from, to sample, sum func(sample) uint32) float64 {
	return float64(sum(to)-sum(from)) * 1000 / float64(max(to.at-from.at, 1))
}

func arrivals(s sample) uint32 { return s.arrivals }
func admitted(s sample) uint32 { return s.admitted }
func noShows(s sample) uint32  { return s.noShows }
func entries(s sample) uint32  { return s.size }

// Series is the latest 15 minutes for charts, a value a second in each list.
type Series struct {
	At       []float64 `json:"at"`       // seconds since the Unix epoch
	Arrivals []float64 `json:"arrivals"` // a second, over the second before
	Waiting  []uint32  `json:"waiting"`
	Admitted []float64 `json:"admitted"` // a minute, over the minute before
	Active   []uint32  `json:"active"`
	Target   []uint32  `json:"target"` // people a minute, as it was then; 0 in a pause
	Limit    []uint32  `json:"limit"`  // of active, as it was then; 0 for none
}

// series returns what the ring holds; of the first sample there are no rates.
func (r *ring) series() Series {
	n := max(r.len()-1, 0)
	s := Series{
		make([]float64, 0, n), make([]float64, 0, n), make([]uint32, 0, n), make([]float64, 0, n), make([]uint32, 0, n),
		make([]uint32, 0, n), make([]uint32, 0, n),
	}
	minute := 0 // the sample of a minute before
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

// round keeps one decimal, so that documents stay short.
func round(f float64) float64 { return float64(int64(f*10+0.5)) / 10 }
