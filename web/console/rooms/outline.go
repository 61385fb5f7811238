package rooms

import (
	"fmt"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/web/console/format"
)

// outlineRules is the maximum number of window rules that an outline describes.
const outlineRules = 12

// outline describes in sentences what a room's times and windows mean for visitors, with examples. It
// returns nil if they are not valid. The first rule begins when the room opens. The editor's script has
// the same texts (web/ui/src/console/outline.ts), and both are tested against testdata/outlines.json.
func outline(starts, closes fairness.Time, rules []fairness.WindowRule) []string {
	if !isSchedule(starts, closes, rules) {
		return nil
	}
	o := outliner{day: dayOf(rules[0].From)}
	list := []string{
		fmt.Sprintf("Times without a date are those of %s.", o.day),
		fmt.Sprintf("Visitors can join from %s on.", o.clock(rules[0].From)),
	}
	for k, rule := range rules[:min(len(rules), outlineRules)] {
		end := closes
		if k+1 < len(rules) {
			end = rules[k+1].From
		}
		if k > 0 {
			list = append(list, fmt.Sprintf("Visitors who join from %s on are behind everyone who joined before.",
				o.clock(rule.From)))
		}
		list = append(list, o.rule(rule, end)...)
	}
	if more := len(rules) - outlineRules; more > 0 {
		list = append(list, fmt.Sprintf("Rules that follow: %d.", more))
	}
	if starts > rules[0].From {
		list = append(list, fmt.Sprintf("Visitors are called from %s on.", o.clock(starts)))
	}
	if closes == fairness.Never {
		return append(list, "Visitors can join until you end the room.")
	}
	return append(list, fmt.Sprintf("Joining ends at %s.", o.clock(closes)))
}

// isSchedule reports whether a room can have these windows.
func isSchedule(starts, closes fairness.Time, rules []fairness.WindowRule) bool {
	if len(rules) == 0 || len(rules) > fairness.MaxRules || starts < rules[0].From {
		return false
	}
	before := fairness.Time(-1)
	for _, r := range rules {
		if r.Length < fairness.MinWindow || r.Length > fairness.MaxWindow || r.From <= before || r.From >= closes {
			return false
		}
		before = r.From
	}
	return true
}

// outliner writes moments, and omits the date on the day on which the room opens.
type outliner struct{ day string }

func (o outliner) clock(t fairness.Time) string {
	at := time.UnixMilli(int64(t)).UTC()
	form := "15:04"
	switch {
	case at.Nanosecond() != 0:
		form = "15:04:05.000"
	case at.Second() != 0:
		form = time.TimeOnly
	}
	text := at.Format(form)
	if day := dayOf(t); day != o.day {
		text = day + ", " + text
	}
	return text
}

func dayOf(t fairness.Time) string { return time.UnixMilli(int64(t)).UTC().Format("2 Jan 2006") }

const (
	second = fairness.Time(1000)
	minute = 60 * second
)

// rule describes the windows of a rule, which ends where the next one begins.
func (o outliner) rule(r fairness.WindowRule, end fairness.Time) []string {
	length := fairness.Time(r.Length)
	if r.From+length >= end {
		early, late, _ := examples(r.From, end)
		return []string{
			fmt.Sprintf("From %s to %s there is one draw.", o.clock(r.From), o.clock(end)),
			fmt.Sprintf("Join at %s or at %s: the same chance.", o.clock(early), o.clock(late)),
		}
	}
	if length < second {
		return []string{
			fmt.Sprintf("From %s on it is first come, first served: only visitors who join within the same %s are drawn "+
				"together.", o.clock(r.From), lengthWords(length)),
			fmt.Sprintf("Join at %s rather than at %s: ahead. Programs are always faster than people here.",
				o.clock(r.From+second), o.clock(r.From+2*second)),
		}
	}
	early, late, after := examples(r.From, r.From+length)
	list := []string{
		fmt.Sprintf("From %s on all visitors who join within the same %s are drawn together.", o.clock(r.From),
			lengthWords(length)),
		fmt.Sprintf("Join at %s or at %s: the same chance. At %s: after everyone %s.", o.clock(early), o.clock(late),
			o.clock(after), o.window(r.From, r.From+length)),
	}
	if rest := (end - r.From) % length; end != fairness.Never && rest != 0 {
		list = append(list, fmt.Sprintf("The last of these windows is cut short at %s: %s.", o.clock(end),
			format.Duration(time.Duration(rest)*time.Millisecond)))
	}
	return list
}

// window names a window. A window of a whole minute is named by its beginning.
func (o outliner) window(from, to fairness.Time) string {
	if to-from == minute && from%minute == 0 {
		return "of " + o.clock(from)
	}
	return "from " + o.clock(from) + " to " + o.clock(to)
}

// examples returns two moments in a window, and one after it: in whole seconds if the window is long
// enough.
func examples(from, to fairness.Time) (early, late, after fairness.Time) {
	length, unit := to-from, fairness.Time(1)
	if length >= 6*second {
		unit = second
	}
	part := func(n fairness.Time) fairness.Time { return length * n / 6 / unit * unit }
	return from + part(2), from + part(5), to + max(length/60/unit*unit, unit)
}

// lengthWords writes a length: "minute" for one, and "2 min 30 s".
func lengthWords(t fairness.Time) string {
	switch t {
	case second:
		return "second"
	case minute:
		return "minute"
	case 60 * minute:
		return "hour"
	default:
		return format.Duration(time.Duration(t) * time.Millisecond)
	}
}
