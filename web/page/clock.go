package page

import (
	"cmp"
	"html/template"
	"strconv"
	"time"
)

// isoMillis is the layout of the datetime attribute.
const isoMillis = "2006-01-02T15:04:05.000Z"

// clock formats times to the minute, or to the second where minutes are too coarse. Without scripts
// times are in the event's time zone, which is named; scripts rewrite them in the visitor's time zone
// and format.
type clock struct {
	now     time.Time
	zone    *time.Location // time zone of the event; nil: UTC
	seconds bool           // show seconds, because the visitor's window is shorter than a minute
}

// Time formats a time, with the date if it is not today.
func (c clock) Time(t time.Time) template.HTML {
	if !c.seconds {
		t = t.Truncate(time.Minute)
	}
	return c.element("", t)
}

// By formats a deadline, with seconds if rounding to the minute would put it in the past.
func (c clock) By(t time.Time) template.HTML {
	if t.Truncate(time.Minute).Before(c.now.Add(time.Minute)) {
		c.seconds = true
	}
	return c.Time(t)
}

// Named does what Time does, and adds a name by which scripts can update the time.
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
	return trusted(`<time dir="auto"` + attribute + ` datetime="` + t.UTC().Format(isoMillis) + `">` + c.words(t) +
		`</time>`)
}

func sameDay(a, b time.Time) bool { return a.YearDay() == b.YearDay() && a.Year() == b.Year() }

// Until returns the attribute of an element that is shown before t; scripts hide it then.
func (c clock) Until(t time.Time) template.HTMLAttr {
	return c.border("data-until", t, !c.now.Before(t))
}

// Since returns the attribute of an element that is shown from t on.
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

// step returns the rounding step of an expected time: the further away, the coarser.
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
