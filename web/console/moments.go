package console

import (
	"html/template"
	"time"
)

// momentWords writes a moment as pages do: 22 Nov 2026, 18:00. Seconds appear
// unless they are 0. The script writes the same in the browser's time zone
// (web/ui/src/console/times.ts).
func momentWords(t time.Time) string {
	if t.Second() == 0 {
		return t.Format("2 Jan 2006, 15:04")
	}
	return t.Format("2 Jan 2006, 15:04:05")
}

// when writes a moment as a <time>, in UTC; scripts turn it into local time.
func when(t any) template.HTML {
	moment, ok := t.(time.Time)
	if p, isPointer := t.(*time.Time); isPointer && p != nil {
		moment, ok = *p, true
	}
	if !ok || moment.IsZero() {
		return "&ndash;"
	}
	moment = moment.UTC()
	return template.HTML(`<time datetime="` + moment.Format(time.RFC3339) + `" data-local>` + momentWords(moment) + ` UTC</time>`) //nolint:gosec // digits
}

// momentLine writes a moment of the configuration as pages do; text that is no
// moment stays as it was typed.
func momentLine(text string) string {
	if t, ok := parseMoment(text); ok {
		return momentWords(t) + " UTC"
	}
	return text
}
