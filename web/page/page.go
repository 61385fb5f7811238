// Package page renders the pages that visitors of a waiting room see: the page of the line in all its
// states, the check of the visitor's own place, and errors. It is pure: it turns views into HTML
// without clock, network or HTTP.
//
// # All texts are rendered here
//
// Every text is rendered here, in eight languages (messages/*.json). Scripts contain no texts. When a
// visitor's state changes, they fetch the fragment, which is the same template, and replace <main>
// with it. In between they update numbers and times in place, and show sentences that are already in
// the page, hidden. A sentence that changes with a number has its plural forms as data.
//
// # Routes that the handlers provide
//
//	GET  /r/{slug}                       Visitor: the page, state by cookie. no-store
//	GET  /r/{slug}?fragment=1            Fragment: <main> alone, state by cookie. no-store
//	GET  /r/{slug}?fragment=1&ticket=ID  the same by ticket, which is public; 404 if unknown. Mostly
//	                                     requested without credentials
//	     &lang=de                        language, in every request of a script; View.Lang
//	     ?refresh=30                     View.Refresh, 15 to 600 seconds, chosen by a visitor
//	                                     without scripts
//	     ?to=URL                         where to redirect after a claim, if it is one of the room's
//	                                     targets or below one; stored in a cookie
//	     &to_sig=SIG                     a connector's signature of it, which the room may require
//	GET  /r/{slug}/check                 Check. no-store
//	GET  /r/{slug}/fair                  Fair. no-store
//	GET  /r/{slug}/report                the organizer's audit report, a page of its own
//	GET  /r/{slug}/brand.css             Brand.CSS, when Room.Brand is set
//	GET  /r/{slug}/logo?scheme=dark      the image for dark mode, when Room.Dark is set
//	POST /r/{slug}/line                  join
//	                                     with lane=NAME, form only: set the cookie for a confirmation, and go back
//	     ?confirm=1                      the page after that
//	POST /r/{slug}/claim                 claim a pass
//	POST /r/{slug}/extend                get more time to claim, once
//	POST /r/{slug}/leave                 give up the place
//	POST /r/{slug}/link                  get a link that takes the place to another device, once, within ten minutes
//	POST /r/{slug}/take                  take the place of such a link
//
// The first four POSTs accept a form, sent by a browser without scripts, and answer 303 to the page
// (claim: to the target with the pass). All six accept and return JSON if the request's
// Content-Type is application/json. The body is an object:
//
//	{"secret": "base64url"}      used if there is no cookie: created by the script (line),
//	                             or kept by it where cookies are blocked (claim, extend, leave, link)
//	{"code": "base64url"}        take only: the fragment of the link
//	{"to": "URL"}                claim only, form too: where to redirect; 400 if not allowed
//	{"to_sig": "SIG"}            with to: a connector's signature of it
//	{"seats": 2}                 line only, form too: seats to join for, in a room with parties; default: one
//	{"again": true}              line only, form: again=1: join anew if the cookie's place is
//	                             over, missed or left; otherwise the cookie is used
//
//	line   201 or 200 {"ticket", ..., "receipt", "kept": whether the cookie's secret was used, not the body's}
//	claim  200 {"location": URL with the pass, or without it if the visit continues and the pass has expired;
//	       null if the room has no target}
//	leave  200 {}, and extend too
//	link   200 {"link": URL#t=code, "seconds": validity of the link}
//	take   200 {"ticket", "secret", "kept": false}; or, if the browser already has a place,
//	       {"ticket", "kept": true}: the link stays valid
//
// Failures are problem documents for JSON and for ?fragment=1, and otherwise the Error page; 409
// and 503 have Retry-After. For the Content-Security-Policy, there are no inline scripts, styles
// or handlers, and the logo, from the room's own path, is the only image.
//
// # Hooks for scripts and tests
//
// <main id="line" data-state="..." data-ticket="..."> is the fragment; data-state is the [State].
// Every element that a script changes has a data attribute named after its content.
package page

import (
	"errors"
	"io"
	"time"
)

var (
	// ErrManifest means that the manifest lacks a built file that the pages need.
	ErrManifest = errors.New("page: file missing from the manifest")
)

// State is the state of a line's page.
type State string

// The states, in the order of a visit. A pause is not a state: it is shown in addition to any of
// them, see [View.Paused].
const (
	Upcoming State = "upcoming" // not open yet
	Joinable State = "joinable" // open; the visitor has no place yet
	Full     State = "full"     // open, but no visitor can join for now
	Waiting  State = "waiting"  // in a window that is not drawn
	Drawn    State = "drawn"    // has a position
	Called   State = "called"   // may claim
	Admitted State = "admitted" // has claimed
	Over     State = "over"     // has claimed, and the visit is over
	Missed   State = "missed"   // was called but did not claim
	Left     State = "left"     // gave up the place
	Revoked  State = "revoked"  // the organizer revoked the place
	Closed   State = "closed"   // without a place; no visitor can join any more
	Ended    State = "ended"    // the room has ended; with a ticket: before its call
)

// Room is the data that every page of a room shows.
type Room struct {
	Slug  string
	Title string
	// Organizer is the name of the organization that runs the line; empty: unknown.
	Organizer string
	URL       string // address of the page; empty: it has none yet
	Message   Message
	Origin    string         // name of the log
	VKey      string         // verifier key of the log
	Logo      string         // path of the image; empty: none
	Dark      string         // path of the image for dark mode; empty: same as Logo
	Brand     string         // path of the style sheet of [Brand.CSS]; empty: none
	Zone      *time.Location // time zone of the event; nil: UTC
	Chance    Chance
	// Offered lists the languages to choose from, the room's own first; nil: all.
	Offered []Lang
	Texts   Texts // the organizer's texts, in the visitor's language or the room's
	// Appeal is whom visitors can ask whose place was revoked: a mail address or a URL, as they read it. AppealURL is
	// its link. Empty: the organizer names none.
	Appeal, AppealURL string
}

// Message is the organizer's message to visitors, in the language that suits the visitor best; it may
// have several lines. Empty words: none.
type Message struct {
	Text
	Until  time.Time // time at which it disappears; zero: never
	Wanted []string  // the visitor's languages, best first, from which scripts choose for later messages
}

// Texts are the organizer's texts; empty ones are left out.
type Texts struct {
	Headline Text // text below the title
	Intro    Text // for visitors without a place; may have several lines
	Help     Text // contact for questions; may have several lines
	Footer   Text // at the bottom; may have several lines
	// URLs with the scheme https or mailto.
	HelpURL, PrivacyURL, ImprintURL string
}

// Text is a text and its language.
type Text struct {
	Words string
	Lang  Lang
}

// View is the data of a line's page for one visitor.
type View struct {
	Room   Room
	Lang   Lang
	State  State
	Now    time.Time // time by the server's clock
	Opens  time.Time
	Starts time.Time     // start of calls
	Closes time.Time     // zero: never
	Claim  time.Duration // time that a called visitor has to claim
	Paused bool          // calls are paused
	// ClaimsFrozen is set if, in a pause, claims are frozen too.
	ClaimsFrozen bool
	Slower       bool // the outflow is lower than first announced
	// Rehearsal is set if the room is a rehearsal, which has no target.
	Rehearsal bool
	// Without is the state of the page without the ticket. A visitor who missed or left a place, or
	// whose visit is over, may join again if it is Joinable.
	Without State
	// Vouched is set if every lane needs credentials.
	Vouched bool
	Party   uint32 // seats that a visitor may join for; 0 and 1: one
	// Confirmations lead to the issuers of lanes that need one, and of more lots; for a place, only of lots. Works are
	// of lanes that need nothing else.
	// Own is the ticket that the cookie's secret makes, even before it has joined; empty: there is no cookie. Returned
	// is set if the page is the answer to a form that has set the cookie.
	Confirmations []Confirmation
	Works         []Work
	Own           string
	Returned      bool
	// Target is the origin to which a claim redirects, such as "https://shop.example.com"; empty if
	// the room has none, and the visitor stays on the page.
	Target string
	// HasGate is set if the site sometimes lets visitors in without waiting, and Open if it does so
	// now. Way is the URL of the site; empty: unknown.
	HasGate, Open bool
	Way           string
	// Cookie is set if the request had the visitor's secret as a cookie. After a join, it tells the
	// script whether the browser keeps cookies.
	Cookie  bool
	HasGaps bool          // places may be nobody's: numbers of people ahead are bounds
	Slots   *Slots        // nil: the first window has none, or does not matter to the visitor
	Issued  *Issued       // what an issuer confirms, for the visitor to use; mostly nil
	Ticket  *Ticket       // nil if upcoming, joinable, full or closed, and if ended for visitors without a place
	Poll    time.Duration // time until the first poll of the room's state
	Refresh time.Duration // reload interval; 0 unless the visitor chose one
}

// Confirmation is a credential of an issuer that a lane needs or that gives one more lot, and the page that gives it.
type Confirmation struct {
	IsLot        bool // the lane does not need it: a place has one more lot with it
	Lane, Method string
	Issuer       string // name
	Need         string // what the issuer asks for: code, member, account, mail, puzzle or captcha; empty: not known
	At           string // for account: where it is
	URL          string // to which a form is sent
	Blind        bool   // the issuer cannot learn the ticket
	Here         bool   // the page is on the host of the room
	Away         bool   // nobody can be confirmed there now
	Key, Entry   string // for Blind: the issuer's key and the hash of the room entry, in hex
	Work         *Work  // work that the lane needs as well; nil: none
}

// Needed returns the only confirmation that a visitor can join with, if it is known what its issuer asks for; nil
// otherwise.
func (v *View) Needed() *Confirmation {
	if list := v.Confirmations; len(list) == 1 && len(v.Works) == 0 && !list[0].IsLot && list[0].Need != "" {
		return &list[0]
	}
	return nil
}

// Work is a task that the visitor's browser solves to join a lane.
type Work struct {
	Lane, Method string
	Bits         uint8
	Needs        string    // method of the issuer that the lane needs as well; empty: none
	Entry        string    // hash of the room entry, in hex
	Due          time.Time // time at which the beacon's round appears
	Round        string    // the round's signature, in hex; empty: not known
}

// Issued is the form that an issuer's page sends, to be sent again by the visitor: to join with a number of seats, or
// for one more lot.
type Issued struct {
	IsLot                                     bool
	Ticket, Lane, Method, Nullifier, Evidence string
}

// Ticket is the data of the visitor's own place.
type Ticket struct {
	ID            string
	Lane          string
	Share, Calls  uint64 // calls of the lane among so many, while visitors wait in all lanes; 0: there is one lane
	Seats         uint32 // seats that the visitor joined for
	Joined        time.Time
	Window        Window
	Called        uint64 // position up to which visitors are called
	Position      uint64 // 0 until drawn
	Passed, Drawn uint64 // with gaps: people of the lane whose places are called, and who have one
	Lots          int    // lots in the draw; 0: every place has one
	// AheadMin and AheadMax bound the number of uncalled people ahead; equal once drawn.
	AheadMin, AheadMax uint64
	Expected           *Span         // expected time of the call; nil: unknown
	Grows              bool          // visitors can still join the window, so Expected.Latest is not a bound
	Left               time.Duration // remaining claim time, if called
	Extend             time.Duration // how much more claim time the visitor may ask for, once called; 0: none
	Reason             Reason        // reason of the revocation; empty: none was given
	CanReturn          bool          // the organizer can give the revoked place back
	Settled            time.Time     // time of admission, no-show, leaving or revocation
}

// Reason is the class of the reason for which the organizer revoked a place.
type Reason string

// The classes of reasons; empty for none.
const (
	ReasonBot       Reason = "bot"
	ReasonLarge     Reason = "large" // a party that wants more seats than are left
	ReasonDuplicate Reason = "duplicate"
	ReasonFraud     Reason = "fraud"
	ReasonRequest   Reason = "request"
)

// Window is the data of a ticket's window.
type Window struct {
	Index    uint64
	From, To time.Time
	Draws    time.Time // expected time of the draw, at or after To
	Arrivals uint32    // number of arrivals so far
}

// IsInstant reports whether the ticket's window is shorter than a second, so that its start and end
// look the same.
func (t *Ticket) IsInstant() bool { return t.Window.To.Sub(t.Window.From) < time.Second }

// isBrief reports whether the ticket's window is shorter than a minute, so that times need seconds.
func (t *Ticket) isBrief() bool { return t != nil && t.Window.To.Sub(t.Window.From) < time.Minute }

// Span is a range of times.
type Span struct{ Earliest, Latest time.Time }

// CheckView is the data of the page on which visitors check their places.
type CheckView struct {
	Room   Room
	Lang   Lang
	Now    time.Time
	Ticket *Ticket // nil if this browser has none
}

// Kind is the kind of an error, as far as it matters to visitors.
type Kind string

// The kinds of errors.
const (
	NotFound  Kind = "not-found"  // no such room or page
	Busy      Kind = "busy"       // overloaded or starting; try again in a moment
	NoRoom    Kind = "full"       // no more visitors can join for now
	Crowded   Kind = "crowded"    // too many requests from the visitor's network; try again in a moment
	Limited   Kind = "limited"    // too many joins in the room or on the server; try again in a moment
	Suspected Kind = "verdict"    // a bot tool in front refuses the visitor
	Early     Kind = "early"      // the request comes too early
	Missing   Kind = "missing"    // entries of the room's transcript are missing; try again in some minutes
	Lost      Kind = "lost"       // entries are lost, and the room has ended
	Gone      Kind = "gone"       // the request comes too late
	Unproven  Kind = "credential" // the credential that an issuer sent does not count
	Used      Kind = "used"       // the credential was used for another place
	Spent     Kind = "spent"      // the room takes no more credentials of the method
	Refused   Kind = "refused"    // the request comes from another site, or is malformed
	Failed    Kind = "failed"     // internal error
)

// ErrorView is the data of an error page.
type ErrorView struct {
	Lang      Lang
	Kind      Kind
	Room      *Room // nil outside of rooms
	RequestID string
	Again     string // path for another attempt; empty: none
	After     int    // seconds until the page goes there by itself; 0: it does not
	Statement Statement
}

// Statement is the organizer's statement about a line whose records are lost. The zero value is none.
type Statement struct {
	Words  string
	Signed string // the organizer's words, the lost records, and a signature with the line's key
}

// Pages renders views. Safe for concurrent use.
type Pages struct {
	set *set
}

// New returns the pages for a manifest.json of built files, which are served below /assets/. Error:
// [ErrManifest].
func New(manifest []byte) (*Pages, error) {
	s, err := parse(manifest)
	if err != nil {
		return nil, err
	}
	return &Pages{s}, nil
}

// Visitor renders the page of a line.
func (p *Pages) Visitor(w io.Writer, v View) error { return p.set.visitor(w, v) }

// Fragment renders only the <main> of that page.
func (p *Pages) Fragment(w io.Writer, v View) error { return p.set.fragment(w, v) }

// Preview renders the page of a line for display only: it looks as it does with scripts, but has
// none, and its controls do nothing. It ignores Logo, Dark and Brand of the room.
func (p *Pages) Preview(w io.Writer, v View, in Inline) error {
	v.Room.Brand = ""
	return p.set.preview(w, v, &in)
}

// Check renders the page on which visitors check their places.
func (p *Pages) Check(w io.Writer, v CheckView) error { return p.set.check(w, v) }

// Error renders an error page.
func (p *Pages) Error(w io.Writer, v ErrorView) error { return p.set.failure(w, v) }
