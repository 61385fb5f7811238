package fairness

import "slices"

// This file holds the rules for admitting visitors: call, admit, skip, amend.

// creditPerCall is the cost of calling one seat. Outflow is per minute and time in milliseconds, so credit
// is counted in 60,000ths of a call.
const creditPerCall = 60_000

// pace limits calls to the published outflow. From the start on, credit grows by PerMinute every
// unpaused millisecond, up to ten seconds' worth (or one call). A call costs [creditPerCall] for
// every place not yet skipped. When a called ticket is skipped its credit is refunded, so that
// admissions, not calls, follow the outflow. Refunds are capped too: no-shows of a quiet hour must
// not turn into a burst of calls.
type pace struct {
	outflow Outflow
	party   int64 // seats of the largest party
	starts  Time
	credit  int64
	since   Time // time up to which credit is counted
	paused  bool
}

func newPace(p *Policy) pace {
	party := max(int64(p.Party), 1)
	return pace{outflow: p.Outflow, party: party, starts: p.Starts, credit: creditPerCall, since: p.Starts}
}

// at returns the pace with the credit counted up to now.
func (p pace) at(now Time) pace {
	if p.paused || now <= p.since {
		return p
	}
	if limit := p.maxCredit(); p.credit < limit {
		gain := min(int64(now-p.since), 60_000) * int64(p.outflow.PerMinute)
		p.credit = min(p.credit+gain, limit)
	}
	p.since = now
	return p
}

// maxCredit returns the maximum credit that can accumulate over time alone: ten seconds' worth, or that of the
// largest party.
func (p pace) maxCredit() int64 { return max(int64(p.outflow.PerMinute)*10_000, p.party*creditPerCall) }

// refund returns the credit of a call that ended without an admission. It may exceed maxCredit by
// one call; otherwise slow rooms would lose most refunds.
func (p pace) refund(now Time, seats uint64) pace {
	p = p.at(now)
	p.credit = min(p.credit, p.maxCredit()) + int64(seats)*creditPerCall
	return p
}

// amend changes the outflow and cuts accumulated credit to the new maximum.
func (p pace) amend(now Time, o Outflow) pace {
	p = p.at(now)
	p.outflow = o
	p.credit = min(p.credit, p.maxCredit())
	return p
}

// toggle starts or ends a pause.
func (p pace) toggle(now Time) pace {
	if p.paused {
		p.since = max(now, p.starts)
	} else {
		p = p.at(now)
		p.since = now
	}
	p.paused = !p.paused
	return p
}

func (e *Call) apply(s *State, _ Oracle) error {
	if e.Time < s.policy.Starts {
		return violation(RuleCall, "time %d is before the room starts at %d", e.Time, s.policy.Starts)
	}
	t := newTurns(s)
	if err := t.reach(e.UpTo); err != nil {
		return err
	}
	if err := s.pay(RuleCall, e.Time, t.seats); err != nil {
		return err
	}
	t.commit(e.Time)
	return nil
}

// pay takes the credit for calling so many seats, or returns a violation; rule is that of the entry which calls them.
func (s *State) pay(rule Rule, now Time, seats uint64) error {
	next, cost := s.pace.at(now), int64(seats)*creditPerCall
	switch left := s.seatsLeft(); {
	case s.pace.paused:
		return violation(rule, "the room is paused")
	case next.credit < cost:
		return violation(RuleOutflow, "%d seats are called, but outflow allows %d", seats, next.credit/creditPerCall)
	case seats > left:
		return violation(RuleSeats, "%d seats are called, but %d are left", seats, left)
	}
	next.credit -= cost
	s.pace = next
	return nil
}

func (e *Admit) apply(s *State, _ Oracle) error {
	number, _, err := s.claimable(RuleAdmission, e.Ticket, e.Time)
	switch {
	case err != nil:
		return err
	case e.Pass != NewPassID(s.policy.Origin, e.Ticket):
		return violation(RuleAdmission, "pass %v does not belong to ticket %v", e.Pass, e.Ticket)
	}
	s.arrivals.settle(number, admitted, EntryIndex(s.size), e.Time)
	l := s.laneOf(number)
	l.settled[admitted]++
	l.waiting--
	l.held -= s.arrivals.seatsOf(number)
	l.sold += s.arrivals.seatsOf(number)
	return nil
}

func (e *Skip) apply(s *State, _ Oracle) error {
	number, ok := s.arrivals.find(e.Ticket)
	if !ok {
		return violation(RuleSkip, "ticket %v never joined", e.Ticket)
	}
	a, l := s.arrivals.At(number), s.laneOf(number)
	c := s.claimOf(number, s.arrivals.claimed[number])
	o := outcome(max(slices.Index(reasons[:], e.Reason), 0))
	switch {
	case !o.skipped():
		return violation(RuleSkip, "unknown reason %q", e.Reason)
	case a.settled != 0:
		return violation(RuleSkip, "ticket %v is settled", e.Ticket)
	case e.Reason.IsRevoked() && s.windows.awaitsDraw(number):
		return violation(RuleSkip, "ticket %v cannot be revoked before its window, which is frozen, is drawn", e.Ticket)
	case e.Reason == NoShow && c.ends == 0:
		return violation(RuleSkip, "ticket %v is not called, so it cannot be a no-show", e.Ticket)
	case e.Reason == NoShow && c.left(s.clockAt(e.Time)) > 0:
		return violation(RuleSkip, "ticket %v may still be claimed for %d ms", e.Ticket, c.left(s.clockAt(e.Time)))
	case e.Reason == TooLarge && !s.isTooLarge(number):
		return violation(RuleSkip, "ticket %v is not a party that is next and too large for the seats left", e.Ticket)
	}
	switch {
	case c.ends > 0:
		if o >= revoked {
			c.index, c.stopped = EntryIndex(s.size), s.clockAt(e.Time)
			s.arrivals.claim(c)
		}
		s.pace = s.pace.refund(e.Time, s.arrivals.seatsOf(number))
		l.waiting--
		l.held -= s.arrivals.seatsOf(number)
	case a.position > 0:
		l.ready--
	}
	if o == tooLarge { // it was next
		l.clear = Position(a.position)
	}
	s.arrivals.settle(number, o, EntryIndex(s.size), e.Time)
	l.settled[o]++
	return nil
}

func (s *State) laneOf(number uint32) *lane { return &s.lanes.all[s.arrivals.laneOf(number)] }

func (e *Amend) apply(s *State, _ Oracle) error {
	switch e.Change {
	case ChangeOutflow:
		var c complaints
		c.outflow(e.Outflow)
		if err := c.violation(RuleAmend); err != nil {
			return err
		}
		s.pace = s.pace.amend(e.Time, e.Outflow)
	case ChangePause, ChangeResume:
		pause := e.Change == ChangePause
		claims := pause && e.Claims
		if pause == s.pace.paused && claims == s.claimsPaused {
			return violation(RuleAmend, "%s changes nothing: paused is %t, claims paused is %t",
				e.Change, s.pace.paused, s.claimsPaused)
		}
		if pause != s.pace.paused {
			s.pace = s.pace.toggle(e.Time)
		}
		s.claimsPaused = claims
	case ChangeSeats:
		if s.seats == 0 || uint64(e.Seats) < max(s.lanes.committed(), 1) || s.windows.frozen > s.windows.drawn {
			return violation(RuleAmend, "seats cannot be %d: there are %d (0: no limit), %d are called or admitted, and %d draws are awaited",
				e.Seats, s.seats, s.lanes.committed(), s.windows.frozen-s.windows.drawn)
		}
		s.seats = e.Seats
	case ChangeMessage:
		s.message = e.Message
	case ChangeWindows:
		if err := e.amendWindows(s); err != nil {
			return err
		}
	case ChangeOpen, ChangeShut:
		inLine, opens := s.Counts().InLine, e.Change == ChangeOpen
		if opens == s.isOpen || opens && (s.pace.paused || inLine > 0) {
			return violation(RuleAmend, "cannot %s: open is %t, paused is %t, and %d are in line",
				e.Change, s.isOpen, s.pace.paused, inLine)
		}
		s.isOpen = opens
	default:
		return violation(RuleAmend, "unknown change %q", e.Change)
	}
	s.amends++
	return nil
}

// apply changes nothing: that a statement contradicts others is for its readers to judge.
func (e *Tell) apply(*State, Oracle) error { return nil }

// amendWindows replaces the part of the schedule that begins after the notice.
func (e *Amend) amendWindows(s *State) error {
	fixed := s.policy.Fixed(e.Time)
	if fixed >= s.schedule.Closes() {
		return violation(RuleAmend, "the last window closes in less than %d ms", s.policy.Notice)
	}
	earliest := s.schedule.Opens()
	if last, ok := s.schedule.At(fixed); ok {
		earliest = last.To
	}
	var c complaints
	c.check(e.Closes <= Never && e.Closes > s.schedule.Opens() && e.Closes >= earliest,
		"closes", "must not be before the end of a window that stays: one that begins within the notice, or a first one with slots")
	c.check(len(e.Windows) == 0 || e.Windows[0].From >= earliest,
		"windows[0].from", "must not be in a window that stays: one that begins within the notice, or a first one with slots")
	c.windows(e.Windows, e.Closes)
	c.check(len(s.schedule.rules)+len(e.Windows) <= 2*MaxRules, "windows", "have been amended too often")
	if err := c.violation(RuleAmend); err != nil {
		return err
	}
	next := s.schedule.replace(e.Windows, e.Closes)
	if was, ok := s.schedule.At(fixed); ok {
		if is, _ := next.At(fixed); is != was {
			return violation(RuleAmend, "the window from %d would end at %d instead of %d", was.From, is.To, was.To)
		}
	}
	s.schedule = next
	return nil
}
