package page

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// linePage is the template data of a line's page.
type linePage struct {
	frame
	View *View
}

// warnAt is the remaining claim time at which the page warns.
const warnAt = time.Minute

// lateAfter is the delay after which the page says that a draw is late.
const lateAfter = 30 * time.Second

// TicketCode returns the visitor's ticket, for the visitor to quote to the organizer.
func (p *linePage) TicketCode() template.HTML {
	return trusted(`<code dir="ltr">` + template.HTMLEscapeString(p.View.Ticket.ID) + `</code>`)
}

// Changes reports whether the state shown by the page can still change.
func (p *linePage) Changes() bool {
	switch p.View.State {
	case Upcoming, Joinable, Full, Waiting, Drawn, Called:
		return true
	default:
		return false
	}
}

// In reports whether the page is in one of these states.
func (p *linePage) In(states ...State) bool { return slices.Contains(states, p.View.State) }

// Party returns the number of seats that the visitor joined for.
func (p *linePage) Party() uint64 { return uint64(p.View.Ticket.Seats) }

// Seats returns the numbers of seats to choose from; nil: the visitor has no choice.
func (p *linePage) Seats() []uint32 {
	if p.View.Party < 2 {
		return nil
	}
	list := make([]uint32, p.View.Party)
	for i := range list {
		list[i] = uint32(i) + 1 //nolint:gosec // at most the party
	}
	return list
}

// Wanted returns the visitor's languages, for scripts.
func (p *linePage) Wanted() string { return strings.Join(p.View.Room.Message.Wanted, " ") }

// HasMessage reports whether to show the organizer's message. It is for visitors in line, so it is
// hidden once the line has ended or the place is settled.
func (p *linePage) HasMessage() bool {
	return p.View.Room.Message.Words != "" && !p.In(Ended, Revoked)
}

// HasWork reports whether the page can have a task for the visitor's browser.
func (p *linePage) HasWork() bool {
	needs := func(c Confirmation) bool { return c.Work != nil }
	return len(p.View.Works) > 0 || slices.ContainsFunc(p.View.Confirmations, needs)
}

// Ways returns the number of lanes that the page leads to with credentials.
func (p *linePage) Ways() int {
	n := len(p.View.Works)
	for _, c := range p.View.Confirmations {
		if !c.IsLot {
			n++
		}
	}
	return n
}

// Bearer returns the ticket that an issuer is to confirm; empty: the visitor needs a new one first.
func (p *linePage) Bearer(c *Confirmation) string {
	switch t := p.View.Ticket; {
	case t == nil:
		return p.View.Own
	case c.IsLot:
		return t.ID
	}
	return ""
}

// taskPage is the template data of one task.
type taskPage struct {
	*linePage
	Task *Work
}

// Of returns the data of the task w.
func (p *linePage) Of(w *Work) *taskPage { return &taskPage{p, w} }

// Placeholder returns an element that scripts fill.
func (p *linePage) Placeholder(name string) template.HTML {
	return trusted(`<span data-` + name + `></span>`)
}

// Open returns the page as it is at the opening of the line.
func (p *linePage) Open() *linePage {
	v := *p.View
	v.State = Joinable
	return &linePage{frame: p.frame, View: &v}
}

// Base returns the number of people who joined in earlier windows; with gaps, see Rank.
func (p *linePage) Base() uint64 {
	if p.View.HasGaps {
		return p.View.Ticket.Passed + p.View.Ticket.AheadMin
	}
	return p.View.Ticket.Called + p.View.Ticket.AheadMin
}

// Scripted returns the attribute of elements that scripts show.
func (p *linePage) Scripted() template.HTMLAttr { return hidden(p.Inline == nil) }

// Static returns the attribute of elements that scripts hide.
func (p *linePage) Static() template.HTMLAttr { return hidden(p.Inline != nil) }

func hidden(is bool) template.HTMLAttr {
	if is {
		return " hidden"
	}
	return ""
}

// Countdown returns the remaining time in previews, where no script writes it.
func (p *linePage) Countdown() string {
	if p.Inline == nil {
		return ""
	}
	left := p.View.Opens.Sub(p.View.Now)
	if p.View.Ticket != nil {
		left = p.View.Ticket.Left
	}
	return fmt.Sprintf("%d:%02d", int(left.Minutes()), int(left.Seconds())%60)
}

// Expected returns the expected time of the call, or nil if there is none to show, for example
// because the draw is late.
func (p *linePage) Expected() *Span {
	if p.View.Ticket == nil || p.View.Ticket.Expected == nil || p.View.Ticket.Grows || p.In(Waiting) &&
		!p.View.Now.Before(p.Late()) {
		return nil
	}
	s := p.round(*p.View.Ticket.Expected)
	return &s
}

// Soonest returns the earliest time of the call while the visitor's window still grows and there is
// no latest one; otherwise nil.
func (p *linePage) Soonest() *time.Time {
	if p.View.Ticket == nil || p.View.Ticket.Expected == nil || !p.View.Ticket.Grows {
		return nil
	}
	earliest := p.round(*p.View.Ticket.Expected).Earliest
	return &earliest
}

// Deadline returns the end of the claim time, unless the room is paused.
func (p *linePage) Deadline() time.Time { return p.View.Now.Add(p.View.Ticket.Left) }

// Warning returns the attribute of the warning that little time is left.
func (p *linePage) Warning() template.HTMLAttr {
	if p.View.Paused && p.View.Ticket.Left > warnAt {
		return " hidden"
	}
	return p.Since(p.Deadline().Add(-warnAt))
}

// Host returns the host of the target, for display.
func (p *linePage) Host() string {
	if u, err := url.Parse(p.View.Target); err == nil && u.Host != "" {
		return u.Host
	}
	return p.View.Target
}

// Heading returns the key of the heading of a settled place.
func (p *linePage) Heading() string { return string(p.View.State) + ".heading" }

// Lead returns the key of the text below the heading.
func (p *linePage) Lead() string {
	if p.In(Over) && (p.View.Without == Ended || p.View.Without == Closed) {
		return "admitted.lead" // there are no new places
	}
	return string(p.View.State) + ".lead"
}

// Group returns the number of people in the visitor's window.
func (p *linePage) Group() uint64 { return uint64(p.View.Ticket.Window.Arrivals) }

// Late returns the time from which the draw of the visitor's window counts as late.
func (p *linePage) Late() time.Time { return p.View.Ticket.Window.Draws.Add(lateAfter) }

// Figure formats a highlighted number.
func (p *linePage) Figure(n uint64) template.HTML {
	return trusted("<b>" + template.HTMLEscapeString(p.Number(n)) + "</b>")
}

// DrawTime returns the time from the join to the draw, in milliseconds.
func (p *linePage) DrawTime() int64 {
	return max(1, p.View.Ticket.Window.Draws.Sub(p.View.Ticket.Joined).Milliseconds())
}

// DrawTimePassed returns the part of DrawTime that has passed.
func (p *linePage) DrawTimePassed() int64 {
	if p.View.Ticket.Position > 0 {
		return p.DrawTime()
	}
	return min(max(0, p.View.Now.Sub(p.View.Ticket.Joined).Milliseconds()), p.DrawTime())
}

// Every returns the chosen reload interval in seconds.
func (p *linePage) Every() uint64 { return uint64(max(0, p.Refresh)) }

// Link returns the path of the page in the same language with a reload interval in seconds, 0 for
// none.
func (p *linePage) Link(refresh int) string {
	link := p.View.Room.Path() + "?lang=" + string(p.Lang)
	if refresh > 0 {
		link += "&refresh=" + strconv.Itoa(refresh)
	}
	return link
}
