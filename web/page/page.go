// Package page renders what a visitor sees of a waiting room: the page of the
// line in all its states, the check of one's own place, and errors. It is pure:
// views in, HTML out; no clock, no network, no HTTP.
//
// # One truth for words
//
// Every word is rendered here, in eight languages (messages/*.json). Scripts
// hold none: where a visitor's state changes they fetch the fragment, which is
// the same template, and put it in the place of <main>; in between they replace
// numbers and times in place, and show sentences that are in the page already,
// hidden. A sentence that changes with a number brings its plural forms along
// as data.
//
// # What the handlers owe the pages
//
//	GET  /r/{slug}                       Visitor: the page, state by cookie. no-store
//	GET  /r/{slug}?fragment=1            Fragment: <main> alone, state by cookie. no-store
//	GET  /r/{slug}?fragment=1&ticket=ID  the same by ticket, which is public anyway; 404 when
//	                                     unknown. Mostly asked without credentials
//	     &lang=de                        language, in every request of a script; View.Lang
//	     ?refresh=30                     View.Refresh, 15 to 600 seconds, chosen by a visitor
//	                                     without scripts
//	     ?to=URL                         where a claim should lead in the end, when that is one of the
//	                                     room's targets or below one; kept in a cookie
//	     &to_sig=SIG                     that a connector has signed it, which the room may insist on
//	GET  /r/{slug}/check                 Check. no-store
//	GET  /r/{slug}/fair                  Fair. no-store
//	GET  /r/{slug}/report                the organizer's audit report, a page of its own
//	GET  /r/{slug}/brand.css             Brand.CSS, when Room.Brand is set
//	GET  /r/{slug}/logo?scheme=dark      the image for the dark, when Room.Dark is set
//	POST /r/{slug}/line                  join
//	POST /r/{slug}/claim                 go in
//	POST /r/{slug}/leave                 give the place up
//	POST /r/{slug}/link                  a link that takes the place to another device, once, within ten minutes
//	POST /r/{slug}/take                  the place of such a link
//
// The first three POSTs take a form, sent by a browser without scripts, and answer
// 303 to the page (claim: to the target with the pass). All five take and give
// JSON, when the request's Content-Type is application/json; the body is an object:
//
//	{"secret": "base64url"}      counts when there is no cookie: made by the script (line),
//	                             or kept by it where cookies are blocked (claim, leave, link)
//	{"code": "base64url"}        take only: from behind the # of the link
//	{"to": "URL"}                claim only, form too: where it should lead; 400 when not allowed
//	{"to_sig": "SIG"}            with to: a connector's signature of it
//	{"again": true}              with secret, line only, form: again=1: a new place, when that
//	                             of the cookie is good for nothing (over, missed, left); else the cookie counts
//
//	line   201 or 200 {"ticket", ..., "receipt", "kept": the cookie's secret counted, not the body's}
//	claim  200 {"location": URL with the pass, without it when the visit goes on and the pass has run out; null when the room has no target}
//	leave  200 {}
//	link   200 {"link": URL#t=code, "seconds": how long it is good}
//	take   200 {"ticket", "secret", "kept": false}; or, of a browser that has a place, {"ticket", "kept": true}: the link stays good
//
// Failures are problem documents for JSON and for ?fragment=1, and the Error
// page otherwise; 409 and 503 carry Retry-After. Content security policy:
// there is no inline script, style or handler; images are the logo alone, from
// the room's own path.
//
// # What scripts and tests find in the page
//
// <main id="line" data-state="..." data-ticket="..."> is the fragment; data-state
// is the [State]. Everything a script changes has a data attribute named for
// what it shows.
package page

import (
	"errors"
	"io"
	"time"
)

var (
	// ErrManifest is returned when the built files lack one that the pages need.
	ErrManifest = errors.New("page: file missing from the manifest")
)

// State is what the page of a line is about.
type State string

// The states, in the order of a visit. A pause is no state of its own: it is
// said on top of any of them, by [View.Paused].
const (
	Upcoming State = "upcoming" // not open yet
	Joinable State = "joinable" // open, and no place yet
	Full     State = "full"     // open, and nobody can join for now
	Waiting  State = "waiting"  // in a group that is not drawn
	Drawn    State = "drawn"    // has a position
	Called   State = "called"   // may go in
	Admitted State = "admitted" // went in
	Over     State = "over"     // went in, and that visit is over
	Missed   State = "missed"   // was called and did not go in
	Left     State = "left"     // gave the place up
	Revoked  State = "revoked"  // lost the place by the organizer's decision
	Closed   State = "closed"   // no place, and nobody can join any more
	Ended    State = "ended"    // the room is over; with a ticket: without a turn
)

// Room is what every page of a room shows.
type Room struct {
	Slug  string
	Title string
	// Organizer is the name of the organization that runs the line, empty for not
	// known.
	Organizer string
	URL       string // of the page; empty where it has none yet
	Message   Message
	Origin    string         // name of the log
	VKey      string         // verifier key of the log
	Logo      string         // path of the image, empty for none
	Dark      string         // path of another in the dark, empty for the same
	Brand     string         // path of the stylesheet that [Brand.CSS] makes, empty for none
	Zone      *time.Location // of the event; nil for UTC
	Chance    Chance
	// Offered are the languages to choose from, the room's own first; nil: all.
	Offered []Lang
	Texts   Texts // of the organizer, in the visitor's language or the room's
}

// Message is what the organizer tells everyone in line, in the language that
// suits the visitor best; it may have several lines. Empty words: nothing.
type Message struct {
	Text
	Until  time.Time // when it vanishes by itself, zero: it does not
	Wanted []string  // languages of the visitor, best first, by which scripts choose from later messages
}

// Texts are the organizer's words; empty ones are left out.
type Texts struct {
	Headline Text // below the title
	Intro    Text // for those without a place; may have several lines
	Help     Text // where to turn to with questions; may have several lines
	Footer   Text // below everything; may have several lines
	// URLs of https or mailto.
	HelpURL, PrivacyURL, ImprintURL string
}

// Text is words in a language of their own.
type Text struct {
	Words string
	Lang  Lang
}

// View is the page of a line, as one visitor sees it.
type View struct {
	Room   Room
	Lang   Lang
	State  State
	Now    time.Time // by the server's clock
	Opens  time.Time
	Starts time.Time     // when people are let in
	Closes time.Time     // zero: never
	Claim  time.Duration // that a called visitor has to go in
	Paused bool          // calls are held
	// Held tells, in a pause, that those who are called cannot go in for now either.
	Held   bool
	Slower bool // fewer people are let in than the room announced at first
	// Rehearsal tells that the line leads nowhere.
	Rehearsal bool
	// Without is the state of the page without the ticket: whoever missed or left a place,
	// or has been in, may take a new one when that is Joinable.
	Without State
	// Target is the origin of where a claim leads, such as "https://shop.example.com"; empty
	// when the room has none: then the page is all there is to see.
	Target string
	// HasGate tells whether the site sometimes lets people in without waiting, and
	// Open whether it does now; Way is the URL that leads there, empty for none.
	HasGate, Open bool
	Way           string
	// Cookie tells whether the request brought the secret of a visitor as a cookie. After a
	// join the script learns from it whether this browser keeps cookies.
	Cookie  bool
	Ticket  *Ticket       // nil in upcoming, joinable, full and closed, and in ended for strangers
	Poll    time.Duration // when to ask for the room's state first
	Refresh time.Duration // by which the page loads itself anew, 0 unless the visitor chose it
}

// Ticket is the visitor's own place.
type Ticket struct {
	ID       string
	Joined   time.Time
	Window   Window
	Called   uint64 // how far the line has been called: the serving pointer
	Position uint64 // 0 until drawn
	// AheadMin and AheadMax bound the people not yet called before this one;
	// equal once drawn.
	AheadMin, AheadMax uint64
	Expected           *Span         // of the call, nil when nobody can say
	Grows              bool          // people can still join the group: the latest of Expected is no bound
	Left               time.Duration // when called: to go in
	Reason             Reason        // when revoked; empty: none was given
	Settled            time.Time     // when admitted, over (the same moment), missed, left or revoked
}

// Reason is the class of reason for which the organizer took a place away.
type Reason string

// The classes of reasons; empty for none.
const (
	ReasonBot       Reason = "bot"
	ReasonDuplicate Reason = "duplicate"
	ReasonFraud     Reason = "fraud"
	ReasonRequest   Reason = "request"
)

// Window is the group of a ticket.
type Window struct {
	Index    uint64
	From, To time.Time
	Draws    time.Time // when places are drawn if all goes well, at or after To
	Arrivals uint32    // so far
}

// IsInstant reports whether the ticket's group begins and ends within a second, so
// that its bounds look the same.
func (t *Ticket) IsInstant() bool { return t.Window.To.Sub(t.Window.From) < time.Second }

// isBrief reports whether minutes do not tell the ticket's group from others.
func (t *Ticket) isBrief() bool { return t != nil && t.Window.To.Sub(t.Window.From) < time.Minute }

// Span is a range of moments.
type Span struct{ Earliest, Latest time.Time }

// CheckView is the page on which a visitor checks a place.
type CheckView struct {
	Room   Room
	Lang   Lang
	Now    time.Time
	Ticket *Ticket // nil when this browser has none
}

// Kind is what went wrong, as far as it matters to a visitor.
type Kind string

// The kinds of errors.
const (
	NotFound Kind = "not-found" // no such room or page
	Busy     Kind = "busy"      // overloaded or starting: again in a moment
	NoRoom   Kind = "full"      // nobody more can join for now
	Crowded  Kind = "crowded"   // too much from the visitor's network: again in a moment
	Early    Kind = "early"     // what was asked for is not possible yet
	Missing  Kind = "missing"   // entries of the room's transcript are missing: again in some minutes
	Lost     Kind = "lost"      // they are lost, and the room has ended
	Gone     Kind = "gone"      // what was asked for is not possible any more
	Refused  Kind = "refused"   // the request came from another site, or is malformed
	Failed   Kind = "failed"    // our fault
)

// ErrorView is an error for people.
type ErrorView struct {
	Lang      Lang
	Kind      Kind
	Room      *Room // nil outside of rooms
	RequestID string
	Again     string // path to try again, empty if that makes no sense
	Statement Statement
}

// Statement is what the organizer says about a line whose records are lost. The
// zero value is none.
type Statement struct {
	Words  string
	Signed string // the words with what is lost, and the signature of the line's key
}

// Pages renders views. Safe for concurrent use.
type Pages struct {
	set *set
}

// New returns the pages. The manifest is the manifest.json of the built files,
// which are served below /assets/. Error: [ErrManifest].
func New(manifest []byte) (*Pages, error) {
	s, err := parse(manifest)
	if err != nil {
		return nil, err
	}
	return &Pages{s}, nil
}

// Visitor writes the page of a line.
func (p *Pages) Visitor(w io.Writer, v View) error { return p.set.visitor(w, v) }

// Fragment writes the <main> of that page alone.
func (p *Pages) Fragment(w io.Writer, v View) error { return p.set.fragment(w, v) }

// Preview writes the page of a line for looking at: as it is with scripts, but
// without any, and with nothing that can be done. Room's Logo, Dark and Brand
// are left alone.
func (p *Pages) Preview(w io.Writer, v View, in Inline) error {
	v.Room.Brand = ""
	return p.set.preview(w, v, &in)
}

// Check writes the page on which a visitor checks a place.
func (p *Pages) Check(w io.Writer, v CheckView) error { return p.set.check(w, v) }

// Error writes an error page.
func (p *Pages) Error(w io.Writer, v ErrorView) error { return p.set.failure(w, v) }
