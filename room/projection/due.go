package projection

import "github.com/proofline/proofline/fairness"

// CallInterval is the minimum time between calls, in milliseconds, so that each is worth an entry.
const CallInterval = fairness.Time(250)

// Active returns the number of visitors who count against max_active: called visitors whose claim is still
// open, admitted visitors with a live session, and unqueued sessions.
func (p *Projection) Active(now fairness.Time) uint64 {
	return p.queuedActive(now) + p.controls.Unqueued.Counts().Active
}

// queuedActive is Active without the unqueued sessions.
func (p *Projection) queuedActive(now fairness.Time) uint64 {
	valid := p.within(p.controls.Sessions.knownUntil(now), PassLife(p.Policy()))
	return p.controls.Sessions.live(uint64(len(valid))) + p.Counts().Waiting
}

// IsPull reports whether visitors are called only when a backend asks for them.
func (p *Projection) IsPull() bool { return p.controls.Pull.IsOn() }

// IsDue reports whether an entry is due.
func (p *Projection) IsDue(now fairness.Time) bool {
	if p.Ended() {
		return false
	}
	if due, ok := p.FreezeDue(); ok && now >= due {
		return true
	}
	if _, ok := p.NextDraw(now); ok {
		return true
	}
	if _, ok := p.NextAssign(); ok {
		return true
	}
	if p.NextWork(now) != nil {
		return true
	}
	if p.Counts().Waiting > 0 {
		if late, _ := p.State.NoShows(p.noShows, now, 1); len(late) > 0 {
			return true
		}
	}
	if _, ok := p.TooLarge(); ok {
		return true
	}
	call, _ := p.NextCall(now)
	_, isSwitched := p.NextSwitch(now)
	return call != nil || isSwitched || p.IsBeatDue(now) || p.IsFinished(now) || p.controls.Refusals.isDue(now)
}

// NoShows returns at most limit called tickets that were not claimed in time. The next call continues after them.
func (p *Projection) NoShows(now fairness.Time, limit int) (late []fairness.Ticket) {
	late, p.noShows = p.State.NoShows(p.noShows, now, limit)
	return late
}

// NextDraw returns the draw that is due, with its evidence.
func (p *Projection) NextDraw(now fairness.Time) (*fairness.Draw, bool) {
	if p.Policy().Beacon == nil {
		return p.State.NextDraw(now, nil)
	}
	pending := p.Pending()
	if len(pending) == 0 || now < pending[0].Due || p.evidence == nil {
		return nil, false
	}
	signature, cosignatures, ok := p.evidence.Of(pending[0], p.Policy(), now)
	if !ok {
		return nil, false
	}
	return p.State.NextDraw(now, signature, cosignatures...)
}

// NextWork returns the beat with the beacon round that work is done for, once that is known; nil: none is due.
func (p *Projection) NextWork(now fairness.Time) *fairness.Beat {
	round, due, ok := fairness.DoorOf(p.State).AwaitsWorkRound()
	if !ok || now < due || p.evidence == nil {
		return nil
	}
	signature := p.evidence.Round(round)
	if signature == nil {
		return nil
	}
	return &fairness.Beat{Time: now, Signature: signature}
}

// NextCall returns the call that is due by the clock, and the number of people it calls; nil if none is.
func (p *Projection) NextCall(now fairness.Time) (*fairness.Call, uint64) {
	if p.IsPull() || now < p.lastCall+CallInterval || p.Counts().Ready == 0 {
		return nil, 0
	}
	return p.State.NextCall(now, p.capacity(now))
}

// capacity returns how many more visitors may enter before max_active is reached.
func (p *Projection) capacity(now fairness.Time) uint64 {
	limit := uint64(p.InForce().Outflow.MaxActive)
	if limit == 0 {
		return fairness.MaxArrivals
	}
	if !p.controls.Unqueued.areCounted() {
		return 0 // until they have been counted, a room with max_active calls no visitors
	}
	return limit - min(limit, p.Active(now))
}

// NextPull returns the call of at most n visitors for a backend, and their number; nil if none may be called.
func (p *Projection) NextPull(now fairness.Time, n uint64) (*fairness.Call, uint64) {
	return p.State.NextCall(now, min(n, p.capacity(now)))
}

// IsBeatDue reports whether nothing was written for half the grace while the claim time of a called visitor runs.
func (p *Projection) IsBeatDue(now fairness.Time) bool {
	return p.Waiting() > 0 && !p.InForce().Paused && now-p.Now() >= fairness.Time(p.Policy().Grace)/2
}

// IsFinished reports whether the last window is over and all visitors have been admitted or skipped.
func (p *Projection) IsFinished(now fairness.Time) bool {
	return now >= p.Schedule().Closes() && p.isSettled()
}

// IsQuiet reports whether nothing can become due before a visitor joins.
func (p *Projection) IsQuiet() bool {
	_, _, awaits := fairness.DoorOf(p.State).AwaitsWorkRound()
	return p.Ended() || p.isSettled() && p.Schedule().Closes() == fairness.Never && !awaits
}

// isSettled reports whether all visitors who joined have been admitted or skipped, and all positions recorded.
func (p *Projection) isSettled() bool {
	c := p.Counts()
	return c.Assigned == c.Arrivals && c.Admitted+c.NoShows+c.Left+c.TooLarge+c.Revoked == c.Arrivals
}
