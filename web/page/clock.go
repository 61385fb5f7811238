package page

import (
	"cmp"
	"html/template"
	"strconv"
	"time"
)

// isoMillis is how a <time> says a moment to scripts.
const isoMillis = "2006-01-02T15:04:05.000Z"

// clock writes moments as clocks show them: to the minute, or to the second where
// minutes say too little. Without scripts they are in the event's time zone, and
// say so; a script writes them anew in the visitor's time zone and manner.
type clock struct {
	now     time.Time
	zone    *time.Location // of the event; nil for UTC
	seconds bool           // the visitor's group is of a window shorter than a minute
}

// Time writes a moment, with the date where it is not today's.
func (c clock) Time(t time.Time) template.HTML {
	if !c.seconds {
		t = t.Truncate(time.Minute)
	}
	return c.element("", t)
}

// By writes a deadline: with seconds, too, where it would be over to the minute.
func (c clock) By(t time.Time) template.HTML {
	if t.Truncate(time.Minute).Before(c.now.Add(time.Minute)) {
		c.seconds = true
	}
	return c.Time(t)
}

// Named is Time for scripts that put another moment there.
func (c clock) Named(name string, t time.Time) template.HTML {
	return c.element(` data-moment="`+template.HTMLEscapeString(name)+`"`, t)
}

func (c clock) words(t time.Time) string {
	zone := cmp.Or(c.zone, time.UTC)
	t = t.In(zone)
	layout := "15:04"
	if t.Second() != 0 {
		layout = "15:04:05"
	}
	if !sameDay(t, c.now.In(zone)) {
		layout = "2006-01-02 " + layout
	}
	return t.Format(layout + " MST")
}

func (c clock) element(attribute string, t time.Time) template.HTML {
	return trusted(`<time dir="auto"` + attribute + ` datetime="` + t.UTC().Format(isoMillis) + `">` + c.words(t) + `</time>`)
}

func sameDay(a, b time.Time) bool { return a.YearDay() == b.YearDay() && a.Year() == b.Year() }

// Until is the attribute of what is said before a moment: scripts hide it then.
func (c clock) Until(t time.Time) template.HTMLAttr {
	return c.border("data-until", t, !c.now.Before(t))
}

// Since is the attribute of what is said from a moment on.
func (c clock) Since(t time.Time) template.HTMLAttr {
	return c.border("data-since", t, c.now.Before(t))
}

func (c clock) border(name string, t time.Time, hidden bool) template.HTMLAttr {
	attribute := ` ` + name + `="` + strconv.FormatInt(t.UnixMilli(), 10) + `"`
	if hidden {
		attribute += " hidden"
	}
	return template.HTMLAttr(attribute) //nolint:gosec // put together from constants and a number
}

// step is how exactly an expected moment is said: the further away, the less.
func step(ahead time.Duration) time.Duration {
	switch {
	case ahead < time.Hour:
		return time.Minute
	case ahead < 6*time.Hour:
		return 5 * time.Minute
	}
	return 15 * time.Minute
}

// round widens a range to whole steps.
func (c clock) round(s Span) Span {
	by := step(s.Latest.Sub(c.now))
	return Span{Earliest: s.Earliest.Truncate(by), Latest: s.Latest.Add(by - 1).Truncate(by)}
}
