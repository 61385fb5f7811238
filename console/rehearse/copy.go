package rehearse

import (
	"crypto/rand"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/room"
)

// How a schedule is pressed together.
const (
	mostBefore = time.Minute      // from opening to start
	mostWindow = 30 * time.Second // of windows after the start
	mostGap    = 2 * time.Minute  // between two rules after the start
	mostClaim  = time.Minute
	minWindow  = 100 * time.Millisecond
)

// Bounds of what a copy is called.
const (
	mostSlug  = 63
	mostTitle = 200 // characters
	prefix    = "Rehearsal: "
)

// Copy returns the room to rehearse a configuration in, which opens at a moment.
// The time before the start is pressed into at most before, with its windows in
// proportion, so that one draw for all who come early stays one; windows after
// the start last at most window. People may join until it ends. Beacon, witnesses, outflow, brand and targets are those of the room.
func Copy(base room.Config, opens, ends time.Time, before, window time.Duration) room.Config {
	rules := SimulatedRoom(base)
	c := base
	c.Slug, c.Title = copySlug(base.Slug), copyTitle(base)
	opens = opens.Truncate(time.Millisecond)
	length := time.Duration(rules.Starts)
	starts := opens.Add(min(length, before))
	c.Opens, c.Starts, c.Closes, c.Windows = &opens, &starts, &ends, nil
	claim := room.Duration(min(time.Duration(rules.Claim), mostClaim))
	c.Claim = &claim
	at, last := starts, length
	for _, w := range rules.Rules() {
		from, each := opens, max(min(time.Duration(w.Length), window), minWindow)
		if t := time.Duration(w.From); t < length { // before the start: in proportion
			shrink := func(d time.Duration) time.Duration {
				return time.Duration(float64(d) * float64(min(length, before)) / float64(length)).Round(time.Millisecond)
			}
			before := min(time.Duration(w.Length), length-t)
			each = max(shrink(before)+min(time.Duration(w.Length)-before, window), minWindow)
			from = opens.Add(shrink(t))
		} else {
			at = at.Add(min(t-last, mostGap))
			from, last = at, t
		}
		if n := len(c.Windows); n > 0 && !from.After(*c.Windows[n-1].From) {
			c.Windows = c.Windows[:n-1] // pressed to nothing
		}
		if from.Before(ends) {
			c.Windows = append(c.Windows, room.WindowRule{From: &from, Length: room.Duration(each)})
		}
	}
	return c
}

// SimulatedRoom returns what decides about the line of a room, in the words of
// the simulator: with times that count from the opening. What a configuration
// leaves open is the default of rooms.
func SimulatedRoom(c room.Config) simulate.Room {
	r := simulate.Room{
		Outflow: simulate.Outflow{PerMinute: c.Outflow.PerMinute, MaxActive: c.Outflow.MaxActive},
		Claim:   simulate.Duration(room.DefaultClaim), Session: simulate.Duration(room.DefaultSession),
		Draw: simulate.Default().Room.Draw,
	}
	if r.Outflow.PerMinute == 0 {
		r.Outflow.PerMinute = room.DefaultPerMinute
	}
	if c.Claim != nil {
		r.Claim = simulate.Duration(*c.Claim)
	}
	if c.Session != nil {
		r.Session = simulate.Duration(*c.Session)
	}
	if c.Beacon == "none" {
		r.Draw = 0
	}
	opens := opening(c)
	after := func(t *time.Time) simulate.Duration {
		if t == nil || opens == nil {
			return 0
		}
		return max(simulate.Duration(t.Sub(*opens).Truncate(time.Millisecond)), 0)
	}
	r.Starts = after(c.Starts)
	if c.Closes != nil && opens != nil {
		closes := after(c.Closes)
		r.Closes = &closes
	}
	for _, w := range c.Windows {
		r.Windows = append(r.Windows, simulate.WindowRule{From: after(w.From), Length: simulate.Duration(w.Length)})
	}
	return r
}

// opening is when a room opens, as far as its configuration says. One that
// opens at once starts at once as well, unless it says when it starts.
func opening(c room.Config) *time.Time {
	switch {
	case c.Opens != nil:
		return c.Opens
	case len(c.Windows) > 0 && c.Windows[0].From != nil:
		return c.Windows[0].From
	}
	return c.Starts
}

func copySlug(slug string) string {
	const suffix = "-rehearsal-"
	slug = slug[:min(len(slug), mostSlug-len(suffix)-4)]
	return strings.Trim(strings.TrimRight(slug, "-")+suffix+strings.ToLower(rand.Text()[:4]), "-")
}

// copyTitle says that the room is a rehearsal; of a copy of a copy once.
func copyTitle(base room.Config) string {
	title := base.Title
	if title == "" {
		title = base.Slug
	}
	title = prefix + strings.TrimPrefix(title, prefix)
	if utf8.RuneCountInString(title) > mostTitle {
		title = string(slices.Clone([]rune(title)[:mostTitle]))
	}
	return title
}
