// Package format writes values the way the console's pages show them, and reads what organizers
// type into fields: numbers, lengths of time, moments, languages and states of rooms.
package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/proofline/proofline/room"
)

// Dash replaces a value that is unknown.
const Dash = "\u2013"

// Number writes a whole number in groups of three digits: 1,234,567.
func Number(n any) string {
	text := fmt.Sprint(n)
	digits := strings.TrimPrefix(text, "-")
	if _, err := strconv.ParseUint(digits, 10, 64); err != nil {
		return text
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return strings.TrimSuffix(text, digits) + b.String()
}

// Decimal writes a number with one decimal, or with none if it is large: 12.5, 1,234.
func Decimal(f *float64) string {
	switch {
	case f == nil:
		return Dash
	case math.Abs(*f) >= 99.95:
		return Number(int64(math.Round(*f)))
	}
	return strconv.FormatFloat(*f, 'f', 1, 64)
}

// Percent writes a fraction as a percentage: 12.5 %.
func Percent(f *float64) string {
	if f == nil {
		return Dash
	}
	return strconv.FormatFloat(*f*100, 'f', 1, 64) + " %"
}

// Bytes writes a number of bytes in MiB.
func Bytes(n int64) string { return Number((n+1<<19)>>20) + " MiB" }

// People writes a number of people.
func People(n uint64) string {
	if n == 1 {
		return "1 person"
	}
	return Number(n) + " people"
}

// PerMinute writes a pace.
func PerMinute(n uint32) string { return Number(n) + " a minute" }

// Limit writes a limit on the visitors in the shop; 0 means none.
func Limit(n uint32) string {
	if n == 0 {
		return "no limit"
	}
	return "at most " + Number(n)
}

// Duration writes a length of time in the largest units: 1 h 30 min.
func Duration(d any) string {
	var t time.Duration
	switch d := d.(type) {
	case time.Duration:
		t = d
	case room.Duration:
		t = time.Duration(d)
	case *room.Duration:
		if d == nil {
			return ""
		}
		t = time.Duration(*d)
	}
	if t == 0 {
		return "0 s"
	}
	var parts []string
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := t / u.unit; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
			t -= n * u.unit
		}
	}
	return strings.Join(parts, " ")
}

// Span writes a measured length of time in one unit: 0.4 s, 12 s, 3 min, 2 h. Whole numbers are
// milliseconds, fractions are seconds.
func Span(v any) string {
	var seconds float64
	switch v := v.(type) {
	case int64:
		seconds = float64(v) / 1000
	case *int64:
		if v == nil {
			return Dash
		}
		seconds = float64(*v) / 1000
	case float64:
		seconds = v
	case *float64:
		if v == nil {
			return Dash
		}
		seconds = *v
	}
	switch {
	case seconds < 9.95:
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	case seconds < 119.5:
		return strconv.FormatFloat(seconds, 'f', 0, 64) + " s"
	case seconds < 2*3600-30:
		return strconv.FormatFloat(seconds/60, 'f', 0, 64) + " min"
	}
	return strconv.FormatFloat(seconds/3600, 'f', 1, 64) + " h"
}

// Language returns the English name of a language, or the tag if it has none.
func Language(tag string) string {
	if parsed, err := language.Parse(tag); err == nil {
		if name := display.English.Tags().Name(parsed); name != "" {
			return name
		}
	}
	return tag
}

// Lines returns the lines of a text; for an empty one, a line that says so.
func Lines(text string) []string {
	if text == "" {
		return []string{"nothing"}
	}
	return strings.Split(text, "\n")
}

// Badge is a word on a coloured background. Class is "good", "warn", "bad" or empty.
type Badge struct{ Word, Class string }

// Good returns a badge for a normal state.
func Good(word string) Badge { return Badge{word, "good"} }

// Warn returns a badge for a state that needs attention.
func Warn(word string) Badge { return Badge{word, "warn"} }

// Bad returns a badge for a state that needs action.
func Bad(word string) Badge { return Badge{word, "bad"} }

// Plain returns a badge without a colour.
func Plain(word string) Badge { return Badge{Word: word} }

// phases are the badges of the phases of a room. The dashboard's script has the same
// (web/ui/src/console/live/words.ts).
var phases = map[room.Phase]Badge{
	room.PhaseUpcoming:     {"not open yet", ""},
	room.PhaseOpen:         {"open to join", "good"},
	room.PhaseServing:      {"calling visitors", "good"},
	room.PhasePaused:       {"calls paused", "warn"},
	room.PhaseClaimsFrozen: {"claims frozen", "bad"},
	room.PhaseClosed:       {"closed to new visitors", "good"},
	room.PhaseEnded:        {"ended", ""},
	room.PhaseStopped:      {"records missing", "bad"},
}

// Phase returns the badge of a room's phase.
func Phase(phase room.Phase) Badge { return phases[phase] }

// Sentence writes an error as a sentence.
func Sentence(err error) string {
	text := err.Error()
	return string(text[0]-'a'+'A') + text[1:] + "."
}
