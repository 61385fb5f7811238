package page

import (
	"bytes"
	"html/template"
	"regexp"
	"slices"
	"time"
)

// Sample is the data for previews of a room, which may not exist yet.
type Sample struct {
	Room   Room
	Lang   Lang
	Now    time.Time
	Claim  time.Duration // time that a called visitor has to claim
	Target string        // origin to which a claim redirects; empty: none
}

// Inline is data that a preview page embeds, because it is not stored yet.
type Inline struct {
	Nonce string // nonce of the style in the Content-Security-Policy
	CSS   []byte // output of [Brand.In]
	Logo  string // data URL of an image; empty: none
}

// Style returns the style sheet, which this program generated; nothing if it could close its element.
func (in *Inline) Style() template.CSS {
	if bytes.IndexByte(in.CSS, '<') >= 0 {
		return ""
	}
	return template.CSS(in.CSS) //nolint:gosec // see above
}

// Image returns the logo if it is a base64 image.
func (in *Inline) Image() template.URL {
	if !imageForm.MatchString(in.Logo) {
		return ""
	}
	return template.URL(in.Logo) //nolint:gosec // see above
}

var imageForm = regexp.MustCompile(`^data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/]+=*$`)

// Example is one preview page.
type Example struct {
	Name  string // such as "drawn-paused"
	About string // description in English
	View  View
}

// Numbers in the examples.
const (
	samplePlace   = 4211
	sampleCalled  = 3190
	sampleEarlier = 3210
	sampleGroup   = 412
)

// Previews returns every page that a visitor of the room can see, in the order of a visit, with sample
// numbers.
func Previews(s Sample) []Example {
	now := s.Now.Truncate(time.Minute).Add(20 * time.Second)
	bare := func(state State) View {
		return View{
			Room: s.Room, Lang: s.Lang, State: state, Now: now, Opens: now.Add(-time.Hour),
			Starts: now.Add(-30 * time.Minute),
			Claim:  s.Claim, Target: s.Target, Without: Joinable, Poll: time.Minute,
		}
	}
	upcoming := bare(Upcoming)
	upcoming.Opens, upcoming.Starts = now.Add(12*time.Minute+34*time.Second), now.Add(42*time.Minute+34*time.Second)
	with := func(v View, change func(*View)) View {
		if v.Ticket != nil {
			ticket := *v.Ticket
			v.Ticket = &ticket
		}
		change(&v)
		return v
	}
	waiting, drawn := sampleWaiting(bare(Waiting)), sampleDrawn(bare(Drawn))
	called := sampleCalledNow(sampleDrawn(bare(Called)))
	settled := func(state State) View {
		return with(called, func(v *View) {
			v.State, v.Ticket.Left, v.Ticket.Settled = state, 0, now.Add(-2*time.Minute)
		})
	}
	paused := func(v *View) { v.Paused, v.Ticket.Expected = true, nil }
	return []Example{
		{"upcoming", "Before the line opens", upcoming},
		{"joinable", "Open, without a place", bare(Joinable)},
		{"joinable-open", "Open, and your site lets people in without waiting", with(bare(Joinable), func(v *View) { v.HasGate, v.Open, v.Way = true, true, s.Target })},
		{"joinable-vouched", "Open, and every lane needs credentials",
			with(bare(Joinable), func(v *View) { v.Vouched = true })},
		{"joinable-work", "Open, and devices solve a task to join",
			with(bare(Joinable), func(v *View) {
				v.Vouched, v.Works = true, []Work{{Lane: "general", Method: "work", Bits: 20}}
			})},
		{"full", "The line is full for now", bare(Full)},
		{"waiting", "In a group that is not drawn", waiting},
		{"waiting-paused", "The same in a pause", with(waiting, paused)},
		{"drawn", "With a place", drawn},
		{"drawn-slower", "With a place, and fewer people are let in than announced",
			with(drawn, func(v *View) { v.Slower = true })},
		{"drawn-paused", "With a place, in a pause", with(drawn, paused)},
		{"called", "May go in", called},
		{"called-late", "May go in, and little time is left", with(called, func(v *View) { v.Ticket.Left = 41 * time.Second })},
		{"called-claims-frozen", "May go in, and claims are frozen", with(called, func(v *View) { v.Paused, v.ClaimsFrozen = true, true })},
		{"admitted", "Went in", settled(Admitted)},
		{"over", "Went in, and came back after the visit", settled(Over)},
		{"missed", "Did not go in in time", settled(Missed)},
		{"left", "Gave the place up", settled(Left)},
		{"revoked", "Lost the place by your decision", settled(Revoked)},
		{"closed", "Joining has ended", bare(Closed)},
		{"ended", "The line has ended", bare(Ended)},
		{"rehearsal", "A place in a rehearsal", with(drawn, func(v *View) { v.Rehearsal = true })},
	}
}

// PreviewOf returns the example with the given name, or the first one.
func PreviewOf(s Sample, name string) Example {
	all := Previews(s)
	if i := slices.IndexFunc(all, func(e Example) bool { return e.Name == name }); i >= 0 {
		return all[i]
	}
	return all[0]
}

// sampleTicket belongs to no visitor: no real ticket is all zeros.
const sampleTicket = "00000000-0000-8000-8000-000000000000"

func sampleWaiting(v View) View {
	from := v.Now.Truncate(time.Minute)
	v.Ticket = &Ticket{
		ID: sampleTicket, Joined: v.Now.Add(-13 * time.Second),
		Window: Window{Index: 60, From: from, To: from.Add(time.Minute), Draws: from.Add(66 * time.Second),
			Arrivals: sampleGroup},
		Called: sampleCalled, AheadMin: sampleEarlier, AheadMax: sampleEarlier + sampleGroup - 1,
		Expected: &Span{v.Now.Add(14 * time.Minute), v.Now.Add(25 * time.Minute)},
	}
	return v
}

func sampleDrawn(v View) View {
	v = sampleWaiting(v)
	t, from := v.Ticket, v.Now.Truncate(time.Minute).Add(-11*time.Minute)
	t.Joined, t.Window.From, t.Window.To, t.Window.Draws = from.Add(40*time.Second), from, from.Add(time.Minute),
		from.Add(66*time.Second)
	t.Position, t.AheadMin, t.AheadMax = samplePlace, samplePlace-sampleCalled-1, samplePlace-sampleCalled-1
	return v
}

func sampleCalledNow(v View) View {
	t := v.Ticket
	t.Called, t.AheadMin, t.AheadMax, t.Expected, t.Left = samplePlace, 0, 0, nil, v.Claim*9/10
	return v
}
