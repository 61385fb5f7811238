package ticket

import "slices"

// Status is the colour of a line.
type Status string

// The colours of a line.
const (
	Green   Status = "green"   // correct
	Neutral Status = "neutral" // not yet decided: still to come, or the line above is undecided
	Amber   Status = "amber"   // nothing is wrong, but not everything could be checked
	Red     Status = "red"     // wrong
)

// Worst returns the worst colour of the lines.
func Worst(lines []Line) Status {
	order := []Status{Green, Neutral, Amber, Red}
	worst := 0
	for _, line := range lines {
		worst = max(worst, slices.Index(order, line.Status))
	}
	return order[worst]
}

// Level returns the assurance level that the draw line reaches, on the scale of an audit: 3 only
// with witnesses of [Trust], 2 with a public beacon, 1 if the draw follows the rules, 0 if that
// could not be shown.
func Level(draw Line) int {
	_, isKnown := draw.Facts["known"]
	switch {
	case draw.Reason == Witnessed && isKnown:
		return 3
	case draw.Status == Green:
		return 2
	case draw.Reason == OwnBeacon || draw.Reason == NoBeacon:
		return 1
	}
	return 0
}

// LineID names one of the four lines.
type LineID string

// The four lines; each builds on the one before it.
const (
	RecordLine LineID = "record" // my arrival is in the record I have a receipt for, and in the one published now
	GroupLine  LineID = "group"  // my group was closed before it was drawn, and the number of people in it was fixed
	// the draw follows from the room's key, what the freeze fixed, and a round of the room's beacon
	DrawLine  LineID = "draw"
	PlaceLine LineID = "place" // my place is exactly what the shuffle gives
)

// Lines are the lines in their order.
var Lines = [4]LineID{RecordLine, GroupLine, DrawLine, PlaceLine}

// Reason explains the colour of a line. The same reason can mean different things under different
// lines.
type Reason string

// The reasons, in the order in which the lines first use them.
const (
	Included      Reason = "included"
	Behind        Reason = "behind"
	WrongKey      Reason = "key"
	NoCheckpoint  Reason = "checkpoint"
	Malformed     Reason = "malformed"
	NoRoom        Reason = "room"
	BadReceipt    Reason = "receipt"
	NoArrival     Reason = "arrival"
	OtherHistory  Reason = "history"
	OtherReceipt  Reason = "receipt-arrival"
	OtherTicket   Reason = "ticket"
	Closed        Reason = "closed"
	Unchecked     Reason = "unchecked"
	Pending       Reason = "pending"
	NotFound      Reason = "not-found"
	OffSchedule   Reason = "schedule"
	NoFreeze      Reason = "freeze"
	OtherWindow   Reason = "window"
	Early         Reason = "early"
	OtherSize     Reason = "size"
	OtherLots     Reason = "lots"
	OtherRoot     Reason = "root"
	Witnessed     Reason = "witnessed"
	Unpredictable Reason = "unpredictable"
	OwnBeacon     Reason = "own-beacon"
	NoBeacon      Reason = "no-beacon"
	OtherRound    Reason = "round"
	BadProof      Reason = "proof"
	NoDraw        Reason = "draw"
	TooSoon       Reason = "too-soon"
	BadBeacon     Reason = "beacon"
	BadWitness    Reason = "witness"
	OtherSeed     Reason = "seed"
	Exact         Reason = "exact"
	MoreLots      Reason = "more-lots"
	TooLarge      Reason = "too-large"
	OtherMerit    Reason = "merit"
	NoPlaces      Reason = "places"
	OtherFirst    Reason = "first"
	NoPlace       Reason = "place"
	OtherPosition Reason = "position"
	OtherShown    Reason = "shown"
)

// Verdicts holds all possible reasons of each line, with their colours, like the table in
// web/ui/src/check/verdicts.ts. It must not be changed.
var Verdicts = map[LineID]map[Reason]Status{
	RecordLine: {
		Included:     Green,
		Behind:       Neutral, // the published record does not reach the receipt yet
		WrongKey:     Red,     // the key is malformed, of another room, or not the one in the file
		NoCheckpoint: Red,     // the published checkpoint is not signed by the key
		Malformed:    Red,     // the page found a malformed published file
		NoRoom:       Red,     // the first entry is not a valid policy of this room and key
		BadReceipt:   Red,     // the receipt is malformed, or not signed by the key
		NoArrival:    Red,     // the published record lacks the arrival
		OtherHistory: Red,     // the published record does not continue the receipt's
		OtherReceipt: Red,     // the receipt is for another entry
		OtherTicket:  Red,     // the entry is not the ticket's
	},
	GroupLine: {
		Closed:      Green,
		Unchecked:   Neutral, // not checked because of the line above
		Pending:     Neutral, // the group is not closed yet
		NotFound:    Amber,   // no freeze within a reasonable distance
		Malformed:   Red,
		OffSchedule: Amber, // the schedule, as far as known, has the arrival in another group or open for longer
		NoFreeze:    Red,   // the published record lacks the entry that closes the group
		OtherWindow: Red,   // it closes another group
		Early:       Red,   // it is before the arrival
		OtherSize:   Red,   // it has a wrong number of entries before it
		OtherLots:   Red,   // it counts fewer people than the visitor, or more than there are entries
		OtherRoot:   Red,   // it names a different history
	},
	DrawLine: {
		// it follows, the freeze names a round of a public beacon, and enough witnesses signed it before
		Witnessed: Green,
		// it follows, and the freeze names a round of a public beacon, which did not exist by the operator's clock
		Unpredictable: Green,
		OwnBeacon:     Amber, // it follows, but the beacon's operator knows its rounds in advance
		NoBeacon:      Amber, // it follows, but the operator could have tried outcomes in advance
		Unchecked:     Neutral,
		Pending:       Neutral, // the group is not drawn yet
		NotFound:      Amber,
		Malformed:     Red,
		OtherRound:    Red, // the freeze names a round other than the policy's
		BadProof:      Red, // the proof in the freeze is not the key's
		NoDraw:        Red, // the published record lacks the draw
		OtherWindow:   Red, // it is of another group
		Early:         Red, // it is before the freeze
		TooSoon:       Red, // it is before its round
		BadBeacon:     Red, // its signature is not the beacon's signature of that round
		// a cosignature is not by a witness of the room, not of this freeze, or not from before the round
		BadWitness: Red,
		OtherSeed:  Red, // the seed does not follow from the proof
	},
	PlaceLine: {
		Exact:         Green,
		MoreLots:      Amber, // it is a better one, of a lot that a merit could have given which is not in the file
		Unchecked:     Neutral,
		Pending:       Neutral, // the place is not in the record yet
		NotFound:      Amber,
		Malformed:     Red,
		TooLarge:      Amber, // the group is larger than MaxLots
		OtherMerit:    Red,   // a merit is not in the published record, not the ticket's, or not in time
		NoPlaces:      Red,   // the published record lacks the group's places, or has another group's
		OtherFirst:    Red,   // the group does not begin where the groups before it end
		NoPlace:       Red,   // the published record lacks the place
		OtherTicket:   Red,   // it is given to another ticket
		OtherPosition: Red,   // it is another one
		OtherShown:    Red,   // the visitor was shown another one
	},
}
