package room

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Phase is what a room is doing, in one word.
type Phase string

// The phases of a room.
const (
	PhaseUpcoming Phase = "upcoming" // not open yet
	PhaseOpen     Phase = "open"     // people join, nobody is called yet
	PhaseServing  Phase = "serving"  // people are called, and may join
	PhasePaused   Phase = "paused"   // nobody is called
	PhaseHeld     Phase = "held"     // nobody is called, and called visitors cannot go in
	PhaseClosed   Phase = "closed"   // nobody can join any more, people are called
	PhaseEnded    Phase = "ended"    // over
	PhaseStopped  Phase = "stopped"  // records are missing: nothing happens before they are back; never of a snapshot
)

// shownWindows is how many of the latest windows a snapshot lists.
const shownWindows = 12

// Snapshot is what everybody may know about a room, as of the durable
// transcript. It never changes.
type Snapshot struct {
	Size    uint64 // entries of the transcript
	Title   string
	Opens   time.Time
	Starts  time.Time
	Closes  *time.Time // nil: never
	Paused  bool       // calls stop
	Held    bool       // and so do claims; only in a pause
	Ended   bool
	Outflow fairness.Outflow
	Claim   time.Duration // that a called visitor has to go in
	Pull    bool          // people are called only when a backend asks for them
	Counts  fairness.Counts
	Windows []fairness.WindowSum // the latest with arrivals, oldest first
	Limit   *Limit               // what max_active means for the line; nil without one
	Gate    Gate                 // whether the site lets people in who are not in line
	// Withdrawn are the latest tickets that the organizer took away, oldest first:
	// each by its first [withdrawnDigits] digits, so that pages notice.
	Withdrawn []string

	message    *Message  // the latest to visitors, nil for none
	latest     time.Time // of the entries
	schedule   *fairness.Schedule
	incomplete bool // the message could not be read yet
}

// Message returns what visitors are told at a moment, nil for nothing.
func (s *Snapshot) Message(now time.Time) *Message {
	if !s.message.isLive(now) {
		return nil
	}
	return s.message
}

// Phase returns the phase at a moment.
func (s *Snapshot) Phase(now time.Time) Phase {
	switch {
	case s.Ended:
		return PhaseEnded
	case now.Before(s.Opens):
		return PhaseUpcoming
	case s.Held:
		return PhaseHeld
	case s.Paused:
		return PhasePaused
	case s.Closes != nil && !now.Before(*s.Closes):
		return PhaseClosed
	case now.Before(s.Starts):
		return PhaseOpen
	}
	return PhaseServing
}

// Window returns the window that is open at a moment and its arrivals so far.
func (s *Snapshot) Window(now time.Time) (fairness.WindowSum, bool) {
	w, ok := s.schedule.At(fromTime(now))
	if !ok || s.Ended {
		return fairness.WindowSum{}, false
	}
	if n := len(s.Windows); n > 0 && s.Windows[n-1].Index == w.Index {
		return s.Windows[n-1], true
	}
	return fairness.WindowSum{Window: w}, true
}

// Draws returns when the places of a window are drawn, if all goes well: when it
// is over, or with the beacon's round. A beacon that is late is not foreseen.
func (s *Snapshot) Draws(w fairness.Window) time.Time {
	for _, sum := range s.Windows {
		if sum.Index == w.Index {
			return timeOf(sum.Draws)
		}
	}
	return timeOf(w.To)
}

// Span is a range of moments.
type Span struct{ Earliest, Latest time.Time }

// Expected returns when a waiting ticket will be called if the outflow stays
// as it is: not before everybody ahead, and at the latest when a fifth of the
// rate is lost, and when places at the site become free no faster than in
// [Limit]. False in a pause, after the end, once called, and when a backend
// says when.
func (s *Snapshot) Expected(st fairness.Standing, now time.Time) (Span, bool) {
	if s.Paused || s.Ended || s.Pull || st.Status != fairness.StatusWaiting && st.Status != fairness.StatusDrawn {
		return Span{}, false
	}
	from := now
	if from.Before(s.Starts) {
		from = s.Starts
	}
	if drawn := s.Draws(st.Window); st.Status == fairness.StatusWaiting && from.Before(drawn) {
		from = drawn
	}
	earliest := from.Add(s.calls(st.AheadMin))
	return Span{earliest, s.lastCall(from, st.AheadMax+1)}, true
}

// Grows reports whether people can still join the group of a waiting ticket:
// then an expectation has no upper bound, because the group has none.
func (s *Snapshot) Grows(st fairness.Standing, now time.Time) bool {
	return st.Status == fairness.StatusWaiting && !s.Ended && now.Before(timeOf(st.Window.To))
}

// calls returns how long it takes to call so many people.
func (s *Snapshot) calls(people uint64) time.Duration {
	return lasts(people, float64(max(s.Outflow.PerMinute, 1)))
}

// lastCall returns when so many people are called at the latest, from a moment on.
func (s *Snapshot) lastCall(from time.Time, people uint64) time.Time {
	at := from.Add(s.calls(people) * 5 / 4)
	l := s.Limit
	if l == nil || people <= l.Free {
		return at
	}
	full := from.Add(s.calls(l.Free))
	if full.Before(l.First) {
		full = l.First
	}
	if slow := full.Add(lasts(people-l.Free-1, l.PerMinute) * 5 / 4); at.Before(slow) {
		return slow
	}
	return at
}

// lasts returns how long so many people take at a rate a minute, at most a
// decade.
func lasts(people uint64, perMinute float64) time.Duration {
	const decade = 10 * 365 * 24 * time.Hour
	return time.Duration(min(float64(people)/perMinute*float64(time.Minute), float64(decade)))
}

// Snapshot returns the room as of the durable transcript.
func (r *Room) Snapshot() *Snapshot { return r.snapshot.Load() }

// Now returns the time by the database's clock, as well as this node knows it:
// not before the latest entry, however far behind the node's clock is.
func (r *Room) Now() time.Time {
	now := r.clock.Now()
	if latest := r.snapshot.Load().latest; now.Before(latest) {
		return latest
	}
	return now
}

// refresh takes a new snapshot.
func (r *Room) refresh(ctx context.Context) {
	r.mu.RLock()
	l := r.live
	s := &Snapshot{
		Size: r.stored, Title: *r.title.Load(),
		Opens: timeOf(l.Schedule().Opens()), Starts: timeOf(r.policy.Starts),
		Paused: l.Paused(), Held: l.ClaimsPaused(), Ended: l.Ended(), Outflow: l.Outflow(), Claim: time.Duration(r.policy.Claim) * time.Millisecond, Pull: l.flow.isPull(), Counts: l.Counts(), Gate: l.gateOf(),
		Windows: l.Windows(shownWindows), Limit: l.limit(r.pulse.freed.perMinute()), Withdrawn: slices.Clone(l.withdrawn), latest: timeOf(l.Now()), schedule: l.Schedule(),
	}
	hash := l.Message()
	r.mu.RUnlock()
	if closes := s.schedule.Closes(); closes != fairness.Never {
		t := timeOf(closes)
		s.Closes = &t
	}
	var err error
	if s.message, err = r.readMessage(ctx, hash); err != nil {
		r.log.Warn("message of the room cannot be read", "room", r.Slug, "err", err)
		s.incomplete = true
	}
	r.snapshot.Store(s)
}

// storedMessage is a message with its hash.
type storedMessage struct {
	hash [fairness.HashSize]byte
	Message
}

// messageTimeout bounds how long a message may hold up the room.
const messageTimeout = 2 * time.Second

// readMessage returns the message whose hash is in the transcript, nil for
// none. It is read once.
func (r *Room) readMessage(ctx context.Context, hash [fairness.HashSize]byte) (*Message, error) {
	if hash == [fairness.HashSize]byte{} {
		return nil, nil //nolint:nilnil // no message
	}
	if m := r.message.Load(); m != nil && m.hash == hash {
		return &m.Message, nil
	}
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	text, err := r.texts.Message(ctx, r.ID, hash)
	if err != nil {
		return nil, err
	}
	m := &storedMessage{hash: hash}
	if err := json.Unmarshal([]byte(text), &m.Message); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	r.message.Store(m)
	return &m.Message, nil
}
