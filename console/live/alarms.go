package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/room"
)

// Alarm is a condition that needs the organizer's attention.
type Alarm struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

// Level is the severity of an alarm.
type Level string

// The severities.
const (
	LevelNone Level = ""
	LevelWarn Level = "warn"
	LevelBad  Level = "bad"
)

// No-show rates from which an alarm is raised.
const (
	noShowWarn = 0.25
	noShowBad  = 0.5
)

// lateBeacon is how late a beacon round may be before an alarm.
const lateBeacon = 10 * time.Second

// Level returns the severity of the recent no-show rate, or of the overall rate if there is no
// recent one.
func (r NoShowRate) Level() Level {
	switch share := r.latest(); {
	case share < noShowWarn:
		return LevelNone
	case share < noShowBad:
		return LevelWarn
	}
	return LevelBad
}

// latest returns the recent rate, else the overall one, else 0.
func (r NoShowRate) latest() float64 {
	switch {
	case r.Recent != nil:
		return *r.Recent
	case r.Overall != nil:
		return *r.Overall
	}
	return 0
}

// lateFor returns a delay in milliseconds for readers.
func lateFor(ms int64) time.Duration {
	return (time.Duration(ms) * time.Millisecond).Round(time.Second)
}

// alarms lists the current alarms, worst first.
func (f *Figures) alarms() []Alarm {
	list := []Alarm{}
	if !f.Database.Answers {
		list = append(list, Alarm{LevelBad,
			"The database does not answer. Visitors keep their places, but joins and calls wait."})
	}
	if f.Beacon.isWorkLate() {
		list = append(list, Alarm{LevelBad, fmt.Sprintf("The public randomness is %s late, so devices cannot begin their work. "+
			"No visitor can join a lane that needs it.", lateFor(f.Beacon.WorkLateMS))})
	}
	if level := f.Rates.Level(); level != LevelNone && f.Phase != room.PhaseEnded {
		text := fmt.Sprintf("%.0f %% of the called visitors do not show up. Check that the shop opens for them.",
			f.Rates.latest()*100)
		list = append(list, Alarm{level, text})
	}
	if f.Beacon.isLate() {
		list = append(list, Alarm{LevelWarn, fmt.Sprintf(
			"The public randomness is %s late, so draws wait. No visitor loses a place.", lateFor(f.Beacon.LateMS))})
	}
	var away []string
	for _, n := range f.Nodes {
		if n.Lost || !n.Healthy {
			away = append(away, n.Name)
		}
	}
	if len(away) > 0 {
		list = append(list, Alarm{LevelWarn, "Not ready: server " + strings.Join(away, ", ") + "."})
	}
	return list
}

// withSeen adds what is wrong with the room as its visitors see it, in words, which is the worst; empty: nothing.
func withSeen(list []Alarm, seen string) []Alarm {
	if seen == "" {
		return list
	}
	return slices.Insert(list, 0, Alarm{LevelBad, seen})
}
