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

// linePage is the page of a line.
type linePage struct {
	frame
	View *View
}

// warnAt is how much time to go in is left when the page warns.
const warnAt = time.Minute

// lateAfter is how long after its time a draw is said to be late.
const lateAfter = 30 * time.Second

// TicketCode is the visitor's ticket, to be named to the organizer.
func (p *linePage) TicketCode() template.HTML {
	return trusted(`<code dir="ltr">` + template.HTMLEscapeString(p.View.Ticket.ID) + `</code>`)
}

// Changes tells whether anything can still happen to what the page shows.
func (p *linePage) Changes() bool {
	switch p.View.State {
	case Upcoming, Joinable, Full, Waiting, Drawn, Called:
		return true
	}
	return false
}

// In tells whether the page is in one of these states.
func (p *linePage) In(states ...State) bool { return slices.Contains(states, p.View.State) }

// Wanted are the visitor's languages, for scripts.
func (p *linePage) Wanted() string { return strings.Join(p.View.Room.Message.Wanted, " ") }

// HasMessage reports whether the organizer's message is shown: what people in
// line are told is over with the line, and with the place.
func (p *linePage) HasMessage() bool {
	return p.View.Room.Message.Words != "" && !p.In(Ended, Revoked)
}

// Open returns the page as it is the moment the line opens.
func (p *linePage) Open() *linePage {
	v := *p.View
	v.State = Joinable
	return &linePage{frame: p.frame, View: &v}
}

// Base is how many people have joined in earlier groups.
func (p *linePage) Base() uint64 { return p.View.Ticket.Called + p.View.Ticket.AheadMin }

// Scripted is the attribute of what scripts show.
func (p *linePage) Scripted() template.HTMLAttr { return hidden(p.Inline == nil) }

// Static is the attribute of what scripts hide.
func (p *linePage) Static() template.HTMLAttr { return hidden(p.Inline != nil) }

func hidden(is bool) template.HTMLAttr {
	if is {
		return " hidden"
	}
	return ""
}

// Countdown is the time to go, where no script writes it.
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

// Expected returns the range to show for the call, nil for none: while a draw is
// late, nobody knows when it comes.
func (p *linePage) Expected() *Span {
	if p.View.Ticket == nil || p.View.Ticket.Expected == nil || p.View.Ticket.Grows || p.In(Waiting) && !p.View.Now.Before(p.Late()) {
		return nil
	}
	s := p.round(*p.View.Ticket.Expected)
	return &s
}

// Soonest returns the earliest moment of the call while the visitor's group still
// grows, when there is no latest one; nil otherwise.
func (p *linePage) Soonest() *time.Time {
	if p.View.Ticket == nil || p.View.Ticket.Expected == nil || !p.View.Ticket.Grows {
		return nil
	}
	earliest := p.round(*p.View.Ticket.Expected).Earliest
	return &earliest
}

// Deadline is when the time to go in is over, if there is no pause.
func (p *linePage) Deadline() time.Time { return p.View.Now.Add(p.View.Ticket.Left) }

// Warning is the attribute of what is said when little time is left.
func (p *linePage) Warning() template.HTMLAttr {
	if p.View.Paused && p.View.Ticket.Left > warnAt {
		return " hidden"
	}
	return p.Since(p.Deadline().Add(-warnAt))
}

// Host is the host of the target, which people can read.
func (p *linePage) Host() string {
	if u, err := url.Parse(p.View.Target); err == nil && u.Host != "" {
		return u.Host
	}
	return p.View.Target
}

// Heading is the message that heads a settled place.
func (p *linePage) Heading() string { return string(p.View.State) + ".heading" }

// Lead is the message below it.
func (p *linePage) Lead() string { return string(p.View.State) + ".lead" }

// Group is how many people are in the visitor's group.
func (p *linePage) Group() uint64 { return uint64(p.View.Ticket.Window.Arrivals) }

// Late is when the draw of the visitor's group is later than it takes to draw.
func (p *linePage) Late() time.Time { return p.View.Ticket.Window.Draws.Add(lateAfter) }

// Figure is a number that stands out.
func (p *linePage) Figure(n uint64) template.HTML {
	return trusted("<b>" + template.HTMLEscapeString(p.Number(n)) + "</b>")
}

// DrawTime is how long the way from joining to the draw is, in milliseconds.
func (p *linePage) DrawTime() int64 {
	return max(1, p.View.Ticket.Window.Draws.Sub(p.View.Ticket.Joined).Milliseconds())
}

// DrawTimePassed is how much of it is behind.
func (p *linePage) DrawTimePassed() int64 {
	if p.View.Ticket.Position > 0 {
		return p.DrawTime()
	}
	return min(max(0, p.View.Now.Sub(p.View.Ticket.Joined).Milliseconds()), p.DrawTime())
}

// Every is the chosen interval of loading anew, in seconds.
func (p *linePage) Every() uint64 { return uint64(max(0, p.Refresh)) }

// Link is the path of the page in the same language, loading itself anew after
// so many seconds, 0 for never.
func (p *linePage) Link(refresh int) string {
	link := p.View.Room.Path() + "?lang=" + string(p.Lang)
	if refresh > 0 {
		link += "&refresh=" + strconv.Itoa(refresh)
	}
	return link
}
