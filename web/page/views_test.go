package page_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/proofline/proofline/web/page"
)

var preview = flag.String("preview", "", "directory to write every page to, for looking at it; served as a site, with the built files below /assets")

// noon is the current time in all these tests.
var noon = time.Date(2030, 5, 1, 12, 3, 20, 0, time.UTC)

func at(minutes float64) time.Time {
	return noon.Truncate(time.Minute).Add(time.Duration(minutes * float64(time.Minute)))
}

var room = page.Room{
	Slug: "concert", Title: "Summer concert: general sale", Organizer: "Fans & Friends",
	Origin: "tickets.example.com/r/concert", VKey: "tickets.example.com/r/concert+12345678+AbCd",
}

// branded is a room in an organizer's colours, with a logo and a message.
var branded = page.Room{
	Slug: "concert", Title: "Summer concert: general sale", Message: page.Message{Text: page.Text{Words: "Doors open at 19:00.\nThere are tickets for everybody in this line.", Lang: "en"}, Until: at(40), Wanted: []string{"en"}},
	Origin: room.Origin, VKey: room.VKey, Logo: "/r/concert/logo", Dark: "/r/concert/logo?scheme=dark", Brand: "/r/concert/brand.css",
	Offered: []page.Lang{"de", "en"},
	Texts: page.Texts{
		Headline: page.Text{"Everybody is welcome", "en"}, Intro: page.Text{"Doors open early.\nBring water.", "en"},
		Help: page.Text{"Ask us.", "en"}, Footer: page.Text{"All rights reserved.", "en"},
		HelpURL: "mailto:help@example.com", PrivacyURL: "https://example.com/privacy", ImprintURL: "https://example.com/imprint",
	},
}

func view(state page.State) page.View {
	return page.View{
		Room: room, State: state, Now: noon, Opens: at(-60), Starts: at(-30), Claim: 5 * time.Minute,
		Target: "https://shop.example.com", Poll: 2 * time.Second,
	}
}

func withTicket(state page.State) page.View {
	v := view(state)
	v.Ticket = &page.Ticket{
		ID: "6f9619ff-8b86-8011-b42d-00cf4fc964ff", Joined: noon.Add(-13 * time.Second),
		Window: page.Window{Index: 63, From: at(0), To: at(1), Draws: at(1.1), Arrivals: 412},
		Called: 1001, AheadMin: 3210, AheadMax: 3621,
		Expected: &page.Span{Earliest: at(17.2), Latest: at(27.9)},
	}
	return v
}

func drawn() page.View {
	v := withTicket(page.Drawn)
	v.Ticket.Joined, v.Ticket.Window.From, v.Ticket.Window.To, v.Ticket.Window.Draws = at(-10.3), at(-11), at(-10), at(-9.9)
	v.Ticket.Position, v.Ticket.Called, v.Ticket.AheadMin, v.Ticket.AheadMax = 4211, 3190, 1020, 1020
	return v
}

func called() page.View {
	v := drawn()
	v.State = page.Called
	v.Ticket.Called, v.Ticket.AheadMin, v.Ticket.AheadMax, v.Ticket.Expected = 4300, 0, 0, nil
	v.Ticket.Left = 272 * time.Second
	return v
}

func settled(state page.State) page.View {
	v := called()
	v.State, v.Ticket.Settled, v.Ticket.Left = state, at(-2), 0
	return v
}

func change(v page.View, change func(v *page.View)) page.View {
	if v.Ticket != nil {
		ticket := *v.Ticket
		v.Ticket = &ticket
	}
	change(&v)
	return v
}

// instant puts a ticket into a window of 100 ms.
func instant(v *page.View) {
	v.Ticket.Window.From = noon.Add(-13 * time.Second)
	v.Ticket.Window.To = v.Ticket.Window.From.Add(100 * time.Millisecond)
}

// slots are six of ten minutes.
func slots(from time.Time, lots []uint32, own int) *page.Slots {
	return &page.Slots{From: from, To: from.Add(time.Hour), Length: 10 * time.Minute, Lots: lots, Own: own}
}

const confirmed = "cda3f665-387e-8031-a3d9-8534adbd7fa3"

// confirmations are of a club, and blind ones of a club and of the room's own server.
var confirmations = []page.Confirmation{
	{Lane: "members", Method: "club", Issuer: "Club <b>", URL: "https://club.example.org/derby"},
	{Lane: "quiet", Method: "phone", Issuer: "Phones", URL: "https://phone.example.org/derby", Blind: true, Key: "ab", Entry: "cd"},
	{Lane: "early", Method: "presale", Issuer: "Example", URL: "https://queue.example.com/issuer/a.presale", Blind: true, Here: true},
}

// needing returns confirmations of which it is known what they need.
func needing(of []page.Confirmation, needs ...string) (list []page.Confirmation) {
	for i, need := range needs {
		c := of[i%len(of)]
		c.Need, c.At = need, "Club ID <b>"
		list = append(list, c)
	}
	return list
}

// lots are ways to one more lot each.
var lots = []page.Confirmation{
	{IsLot: true, Lane: "general", Method: "club", Issuer: "Club <b>", URL: "https://club.example.org/derby"},
	{IsLot: true, Lane: "general", Method: "phone", Issuer: "Phones", URL: "https://phone.example.org/derby", Blind: true, Key: "ab", Entry: "cd"},
}

// task is work for a lane, and both is a lane that needs a confirmation as well.
var (
	task = page.Work{Lane: "general", Method: "task", Bits: 20, Entry: "cd", Due: at(1)}
	both = page.Confirmation{Lane: "members", Method: "club", Issuer: "Club <b>", URL: "https://club.example.org/derby",
		Work: &page.Work{Lane: "members", Method: "task", Bits: 20, Needs: "club", Entry: "cd", Due: at(1), Round: "ef"}}
)

// lines are pages of a line, one or more for every state.
var lines = map[string]page.View{
	"upcoming":         change(view(page.Upcoming), func(v *page.View) { v.Opens, v.Starts = at(27), at(57) }),
	"joinable":         view(page.Joinable),
	"joinable-party":   change(view(page.Joinable), func(v *page.View) { v.Party = 4 }),
	"upcoming-party":   change(view(page.Upcoming), func(v *page.View) { v.Opens, v.Starts, v.Party = at(27), at(57), 4 }),
	"left-party":       change(settled(page.Left), func(v *page.View) { v.Without, v.Party = page.Joinable, 4 }),
	"waiting-party":    change(withTicket(page.Waiting), func(v *page.View) { v.Party, v.Ticket.Seats = 4, 3 }),
	"drawn-party":      change(drawn(), func(v *page.View) { v.Party, v.Ticket.Seats = 4, 1 }),
	"called-party":     change(called(), func(v *page.View) { v.Party, v.Ticket.Seats = 4, 2 }),
	"full":             view(page.Full),
	"joinable-vouched": change(view(page.Joinable), func(v *page.View) { v.Vouched = true }),
	"upcoming-vouched": change(view(page.Upcoming), func(v *page.View) { v.Opens, v.Starts, v.Vouched = at(27), at(57), true }),
	"joinable-confirm-begin": change(view(page.Joinable), func(v *page.View) {
		v.Vouched, v.Confirmations, v.Returned = true, confirmations[:1], true
	}),
	"joinable-confirm": change(view(page.Joinable), func(v *page.View) { v.Confirmations, v.Own = confirmations, confirmed }),
	"joinable-needs": change(view(page.Joinable), func(v *page.View) {
		v.Vouched, v.Confirmations = true, needing(confirmations[:1], "code", "member", "account", "mail", "puzzle", "captcha")
	}),
	"joinable-need": change(view(page.Joinable), func(v *page.View) {
		v.Vouched, v.Confirmations = true, needing(confirmations[:1], "account")
	}),
	"joinable-away": change(view(page.Joinable), func(v *page.View) {
		v.Vouched, v.Confirmations = true, needing(confirmations[:1], "mail")
		v.Confirmations[0].Away = true
	}),
	"joinable-lots-need": change(view(page.Joinable), func(v *page.View) { v.Confirmations = needing(lots, "code") }),
	"waiting-lanes":      change(withTicket(page.Waiting), func(v *page.View) { v.Ticket.Lane, v.Ticket.Share, v.Ticket.Calls = "members", 1, 4 }),
	"drawn-lanes":        change(drawn(), func(v *page.View) { v.Ticket.Lane, v.Ticket.Share, v.Ticket.Calls = "members", 1, 4 }),
	"waiting-lots-need": change(withTicket(page.Waiting), func(v *page.View) {
		v.Confirmations, v.Ticket.Lots = needing(lots, "puzzle"), 1
	}),
	"left-confirm": change(settled(page.Left), func(v *page.View) {
		v.Vouched, v.Without, v.Confirmations, v.Own = true, page.Joinable, confirmations[:1], v.Ticket.ID
	}),
	"joinable-work-begin": change(view(page.Joinable), func(v *page.View) { v.Vouched, v.Works, v.Returned = true, []page.Work{task}, true }),
	"joinable-work": change(view(page.Joinable), func(v *page.View) {
		v.Vouched, v.Works, v.Own, v.Returned = true, []page.Work{task}, confirmed, true
	}),
	"upcoming-work": change(view(page.Upcoming), func(v *page.View) {
		v.Opens, v.Starts, v.Vouched, v.Works = at(27), at(57), true, []page.Work{task}
	}),
	"joinable-both": change(view(page.Joinable), func(v *page.View) {
		v.Works, v.Confirmations, v.Own = []page.Work{task}, []page.Confirmation{both}, confirmed
	}),
	"left-work": change(settled(page.Left), func(v *page.View) {
		v.Vouched, v.Without, v.Works, v.Own = true, page.Joinable, []page.Work{task}, v.Ticket.ID
	}),
	"joinable-issued": change(view(page.Joinable), func(v *page.View) {
		v.Party, v.Issued = 4, &page.Issued{Ticket: confirmed, Lane: "members", Method: "club", Nullifier: "ab", Evidence: "cd"}
	}),
	"joinable-blind-party": change(view(page.Joinable), func(v *page.View) { v.Party, v.Confirmations, v.Own = 4, confirmations[1:2], confirmed }),
	"joinable-lots-begin":  change(view(page.Joinable), func(v *page.View) { v.Confirmations, v.Returned = lots, true }),
	"joinable-lots":        change(view(page.Joinable), func(v *page.View) { v.Confirmations, v.Own = lots, confirmed }),
	"waiting-lots":         change(withTicket(page.Waiting), func(v *page.View) { v.Confirmations, v.Ticket.Lots, v.Party = lots, 1, 4 }),
	"drawn-lots":           change(withTicket(page.Drawn), func(v *page.View) { v.HasGaps, v.Ticket.Lots = true, 2 }),
	"joinable-issued-lot": change(view(page.Joinable), func(v *page.View) {
		v.Issued = &page.Issued{IsLot: true, Ticket: confirmed, Lane: "general", Method: "club", Nullifier: "ab", Evidence: "cd"}
	}),
	"upcoming-slots": change(view(page.Upcoming), func(v *page.View) {
		v.Opens, v.Starts, v.Slots = at(27), at(57), slots(at(27), nil, -1)
	}),
	"joinable-slots": change(view(page.Joinable), func(v *page.View) { v.Slots = slots(at(-20), []uint32{800, 400, 400, 0, 0, 0}, -1) }),
	"joinable-slots-fullest": change(view(page.Joinable), func(v *page.View) {
		v.Slots = slots(at(-20), []uint32{400, 400, 800, 0, 0, 0}, -1)
		v.Slots.AreLots = true
	}),
	"joinable-slots-first": change(view(page.Joinable), func(v *page.View) { v.Slots = slots(at(-1), make([]uint32, 6), -1) }),
	"joinable-slots-same":  change(view(page.Joinable), func(v *page.View) { v.Slots = slots(at(-20), []uint32{410, 400, 400, 0, 0, 0}, -1) }),
	"waiting-slots": change(withTicket(page.Waiting), func(v *page.View) {
		v.Slots, v.HasGaps, v.Ticket.Lots, v.Ticket.Passed = slots(at(-20), nil, 2), true, 2, 400
	}),
	"drawn-slots": change(drawn(), func(v *page.View) {
		v.Slots, v.HasGaps, v.Ticket.Lots, v.Ticket.Passed = slots(at(-60), nil, 0), true, 1, 400
	}),
	"joinable-open": change(view(page.Joinable), func(v *page.View) {
		v.HasGate, v.Open, v.Way = true, true, "https://shop.example.com/tickets?day=1&seats=2"
	}),
	"waiting-shut":         change(withTicket(page.Waiting), func(v *page.View) { v.HasGate, v.Way = true, "https://shop.example.com/" }),
	"drawn-open":           change(drawn(), func(v *page.View) { v.HasGate, v.Open, v.Target = true, true, "" }),
	"joinable-branded":     change(view(page.Joinable), func(v *page.View) { v.Room = branded }),
	"called-claims-frozen": change(called(), func(v *page.View) { v.Paused, v.ClaimsFrozen, v.Ticket.Extend = true, true, time.Minute }),
	"rehearsal":            change(drawn(), func(v *page.View) { v.Rehearsal = true }),
	"joinable-closes": change(view(page.Joinable), func(v *page.View) {
		v.Closes, v.Starts, v.Room = at(60*30), at(40), branded
	}),
	"waiting": withTicket(page.Waiting),
	"waiting-first": change(withTicket(page.Waiting), func(v *page.View) {
		v.Ticket.Called, v.Ticket.AheadMin, v.Ticket.AheadMax, v.Ticket.Window.Arrivals, v.Refresh = 0, 0, 0, 1, 30*time.Second
	}),
	"waiting-brief": change(withTicket(page.Waiting), func(v *page.View) {
		v.Ticket.Window.From, v.Ticket.Window.To, v.Ticket.Window.Draws = noon.Add(-15*time.Second), noon.Add(5*time.Second), noon.Add(11*time.Second)
	}),
	"waiting-instant": change(withTicket(page.Waiting), instant),
	"drawn-instant":   change(drawn(), instant),
	"revoked-branded": change(settled(page.Revoked), func(v *page.View) { v.Room = branded }),
	"waiting-paused":  change(withTicket(page.Waiting), func(v *page.View) { v.Paused, v.Ticket.Expected = true, nil }),
	"waiting-late":    change(withTicket(page.Waiting), func(v *page.View) { v.Ticket.Window.To, v.Ticket.Window.Draws = at(-1), at(-0.5) }),
	"waiting-drawing": change(withTicket(page.Waiting), func(v *page.View) { v.Ticket.Window.To, v.Ticket.Window.Draws = at(0.1), at(0.2) }),
	"waiting-branded": change(withTicket(page.Waiting), func(v *page.View) { v.Room = branded }),
	"drawn":           drawn(),
	"drawn-slower":    change(drawn(), func(v *page.View) { v.Slower = true }),
	"drawn-paused":    change(drawn(), func(v *page.View) { v.Paused, v.Ticket.Expected = true, nil }),
	"drawn-next": change(drawn(), func(v *page.View) {
		v.Ticket.Called, v.Ticket.AheadMin, v.Ticket.AheadMax = 4210, 0, 0
		v.Ticket.Expected = &page.Span{Earliest: noon, Latest: noon.Add(5 * time.Second)}
	}),
	"drawn-branded":    change(drawn(), func(v *page.View) { v.Room = branded }),
	"called":           called(),
	"called-branded":   change(called(), func(v *page.View) { v.Room = branded }),
	"called-extend":    change(called(), func(v *page.View) { v.Ticket.Extend = 10 * time.Minute }),
	"waiting-extend":   change(withTicket(page.Waiting), func(v *page.View) { v.Ticket.Extend = time.Minute }),
	"drawn-extend":     change(drawn(), func(v *page.View) { v.Ticket.Extend = 90 * time.Second }),
	"called-late":      change(called(), func(v *page.View) { v.Ticket.Left = 41 * time.Second }),
	"called-paused":    change(called(), func(v *page.View) { v.Paused = true }),
	"called-at-home":   change(called(), func(v *page.View) { v.Target = "" }),
	"admitted":         settled(page.Admitted),
	"admitted-at-home": change(settled(page.Admitted), func(v *page.View) { v.Target = "" }),
	"over":             change(settled(page.Over), func(v *page.View) { v.Without = page.Joinable }),
	"over-ended":       change(settled(page.Over), func(v *page.View) { v.Without = page.Ended }),
	"missed":           settled(page.Missed),
	"missed-again":     change(settled(page.Missed), func(v *page.View) { v.Without = page.Joinable }),
	"missed-full":      change(settled(page.Missed), func(v *page.View) { v.Without = page.Full }),
	"left":             change(settled(page.Left), func(v *page.View) { v.Without = page.Joinable }),
	"revoked":          change(settled(page.Revoked), func(v *page.View) { v.Without, v.Ticket.CanReturn = page.Closed, true }),
	"revoked-ended":    change(settled(page.Revoked), func(v *page.View) { v.Without, v.Ticket.CanReturn = page.Ended, true }),
	"revoked-again":    settled(page.Revoked),
	"revoked-appeal": change(settled(page.Revoked), func(v *page.View) {
		v.Ticket.Reason, v.Room.Appeal, v.Room.AppealURL = page.ReasonDuplicate, "help@example.com", "mailto:help@example.com"
	}),
	"revoked-large": change(settled(page.Revoked), func(v *page.View) { v.Ticket.Reason = page.ReasonLarge }),
	"closed":        view(page.Closed),
	"ended":         view(page.Ended),
	"ended-waiting": withTicket(page.Ended),
}

// checks are the pages on which a visitor checks a place.
var checks = map[string]page.CheckView{
	"check":         {Room: room, Now: noon, Ticket: drawn().Ticket},
	"check-waiting": {Room: room, Now: noon, Ticket: withTicket(page.Waiting).Ticket},
	"check-none":    {Room: room, Now: noon},
}

// failures are the error pages, one for every kind.
var failures = map[string]page.ErrorView{
	"error-not-found":  {Kind: page.NotFound},
	"error-busy":       {Kind: page.Busy, Again: "/r/concert"},
	"error-full":       {Kind: page.NoRoom, Room: &room, Again: "/r/concert"},
	"error-crowded":    {Kind: page.Crowded, Again: "/r/concert", After: 12},
	"error-limited":    {Kind: page.Limited, Again: "/r/concert", After: 12},
	"error-verdict":    {Kind: page.Suspected, Room: &room, Again: "/r/concert", RequestID: "01J9ZK3VQ7"},
	"error-early":      {Kind: page.Early, Room: &room},
	"error-missing":    {Kind: page.Missing, Again: "/r/concert"},
	"error-lost":       {Kind: page.Lost},
	"error-statement":  {Kind: page.Lost, Statement: page.Statement{Words: "The database was lost.\nAll tickets are refunded.", Signed: "proofline.dev/ended-with-loss\n"}},
	"error-gone":       {Kind: page.Gone, Room: &room},
	"error-used":       {Kind: page.Used, Room: &room, Again: "/r/concert"},
	"error-spent":      {Kind: page.Spent, Room: &room, Again: "/r/concert"},
	"error-credential": {Kind: page.Unproven, Room: &room, RequestID: "01J9ZK3VQ7"},
	"error-refused":    {Kind: page.Refused, Room: &room, RequestID: "01J9ZK3VQ7"},
	"error-failed":     {Kind: page.Failed, Again: "/r/concert", RequestID: "01J9ZK3VQ7"},
}

const manifest = `{"page.js": "page.a1.js", "check.js": "check.a1.js", "checker.js": "checker.a1.js", "blind.js": "blind.a1.js", "work.js": "work.a1.js", "solver.js": "solver.a1.js", "page.css": "page.a1.css", "icon.svg": "icon.a1.svg"}`

func newPages(t *testing.T, manifest string) *page.Pages {
	t.Helper()
	p, err := page.New([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// all renders every page in a language, by name.
func all(t *testing.T, p *page.Pages, l page.Lang) map[string]string {
	t.Helper()
	pages := map[string]string{}
	render := func(name string, err error, page *bytes.Buffer) {
		if err != nil {
			t.Fatalf("%s in %s: %v", name, l, err)
		}
		pages[name] = page.String()
	}
	for name, v := range lines {
		var b bytes.Buffer
		v.Lang = l
		render(name, p.Visitor(&b, v), &b)
	}
	for name, v := range checks {
		var b bytes.Buffer
		v.Lang = l
		render(name, p.Check(&b, v), &b)
	}
	for name, v := range failures {
		var b bytes.Buffer
		v.Lang = l
		render(name, p.Error(&b, v), &b)
	}
	return pages
}

// TestPreview renders every page in every language, and serves them with -preview.
func TestPreview(t *testing.T) {
	dir, files := t.TempDir(), manifest
	if *preview != "" {
		dir = *preview
		built, err := os.ReadFile("../ui/dist/manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		files = string(built)
	}
	p := newPages(t, files)
	for _, l := range page.Languages() {
		if err := os.MkdirAll(filepath.Join(dir, string(l)), 0o750); err != nil {
			t.Fatal(err)
		}
		for name, html := range all(t, p, l) {
			if err := os.WriteFile(filepath.Join(dir, string(l), name+".html"), []byte(html), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	css, err := page.Brand{Colors: page.Colors{Color: "#c2185b", Background: "#fff7f0"}}.CSS()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "brand.css"), css, 0o600); err != nil {
		t.Fatal(err)
	}
}
