package fairness

import "math"

// This file holds the seats of a room: how many may be called, and by which parties.

// committed returns the seats that are called and neither given back nor admitted, and those admitted.
func (l *lanes) committed() (seats uint64) {
	for i := range l.all {
		seats += l.all[i].held + l.all[i].sold
	}
	return seats
}

// wanted returns the seats of all arrivals.
func (l *lanes) wanted() (seats uint64) {
	for i := range l.all {
		seats += l.all[i].seats
	}
	return seats
}

// seatsLeft returns how many more seats may be called.
func (s *State) seatsLeft() uint64 {
	if s.seats == 0 {
		return math.MaxUint64
	}
	return uint64(s.seats) - s.lanes.committed()
}

// isTooLarge reports whether an arrival is the next to be called and wants more seats than are left, while no
// called ticket may still give some back.
func (s *State) isTooLarge(number uint32) bool {
	t := newTurns(s)
	_, next, ok := t.peek()
	return ok && next == number && s.Waiting() == 0 && s.arrivals.seatsOf(number) > s.seatsLeft()
}
