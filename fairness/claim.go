package fairness

// This file holds the time in which called tickets may be claimed, and the entries other than calls that give it.

// claim is when a ticket was called, and until when it may be claimed.
type claim struct {
	arrival  uint32
	before   uint32     // number in arrivals.claims of the one that it replaces, from 1; 0: none
	index    EntryIndex // entry that made this claim
	ends     Time       // claim clock; 0: not called
	stopped  Time       // claim clock when the called ticket was revoked; its time has stood still since
	extended bool
	restored uint32 // settlement that was taken back, its number in arrivals.settlements, from 1; 0: none
}

// left returns how much of the claim is left at a time of the claim clock.
func (c *claim) left(clock Time) Millis { return Millis(c.ends - clock) }

// claimOf returns the claim of an arrival. own is its number in arrivals.claims, from 1; 0: like most, the arrival has
// the claim that the call of its place gives.
func (s *State) claimOf(number, own uint32) claim {
	c := claim{arrival: number}
	if own > 0 {
		c = *s.arrivals.claims.At(own - 1)
	}
	c.before = own
	if call, called := s.laneOf(number).callOf(Position(s.arrivals.At(number).position)); called && c.ends == 0 {
		c.index, c.ends = call.index, call.clock+Time(s.policy.Claim)
	}
	return c
}

// claim replaces the claim of an arrival.
func (l *arrivals) claim(c claim) {
	if l.claimed == nil {
		l.claimed = map[uint32]uint32{}
	}
	l.claims.Add(c)
	l.claimed[c.arrival] = l.claims.Len()
}

// claimable returns the number and the claim of a ticket that may be admitted now.
func (s *State) claimable(rule Rule, t Ticket, now Time) (number uint32, c claim, err error) {
	number, ok := s.arrivals.find(t)
	if !ok {
		return 0, claim{}, violation(rule, "ticket %v never joined", t)
	}
	a, c := s.arrivals.At(number), s.claimOf(number, s.arrivals.claimed[number])
	switch {
	case a.settled != 0:
		err = violation(rule, "ticket %v is settled", t)
	case c.ends == 0:
		err = violation(rule, "ticket %v is not called", t)
	case s.claimsPaused:
		err = violation(rule, "claims are paused")
	case c.left(s.clockAt(now)) <= 0:
		err = violation(rule, "ticket %v was not claimed in time", t)
	}
	return number, c, err
}

func (e *Extend) apply(s *State, _ Oracle) error {
	_, c, err := s.claimable(RuleExtend, e.Ticket, e.Time)
	switch {
	case err != nil:
		return err
	case s.policy.Extend == 0:
		return violation(RuleExtend, "the policy has no extensions")
	case c.extended:
		return violation(RuleExtend, "ticket %v was extended before", e.Ticket)
	}
	c.index, c.ends, c.extended = EntryIndex(s.size), c.ends+Time(s.policy.Extend), true
	s.arrivals.claim(c)
	return nil
}

// apply gives the ticket its place. A passed one is called; its lane pays for that, unless it did when the ticket was
// called before.
func (e *Restore) apply(s *State, _ Oracle) error {
	number, ok := s.arrivals.find(e.Ticket)
	if !ok {
		return violation(RuleRestore, "ticket %v never joined", e.Ticket)
	}
	a, l, c := s.arrivals.At(number), s.laneOf(number), s.claimOf(number, s.arrivals.claimed[number])
	was, seats, now := s.arrivals.outcome(a), s.arrivals.seatsOf(number), s.clockAt(e.Time)
	switch {
	case was < revoked:
		return violation(RuleRestore, "ticket %v is not revoked", e.Ticket)
	case c.restored > 0:
		return violation(RuleRestore, "ticket %v was restored before", e.Ticket)
	case s.windows.awaitsDraw(number):
		return violation(RuleRestore, "ticket %v cannot be restored before its window, which is frozen, is drawn", e.Ticket)
	}
	switch position := Position(a.position); {
	case position == 0: // waits for its draw
	case position > l.called():
		l.wake(s.lanes.virtual)
		l.ready++
		l.clear = min(l.clear, position-1)
	default:
		if err := s.pay(RuleRestore, e.Time, seats); err != nil {
			return err
		}
		if c.before > 0 { // it was called before it was revoked
			c.ends += now - c.stopped
		} else {
			c.ends = now + Time(s.policy.Claim)
			l.wake(s.lanes.virtual)
			l.served += seats * l.step
		}
		l.waiting++
		l.held += seats
	}
	c.index, c.restored = EntryIndex(s.size), a.settled
	s.arrivals.claim(c)
	a.settled = 0
	l.settled[was]--
	return nil
}
