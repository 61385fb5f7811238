package main

import (
	"fmt"

	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/ticket"
)

// placeHead returns the verdict on a saved proof: the level of an audit if the draw decides it,
// otherwise that of the worst line.
func placeHead(status ticket.Status, draw ticket.Line) (title, text string) {
	level := ticket.Level(draw)
	switch {
	case status == ticket.Red:
		return "✗ WRONG: something in this proof is not right",
			"  Keep the file, and save the proof again: that shows whether the room or the\n  file is wrong.\n"
	case status == ticket.Neutral:
		return "· NOT YET: everything that could be checked when this proof was saved is right",
			"  The rest was still to come. Save the proof again after the draw.\n"
	case status == ticket.Green:
		return fmt.Sprintf("✓ VERIFIED, level %d: the place is exactly the one that was drawn", level),
			"  Everything in this proof follows from the key of the room and a public beacon.\n"
	case level == verifier.LevelConsistent:
		return "✓ CONSISTENT, level 1: the place follows the rules of the room",
			"  Not proven: that the operator did not choose the outcome of the draw.\n"
	}
	return "– NOT FULLY CHECKED: no mistake was found, but one point could not be checked",
		"  The line below with – says which.\n"
}

var placeTitles = map[ticket.LineID]string{
	ticket.RecordLine: "The arrival is in the public record",
	ticket.GroupLine:  "The group was closed before the draw",
	ticket.DrawLine:   "The draw followed the rules",
	ticket.PlaceLine:  "The place is the one that was drawn",
}

const (
	wordsMalformed = "The page that saved this proof found a malformed published file:"
	wordsUnchecked = "This can only be checked if the line above is right."
	wordsNotFound  = "The entry was not found in the part of the record where it should be. An audit reads all of it."
)

// placeWords describe each verdict in a sentence, with facts in braces.
var placeWords = map[ticket.LineID]map[ticket.Reason]string{
	ticket.RecordLine: {
		ticket.Included:     "Entry {index} is the arrival of this ticket, and the published record of {size} entries continues the one that the receipt is for.",
		ticket.Behind:       "When the proof was saved, the published record did not reach the receipt's entry yet. Save it again some seconds later.",
		ticket.WrongKey:     "The key is malformed, belongs to another room, or is not the one in the file.",
		ticket.NoCheckpoint: "The published checkpoint is not signed by the key.",
		ticket.Malformed:    wordsMalformed,
		ticket.NoRoom:       "The first entry of the record is not a valid policy of this room and key.",
		ticket.BadReceipt:   "The receipt is malformed, or not signed by the key.",
		ticket.NoArrival:    "The published record does not contain the arrival that the receipt is for.",
		ticket.OtherHistory: "The published record does not continue the record that the receipt is for: there are two histories.",
		ticket.OtherReceipt: "The receipt does not prove this arrival.",
		ticket.OtherTicket:  "The receipt is for the arrival of another ticket.",
	},
	ticket.GroupLine: {
		ticket.Closed:      "The group of {lots} was closed at {closed}, which also fixed everything before it in the record.",
		ticket.Unchecked:   wordsUnchecked,
		ticket.Pending:     "The group was not closed yet when the proof was saved.",
		ticket.NotFound:    wordsNotFound,
		ticket.Malformed:   wordsMalformed,
		ticket.OffSchedule: "By the timetable in this file, the arrival belongs to another group, or the group should have stayed open longer. An audit knows every amendment.",
		ticket.NoFreeze:    "The published record lacks the entry that closes the group.",
		ticket.OtherWindow: "Another group was closed where this one should have been.",
		ticket.Early:       "The group was closed before this arrival, although the arrival is recorded in it.",
		ticket.OtherSize:   "The entry that closes the group has a wrong number of entries before it.",
		ticket.OtherLots:   "The group was closed with a size of {lots}, which does not match this arrival or the record.",
		ticket.OtherRoot:   "The entry that closes the group names a different history than the published one.",
	},
	ticket.DrawLine: {
		ticket.Witnessed:     "The draw uses round {round} of a public beacon, which appeared at {appears}. Before that, {cosigned} of {witnesses} witnesses of the room signed that the group was closed: {cosigners}. So the outcome could not be chosen.",
		ticket.Unpredictable: "The draw uses round {round} of a public beacon, which appeared at {appears}. By the operator's clock the group was closed before that, so the outcome could not be chosen. Too few witnesses signed it.",
		ticket.OwnBeacon:     "The draw uses round {round} of the room's beacon, which appeared at {appears}, as the rules say. But that beacon is not known to be public: its operator could know the outcome before.",
		ticket.NoBeacon:      "The draw follows from the key of the room and the group. But without public randomness, the operator could have tried other outcomes first.",
		ticket.Unchecked:     wordsUnchecked,
		ticket.Pending:       "The group was not drawn yet when the proof was saved.",
		ticket.NotFound:      wordsNotFound,
		ticket.Malformed:     wordsMalformed,
		ticket.OtherRound:    "The group names a different beacon round than the room's rules require, or names one although there is no beacon.",
		ticket.BadProof:      "The proof that the operator published before the draw does not belong to the room's key and this group.",
		ticket.NoDraw:        "The published record lacks the draw.",
		ticket.OtherWindow:   "Another group was drawn where this one should have been.",
		ticket.Early:         "The draw is earlier than the end of the group.",
		ticket.TooSoon:       "The draw is earlier than its beacon round {round}, which appeared at {appears}.",
		ticket.BadBeacon:     "The draw's beacon signature is not what the beacon of the room signed for this group, or there is no beacon.",
		ticket.BadWitness:    "The draw has a cosignature that is not by a witness of the room, not for this group, or not from before the beacon round.",
		ticket.OtherSeed:     "The seed of the draw does not follow from the proof and the beacon.",
	},
	ticket.PlaceLine: {
		ticket.Exact:         "Drawing the group of {lots} again gives exactly this place: {position}.",
		ticket.Unchecked:     wordsUnchecked,
		ticket.Pending:       "The place was not in the public record yet when the proof was saved.",
		ticket.NotFound:      wordsNotFound,
		ticket.Malformed:     wordsMalformed,
		ticket.MoreLots:      "The record or the visitor's page has a better place than the lots in this proof give ({own}). It can be that of a lot for a credential that the visitor showed after joining, which is missing in the proof. An audit can tell.",
		ticket.TooLarge:      "A group of {lots} is too large to draw again here. An audit does it.",
		ticket.OtherMerit:    "A credential that the proof gives one more lot for is not in the record, not this ticket's, or not from before the group was closed.",
		ticket.NoPlaces:      "The record after the draw lacks the places of the group, or has those of another group.",
		ticket.OtherFirst:    "The group begins at place {first}, which is not where the groups before it end.",
		ticket.NoPlace:       "The published record lacks the place.",
		ticket.OtherTicket:   "The draw gives place {position}, but the record gives that place to another ticket.",
		ticket.OtherPosition: "The draw gives place {position}, but the record shows place {stated}.",
		ticket.OtherShown:    "The draw gives place {position}, but the visitor was shown another one.",
	},
}

// notProven lists the limits of a result.
func notProven(b *ticket.Bundle, r *placeResult) []string {
	record, draw, place := r.Lines[0], r.Lines[2], r.Lines[3]
	var list []string
	add := func(when bool, text string) {
		if when {
			list = append(list, text)
		}
	}
	add(r.Status == ticket.Red, "Who is to blame. A changed file looks the same as a room that cheated: save the proof again, from the room itself.")
	switch from := record.Facts["key_from"]; {
	case record.Reason == ticket.WrongKey:
	case from == ticket.KeyVisitor:
		add(true, fmt.Sprintf("That this is the key of the room: it is the one in the file, %s. Compare it with the key that the organizer publishes, or give that with --vkey.", printable(r.Key)))
	case from == ticket.KeyLog:
		add(true, "That this is the key of the room: it comes from the record itself. Give the key that the organizer publishes with --vkey.")
	}
	add(draw.Reason == ticket.OwnBeacon,
		fmt.Sprintf("That the outcome was not chosen: name the beacon %.16s with --beacon if you know that the operator does not run it.", draw.Facts["chain"]))
	add(draw.Reason == ticket.Unpredictable,
		"That the group was closed before the round of the beacon: only the operator says so, because too few witnesses signed it.")
	add(draw.Reason == ticket.Witnessed && draw.Facts["known"] == "",
		"That the witnesses are independent: the room chose them. Give the keys of those that you know with --witness.")
	add(draw.Reason == ticket.NoBeacon, "That the outcome was not chosen: without a beacon the operator could have added or dropped arrivals or other entries until it liked the draw.")
	first, known := place.Facts["first"]
	add(known && first != "1" && b.Earlier == nil,
		spell("That the earlier groups are as large as the places claim: this group begins at place {first}. An audit counts them.", place.Facts))
	add(true, "That others were shown the same record. Compare checkpoints, or audit the room: two that contradict each other prove a fork.")
	add(true, "That all other arrivals are people: fake ones push all visitors back alike, and give their holder a share of the places.")
	add(true, "Who holds the ticket: the secret that proves it is not in the file.")
	add(true, "Anything after the proof was saved, such as calls and admissions.")
	return list
}
