package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
)

// news collects the events of one step in plain words. Frequent kinds of entries are only counted.
type news struct {
	list                                           []string
	arrivals, places, admits, extensions, restored uint64
	skips                                          map[fairness.Reason]uint64
	called                                         bool
}

// maxNews is the maximum number of lines per step, besides the counts.
const maxNews = 100

func (n *news) say(format string, args ...any) {
	if len(n.list) < maxNews {
		n.list = append(n.list, fmt.Sprintf(format, args...))
	}
}

// add records an applied entry.
func (n *news) add(e fairness.Entry, r *replay) {
	switch e := e.(type) {
	case *fairness.Arrive:
		n.arrivals++
	case *fairness.Assign:
		n.places++
	case *fairness.Admit:
		n.admits++
	case *fairness.Restore:
		n.restored++
	case *fairness.Extend:
		n.extensions++
	case *fairness.Call:
		n.called = true
	case *fairness.Skip:
		if n.skips == nil {
			n.skips = map[fairness.Reason]uint64{}
		}
		n.skips[e.Reason]++
	case *fairness.Freeze:
		noun := "arrival"
		if len(r.state.Policy().Lots) > 0 { // an arrival may have several
			noun = "lot"
		}
		n.say("window %d is frozen with %s%s", e.Window, count(e.Total(), noun), awaits(e, r))
	case *fairness.Draw:
		n.say("window %d is drawn%s", e.Window, signedBy(r))
	case *fairness.Amend:
		n.say("amended: %s", amended(e))
	case *fairness.Tell:
		n.say("the operator states: %s", told(e))
	case *fairness.End:
		n.say("the room has ended")
	}
}

func awaits(e *fairness.Freeze, r *replay) string {
	b := r.state.Policy().Beacon
	if b == nil {
		return ""
	}
	return fmt.Sprintf("; its draw waits for round %d, at %s", e.Round, clock(fairness.Time(b.Emitted(e.Round))))
}

func signedBy(r *replay) string {
	if n := len(r.state.Policy().Witnesses); n > 0 {
		return fmt.Sprintf("; %d of %d witnesses had signed its freeze", r.signers, n)
	}
	return ""
}

func amended(e *fairness.Amend) string {
	switch e.Change {
	case fairness.ChangeOutflow:
		return fmt.Sprintf("outflow of %d a minute, at most %d at once (0 for no limit)", e.Outflow.PerMinute,
			e.Outflow.MaxActive)
	case fairness.ChangeMessage:
		return fmt.Sprintf("message to visitors with the SHA-256 %x", e.Message)
	case fairness.ChangeSeats:
		return count(uint64(e.Seats), "seat")
	case fairness.ChangeWindows:
		return "schedule of windows that have not opened, " + count(uint64(len(e.Windows)), "rule")
	case fairness.ChangePause:
		if e.Claims {
			return "freeze of claims: no calls, and called visitors cannot go in"
		}
		return "pause: no calls"
	case fairness.ChangeOpen:
		return "open: the site admits visitors who are not in line"
	case fairness.ChangeShut:
		return "shut: the site admits only visitors who waited in line"
	default:
		return string(e.Change)
	}
}

func told(e *fairness.Tell) string {
	switch e.Subject {
	case fairness.TellStock:
		return fmt.Sprintf("%d of %s are left", e.Count, e.Name)
	case fairness.TellPrice:
		return fmt.Sprintf("%s cost %d to %d minor units of %s", e.Name, e.Min, e.Max, e.Currency)
	case fairness.TellRefused:
		return fmt.Sprintf("%s refused (%s) from %s to %s",
			count(e.Count, "join"), e.Name, clock(e.From), clock(e.Until))
	case fairness.TellUnguarded:
		return fmt.Sprintf("fail-open: from %s to %s the site could not reach the room, and admitted %s without a pass",
			clock(e.From), clock(e.Until), count(e.Count, "request"))
	default: // auto
		return fmt.Sprintf("a program changes the outflow next (%s)", e.Name)
	}
}

// lines returns the events of a step, with the counts first.
func (n *news) lines(s *fairness.State) []string {
	var counts []string
	for _, c := range []struct {
		n    uint64
		noun string
	}{{n.arrivals, "arrival"}, {n.places, "place"}, {n.admits, "admission"}, {n.extensions, "extension"},
		{n.restored, "restored ticket"}} {
		if c.n > 0 {
			counts = append(counts, count(c.n, c.noun))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(n.skips)) {
		counts = append(counts, fmt.Sprintf("%d skipped (%s)", n.skips[reason], reason))
	}
	if n.called {
		counts = append(counts, fmt.Sprintf("called up to place %d", s.Counts().Called))
	}
	if len(counts) == 0 {
		return n.list
	}
	return append([]string{strings.Join(counts, ", ")}, n.list...)
}

// summary describes what was read when the watch began.
func summary(s *fairness.State) string {
	c := s.Counts()
	return fmt.Sprintf("read everything: %s, %s in %s, %s drawn, %s called, %s",
		count(s.Size(), "entry"), count(c.Arrivals, "arrival"), count(c.Windows, "window"),
		count(c.Drawn, "place"), count(c.Called, "place"), count(c.Admitted, "admission"))
}

func count(n uint64, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func clock(t fairness.Time) string { return time.UnixMilli(int64(t)).UTC().Format("15:04:05 UTC") }
