package projection

import (
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
)

// Gate is the state of a room's safety net: whether visitors enter the site without waiting.
type Gate string

// The states of a gate.
const (
	GateNone Gate = ""     // the room never opened its gate
	GateOpen Gate = "open" // visitors enter without waiting, within the outflow
	GateShut Gate = "shut" // visitors wait in line
)

// A gate that was open before opens again after calmFor without anyone in line, and with at most calmParts of
// ofParts of the outflow in use.
const (
	calmFor   = fairness.Time(60_000) // milliseconds
	calmParts = 4
	ofParts   = 5
)

// maxCountAge is the maximum age of the counts of unqueued sessions by which a gate may open, in milliseconds.
const maxCountAge = fairness.Time(15_000)

// gateHistory is the part of the gate that the state does not keep: recent switches and fail-open intervals.
type gateHistory struct {
	used     bool          // the gate was switched at least once
	since    fairness.Time // time of the latest switch
	isLined  bool          // visitors who have not been called wait in line
	lined    fairness.Time // when the line last became empty
	switches []GateSwitch  // the latest, oldest first
	failOpen []FailOpen    // the latest fail-open intervals, oldest first
}

// GateSwitch is one opening or shutting of the gate.
type GateSwitch struct {
	At    time.Time
	To    Gate   // open or shut
	Entry uint64 // index in the transcript
}

// maxSwitches is the number of switches that a projection keeps.
const maxSwitches = 100

// FailOpen is a fail-open interval, as the transcript records it.
type FailOpen struct {
	At          time.Time // when it was recorded
	From, Until time.Time
	Requests    uint64 // let in during the interval
}

const (
	// MaxFailOpen is the maximum number of fail-open entries in an hour.
	MaxFailOpen = 60
	// keptFailOpen is the number of fail-open intervals that a projection keeps: more than one hour can have.
	keptFailOpen = MaxFailOpen + 4
)

// note updates the history with an entry that was applied.
func (g *gateHistory) note(e fairness.Entry, s *fairness.State) {
	if _, joins := e.(*fairness.Arrive); joins || s.Counts().InLine > 0 {
		g.isLined = true
	} else if g.isLined {
		g.isLined, g.lined = false, s.Now()
	}
	switch e := e.(type) {
	case *fairness.Amend:
		if e.Change != fairness.ChangeOpen && e.Change != fairness.ChangeShut {
			return
		}
		g.used, g.since = true, e.Time
		to := GateShut
		if e.Change == fairness.ChangeOpen {
			to = GateOpen
		}
		g.switches = keep(g.switches, maxSwitches, GateSwitch{millis.Time(e.Time), to, s.Size() - 1})
	case *fairness.Tell:
		if e.Subject == fairness.TellUnguarded {
			g.failOpen = keep(g.failOpen, keptFailOpen,
				FailOpen{millis.Time(e.Time), millis.Time(e.From), millis.Time(e.Until), e.Count})
		}
	}
}

// keep appends to a list of the latest items. It copies the list, because readers may hold the one before.
func keep[T any](list []T, limit int, latest T) []T {
	kept := list[max(0, len(list)-(limit-1)):]
	return append(kept[:len(kept):len(kept)], latest)
}

// Gate returns the state of the gate.
func (p *Projection) Gate() Gate {
	switch {
	case !p.gate.used:
		return GateNone
	case p.InForce().Open && !p.Ended():
		return GateOpen
	}
	return GateShut
}

// GateHistory returns when the gate was last switched (zero: never), the latest switches and the latest
// fail-open intervals, oldest first. The caller must not change them.
func (p *Projection) GateHistory() (since time.Time, switches []GateSwitch, failOpen []FailOpen) {
	if p.gate.used {
		since = millis.Time(p.gate.since)
	}
	return since, p.gate.switches, p.gate.failOpen
}

// HasFailOpen reports whether a recent entry has the same fail-open interval.
func (p *Projection) HasFailOpen(e fairness.Tell) bool {
	from, until := millis.Time(e.From), millis.Time(e.Until)
	return slices.ContainsFunc(p.gate.failOpen, func(u FailOpen) bool {
		return u.From.Equal(from) && u.Until.Equal(until) && u.Requests == e.Count
	})
}

// FailOpenLeft returns how many more fail-open entries may be recorded this hour.
func (p *Projection) FailOpenLeft(now fairness.Time) int {
	left := MaxFailOpen
	for _, u := range p.gate.failOpen {
		if millis.Of(u.At)+fairness.Time(time.Hour.Milliseconds()) > now {
			left--
		}
	}
	return left
}

// unqueuedLeft returns how many more unqueued sessions may begin, given their counts.
func (p *Projection) unqueuedLeft(c UnqueuedCounts, now fairness.Time) uint64 {
	if c.IsOverfull() {
		return 0
	}
	rate := uint64(p.InForce().Outflow.PerMinute)
	return min(rate-min(rate, c.Started), p.capacity(now))
}

// isBusy reports whether more than calmParts of ofParts of the outflow is in use.
func (p *Projection) isBusy(c UnqueuedCounts, now fairness.Time) bool {
	rate, most := uint64(p.InForce().Outflow.PerMinute), uint64(p.InForce().Outflow.MaxActive)
	return c.Started*ofParts > rate*calmParts || most > 0 && p.Active(now)*ofParts > most*calmParts
}

// Count is the result of counting a room's unqueued sessions.
type Count struct {
	UnqueuedCounts
	At           fairness.Time
	IsTurnedAway bool // a connector sent visitors to the line because its share was used up
	Reads        int  // [Unqueued.Reads] before the count, which is outdated if others were stored since; or [AnyReads]
}

// TakeUnqueued stores counts of the unqueued sessions. It returns how many more sessions may begin, and whether
// a gate switch is due.
func (p *Projection) TakeUnqueued(c Count) (left uint64, isDue bool) {
	now, u := max(c.At, p.Now()), &p.controls.Unqueued
	u.take(c.UnqueuedCounts, now, c.Reads)
	left = p.unqueuedLeft(c.UnqueuedCounts, now)
	u.note(now, p.isBusy(c.UnqueuedCounts, now), c.IsTurnedAway && left < c.Nodes)
	_, isDue = p.NextSwitch(now)
	return left, isDue
}

// NextSwitch returns the switch of the gate that is due, if one is.
func (p *Projection) NextSwitch(now fairness.Time) (fairness.Change, bool) {
	if p.Ended() {
		return "", false
	}
	counts, at, busy, isTurnedAway := p.controls.Unqueued.look()
	if at == 0 {
		return "", false
	}
	left := p.unqueuedLeft(counts, now)
	still := p.InForce().Paused || p.IsPull() // the clock calls no visitors, so none may enter without a call either
	if p.InForce().Open {
		return fairness.ChangeShut, left == 0 || isTurnedAway || still
	}
	if still || now < p.Policy().Starts || left == 0 || counts.Nodes == 0 || now > at+maxCountAge ||
		p.Counts().InLine > 0 {
		return "", false
	}
	if !p.gate.used {
		return fairness.ChangeOpen, true
	}
	return fairness.ChangeOpen, now >= max(p.gate.lined, p.gate.since, busy)+calmFor
}

// Switched notes that the gate was switched by the entry that NextSwitch asked for.
func (p *Projection) Switched() { p.controls.Unqueued.Switched() }
