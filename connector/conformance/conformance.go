// Package conformance holds connectors of every kind to the same answers: it
// sends the requests of connector/testdata/conformance.json to an address and
// looks at what comes back. The server that a connector needs is part of it.
//
// A connector under test is given [Room.RulesURL], [Room.SiteKey], [Token] and
// [Page], and stands in front of [Site].
package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Case is one request and what happens to it.
type Case struct {
	Name     string   `json:"name"`
	Method   string   `json:"method"`
	Target   string   `json:"target"`             // as it stands in the request line
	Protocol string   `json:"protocol,omitempty"` // empty: HTTP/1.1
	Header   []string `json:"header,omitempty"`   // such as "Accept: text/html"
	// Gate is that of the room market, which stays as it is unless it is said:
	// "open", "shut", "full" (open, but not for anybody else here), or "crowded"
	// (open, but as many of our network have begun as may).
	Gate string `json:"gate,omitempty"`
	// Rooms that may fail are "down" or "up" from now on; empty: as before.
	Rooms string `json:"rooms,omitempty"`
	// Late is an answer that may take a while: connectors learn of failures when
	// they ask.
	Late bool `json:"late,omitempty"`
	// From is the address that the request comes from; empty: 127.0.0.1.
	From string `json:"from,omitempty"`
	// Want is "site", "room", "market" or another room's name (where the visitor is
	// to wait), "held", "busy" or "own" (see failureKind), "entered" (a cookie, and
	// 303 to Location), "begun" (the site, and the cookie of a free session), "left"
	// (the site, and the cookie is taken away), "page" (4xx, with a page of the
	// connector's own), "told" (4xx, with JSON for a script), "refused" (4xx of any
	// kind, not to a room, or no answer at all), "fault" (5xx, of the server that the
	// connector is in), "connector" (200, not from the site), "led" (303 to Location,
	// without a cookie) or "ended" (204, not from the site, which takes away the
	// cookies of Ends, and no others).
	Want   string `json:"want"`
	Status int    `json:"status"`
	// Unlike is what some connectors answer in place of Want and Status, as "room
	// 302", by the names of their platforms: servers differ in what they read
	// before a connector does.
	Unlike map[string]string `json:"unlike,omitempty"`
	// Location is where it leads, without the signature; of a script, by join; empty: not
	// looked at.
	Location string `json:"location,omitempty"`
	// Back is the way back of who is led to a room: "none", "open" (not signed), or
	// nothing, when it must be signed if there is one.
	Back string `json:"back,omitempty"`
	// Return is the header Proofline-Return of an answer to a script: "signed",
	// "enter" or nothing.
	Return string `json:"return,omitempty"`
	// Says stands in the body.
	Says string `json:"says,omitempty"`
	// Visitor is what the site is told: "ticket", of one with a pass, "free", of
	// one without, or nothing.
	Visitor string `json:"visitor,omitempty"`
	// Ends names sessions that the request ends, as the server hears.
	Ends []string `json:"ends,omitempty"`
	// Observed is said of what would have waited if its room were not off, as the
	// server hears.
	Observed bool `json:"observed,omitempty"`
	// Needs is "answers" of cases for connectors that see what the site answers.
	Needs string `json:"needs,omitempty"`
}

// SiteHeader is in every answer of [Site].
const SiteHeader = "X-Site"

// Headers in which the site says what it was asked for: the request line, and
// the path as a Go program reads it.
const (
	seenTarget = "X-Seen-Target"
	seenPath   = "X-Seen-Path"
	seenLies   = "X-Seen-Lies"
)

// liesIn returns the headers of a request that say what a client made up about
// itself or the address. In cases that is the word "forged", which nobody else
// says.
func liesIn(h http.Header) []string {
	var names []string
	for name, values := range h {
		if name != "Cookie" && name != "User-Agent" && strings.Contains(strings.Join(values, " "), "forged") {
			names = append(names, name)
		}
	}
	return names
}

// Site returns the site behind the connector: it answers with SiteHeader, and
// with what it was told about the visitor. /tickets/leave and /market/leave end
// the visit.
func Site() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(SiteHeader, "site")
		w.Header().Set("X-Seen-Ticket", r.Header.Get("X-Proofline-Ticket"))
		w.Header().Set("X-Seen-Room", r.Header.Get("X-Proofline-Room"))
		w.Header().Set("X-Seen-Upgrade", r.Header.Get("Upgrade"))
		w.Header().Set(seenTarget, r.RequestURI)
		w.Header().Set(seenPath, r.URL.EscapedPath())
		w.Header().Set(seenLies, strings.Join(liesIn(r.Header), ", "))
		if strings.HasSuffix(r.URL.Path, "/leave") {
			w.Header().Set("Proofline-Command", "release")
		}
		w.WriteHeader(http.StatusOK)
	})
}

// Run sends all cases to a connector that listens on addr. The server gives
// forged rules from then on.
func Run(t *testing.T, room *Room, addr string, cases []Case) {
	t.Helper()
	RunOn(t, Platform{}, room, addr, cases)
}

// RunOn is Run for a connector that runs on a platform.
func RunOn(t *testing.T, p Platform, room *Room, addr string, cases []Case) {
	t.Helper()
	s := &suite{Room: room, platform: p, addr: addr, begun: map[string]bool{}}
	s.begin(t)
	t.Run("sessions slide, up to their end", s.lengths)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Gate != "" && c.Gate != s.at {
				s.set(t, c.Gate)
			}
			fill := s.fill()
			c.Target, c.Location, c.Says = fill(c.Target), fill(c.Location), fill(c.Says)
			header := make([]string, len(c.Header))
			for i, h := range c.Header {
				header[i] = fill(h)
			}
			c.Header = header
			if unlike, ok := c.Unlike[p.Name]; ok {
				c.Want, c.Status = answerOf(t, unlike)
			}
			if c.Rooms != "" {
				s.setDown(c.Rooms == "down")
			}
			r := s.ask(t, c)
			if c.Late && s.kind(r) != c.Want {
				eventually(t, c.Want, func() bool {
					r = s.ask(t, c)
					return s.kind(r) == c.Want
				})
			}
			s.check(t, &c, r)
		})
	}
	t.Run("random addresses", s.strangers)
	t.Run("attacks", func(t *testing.T) { RunAttacks(t, addr) })
	s.end(t)
}

// answerOf reads what connectors of a platform answer.
func answerOf(t *testing.T, text string) (want string, status int) {
	t.Helper()
	want, number, _ := strings.Cut(text, " ")
	status, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return want, status
}

// ask sends the request of a case, and counts who gets in as a room fails.
func (s *suite) ask(t *testing.T, c Case) reply {
	t.Helper()
	r := exchange(t, s.addr, c)
	if strings.HasPrefix(c.Target, "/opening") && s.kind(r) == "site" && r.header.Get("X-Seen-Ticket") == "" {
		s.opened++
	}
	return r
}

// check compares an answer with what is wanted.
func (s *suite) check(t *testing.T, c *Case, r reply) {
	t.Helper()
	location, back := s.way(r)
	got := s.kind(r)
	if c.Want != got && (got == "page" || got == "told") {
		got = "refused"
	}
	if got != c.Want || r.status != c.Status || c.Location != "" && s.path(location) != c.Location {
		t.Errorf("%s: status %d to %q, want %s %d %q", got, r.status, location, c.Want, c.Status, c.Location)
	}
	if isKept := got == "entered" || got == "begun" || got == "left" || got == "ended"; !isKept && len(r.cookies) > 0 {
		t.Errorf("cookies %v", r.cookies)
	}
	if !s.leadsHome(s.kind(r), location) {
		t.Errorf("leads to %q", location)
	}
	if s.isLed(got) && back != c.Back && (c.Back != "" || back != "signed" && back != "none") {
		t.Errorf("the way back is %q, want %q: %q", back, c.Back, location)
	}
	if how := s.returnHeader(r, location); how != c.Return {
		t.Errorf("the header for scripts is %q, want %q", how, c.Return)
	}
	if !strings.Contains(r.body, c.Says) || got == "page" && (c.Method == http.MethodHead) != (r.body == "") {
		t.Errorf("says %q, want %q", r.body, c.Says)
	}
	if c.Observed {
		s.observed++
	}
	s.checkVisitor(t, c, r)
	if r.header.Get("Proofline-Command") != "" {
		t.Error("what the site tells the connector reaches the client")
	}
	switch got {
	case "begun":
		s.begun[freeID(t, r.cookies[0].Value)] = true
	case "left":
		s.left[c.Visitor] = true
	case "entered":
		s.left["changed"] = s.left["changed"] || slices.Contains(c.Header, "Cookie: "+s.cookies["freechanging"])
	case "ended":
		s.checkEnds(t, c, r)
	case "market":
		if s.at == "full" {
			s.turned++
		}
	}
}

// kind says what an answer is.
func (s *suite) kind(r reply) string {
	leads := r.header.Get("Location")
	if r.status == http.StatusForbidden {
		leads = r.header.Get("Proofline-Queue")
	}
	base, _, _ := strings.Cut(leads, "?")
	isSite, hasCookie := r.header.Get(SiteHeader) != "", len(r.cookies) == 1
	switch {
	case isSite && hasCookie && r.cookies[0].MaxAge < 0:
		return "left"
	case isSite && hasCookie:
		return "begun"
	case isSite:
		return "site"
	case r.status == http.StatusNoContent:
		return "ended"
	case base == s.URL():
		return "room"
	case strings.HasPrefix(base, s.room("")):
		return strings.TrimPrefix(base, s.room(""))
	case r.status == http.StatusSeeOther && hasCookie:
		return "entered"
	case r.status == http.StatusSeeOther:
		return "led"
	case r.status == http.StatusOK:
		return "connector"
	case failureKind(r) != "":
		return failureKind(r)
	case isPage(r):
		return "page"
	case isTold(r):
		return "told"
	case r.status != 0 && r.status < 400:
		return "something else"
	case r.status >= 500 && r.status != http.StatusNotImplemented && r.status != http.StatusHTTPVersionNotSupported:
		return "fault"
	}
	return "refused"
}

// isLed tells whether a kind of answer leads to a room.
func (s *suite) isLed(kind string) bool {
	return kind == "room" || strings.Contains(rulesJSON, `    "`+kind+`": {"url"`)
}

// isPage tells whether an answer is a page that refuses, with nothing in it from
// the request: no address, and no way on.
func isPage(r reply) bool {
	return r.status >= 400 && r.status < 500 && strings.HasPrefix(r.header.Get("Content-Security-Policy"), "default-src 'none'; ") && r.header.Get("Content-Type") == "text/html; charset=utf-8" &&
		r.header.Get("Content-Language") != "" && r.header.Get("Cache-Control") == "no-store" && !strings.Contains(r.body, "//") && !strings.Contains(r.body, "refresh")
}

// isTold tells whether an answer is one that refuses a script, and leads nowhere.
func isTold(r reply) bool {
	return r.status >= 400 && r.status < 500 && r.header.Get("Content-Type") == "application/json" && !strings.Contains(r.body, `"join"`)
}

// checkEnds looks at which cookies are taken away, and remembers whose sessions
// the server is to hear of.
func (s *suite) checkEnds(t *testing.T, c *Case, r reply) {
	t.Helper()
	taken := map[string]bool{}
	for _, cookie := range r.cookies {
		taken[cookie.Name] = cookie.MaxAge < 0
	}
	for _, name := range c.Ends {
		cookie, _, _ := strings.Cut(s.cookies[name], "=")
		if !taken[cookie] {
			t.Errorf("cookies %v, want that of %s taken away", r.cookies, name)
		}
		delete(taken, cookie)
		s.left[name] = true
	}
	if len(taken) > 0 {
		t.Errorf("cookies %v, want only those of %v taken away", r.cookies, c.Ends)
	}
}

// checkVisitor looks at what the site was told.
func (s *suite) checkVisitor(t *testing.T, c *Case, r reply) {
	t.Helper()
	ticket, room := r.header.Get("X-Seen-Ticket"), r.header.Get("X-Seen-Room")
	got := ""
	switch {
	case ticket != "":
		got = "ticket"
	case room != "":
		got = "free"
	}
	if lies := r.header.Get(seenLies); lies != "" {
		t.Errorf("the site was told %q, which the client made up", lies)
	}
	if want := c.Visitor; got != want || strings.Contains(ticket+room, "forged") {
		t.Errorf("the site was told of ticket %q and room %q, want %q", ticket, room, want)
	}
}

// ownHost is a name of the site.
var ownHost = regexp.MustCompile(`^(?i:([a-z]+\.)?shop\.example\.com\.?)$`)

// leadsHome tells whether nobody is led anywhere but to the site, and to a room
// that leads back to the site.
func (s *suite) leadsHome(kind, location string) bool {
	u, err := url.Parse(location)
	if err != nil || location == "" {
		return err == nil
	}
	switch {
	case kind == "entered":
		u, err = (&url.URL{Scheme: "http", Host: "shop.example.com", Path: "/"}).Parse(strings.ReplaceAll(location, `\`, "/"))
		return err == nil && u.Host == "shop.example.com"
	case s.isLed(kind):
		to, err := url.Parse(u.Query().Get("to"))
		return err == nil && (to.Host == "" && to.Path == "" || to.Scheme == s.platform.scheme() && ownHost.MatchString(to.Hostname()))
	}
	return true
}

// path returns a location as it is below the own host, which some servers add.
func (s *suite) path(location string) string {
	rest, ok := strings.CutPrefix(location, s.platform.scheme()+"://shop.example.com")
	if ok {
		return rest
	}
	return location
}

// Parse reads cases.
func Parse(text []byte) ([]Case, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var list []Case
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("read cases: %w", err)
	}
	for _, c := range list {
		if c.Want == "" || c.Status == 0 {
			return nil, fmt.Errorf("read cases: %q does not say what is wanted, and with which status", c.Name)
		}
	}
	return list, nil
}

// Unseen returns the cases for a connector that does not see what the site
// answers: visits that the site ends go on, and its command reaches nobody.
func Unseen(list []Case) []Case {
	for i, c := range list {
		if c.Needs == "answers" && c.Want == "left" {
			list[i].Want, list[i].Needs = "site", ""
		}
	}
	return slices.DeleteFunc(list, func(c Case) bool { return c.Needs == "answers" })
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 20 s: %s", what)
}
