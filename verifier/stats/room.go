package stats

import (
	"slices"

	"github.com/proofline/proofline/fairness"
)

// Limits of the lists in a [Room], and thresholds for listing something.
const (
	maxListed                     = 10  // maximum per kind, the most extreme first
	maxSteps                      = 600 // maximum steps of a series
	lateFreeze    fairness.Millis = 10_000
	burstArrivals                 = 20 // minimum arrivals in a second
	burstTimes                    = 5  // the mean of the minute before
	burstMinute                   = 60 // seconds
	oddTimes                      = 10 // times the median of the windows
	second        fairness.Time   = 1000
	maxAmendments                 = 100
)

// Room describes what happened, without a verdict: real visitors do arrive in bursts, and servers
// do stop for a while.
type Room struct {
	Arrivals   uint64 `json:"arrivals"`
	Windows    uint64 `json:"windows"`    // windows with arrivals
	Empty      uint64 `json:"empty"`      // windows without arrivals between those
	Draws      uint64 `json:"draws"`      // number of draws: one per window, as checked by the audit
	Tested     uint64 `json:"tested"`     // arrivals in windows whose places are all published
	Admissions uint64 `json:"admissions"` // this and the following are counts of the transcript
	NoShows    uint64 `json:"no_shows"`
	Left       uint64 `json:"left"`
	Revoked    uint64 `json:"revoked"`

	Series Series `json:"series"` // arrivals over time
	Peak   Moment `json:"peak"`   // second with most arrivals
	// seconds with at least 20 arrivals and more than 5 times the mean of the minute before: the 10 largest
	Bursts []Moment `json:"bursts"`

	Late        uint64   `json:"late"`         // freezes more than 10 seconds after the end of their window
	LateFreezes []Window `json:"late_freezes"` // the 10 latest of them
	// windows with more than 10 times the arrivals per second of the median window: the top 10
	Many []Window `json:"many"`
	Few  []Window `json:"few"` // windows with less than a tenth of that: the bottom 10

	Amends     uint64      `json:"amends"`
	Amendments []Amendment `json:"amendments"` // the first 100 amendments
}

// Series counts arrivals in steps of equal length.
type Series struct {
	From   fairness.Time   `json:"from"` // ms since the Unix epoch
	Step   fairness.Millis `json:"step"` // a second times a power of two, so that there are at most 600 steps
	Counts []uint64        `json:"counts"`
}

// Moment is a second with its arrivals.
type Moment struct {
	Time     fairness.Time `json:"time"` // start of the second
	Arrivals uint64        `json:"arrivals"`
	Usual    float64       `json:"usual"` // mean of the minute before
}

// Window is a listed window.
type Window struct {
	Index    fairness.WindowIndex `json:"index"`
	From     fairness.Time        `json:"from"`
	To       fairness.Time        `json:"to"`
	Arrivals uint64               `json:"arrivals"`
	Usual    float64              `json:"usual"` // arrivals at the pace of the median window; 0 for a late freeze
	Late     fairness.Millis      `json:"late"`  // delay of the freeze after the window's end
}

// FreezeClaims is this package's name for a pause of claims as well as calls.
const FreezeClaims fairness.Change = "freeze-claims"

// Amendment is one amendment.
type Amendment struct {
	Time   fairness.Time   `json:"time"`
	Change fairness.Change `json:"change"`
}

// description collects a [Room].
type description struct {
	Room
	opens fairness.Time
	all   []pace // frozen windows

	now    Moment                  // second of the latest arrival
	minute [burstMinute + 1]uint64 // arrivals by second, modulo 61, so that the current second has its own slot
	first  fairness.WindowIndex    // first window with arrivals
	last   fairness.WindowIndex
}

// pace is a compact record of a window, because there may be as many windows as arrivals.
type pace struct {
	index    fairness.WindowIndex
	from     fairness.Time
	length   fairness.Millis
	arrivals uint32
}

// perSecond returns the arrivals per second.
func (p pace) perSecond() float64 { return float64(p.arrivals) * 1000 / float64(p.length) }

func (d *description) begin(p *fairness.Policy) {
	d.opens = p.Opens
	d.Series = Series{From: p.Opens, Step: fairness.Millis(second)}
}

func (d *description) arrive(t fairness.Time) {
	d.Arrivals++
	if at := t / second * second; d.now.Arrivals == 0 {
		d.now.Time = at
	} else if at > d.now.Time {
		d.closeSecond(at)
	}
	d.now.Arrivals++
	d.Series.add(t)
}

// closeSecond checks the past second for a burst and advances the minute.
func (d *description) closeSecond(next fairness.Time) {
	passed := min((d.now.Time-d.opens)/second, burstMinute)
	if passed >= 10 { // the rush at the opening does not count as a burst
		sum := uint64(0)
		for _, n := range d.minute {
			sum += n
		}
		d.now.Usual = float64(sum) / float64(passed)
		if d.now.Arrivals >= burstArrivals && float64(d.now.Arrivals) > burstTimes*d.now.Usual {
			d.Bursts = keep(d.Bursts, d.now, func(m Moment) float64 { return float64(m.Arrivals) })
		}
	}
	if d.now.Arrivals > d.Peak.Arrivals {
		d.Peak = d.now
	}
	d.minute[d.now.Time/second%(burstMinute+1)] = d.now.Arrivals
	for t := max(d.now.Time+second, next-burstMinute*second); t <= next; t += second {
		d.minute[t/second%(burstMinute+1)] = 0
	}
	d.now = Moment{Time: next}
}

// add counts an arrival, and halves the resolution if the series is full.
func (s *Series) add(t fairness.Time) {
	at := max(0, t-s.From)
	for at/fairness.Time(s.Step) >= maxSteps {
		s.Step *= 2
		for i := range s.Counts {
			n := s.Counts[i]
			s.Counts[i] = 0
			s.Counts[i/2] += n
		}
		s.Counts = s.Counts[:(len(s.Counts)+1)/2]
	}
	i := int(at / fairness.Time(s.Step))
	for len(s.Counts) <= i {
		s.Counts = append(s.Counts, 0)
	}
	s.Counts[i]++
}

func (d *description) freeze(w *window, t fairness.Time) {
	late := fairness.Millis(t - w.To)
	if late > lateFreeze {
		d.Late++
		d.LateFreezes = keep(d.LateFreezes, Window{w.Index, w.From, w.To, uint64(w.count), 0, late},
			func(w Window) float64 { return float64(w.Late) })
	}
	if d.Windows == 0 {
		d.first = w.Index
	}
	d.last = w.Index
	d.Windows++
	d.all = append(d.all, pace{w.Index, w.From, fairness.Millis(w.To - w.From), uint32(w.count)})
}

func (d *description) skip(e *fairness.Skip) {
	switch {
	case e.Reason == fairness.NoShow:
		d.NoShows++
	case e.Reason == fairness.Left:
		d.Left++
	case e.Reason.IsRevoked():
		d.Revoked++
	}
}

func (d *description) amend(e *fairness.Amend) {
	if d.Amends++; len(d.Amendments) < maxAmendments {
		change := e.Change
		if e.Claims {
			change = FreezeClaims
		}
		d.Amendments = append(d.Amendments, Amendment{e.Time, change})
	}
}

// finish returns the description so far.
func (d *description) finish(s *scores) Room {
	after := *d
	after.Bursts = slices.Clone(d.Bursts)
	after.closeSecond(d.now.Time + second)
	after.Tested = s.arrivals
	if d.Windows > 0 {
		after.Empty = uint64(d.last-d.first) + 1 - d.Windows
	}
	after.odd()
	// [] instead of null in JSON
	after.Bursts, after.LateFreezes = append([]Moment{}, after.Bursts...), append([]Window{}, after.LateFreezes...)
	after.Many, after.Few = append([]Window{}, after.Many...), append([]Window{}, after.Few...)
	after.Amendments, after.Series.Counts = append([]Amendment{}, after.Amendments...),
		append([]uint64{}, after.Series.Counts...)
	return after.Room
}

// odd lists the windows with many and few arrivals.
func (d *description) odd() {
	if len(d.all) < 3 { // too few windows for a usual pace
		return
	}
	paces := make([]float64, len(d.all))
	for i, p := range d.all {
		paces[i] = p.perSecond()
	}
	slices.Sort(paces)
	median := paces[len(paces)/2]
	for _, p := range d.all {
		w := Window{Index: p.index, From: p.from, To: p.from + fairness.Time(p.length), Arrivals: uint64(p.arrivals),
			Usual: median * float64(p.length) / 1000}
		switch times := p.perSecond() / median; {
		case times > oddTimes && p.arrivals >= burstArrivals:
			d.Many = keep(d.Many, w, func(w Window) float64 { return float64(w.Arrivals) / w.Usual })
		case times < 1.0/oddTimes && w.Usual >= burstArrivals:
			d.Few = keep(d.Few, w, func(w Window) float64 { return w.Usual / float64(w.Arrivals) })
		}
	}
}

// keep adds x to a list of the ten largest, largest first; among equals the earlier one comes
// first.
func keep[T any](list []T, x T, size func(T) float64) []T {
	i := len(list)
	for i > 0 && size(list[i-1]) < size(x) {
		i--
	}
	if i == maxListed {
		return list
	}
	list = slices.Insert(list, i, x)
	return list[:min(len(list), maxListed)]
}
