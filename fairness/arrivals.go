package fairness

import "github.com/proofline/proofline/fairness/table"

// arrival is one ticket's record. It is 40 bytes, because there are millions.
type arrival struct {
	ticket   Ticket
	index    EntryIndex // index of the arrive entry
	time     Time
	position uint32 // 0 before the draw
	settled  uint32 // number in arrivals.settlements, from 1; 0: none yet
}

// detail is what a room that is not plain keeps of an arrival in addition to [arrival].
type detail struct {
	seq   uint32 // number of its first lot in its drum
	lane  uint8  // index in lanes
	slot  uint8
	seats uint8
}

// settlement is the end of a ticket's wait.
type settlement struct {
	index   EntryIndex // admit or skip entry
	time    Time
	arrival uint32 // number in arrivals
	outcome outcome
}

// outcome is how an arrival was settled.
type outcome uint8

const (
	open outcome = iota
	admitted
	noShow
	left
	tooLarge
	revoked // revoked for a given reason
)

// reasons maps outcomes to skip reasons; "" if the outcome is not a skip.
var reasons = [...]Reason{
	noShow: NoShow, left: Left, tooLarge: TooLarge,
	revoked: Revoked, RevokedBot, RevokedDuplicate, RevokedFraud, RevokedRequest,
}

func (o outcome) skipped() bool { return reasons[o] != "" }

// arrivals holds the arrivals of a room in order, with how they were settled, and finds them by ticket.
type arrivals struct {
	table.List[arrival]
	details     table.List[detail] // of all arrivals, unless the room is plain
	settlements table.List[settlement]
	claims      table.List[claim] // those that differ from what the call of the place gives
	claimed     map[uint32]uint32 // the latest of these by arrival, as its number from 1
	index       table.Index       // by ticket
}

// find returns the number of a ticket's arrival, from 0; false if there is none.
func (l *arrivals) find(t Ticket) (uint32, bool) {
	return l.index.Find(t[:], func(number uint32) bool { return l.At(number).ticket == t })
}

// join adds an arrival whose ticket is new.
func (l *arrivals) join(a arrival) {
	l.index.Add(a.ticket[:], l.Len())
	l.Add(a)
}

// laneOf returns the lane of an arrival, as its index.
func (l *arrivals) laneOf(number uint32) int {
	if l.details.Len() == 0 {
		return 0
	}
	return int(l.details.At(number).lane)
}

// drumOf returns the index of the drum of an arrival.
func (l *arrivals) drumOf(number uint32, in *lanes) int {
	if l.details.Len() == 0 {
		return 0
	}
	d := l.details.At(number)
	return in.drum(int(d.slot), int(d.lane))
}

// seatsOf returns the number of seats of an arrival.
func (l *arrivals) seatsOf(number uint32) uint64 {
	if l.details.Len() == 0 {
		return 1
	}
	return uint64(l.details.At(number).seats)
}

// outcome returns how an arrival was settled.
func (l *arrivals) outcome(a *arrival) outcome {
	if a.settled == 0 {
		return open
	}
	return l.settlements.At(a.settled - 1).outcome
}

// settle ends the wait of an arrival.
func (l *arrivals) settle(number uint32, o outcome, index EntryIndex, t Time) {
	l.settlements.Add(settlement{index, t, number, o})
	l.At(number).settled = l.settlements.Len()
}
