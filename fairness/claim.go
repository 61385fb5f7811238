package fairness

// This file holds the time that called tickets have to be claimed, and what gives them more of it.

// claim is when a ticket was called, and until when it may be claimed.
type claim struct {
	arrival  uint32
	before   uint32     // number in arrivals.claims of the one that it replaces, from 1; 0: none
	index    EntryIndex // entry that made it so
	ends     Time       // claim clock; 0: not called
	extended bool
}

// left returns how much of the claim is left at a time of the claim clock.
func (c *claim) left(clock Time) Millis { return Millis(c.ends - clock) }

// claimOf returns the claim of an arrival that has the one with a number in arrivals.claims, from 1; 0: it has that of
// the call that reached its place, like most.
func (s *State) claimOf(number, own uint32) claim {
	c := claim{arrival: number}
	if own > 0 {
		c = *s.arrivals.claims.at(own - 1)
	}
	c.before = own
	if call, called := s.laneOf(number).callOf(Position(s.arrivals.at(number).position)); called && c.ends == 0 {
		c.index, c.ends = call.index, call.clock+Time(s.policy.Claim)
	}
	return c
}

// claim replaces the claim of an arrival.
func (l *arrivals) claim(c claim) {
	if l.claimed == nil {
		l.claimed = map[uint32]uint32{}
	}
	l.claims.add(c)
	l.claimed[c.arrival] = l.claims.count
}

// claimable returns the number and the claim of a ticket that may be admitted now.
func (s *State) claimable(rule Rule, t Ticket, now Time) (number uint32, c claim, err error) {
	number, ok := s.arrivals.find(t)
	if !ok {
		return 0, claim{}, violation(rule, "ticket %v never joined", t)
	}
	a, c := s.arrivals.at(number), s.claimOf(number, s.arrivals.claimed[number])
	switch {
	case a.settled != 0:
		err = violation(rule, "ticket %v was %s before", t, s.arrivals.outcome(a).status())
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
