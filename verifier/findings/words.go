package findings

import (
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

var titles = map[ID]string{
	Gate:       "The site admitted visitors who were not in line",
	FailOpen:   "The site admitted visitors while it could not reach the room",
	Contrary:   "Statements of the operator that contradict the record",
	Between:    "Decisions between the outcome of a draw and its publication",
	LateDraw:   "Draws were published late",
	LateFreeze: "Groups were closed late",
	Gap:        "The room stood still while visitors were called",
	Undrawn:    "The room ended before all arrivals were drawn",
	Single:     "Groups of one",
	ShortClaim: "Called visitors had less than a minute to go in",
	PassedOver: "Parties were passed over, and the number of seats was changed",
	Restored:   "Revoked tickets got their place back",
	Extended:   "Called visitors were given more time",
	Slots:      "The slots of the first window",
	Lots:       "Credentials that gave one more lot",
	Told:       "Statements of the operator",
	Amendments: "Changes by the operator",
}

// words describes the number and meaning of a finding's cases.
func (f *Finder) words(of *Finding) string {
	n := of.Count
	switch of.ID {
	case Gate:
		return fmt.Sprintf("For %s in all, %s, the longest %s. The rules allow it only while nobody waits at the moment of opening; people who joined during that time waited while others went in.",
			span(of.Total), numeral.Count(n, "time", "times"), span(of.Longest))
	case FailOpen:
		return fmt.Sprintf("For %s in all, %s, the longest %s. The site's owner had decided beforehand that it opens then; how long it lasted is the operator's word.",
			span(of.Total), numeral.Count(n, "time", "times"), span(of.Longest))
	case Contrary:
		return numeral.Count(n, "statement contradicts", "statements contradict") +
			" the rest of the record, or each other. A statement changes nothing, so no place depends on it."
	case Between:
		return f.between.words(of)
	case LateDraw:
		return fmt.Sprintf("%s more than %s after the outcome could be known, the longest %s. The outcome was fixed by then, but the operator could know it that much earlier than all others.",
			numeral.Count(n, "draw came", "draws came"), span(drawSlack), span(of.Longest))
	case LateFreeze:
		return fmt.Sprintf("%s closed more than %s after its end, the longest %s. Up to its closing the operator could still write arrivals and credentials into it, with earlier times; the randomness of its draw comes after the closing, so a late closing selects a later round.",
			numeral.Count(n, "group was", "groups were"), span(freezeSlack), span(of.Longest))
	case Gap:
		return f.gaps.words(of)
	case Undrawn:
		return numeral.Count(n, "group was", "groups were") +
			" never drawn. Where the outcome could be known, the operator could see it and end the room instead of publishing it."
	case Slots:
		return "Each slot was shuffled alone, and slots took turns, so a quiet slot gave better places. Slots with less than half of the mean were filled up with empty lots, which nobody has: their places are passed over, so the lots of tickets before one's own count, not the places."
	case Lots:
		return f.slots.words()
	case Single:
		return numeral.Count(n, "group had one arrival", "groups had one arrival each") +
			". There is nothing to draw in such a group: its place depends only on the time of arrival."
	case ShortClaim:
		return of.Items[0].Text + " A visitor who looks away for a moment loses the place, and it counts as a no-show."
	case PassedOver:
		return f.passed.words()
	case Restored:
		return f.restored.words(n)
	case Extended:
		return numeral.Count(n, "called ticket was", "called tickets were") +
			" given more time to go in, once, as every called visitor may ask without a reason. The record does not show whether it was the visitor who asked."
	case Told:
		return f.told.words(n)
	default: // the finding Amendments
		return f.amendments(n)
	}
}

// amendments counts the amendments by kind.
func (f *Finder) amendments(n uint64) string {
	var kinds []string
	for _, k := range kindWords {
		if n := f.amended.kinds[k.kind]; n > 0 {
			kinds = append(kinds, numeral.Count(n, k.one, k.many))
		}
	}
	return numeral.Count(n, "change", "changes") + " of the published rules: " + strings.Join(kinds, ", ") +
		". Each is in the record with its time, and applied from then on."
}

// kindWords name the kinds of amendments.
var kindWords = []struct{ kind, one, many string }{
	{"outflow", "change of the pace", "changes of the pace"},
	{"windows", "change of the schedule", "changes of the schedule"},
	{"pause", "pause", "pauses"}, {"freeze-claims", "freeze of claims", "freezes of claims"},
	{"resume", "resumption", "resumptions"},
	{"message", "message", "messages"}, {"seats", "change of the seats", "changes of the seats"},
	{"open", "opening past the line", "openings past the line"}, {"shut", "end of one", "ends of one"},
}

func number[T ~uint64](n T) string { return numeral.Group(uint64(n)) }

// windowOf returns the number of the window in which a ticket joined.
func windowOf(s *fairness.State, t fairness.Ticket) string {
	index, _, _ := s.TurnOf(t)
	return number(index)
}

func keys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

func until(t fairness.Time) string {
	if t >= fairness.Never {
		return "without an end"
	}
	return "until " + moment(t)
}

// moment formats a time of the room.
func moment(t fairness.Time) string {
	return time.UnixMilli(int64(t)).UTC().Format("2006-01-02 15:04:05.999 UTC")
}

// span formats a duration in its two largest units.
func span(m fairness.Millis) string {
	units := []struct {
		length fairness.Millis
		name   string
	}{{86_400_000, "d"}, {3_600_000, "h"}, {60_000, "min"}, {1000, "s"}}
	for i, u := range units {
		if m < u.length {
			continue
		}
		text := numeral.Group(uint64(m/u.length)) + " " + u.name
		if i+1 < len(units) {
			if rest := m % u.length / units[i+1].length; rest > 0 {
				text += fmt.Sprintf(" %d %s", rest, units[i+1].name)
			}
		} else if rest := m % u.length; rest > 0 {
			text = fmt.Sprintf("%g s", float64(m)/1000)
		}
		return text
	}
	return fmt.Sprintf("%d ms", m)
}
