package live

import (
	"fmt"
	"math"
	"time"

	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
)

// turn describes when a visitor who joins now will be called.
func turn(f live.Figures) string {
	if f.Joining == nil {
		return format.Dash
	}
	return spanAhead(f.At, *f.Joining)
}

// spanAhead describes when something is expected. The further away it is, the coarser the description.
func spanAhead(at time.Time, s live.Span) string {
	earliest, latest := s.Earliest.Sub(at).Minutes(), s.Latest.Sub(at).Minutes()
	step := 15.0
	switch {
	case latest < 1:
		return "within a minute"
	case latest < 60:
		step = 1
	case latest < 360:
		step = 5
	}
	from, to := math.Max(math.Floor(earliest/step)*step, 0), math.Ceil(latest/step)*step
	if latest >= 3000 { // days
		return fmt.Sprintf("in %.0f to %.0f h", math.Floor(from/60), math.Ceil(to/60))
	}
	return fmt.Sprintf("in %.0f to %.0f min", from, to)
}

// windowState describes the state of a window.
func windowState(w live.Window) string {
	switch {
	case w.Drawn:
		return "drawn"
	case w.Frozen:
		return "waits for its draw"
	}
	return "open"
}

// ahead reports whether a moment is after another.
func ahead(at time.Time, moment any) bool {
	t, ok := givenMoment(moment)
	return ok && t.After(at)
}

func givenMoment(moment any) (time.Time, bool) {
	switch t := moment.(type) {
	case time.Time:
		return t, true
	case *time.Time:
		if t != nil {
			return *t, true
		}
	}
	return time.Time{}, false
}

// until writes the time until a moment as a countdown: 0:42, 12:05, 3:12:05, 2 d 03:00.
func until(at time.Time, moment any) string {
	t, ok := givenMoment(moment)
	if !ok {
		return format.Dash
	}
	seconds := int64(math.Ceil(t.Sub(at).Seconds()))
	switch days, hours, minutes, rest := seconds/86400, seconds/3600%24, seconds/60%60, seconds%60; {
	case seconds <= 0:
		return "now"
	case days > 0:
		return fmt.Sprintf("%d d %02d:%02d", days, hours, minutes)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, rest)
	default:
		return fmt.Sprintf("%d:%02d", minutes, rest)
	}
}

// emptied describes when everyone who is now in line will be called.
func emptied(f live.Figures) string {
	switch {
	case f.Waiting == 0:
		return "no line"
	case f.Phase == room.PhasePaused || f.Phase == room.PhaseClaimsFrozen:
		return "not while stopped"
	case f.Next.Called == nil:
		return format.Dash
	}
	return spanAhead(f.At, *f.Next.Called)
}
