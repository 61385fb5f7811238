package report

import (
	"regexp"
	"time"

	"github.com/proofline/proofline/fairness"
)

// moments formats times in the event's time zone, followed by UTC.
type moments struct{ zone *time.Location } // nil: UTC only

// isLocal reports whether the time zone differs from UTC.
func (m moments) isLocal() bool { return m.zone != nil && m.zone.String() != time.UTC.String() }

// in returns a time in the event's time zone.
func (m moments) in(t time.Time) time.Time {
	if m.isLocal() {
		return t.In(m.zone)
	}
	return t.UTC()
}

// moment formats a time of the room.
func (m moments) moment(t fairness.Time) string {
	if t >= fairness.Never {
		return "never"
	}
	return m.beside(time.UnixMilli(int64(t)))
}

const (
	day    = "2006-01-02"
	second = "15:04:05.999"
)

// beside formats a time in the event's time zone, followed by UTC.
func (m moments) beside(t time.Time) string {
	utc, local := t.UTC(), m.in(t)
	if !m.isLocal() {
		return utc.Format(day + " " + second + " UTC")
	}
	layout := second
	if utc.YearDay() != local.YearDay() {
		layout = day + " " + second
	}
	return local.Format(day+" "+second+" MST") + " (" + utc.Format(layout) + " UTC)"
}

var utcMoment = regexp.MustCompile(`\b\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,3})? UTC\b`)

// text converts UTC times in a sentence to local ones.
func (m moments) text(s string) string {
	if !m.isLocal() {
		return s
	}
	return utcMoment.ReplaceAllStringFunc(s, func(moment string) string {
		t, err := time.Parse(day+" "+second+" UTC", moment)
		if err != nil {
			return moment // not a time
		}
		return m.beside(t)
	})
}

// clock formats a time for an axis, with the day if the axis has several.
func (m moments) clock(t fairness.Time, days bool) string {
	format := "15:04:05"
	if days {
		format = "2 Jan 15:04"
	}
	return m.in(time.UnixMilli(int64(t))).Format(format)
}

// lastClock does what clock does, and appends the name of the time zone.
func (m moments) lastClock(t fairness.Time, days bool) string {
	return m.clock(t, days) + " " + m.in(time.UnixMilli(int64(t))).Format("MST")
}

// period formats an interval in words.
func (m moments) period(from, to fairness.Time) string {
	const day, minute = "2 January 2006", "15:04"
	first, last := m.in(time.UnixMilli(int64(from))), m.in(time.UnixMilli(int64(to)))
	if first.Format(day) == last.Format(day) {
		return first.Format(day+", "+minute) + " to " + last.Format(minute)
	}
	return first.Format(day+", "+minute) + " to " + last.Format(day+", "+minute)
}
