package main

import (
	"fmt"

	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/ticket"
)

// placeHead is the verdict over a saved proof: on the scale of an audit, where
// the draw decides the level, and by the worst line otherwise.
func placeHead(status ticket.Status, draw ticket.Line) (title, text string) {
	level := ticket.Level(draw)
	switch {
	case status == ticket.Red:
		return "✗ WRONG: something in this proof is not right",
			"  Keep the file, and save the proof again: that shows whether the room or the\n  file is wrong.\n"
	case status == ticket.Neutral:
		return "· NOT YET: all that could be checked when this proof was saved is right",
			"  The rest was still to come. Save the proof again after the draw.\n"
	case status == ticket.Green:
		return fmt.Sprintf("✓ VERIFIED, level %d: the place is exactly the one that was drawn", level),
			"  Everything in this proof follows from the key of the room and a public beacon.\n"
	case level == verifier.LevelConsistent:
		return "✓ CONSISTENT, level 1: the place follows the rules of the room",
			"  Not proven: that the operator did not choose the outcome of the draw.\n"
	}
	return "– NOT FULLY SHOWN: no mistake was found, but one point could not be checked", "  The line below with – says which.\n"
}

var placeTitles = map[ticket.LineID]string{
	ticket.RecordLine: "The arrival is in the public record",
	ticket.GroupLine:  "The group was closed before the draw",
	ticket.DrawLine:   "The draw followed the rules",
	ticket.PlaceLine:  "The place is the one that was drawn",
}

const (
	wordsMalformed = "The page that saved this met a published file that is not in its form:"
	wordsUnchecked = "This can only be said when the line above is right."
	wordsNotFound  = "The entry was not found within a reasonable distance in the record. An audit reads all of it."
)

// placeWords say each verdict in a sentence, with facts in braces.
var placeWords = map[ticket.LineID]map[ticket.Reason]string{
	ticket.RecordLine: {
		ticket.Included:     "Entry {index} is the arrival of this ticket, and the published record of {size} entries continues the one that the receipt is for.",
		ticket.Behind:       "What was published when the proof was saved did not reach the receipt yet. Save it again, some seconds later.",
		ticket.WrongKey:     "The key is malformed, of another room, or not the one in the file.",
		ticket.NoCheckpoint: "What was published is not signed by the key.",
		ticket.Malformed:    wordsMalformed,
		ticket.NoRoom:       "The first entry of the record is no policy, one against the rules, or of another room or key.",
		ticket.BadReceipt:   "The receipt is malformed, or not signed by the key.",
		ticket.NoArrival:    "The arrival that the receipt is for is not in what was published.",
		ticket.OtherHistory: "What was published does not continue the record that the receipt is for: there are two histories.",
		ticket.OtherReceipt: "The receipt does not prove this arrival.",
		ticket.OtherTicket:  "The arrival that the receipt is for is of another ticket.",
	},
	ticket.GroupLine: {
		ticket.Closed:      "The group of {lots} was closed at {closed}, and all that is in the record before was fixed with it.",
		ticket.Unchecked:   wordsUnchecked,
		ticket.Pending:     "The group was not closed yet when the proof was saved.",
		ticket.NotFound:    wordsNotFound,
		ticket.Malformed:   wordsMalformed,
		ticket.OffSchedule: "The published timetable, as far as it is in this file, has the arrival in another group, or this one open for longer. An audit knows every amendment.",
		ticket.NoFreeze:    "The entry that closes the group is not in what was published.",
		ticket.OtherWindow: "Another group was closed where this one should have been.",
		ticket.Early:       "The group was closed before this arrival, which is said to be in it.",
		ticket.OtherSize:   "The entry that closes the group counts other entries before it than there are.",
		ticket.OtherLots:   "The group was closed as one of {lots}, which does not fit this arrival or the record.",
		ticket.OtherRoot:   "The entry that closes the group names another history before it than the one that was published.",
	},
	ticket.DrawLine: {
		ticket.Witnessed:     "The draw uses round {round} of a public beacon, which appeared at {appears}. Before that, {cosigned} of {witnesses} witnesses of the room signed that the group was closed: {cosigners}. So nobody could choose the outcome.",
		ticket.Unpredictable: "The draw uses round {round} of a public beacon, which appeared at {appears}. By the operator's clock the group was closed before that, so nobody could choose the outcome. Too few witnesses signed it.",
		ticket.OwnBeacon:     "The draw uses round {round} of the room's beacon, which appeared at {appears}, as the rules say. But that beacon is not known to be public: whoever runs it could know the outcome before.",
		ticket.NoBeacon:      "The draw follows from the key of the room and the group. But without a public source of chance, the operator could have tried other outcomes first.",
		ticket.Unchecked:     wordsUnchecked,
		ticket.Pending:       "The group was not drawn yet when the proof was saved.",
		ticket.NotFound:      wordsNotFound,
		ticket.Malformed:     wordsMalformed,
		ticket.OtherRound:    "The group names another round of the beacon than the rules of the room give, or one where there is no beacon.",
		ticket.BadProof:      "The proof that the operator gave before the draw is not of the room's key and this group.",
		ticket.NoDraw:        "The draw is not in what was published.",
		ticket.OtherWindow:   "Another group was drawn where this one should have been.",
		ticket.Early:         "The draw is earlier than the end of the group.",
		ticket.TooSoon:       "The draw is earlier than its round of the beacon, {round}, which appeared at {appears}.",
		ticket.BadBeacon:     "What the draw uses is not what the beacon of the room signed for this group, or there is no beacon.",
		ticket.BadWitness:    "The draw has a signature that is not by a witness of the room, not about this group, or not from before the round of the beacon.",
		ticket.OtherSeed:     "The seed of the draw does not follow from what was fixed before it.",
	},
	ticket.PlaceLine: {
		ticket.Exact:         "Drawing the group of {lots} again gives exactly this place: {position}.",
		ticket.Unchecked:     wordsUnchecked,
		ticket.Pending:       "The place was not in the public record yet when the proof was saved.",
		ticket.NotFound:      wordsNotFound,
		ticket.Malformed:     wordsMalformed,
		ticket.TooLarge:      "A group of {lots} is too large to be drawn again here. An audit does it.",
		ticket.NoPlaces:      "The places of the group are not in what was published after the draw, or of another group.",
		ticket.OtherFirst:    "The group begins at place {first}, which is not where the groups before it end.",
		ticket.NoPlace:       "The place is not in what was published.",
		ticket.OtherTicket:   "The draw gives place {position}, and the record gives that to another ticket.",
		ticket.OtherPosition: "The draw gives place {position}, and the record shows place {stated} instead.",
		ticket.OtherShown:    "The draw gives place {position}, and the visitor was shown another one.",
	},
}

// notProven lists what a result does not show.
func notProven(b *ticket.Bundle, r *placeResult) []string {
	record, draw, place := r.Lines[0], r.Lines[2], r.Lines[3]
	var list []string
	add := func(when bool, text string) {
		if when {
			list = append(list, text)
		}
	}
	add(r.Status == ticket.Red, "Who is to blame. A file that somebody changed looks the same as a room that cheated: save the proof again, from the room itself.")
	switch from := record.Facts["key_from"]; {
	case record.Reason == ticket.WrongKey:
	case from == ticket.KeyVisitor:
		add(true, fmt.Sprintf("That this is the key of the room: it is the one in the file, %s. Compare it with the one that the organizer publishes, or give that with --vkey.", printable(r.Key)))
	case from == ticket.KeyLog:
		add(true, "That this is the key of the room: it is the one that the record itself names. Give the one that the organizer publishes with --vkey.")
	}
	add(draw.Reason == ticket.OwnBeacon, fmt.Sprintf("That nobody chose the outcome: say with --beacon that you trust the beacon %.16s, if you know that the operator does not run it.", draw.Facts["chain"]))
	add(draw.Reason == ticket.Unpredictable, "That the group was closed before the round of the beacon: that is the operator's word, for too few witnesses signed it.")
	add(draw.Reason == ticket.Witnessed && draw.Facts["known"] == "", "That the witnesses are independent: the room names them. Give the keys of those that you know with --witness.")
	add(draw.Reason == ticket.NoBeacon, "That nobody chose the outcome: without a beacon the operator could have added or dropped arrivals, or any other entry, until it liked the draw.")
	first, known := place.Facts["first"]
	add(known && first != "1" && b.Earlier == nil, spell("That the groups before this one are as large as their places say: it begins at place {first}. An audit counts them.", place.Facts))
	add(true, "That others were shown the same record. Compare checkpoints, or audit the room: two that cannot both be right are proof of a fork.")
	add(true, "That all other arrivals are people: fake ones push everybody else back alike, and give the party that holds them its share of the places.")
	add(true, "Who holds the ticket: the secret that proves it is not in the file.")
	add(true, "Anything after the proof was saved, such as calls and admissions.")
	return list
}
