package format

import (
	"html/template"
	"time"
)

// MomentLayout is the layout of moments in the configuration of rooms.
const MomentLayout = "2006-01-02T15:04:05.999Z07:00"

// fieldLayout is the layout of datetime-local fields.
const fieldLayout = "2006-01-02T15:04:05.999"

// momentLayouts are the layouts in which browsers send moments: RFC 3339 from the script, and the
// field's own layout without the script, which is in UTC.
var momentLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04",
}

// Moment writes a moment: 22 Nov 2026, 18:00. Seconds appear unless they are 0. The script writes
// the same in the browser's time zone (web/ui/src/console/times.ts).
func Moment(t time.Time) string {
	if t.Second() == 0 {
		return t.Format("2 Jan 2006, 15:04")
	}
	return t.Format("2 Jan 2006, 15:04:05")
}

// When writes a moment as a <time> element in UTC, which scripts turn into local time.
func When(t any) template.HTML {
	moment, ok := t.(time.Time)
	if p, isPointer := t.(*time.Time); isPointer && p != nil {
		moment, ok = *p, true
	}
	if !ok || moment.IsZero() {
		return "&ndash;"
	}
	moment = moment.UTC()
	return template.HTML(`<time datetime="` + moment.Format(time.RFC3339) + `" data-local>` + //nolint:gosec // digits
		Moment(moment) + ` UTC</time>`)
}

// MomentLine writes a moment of the configuration as pages show it. Text that is not a moment is
// returned unchanged.
func MomentLine(text string) string {
	if t, ok := ParseMoment(text); ok {
		return Moment(t) + " UTC"
	}
	return text
}

// ReadMoment returns a typed moment in the layout of the configuration, or the text unchanged if it
// is not a moment.
func ReadMoment(text string) string {
	for _, layout := range momentLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC().Format(MomentLayout)
		}
	}
	return text
}

// ParseMoment reads a moment of the configuration.
func ParseMoment(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return t.UTC(), err == nil
}

// MomentField writes a moment of the configuration for a datetime-local field, in UTC.
func MomentField(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.UTC().Format(fieldLayout)
}

// MomentStep returns the step of a field with a moment, in seconds: 1, or less if the moment is
// more precise.
func MomentStep(text string) string {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.Nanosecond() != 0 {
		return "0.001"
	}
	return "1"
}
