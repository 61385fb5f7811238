package room

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/projection"
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
	Extend       time.Duration // how much more a called visitor gets on request, once; 0: none
	Pull         bool          // visitors are called only when a backend asks for them
	Counts       fairness.Counts
	Passed       uint64               // tickets whose places were passed; without slots and lots all places passed
	Slots        time.Duration        // length of the slots of the first window; 0: it has none
	Lanes        []Lane               // in the order of the policy
	Seats        uint32               // seats in force; 0: any number
	Party        uint32               // seats that a visitor may join for; 0: one
	Door         *Door                // what visitors can show; nil: the room has no methods
	Windows      []fairness.WindowSum // latest windows with arrivals, oldest first
	Uncalled     []uint32             // of each of them, visitors not called yet; with slots or lots about
	Limit        *projection.Limit    // what max_active means for the line; nil: max_active is not set
	Gate         projection.Gate      // whether visitors enter the site without waiting
	// Withdrawn are the latest tickets that the organizer withdrew, oldest first. Each is given by its first eight
	// digits: enough for a page to notice that its own may be among them.
	Withdrawn []string

	message    *Message  // latest message to visitors; nil: none
	latest     time.Time // time of the latest entry
	policy     *fairness.Policy
	schedule   *fairness.Schedule
	incomplete bool // the message could not be read yet
}

// Lane is a lane with its totals.
type Lane struct {
	fairness.LaneRule
	Counts fairness.Counts
	Passed uint64 // as in [Snapshot]
}

// Door is what a device needs to know to make credentials.
type Door struct {
	Entry   [sha256.Size]byte // SHA-256 of the room entry
	Methods []Method          // in the order of the policy
	Work    *Work             // nil: no method is work
}

// Method is a method with the number of credentials that the room has taken.
type Method struct {
	credential.Method
	Taken uint32
}

// Work is the beacon round that work is done for.
type Work struct {
	Round     uint64
	Due       time.Time // when the round appears
	Signature []byte    // nil: not in the transcript yet
}

// newDoor returns what devices need to know; nil in a room without methods.
func newDoor(p *projection.Projection) *Door {
	policy := p.Policy()
	if len(policy.Methods) == 0 {
		return nil
	}
	subject := p.Subject("", fairness.Ticket{})
	d := &Door{Entry: subject.Room}
	for i, taken := range p.Shown() {
		d.Methods = append(d.Methods, Method{policy.Methods[i], taken})
	}
	if round, ok := policy.WorkRound(); ok {
		d.Work = &Work{round, time.UnixMilli(policy.Beacon.Emitted(round)).UTC(), subject.Round}
	}
	return d
}

// Lane returns a lane by its name; without that, the first.
func (s *Snapshot) Lane(name fairness.Lane) Lane {
	for _, l := range s.Lanes {
		if l.Name == name {
			return l
		}
	}
	return s.Lanes[0]
}

// OpenLane returns the first lane that needs no credentials; empty: all of them do.
func (s *Snapshot) OpenLane() fairness.Lane {
	for _, l := range s.Lanes {
		if len(l.Needs) == 0 {
			return l.Name
		}
	}
	return ""
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

// Fixed returns the last moment at which a window may begin that an amendment now leaves as it is.
func (s *Snapshot) Fixed(now time.Time) time.Time { return millis.Time(s.policy.Fixed(millis.Of(now))) }

// HasGaps reports whether places may be nobody's: those of empty lots, and of further lots of a ticket.
func (s *Snapshot) HasGaps() bool { return s.policy.HasGaps() }

// SlotLots returns for each lane the lots in each slot of the first window; nil in a room without slots, once that
// window is drawn, and after the end.
func (s *Snapshot) SlotLots() map[fairness.Lane][]uint32 {
	if s.Slots == 0 || s.Ended {
		return nil
	}
	drums := make([]uint32, s.policy.SlotsIn(0)*len(s.Lanes))
	if len(s.Windows) > 0 {
		first := &s.Windows[0]
		if first.Index != 0 || first.Drawn {
			return nil
		}
		drums = first.Lots
	}
	lots := map[fairness.Lane][]uint32{}
	for i, n := range drums {
		lane := s.Lanes[i%len(s.Lanes)].Name
		lots[lane] = append(lots[lane], n)
	}
	return lots
}

// First returns the first window.
func (s *Snapshot) First() (from, to time.Time) {
	w, _ := s.schedule.At(s.schedule.Opens())
	return millis.Time(w.From), millis.Time(w.To)
}

// Window returns the window that is open at now, and its arrivals so far.
func (s *Snapshot) Window(now time.Time) (fairness.WindowSum, bool) {
	w, ok := s.schedule.At(millis.Of(now))
	if !ok || s.Ended {
		return fairness.WindowSum{}, false
	}
	if n := len(s.Windows); n > 0 && s.Windows[n-1].Index == w.Index {
		return s.Windows[n-1], true
	}
	return fairness.WindowSum{Window: w}, true
}

// Draws returns when the positions of a window are expected to be drawn: at its end, or with the beacon's round. A
// It does not account for a late beacon.
func (s *Snapshot) Draws(w fairness.Window) time.Time {
	for _, sum := range s.Windows {
		if sum.Index == w.Index {
			return millis.Time(sum.Draws)
		}
	}
	return millis.Time(w.To)
}

// Span is a time range.
type Span struct{ Earliest, Latest time.Time }

// Expected returns when a waiting ticket will be called if the outflow stays as it is. The earliest time assumes
// the full rate; the latest assumes that a fifth of the rate is lost, and that places at the site become free no
// faster than in [Limit]. It returns false during a pause, after the end, for a called ticket, and when a backend
// makes the calls.
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
	earliest := from.Add(s.calls(st.BeforeMin))
	return Span{earliest, s.lastCall(from, st.BeforeMax+1)}, true
}

// Grows reports whether visitors can still join the window of a waiting ticket: then the latest time of an
// expectation is not a bound.
func (s *Snapshot) Grows(st fairness.Standing, now time.Time) bool {
	return st.Status == fairness.StatusWaiting && !s.Ended && now.Before(millis.Time(st.Window.To))
}

// calls returns the time it takes to call a number of visitors.
func (s *Snapshot) calls(people uint64) time.Duration {
	party := 1.0 // mean number of seats
	if s.Counts.Seats > 0 {
		party = float64(s.Counts.Seats) / float64(s.Counts.Arrivals)
	}
	return lasts(people, float64(max(s.Outflow.PerMinute, 1))/party)
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

// refresh takes a new snapshot.
func (r *Room) refresh(ctx context.Context) {
	var s *Snapshot
	var hash [fairness.HashSize]byte
	perMinute := r.freed.PerMinute()
	r.view.Read(func(p *projection.Projection, durable uint64) {
		s, hash = newSnapshot(p, durable, perMinute), p.InForce().Message
	})
	s.Title = r.details.Title()
	var err error
	if s.message, err = r.details.Message(ctx, hash); err != nil {
		r.log.Warn("cannot read the room's message", "room", r.Slug, "err", err)
		s.incomplete = true
	}
	r.snapshot.Store(s)
}

// newSnapshot returns the snapshot of a projection, without title and message. perMinute is the rate at which
// places at the site become free.
func newSnapshot(p *projection.Projection, size uint64, perMinute float64) *Snapshot {
	policy := p.Policy()
	s := &Snapshot{
		Size:  size,
		Opens: millis.Time(p.Schedule().Opens()), Starts: millis.Time(policy.Starts),
		Paused: p.InForce().Paused, ClaimsFrozen: p.InForce().ClaimsPaused, Ended: p.Ended(),
		Outflow: p.InForce().Outflow, Claim: time.Duration(policy.Claim) * time.Millisecond, Pull: p.IsPull(),
		Extend: time.Duration(policy.Extend) * time.Millisecond, Slots: time.Duration(policy.Slots) * time.Millisecond,
		Counts: p.Counts(), Gate: p.Gate(), Seats: p.InForce().Seats, Party: policy.Party,
		Door: newDoor(p), Windows: p.Windows(shownWindows), Uncalled: fairness.Uncalled(p.State, shownWindows),
		Limit:     p.Limit(perMinute),
		Withdrawn: p.Withdrawn(), latest: millis.Time(p.Now()), policy: policy, schedule: p.Schedule(),
	}
	passed := fairness.Passed(p.State)
	for i, n := range p.LaneCounts() {
		s.Lanes = append(s.Lanes, Lane{policy.Lanes[i], n, passed[i]})
		s.Passed += passed[i]
	}
	if closes := s.schedule.Closes(); closes != fairness.Never {
		t := millis.Time(closes)
		s.Closes = &t
	}
	return s
}

// Gate is the state of a room's safety net: whether visitors enter the site without waiting.
type Gate = projection.Gate

// The states of a gate; see [projection.Gate].
const (
	GateNone = projection.GateNone
	GateOpen = projection.GateOpen
	GateShut = projection.GateShut
)
