package report

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
)

// Limits of a story, so that a room of any size fits into a page.
const (
	maxWindows = 50_000
	maxLanes   = 16
	maxPoints  = 5_000
)

// Story summarizes a transcript as published, without judging it; the report says whether it is
// valid.
type Story struct {
	Policy   *fairness.Policy // nil: the transcript does not begin with a room
	Entries  uint64           // entries recorded
	Last     fairness.Time    // time of the latest entry
	Ended    uint64           // index of the end entry; 0: none
	Arrivals uint64
	Windows  []Window // windows with arrivals, in order; at most maxWindows
	Untold   uint64   // number of further windows with arrivals
	Amends   uint64
	Skips    map[fairness.Reason]uint64 // tickets that were skipped and not restored
	Restored map[fairness.Reason]uint64 // restored tickets by the reason of their revocation
	Lanes    map[fairness.Lane]*Lane
	Cosigned map[uint32]uint64 // number of draws by key id of the witness that cosigned the freeze
	Points   []Point           // sample of the arrivals with a place, by arrival
	Times    Times
}

// Window summarizes one window.
type Window struct {
	fairness.Window        // From and To are 0 if the schedule does not contain the window
	Before          uint64 // arrivals in earlier windows
	Arrivals        uint64
	Freeze          *Milestone // nil: not frozen yet
	Draw            *Milestone
	Round           uint64 // beacon round; 0: none
	Cosignatures    int
}

// Milestone is an entry and its time.
type Milestone struct {
	Entry uint64
	Time  fairness.Time
}

// Lane summarizes a lane.
type Lane struct {
	Arrivals uint64
	Places   uint64 // tickets with a place
	Called   uint64 // tickets whose places are called or passed over
	upTo     fairness.Position
	uncalled []fairness.Position // stated places beyond upTo, in a room in which other places are nobody's
}

// assign takes note of the place of a ticket, and returns how many tickets are called thereby: places may be stated
// after their call.
func (l *Lane) assign(at fairness.Position, hasGaps bool) (n int64) {
	l.Places++
	switch {
	case !hasGaps:
	case at <= l.upTo:
		n = 1
	default:
		l.uncalled = append(l.uncalled, at)
	}
	l.Called += uint64(n) //nolint:gosec // not negative
	return n
}

// call moves the pointer up to a place, and returns how many tickets it passes.
func (l *Lane) call(upTo fairness.Position, hasGaps bool) (n int64) {
	if !hasGaps {
		n = int64(upTo - l.upTo)
	}
	for hasGaps && len(l.uncalled) > 0 && l.uncalled[0] <= upTo {
		l.uncalled = l.uncalled[1:]
		n++
	}
	l.upTo = upTo
	l.Called += uint64(n) //nolint:gosec // not negative
	return n
}

// Point is an arrival, counted from 1 in the whole room, and its place among the tickets of its lane.
type Point struct {
	Arrival uint64
	Place   uint64
}

// Recorder is a source that records a story while it is audited: it passes on all data, and
// processes every entry once, in order. It keeps a bundle in memory only while an earlier one is
// being read.
type Recorder struct {
	verifier.Source

	mu      sync.Mutex
	waiting map[uint64]bundle // bundles by index
	next    uint64            // index of the bundle to take
	stopped bool              // whether recording has stopped at a malformed entry

	parser  fairness.Parser
	state   fairness.State // applies only the policy and amended schedules
	story   Story
	frozen  int // number of frozen story.Windows
	drawn   int
	revoked map[fairness.Ticket]fairness.Reason // revoked tickets that are not restored
	newest  fairness.WindowIndex                // window of the latest arrival
	sample  map[fairness.Ticket]*Point
	highest uint64 // largest sampleKey in the sample
}

type bundle struct {
	content []byte
	width   int
}

// Record returns a source that records what is read from another one.
func Record(src verifier.Source) *Recorder {
	return &Recorder{
		Source: src, waiting: map[uint64]bundle{}, revoked: map[fairness.Ticket]fairness.Reason{},
		sample: map[fairness.Ticket]*Point{}, highest: 1<<48 - 1,
		story: Story{Skips: map[fairness.Reason]uint64{}, Restored: map[fairness.Reason]uint64{},
			Lanes:    map[fairness.Lane]*Lane{},
			Cosigned: map[uint32]uint64{}},
	}
}

// Tile implements [verifier.Source].
func (r *Recorder) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	content, err := r.Source.Tile(ctx, t)
	if err == nil && t.Level < 0 {
		r.record(t, content)
	}
	return content, err
}

// Story returns the recorded story. Call it after the audit.
func (r *Recorder) Story() *Story {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.story.Points = nil
	for _, p := range r.sample {
		if p.Place > 0 {
			r.story.Points = append(r.story.Points, *p)
		}
	}
	slices.SortFunc(r.story.Points, func(a, b Point) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return &r.story
}

// record processes bundles in order, although they are read in parallel.
func (r *Recorder) record(t audit.Tile, content []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || t.Index < r.next {
		return
	}
	r.waiting[t.Index] = bundle{content, t.Width}
	for b, ok := r.waiting[r.next]; ok && !r.stopped; b, ok = r.waiting[r.next] {
		delete(r.waiting, r.next)
		r.next++
		r.stopped = audit.SplitBundle(b.content, b.width, func(text []byte) error {
			e, err := r.parser.Parse(text)
			if err == nil {
				r.entry(e)
			}
			return err
		}) != nil
	}
	if r.stopped {
		clear(r.waiting)
	}
}

func (r *Recorder) entry(e fairness.Entry) {
	s, index := &r.story, r.story.Entries
	s.Entries++
	switch e := e.(type) {
	case *fairness.Room:
		r.room(e, index)
	case *fairness.Arrive:
		r.arrive(e)
	case *fairness.Freeze:
		r.freeze(e, index)
	case *fairness.Draw:
		r.draw(e, index)
	case *fairness.Assign:
		r.assign(e)
	case *fairness.Call:
		s.call(e)
	case *fairness.Admit:
		s.at(e.Time, admitted, 1)
	case *fairness.Skip:
		s.Skips[e.Reason]++
		s.at(e.Time, skipped, 1)
		if e.Reason.IsRevoked() {
			r.revoked[e.Ticket] = e.Reason
		}
	case *fairness.Restore:
		if reason, ok := r.revoked[e.Ticket]; ok {
			delete(r.revoked, e.Ticket)
			s.Skips[reason]--
			s.Restored[reason]++
			s.at(e.Time, skipped, -1)
		}
	case *fairness.Amend:
		r.amend(e)
	case *fairness.End:
		s.Last, s.Ended = e.Time, index
	}
}

func (r *Recorder) assign(e *fairness.Assign) {
	s := &r.story
	lane := s.lane(e.Lane)
	if lane == nil || s.Policy == nil {
		return
	}
	if n := lane.assign(e.Position, s.Policy.HasGaps()); n > 0 {
		s.at(s.Last, called, n)
	}
	if p := r.sample[e.Ticket]; p != nil {
		p.Place = lane.Places
	}
}

func (s *Story) call(e *fairness.Call) {
	if s.Policy == nil {
		return
	}
	for i, upTo := range e.UpTo[:min(len(e.UpTo), len(s.Policy.Lanes))] {
		lane := s.lane(s.Policy.Lanes[i].Name)
		if lane != nil && upTo > lane.upTo {
			s.at(e.Time, called, lane.call(upTo, s.Policy.HasGaps()))
		}
	}
}

// at counts n events of a series at time t.
func (s *Story) at(t fairness.Time, what series, n int64) {
	s.Last = t
	s.Times.add(t, what, n)
}

// lane returns the summary of a lane; nil if there are too many.
func (s *Story) lane(name fairness.Lane) *Lane {
	if s.Lanes[name] == nil && len(s.Lanes) < maxLanes {
		s.Lanes[name] = &Lane{}
	}
	return s.Lanes[name]
}

func (r *Recorder) room(e *fairness.Room, index uint64) {
	if index == 0 && r.state.Apply(e, nil) == nil {
		r.story.Policy = &e.Policy
		r.story.Last = e.Created
		r.story.Times.start = e.Opens
	}
}

func (r *Recorder) arrive(e *fairness.Arrive) {
	s := &r.story
	if s.Policy == nil {
		return
	}
	s.Arrivals++
	s.at(e.Time, arrived, 1)
	if lane := s.lane(e.Lane); lane != nil {
		lane.Arrivals++
	}
	isNew := s.Arrivals == 1 || r.newest != e.Window
	r.newest = e.Window
	switch n := len(s.Windows); {
	case !isNew && s.Untold == 0:
		s.Windows[n-1].Arrivals++
	case !isNew:
	case n == maxWindows:
		s.Untold++
	default:
		w := Window{Window: fairness.Window{Index: e.Window}, Before: s.Arrivals - 1, Arrivals: 1}
		if known, ok := r.state.Schedule().At(e.Time); ok && known.Index == e.Window {
			w.Window = known
		}
		s.Windows = append(s.Windows, w)
	}
	r.addToSample(e.Ticket)
}

// addToSample keeps an arrival for the plot if its ticket is among the lowest. Because tickets are hashes, this is
// a random sample that takes no second reading.
func (r *Recorder) addToSample(t fairness.Ticket) {
	if sampleKey(t) > r.highest {
		return
	}
	r.sample[t] = &Point{Arrival: r.story.Arrivals}
	for len(r.sample) > maxPoints {
		r.highest /= 2
		for t := range r.sample {
			if sampleKey(t) > r.highest {
				delete(r.sample, t)
			}
		}
		if r.highest == 0 { // only forged tickets are that similar
			clear(r.sample)
		}
	}
}

// sampleKey returns the 48 bits of a ticket before its version.
func sampleKey(t fairness.Ticket) uint64 { return binary.BigEndian.Uint64(t[:8]) >> 16 }

func (r *Recorder) freeze(e *fairness.Freeze, index uint64) {
	s := &r.story
	s.Last = e.Time
	if r.frozen < len(s.Windows) && s.Windows[r.frozen].Index == e.Window {
		s.Windows[r.frozen].Freeze, s.Windows[r.frozen].Round = &Milestone{index, e.Time}, e.Round
		r.frozen++
	}
}

func (r *Recorder) draw(e *fairness.Draw, index uint64) {
	s := &r.story
	s.Last = e.Time
	for _, c := range e.Cosignatures[:min(len(e.Cosignatures), fairness.MaxWitnesses)] {
		if id := binary.BigEndian.Uint32(c[:]); len(s.Cosigned) < 4*fairness.MaxWitnesses || s.Cosigned[id] > 0 {
			s.Cosigned[id]++
		}
	}
	if r.drawn < r.frozen && s.Windows[r.drawn].Index == e.Window {
		s.Windows[r.drawn].Draw, s.Windows[r.drawn].Cosignatures = &Milestone{index, e.Time}, len(e.Cosignatures)
		r.drawn++
	}
}

func (r *Recorder) amend(e *fairness.Amend) {
	r.story.Last = e.Time
	r.story.Amends++
	if e.Change == fairness.ChangeWindows {
		_ = r.state.Apply(e, nil) // an invalid amendment fails the audit
	}
}
