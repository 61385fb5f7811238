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

// Limits on the schedule of a copy.
const (
	maxBefore = time.Minute      // from opening to start
	maxWindow = 30 * time.Second // length of windows after the start
	maxGap    = 2 * time.Minute  // between two window rules after the start
	maxClaim  = time.Minute
	minWindow = 100 * time.Millisecond
	minNotice = 10 * time.Second
)

// Limits on slug and title of a copy.
const (
	maxSlug  = 63
	maxTitle = 200 // characters
	prefix   = "Rehearsal: "
)

// Copy returns the configuration of a rehearsal room that opens at opens. The time before the start
// is compressed to at most before, with its windows in proportion, so that a single draw for early
// visitors stays a single draw. Windows after the start last at most window. Visitors can join
// until ends. All else is as in base, and so is the number of slots: beacon, witnesses, methods, lanes, lots, parties,
// outflow, branding and targets.
func Copy(base room.Config, opens, ends time.Time, before, window time.Duration) room.Config {
	rules := SimulatedRoom(base)
	c := base
	c.Slug, c.Title = copySlug(base.Slug), copyTitle(base)
	opens = opens.Truncate(time.Millisecond)
	length := time.Duration(rules.Starts)
	starts := opens.Add(min(length, before))
	c.Opens, c.Starts, c.Closes, c.Windows = &opens, &starts, &ends, nil
	claim, notice := room.Duration(min(time.Duration(rules.Claim), maxClaim)), room.Duration(minNotice)
	c.Claim, c.Notice = &claim, &notice
	at, last := starts, length
	for _, w := range rules.Rules() {
		from, each := opens, max(min(time.Duration(w.Length), window), minWindow)
		if t := time.Duration(w.From); t < length { // before the start: in proportion
			shrink := func(d time.Duration) time.Duration {
				factor := float64(min(length, before)) / float64(length)
				return time.Duration(float64(d) * factor).Round(time.Millisecond)
			}
			before := min(time.Duration(w.Length), length-t)
			each = max(shrink(before)+min(time.Duration(w.Length)-before, window), minWindow)
			from = opens.Add(shrink(t))
		} else {
			at = at.Add(min(t-last, maxGap))
			from, last = at, t
		}
		if n := len(c.Windows); n > 0 && !from.After(*c.Windows[n-1].From) {
			c.Windows = c.Windows[:n-1] // compressed to nothing
		}
		if from.Before(ends) {
			c.Windows = append(c.Windows, room.WindowRule{From: &from, Length: room.Duration(each)})
		}
	}
	if c.Slots != nil && len(c.Windows) > 0 {
		c.Slots = copySlots(&c, rules.Slotted())
	}
	return c
}

// copySlots returns the length of slots that cut the first window of a copy into as many as its original has, or as
// milliseconds allow.
func copySlots(c *room.Config, slots int) *room.Duration {
	first := min(time.Duration(c.Windows[0].Length), c.Closes.Sub(*c.Opens))
	if len(c.Windows) > 1 {
		first = min(first, c.Windows[1].From.Sub(*c.Opens))
	}
	each := first/time.Duration(slots) + time.Millisecond - 1
	length := room.Duration(each.Truncate(time.Millisecond))
	return &length
}

// SimulatedRoom converts a configuration for the simulator, with times relative to the opening and
// the defaults of rooms.
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
	if c.Slots != nil {
		r.Slots = simulate.Duration(*c.Slots)
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

// opening returns the opening time of a configuration: if not given, the time of its first window, or its start.
// It is nil for a room that opens and starts at once.
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
	slug = slug[:min(len(slug), maxSlug-len(suffix)-4)]
	return strings.Trim(strings.TrimRight(slug, "-")+suffix+strings.ToLower(rand.Text()[:4]), "-")
}

// copyTitle marks a title as that of a rehearsal, once.
func copyTitle(base room.Config) string {
	title := base.Title
	if title == "" {
		title = base.Slug
	}
	title = prefix + strings.TrimPrefix(title, prefix)
	if utf8.RuneCountInString(title) > maxTitle {
		title = string(slices.Clone([]rune(title)[:maxTitle]))
	}
	return title
}
