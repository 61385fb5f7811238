package findings

import (
	"fmt"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// amended is the effect of amendments on the policy so far.
type amended struct {
	outflow fairness.Outflow
	closes  fairness.Time
	kinds   map[string]uint64

	open   *stretch // the gate, while it is open
	paused *stretch // the pause, while the room is paused
}

// stretch is an interval that has begun, with its item in a finding.
type stretch struct {
	from         fairness.Time
	item         *Item // nil: not listed
	claimsFrozen bool
}

// amend adds an amendment, described by its effect on visitors.
func (f *Finder) amend(s *fairness.State, e *fairness.Amend) {
	a := &f.amended
	kind, text := string(e.Change), ""
	switch e.Change {
	case fairness.ChangeOutflow:
		text, a.outflow = outflowWords(a.outflow, e.Outflow)+f.told.by, e.Outflow
	case fairness.ChangeMessage:
		text = "The message to visitors changed. The order of the line did not."
		if e.Message == [fairness.HashSize]byte{} {
			text = "The message to visitors was taken away. The order of the line did not change."
		}
	case fairness.ChangeSeats:
		text = fmt.Sprintf("From here on there were %s. Nothing that was called before changed.",
			numeral.Count(uint64(e.Seats), "seat", "seats"))
	case fairness.ChangeWindows:
		text, a.closes = windowWords(a.closes, e), e.Closes
	case fairness.ChangePause, fairness.ChangeResume:
		f.pause(s, e)
		return
	case fairness.ChangeOpen:
		text = "From here on the site admitted visitors who were not in line."
		f.add(Gate, s, "open", "", 0)
		a.open = &stretch{from: e.Time, item: f.latest(Gate)}
	case fairness.ChangeShut:
		text = "From here on the site admitted only visitors who waited in line."
		a.shut(f, e.Time, "")
	}
	f.note(s, kind, text)
}

// pause adds a pause, a freeze of claims, or the end of one.
func (f *Finder) pause(s *fairness.State, e *fairness.Amend) {
	a := &f.amended
	was := a.paused
	a.still(e.Time, "")
	switch {
	case e.Change == fairness.ChangeResume && was != nil && was.claimsFrozen:
		f.note(s, "resume", "Calls and claims continued.")
	case e.Change == fairness.ChangeResume:
		f.note(s, "resume", "Calls continued.")
	case e.Claims:
		f.note(s, "freeze-claims", "No visitors were called, and called visitors could not go in")
		a.paused = &stretch{from: e.Time, item: f.latest(Amendments), claimsFrozen: true}
	default:
		f.note(s, "pause", "No visitors were called; called visitors could go in")
		a.paused = &stretch{from: e.Time, item: f.latest(Amendments)}
	}
}

// note lists an amendment, and counts it by its kind.
func (f *Finder) note(s *fairness.State, kind, text string) {
	if f.amended.kinds == nil {
		f.amended.kinds = map[string]uint64{}
	}
	f.amended.kinds[kind]++
	f.add(Amendments, s, kind, text, 0)
}

// latest returns the item that was listed last; nil if the list is full.
func (f *Finder) latest(id ID) *Item {
	found := f.found[id]
	if found.Count > maxItems {
		return nil
	}
	if cap(found.Items) < maxItems { // items must not move, because pointers to them exist from here on
		found.Items = append(make([]Item, 0, maxItems), found.Items...)
	}
	return &found.Items[len(found.Items)-1]
}

// still ends a pause at a time, and adds its length to the text.
func (a *amended) still(at fairness.Time, more string) {
	if a.paused == nil {
		return
	}
	if item := a.paused.item; item != nil {
		item.Text += ", for " + span(fairness.Millis(at-a.paused.from)) + more +
			". Called visitors lost no time to claim."
	}
	a.paused = nil
}

// shut ends an interval in which the gate was open.
func (a *amended) shut(f *Finder, at fairness.Time, more string) {
	if a.open == nil {
		return
	}
	length := fairness.Millis(at - a.open.from)
	found := f.found[Gate]
	found.Longest, found.Total = max(found.Longest, length), found.Total+length
	if item := a.open.item; item != nil {
		item.Text = "Open from " + moment(a.open.from) + ", for " + span(length) + more + "."
	}
	a.open = nil
}

// close ends the intervals still open at the end of the transcript.
func (a *amended) close(f *Finder) {
	until := " up to the latest entry"
	if f.ended {
		until = " up to the end of the room"
	}
	a.still(f.last, until)
	a.shut(f, f.last, until)
}

func outflowWords(was, is fairness.Outflow) string {
	text := ""
	switch {
	case is.PerMinute > was.PerMinute:
		text = fmt.Sprintf("Visitors could be called faster: %s a minute instead of %s", rate(is.PerMinute),
			rate(was.PerMinute))
	case is.PerMinute < was.PerMinute:
		text = fmt.Sprintf("Visitors were called more slowly: at most %s a minute instead of %s", rate(is.PerMinute),
			rate(was.PerMinute))
	default:
		text = fmt.Sprintf("The pace of calls stayed at %s a minute", rate(is.PerMinute))
	}
	if is.MaxActive != was.MaxActive {
		text += fmt.Sprintf("; at the site at once: %s instead of %s", most(is.MaxActive), most(was.MaxActive))
	}
	return text + "."
}

func rate(n uint32) string { return numeral.Group(uint64(n)) }

func most(n uint32) string {
	if n == 0 {
		return "any number"
	}
	return "at most " + rate(n)
}

func windowWords(was fairness.Time, e *fairness.Amend) string {
	text := ""
	switch {
	case e.Closes > was:
		text = "Visitors could join for longer: " + until(e.Closes) + " instead of " + until(was)
	case e.Closes < was:
		text = "Visitors could not join for as long: " + until(e.Closes) + " instead of " + until(was)
	default:
		text = "Visitors could join " + until(e.Closes) + ", as before"
	}
	for i, r := range e.Windows {
		if i == 4 {
			text += fmt.Sprintf("; and %d more lengths", len(e.Windows)-i)
			break
		}
		text += fmt.Sprintf("; from %s on, arrivals of each %s were drawn together", moment(r.From), span(r.Length))
	}
	return text + "."
}
