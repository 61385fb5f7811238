package room

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Phase is the state of a room in one word.
type Phase string

// The phases of a room.
const (
	PhaseUpcoming     Phase = "upcoming"      // not open yet
	PhaseOpen         Phase = "open"          // visitors join; calls have not started
	PhaseServing      Phase = "serving"       // visitors are called, and may join
	PhasePaused       Phase = "paused"        // calls are paused
	PhaseClaimsFrozen Phase = "claims-frozen" // calls are paused, and claims are frozen
	PhaseClosed       Phase = "closed"        // no more joins; visitors are called
	PhaseEnded        Phase = "ended"
	PhaseStopped      Phase = "stopped" // held because entries are missing; never the phase of a snapshot
)

// shownWindows is the number of latest windows in a snapshot.
const shownWindows = 12

// Snapshot is the public state of a room as of the durable transcript. It is immutable.
type Snapshot struct {
	Size         uint64 // entries of the transcript
	Title        string
	Opens        time.Time
	Starts       time.Time
	Closes       *time.Time // nil: never
	Paused       bool       // calls are paused
	ClaimsFrozen bool       // claims are frozen, too; only in a pause
	Ended        bool
	Outflow      fairness.Outflow
	Claim        time.Duration // time that a called visitor has to claim
	Pull         bool          // visitors are called only when a backend asks for them
	Counts       fairness.Counts
	Windows      []fairness.WindowSum // latest windows with arrivals, oldest first
	Limit        *Limit               // what max_active means for the line; nil: max_active is not set
	Gate         Gate                 // whether visitors enter the site without waiting
	// Withdrawn are the latest tickets that the organizer withdrew, oldest first. Each is given by its first
	// [withdrawnDigits] digits, by which pages notice.
	Withdrawn []string

	message    *Message  // latest message to visitors; nil: none
	latest     time.Time // time of the latest entry
	schedule   *fairness.Schedule
	incomplete bool // the message could not be read yet
}

// Message returns the message that visitors see at now; nil: none.
func (s *Snapshot) Message(now time.Time) *Message {
	if !s.message.isLive(now) {
		return nil
	}
	return s.message
}

// Phase returns the phase at now.
func (s *Snapshot) Phase(now time.Time) Phase {
	switch {
	case s.Ended:
		return PhaseEnded
	case now.Before(s.Opens):
		return PhaseUpcoming
	case s.ClaimsFrozen:
		return PhaseClaimsFrozen
	case s.Paused:
		return PhasePaused
	case s.Closes != nil && !now.Before(*s.Closes):
		return PhaseClosed
	case now.Before(s.Starts):
		return PhaseOpen
	}
	return PhaseServing
}

// Window returns the window that is open at now, and its arrivals so far.
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

// Draws returns when the positions of a window are expected to be drawn: at its end, or with the beacon's
// round. A late beacon is not foreseen.
func (s *Snapshot) Draws(w fairness.Window) time.Time {
	for _, sum := range s.Windows {
		if sum.Index == w.Index {
			return timeOf(sum.Draws)
		}
	}
	return timeOf(w.To)
}

// Span is a time range.
type Span struct{ Earliest, Latest time.Time }

// Expected returns when a waiting ticket will be called if the outflow stays as it is. The earliest time
// assumes the full rate; the latest assumes that a fifth of the rate is lost, and that places at the site
// become free no faster than in [Limit]. It returns false in a pause, after the end, for a called ticket, and
// when a backend makes the calls.
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

// Grows reports whether visitors can still join the window of a waiting ticket: then the latest time of an
// expectation is not a bound.
func (s *Snapshot) Grows(st fairness.Standing, now time.Time) bool {
	return st.Status == fairness.StatusWaiting && !s.Ended && now.Before(timeOf(st.Window.To))
}

// calls returns the time it takes to call a number of visitors.
func (s *Snapshot) calls(people uint64) time.Duration {
	return lasts(people, float64(max(s.Outflow.PerMinute, 1)))
}

// lastCall returns the latest time by which a number of visitors are called, starting at from.
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

// lasts returns how long a number of visitors take at a rate per minute, at most a decade.
func lasts(people uint64, perMinute float64) time.Duration {
	const decade = 10 * 365 * 24 * time.Hour
	return time.Duration(min(float64(people)/perMinute*float64(time.Minute), float64(decade)))
}

// Snapshot returns the room as of the durable transcript.
func (r *Room) Snapshot() *Snapshot { return r.snapshot.Load() }

// Now returns the time of the database's clock as far as this node knows it, but never before the latest
// entry.
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
		Paused: l.Paused(), ClaimsFrozen: l.ClaimsPaused(), Ended: l.Ended(),
		Outflow: l.Outflow(), Claim: time.Duration(r.policy.Claim) * time.Millisecond, Pull: l.flow.isPull(),
		Counts: l.Counts(), Gate: l.gateOf(),
		Windows: l.Windows(shownWindows), Limit: l.limit(r.pulse.freed.perMinute()),
		Withdrawn: slices.Clone(l.withdrawn), latest: timeOf(l.Now()), schedule: l.Schedule(),
	}
	hash := l.Message()
	r.mu.RUnlock()
	if closes := s.schedule.Closes(); closes != fairness.Never {
		t := timeOf(closes)
		s.Closes = &t
	}
	var err error
	if s.message, err = r.readMessage(ctx, hash); err != nil {
		r.log.Warn("cannot read the room's message", "room", r.Slug, "err", err)
		s.incomplete = true
	}
	r.snapshot.Store(s)
}

// storedMessage is a message with its hash.
type storedMessage struct {
	hash [fairness.HashSize]byte
	Message
}

// messageTimeout limits how long reading a message may delay the room.
const messageTimeout = 2 * time.Second

// readMessage returns the message whose hash is in the transcript; nil: none. It reads each message only
// once.
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
