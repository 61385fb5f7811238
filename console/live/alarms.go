package live

import (
	"fmt"
	"strings"
	"time"

	"github.com/proofline/proofline/room"
)

// Alarm is something that the organizer should look at, in words.
type Alarm struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

// Level is how serious something is.
type Level string

// Levels.
const (
	LevelNone Level = ""
	LevelWarn Level = "warn"
	LevelBad  Level = "bad"
)

// Shares of called visitors who do not come that are worth a look.
const (
	noShowWarn = 0.25
	noShowBad  = 0.5
)

// lateBeacon is how late a round of the beacon may be without an alarm.
const lateBeacon = 10 * time.Second

// Level returns how serious the share of no-shows is, the recent one if there is
// one.
func (r NoShowRate) Level() Level {
	switch share := r.latest(); {
	case share < noShowWarn:
		return LevelNone
	case share < noShowBad:
		return LevelWarn
	}
	return LevelBad
}

// latest is the recent share, else the overall one, else 0.
func (r NoShowRate) latest() float64 {
	switch {
	case r.Recent != nil:
		return *r.Recent
	case r.Overall != nil:
		return *r.Overall
	}
	return 0
}

// alarms lists what the organizer should look at, the worst first.
func (f *Figures) alarms() []Alarm {
	list := []Alarm{}
	if !f.Database.Answers {
		list = append(list, Alarm{LevelBad, "The database does not answer. Visitors keep their places, but joins and calls wait."})
	}
	if level := f.Rates.Level(); level != LevelNone && f.Phase != room.PhaseEnded {
		text := fmt.Sprintf("%.0f %% of the visitors who are called do not come. Check that the shop opens for them.", f.Rates.latest()*100)
		list = append(list, Alarm{level, text})
	}
	if b := f.Beacon; b != nil && b.LateMS > lateBeacon.Milliseconds() {
		late := (time.Duration(b.LateMS) * time.Millisecond).Round(time.Second)
		list = append(list, Alarm{LevelWarn, fmt.Sprintf("The public randomness is %s late, so draws wait. No visitor loses a place.", late)})
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
