// Package conformance tests that connectors of every kind answer alike. It sends the requests of
// connector/testdata/conformance.json to a connector and checks the responses. It includes a server
// for the connector.
//
// A connector under test is configured with [Room.RulesURL], [Room.SiteKey],
// [Token] and [Page], and protects [Site].
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

// Case is a request with the expected response.
type Case struct {
	Name     string   `json:"name"`
	Method   string   `json:"method"`
	Target   string   `json:"target"`             // target as in the request line
	Protocol string   `json:"protocol,omitempty"` // empty: HTTP/1.1
	Header   []string `json:"header,omitempty"`   // fields such as "Accept: text/html"
	// Gate sets the gate of the room market: "open", "shut", "full" (open, but with no
	// share left) or "crowded" (open, but our network is at its limit). Empty:
	// unchanged.
	Gate string `json:"gate,omitempty"`
	// Rooms sets the rooms that can fail to "down" or "up"; empty: unchanged.
	Rooms string `json:"rooms,omitempty"`
	// Late: the request is repeated until the response is correct, because connectors notice
	// failures with a delay.
	Late bool `json:"late,omitempty"`
	// From is the client's address; empty: 127.0.0.1.
	From string `json:"from,omitempty"`
	// Want is the kind of response: "room", "market" or another room's name (sent there to wait), a
	// result of failureKind, or one of these:
	//
	//	site       passed on to the site
	//	entered    session cookie, and 303 to Location
	//	begun      passed on, with the cookie of an unqueued session
	//	left       passed on, and the cookie is removed
	//	page       4xx with a page of the connector
	//	json       4xx with JSON for a script
	//	refused    any 4xx that does not send to a room, or no response
	//	fault      5xx of the server that the connector runs in
	//	connector  200 from the connector
	//	redirect   303 to Location without a cookie
	//	ended      204 from the connector, removing exactly the cookies in Ends
	Want   string `json:"want"`
	Status int    `json:"status"`
	// Unlike replaces Want and Status for some platforms, in the form "room 302":
	// servers differ in which requests they pass to a connector unchanged.
	Unlike map[string]string `json:"unlike,omitempty"`
	// Location is the expected location, or a script's join URL, without the
	// signature; empty: any.
	Location string `json:"location,omitempty"`
	// Back is the kind of return URL when sent to a room: "none", "open" (unsigned), or
	// empty for signed, if there is one.
	Back string `json:"back,omitempty"`
	// Return is the kind of Proofline-Return header sent to a script: "signed", "enter"
	// or empty.
	Return string `json:"return,omitempty"`
	// Says is text that the body must contain.
	Says string `json:"says,omitempty"`
	// Visitor is what the site learns about the visitor: "ticket", with a pass; "free", with an
	// unqueued session; or empty.
	Visitor string `json:"visitor,omitempty"`
	// Ends names sessions that the request ends, as reported to the server.
	Ends []string `json:"ends,omitempty"`
	// Observed: the connector reports that the request would have needed a session if its room were
	// not off.
	Observed bool `json:"observed,omitempty"`
	// Needs is "answers" for connectors that see the site's responses.
	Needs string `json:"needs,omitempty"`
}

// SiteHeader is in every response of [Site].
const SiteHeader = "X-Site"

// Headers with which the site reports what it received: the request line, and the
// path as Go parses it.
const (
	seenTarget = "X-Seen-Target"
	seenPath   = "X-Seen-Path"
	seenLies   = "X-Seen-Lies"
)

// forgedIn returns the headers with claims of the client about itself or the
// address. In cases, such headers contain the word "forged".
func forgedIn(h http.Header) []string {
	var names []string
	for name, values := range h {
		if name != "Cookie" && name != "User-Agent" && strings.Contains(strings.Join(values, " "), "forged") {
			names = append(names, name)
		}
	}
	return names
}

// Site returns the protected site. It responds with SiteHeader and what it received about the
// visitor. /tickets/leave and /market/leave end the session.
func Site() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(SiteHeader, "site")
		w.Header().Set("X-Seen-Ticket", r.Header.Get("X-Proofline-Ticket"))
		w.Header().Set("X-Seen-Room", r.Header.Get("X-Proofline-Room"))
		w.Header().Set("X-Seen-Upgrade", r.Header.Get("Upgrade"))
		w.Header().Set(seenTarget, r.RequestURI)
		w.Header().Set(seenPath, r.URL.EscapedPath())
		w.Header().Set(seenLies, strings.Join(forgedIn(r.Header), ", "))
		if strings.HasSuffix(r.URL.Path, "/leave") {
			w.Header().Set("Proofline-Command", "release")
		}
		w.WriteHeader(http.StatusOK)
	})
}

// Run sends all cases to a connector that listens on addr. From then on the server
// serves forged rules.
func Run(t *testing.T, room *Room, addr string, cases []Case) {
	t.Helper()
	RunOn(t, Platform{}, room, addr, cases)
}

// RunOn does what Run does, for a connector on a platform.
func RunOn(t *testing.T, p Platform, room *Room, addr string, cases []Case) {
	t.Helper()
	s := &suite{Room: room, platform: p, addr: addr, begun: map[string]bool{}}
	t.Run("sessions slide, up to their end", s.sessionLengths)
	s.enterAll(t) // last, because the first case needs a pass that was used a moment ago
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Gate != "" && c.Gate != s.gateState {
				s.setGate(t, c.Gate)
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
	t.Run("random addresses", s.randomTargets)
	t.Run("attacks", func(t *testing.T) { RunAttacks(t, addr) })
	s.checkReceived(t)
}

// answerOf parses an entry of Unlike.
func answerOf(t *testing.T, text string) (want string, status int) {
	t.Helper()
	want, number, _ := strings.Cut(text, " ")
	status, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return want, status
}

// ask sends the request of a case, and counts requests admitted while a room is down.
func (s *suite) ask(t *testing.T, c Case) reply {
	t.Helper()
	r := exchange(t, s.addr, c)
	if strings.HasPrefix(c.Target, "/fail-open") && s.kind(r) == "site" && r.header.Get("X-Seen-Ticket") == "" {
		s.failedOpen++
	}
	return r
}

// check compares a response with the case.
func (s *suite) check(t *testing.T, c *Case, r reply) {
	t.Helper()
	location, back := s.returnTarget(r)
	got := s.kind(r)
	if c.Want != got && (got == "page" || got == "json") {
		got = "refused"
	}
	if got != c.Want || r.status != c.Status || c.Location != "" && s.path(location) != c.Location {
		t.Errorf("%s: status %d to %q, want %s %d %q", got, r.status, location, c.Want, c.Status, c.Location)
	}
	if isKept := got == "entered" || got == "begun" || got == "left" || got == "ended"; !isKept && len(r.cookies) > 0 {
		t.Errorf("cookies %v", r.cookies)
	}
	if !s.staysOnSite(s.kind(r), location) {
		t.Errorf("redirects to %q", location)
	}
	if s.isSentToRoom(got) && back != c.Back && (c.Back != "" || back != "signed" && back != "none") {
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
		t.Error("the site's command to the connector reaches the client")
	}
	switch got {
	case "begun":
		s.begun[parseUnqueuedID(t, r.cookies[0].Value)] = true
	case "left":
		s.left[c.Visitor] = true
	case "entered":
		s.left["changed"] = s.left["changed"] || slices.Contains(c.Header, "Cookie: "+s.cookies["freechanging"])
	case "ended":
		s.checkEnds(t, c, r)
	case "market":
		if s.gateState == "full" {
			s.turned++
		}
	}
}

// kind returns the kind of a response, as in Want.
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
		return "redirect"
	case r.status == http.StatusOK:
		return "connector"
	case failureKind(r) != "":
		return failureKind(r)
	case isPage(r):
		return "page"
	case isScriptRefusal(r):
		return "json"
	case r.status != 0 && r.status < 400:
		return "unknown"
	case r.status >= 500 && r.status != http.StatusNotImplemented && r.status != http.StatusHTTPVersionNotSupported:
		return "fault"
	}
	return "refused"
}

// isSentToRoom reports whether a kind of response sends the visitor to a room.
func (s *suite) isSentToRoom(kind string) bool {
	return kind == "room" || strings.Contains(rulesJSON, `    "`+kind+`": {"url"`)
}

// isPage reports whether a response is a refusal page without any part of the request: no address,
// and no link.
func isPage(r reply) bool {
	return r.status >= 400 && r.status < 500 && strings.HasPrefix(r.header.Get("Content-Security-Policy"),
		"default-src 'none'; ") && r.header.Get("Content-Type") == "text/html; charset=utf-8" &&
		r.header.Get("Content-Language") != "" && r.header.Get("Cache-Control") == "no-store" &&
		!strings.Contains(r.body, "//") && !strings.Contains(r.body, "refresh")
}

// isScriptRefusal reports whether a response refuses a script, without a link.
func isScriptRefusal(r reply) bool {
	return r.status >= 400 && r.status < 500 && r.header.Get("Content-Type") == "application/json" &&
		!strings.Contains(r.body, `"join"`)
}

// checkEnds checks which cookies are removed, and remembers whose sessions must be
// reported as ended.
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

// checkVisitor checks what the site received about the visitor.
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
		t.Errorf("the site got the forged header %q", lies)
	}
	if want := c.Visitor; got != want || strings.Contains(ticket+room, "forged") {
		t.Errorf("the site got ticket %q and room %q, want %q", ticket, room, want)
	}
}

// ownHost matches the site's names.
var ownHost = regexp.MustCompile(`^(?i:([a-z]+\.)?shop\.example\.com\.?)$`)

// staysOnSite reports whether a redirect goes to the site, or to a room that
// returns to the site.
func (s *suite) staysOnSite(kind, location string) bool {
	u, err := url.Parse(location)
	if err != nil || location == "" {
		return err == nil
	}
	switch {
	case kind == "entered":
		site := &url.URL{Scheme: "http", Host: "shop.example.com", Path: "/"}
		u, err = site.Parse(strings.ReplaceAll(location, `\`, "/"))
		return err == nil && u.Host == "shop.example.com"
	case s.isSentToRoom(kind):
		to, err := url.Parse(u.Query().Get("to"))
		return err == nil && (to.Host == "" && to.Path == "" || to.Scheme == s.platform.scheme() &&
			ownHost.MatchString(to.Hostname()))
	}
	return true
}

// path returns a location relative to the site, because some servers make it absolute.
func (s *suite) path(location string) string {
	rest, ok := strings.CutPrefix(location, s.platform.scheme()+"://shop.example.com")
	if ok {
		return rest
	}
	return location
}

// Parse parses cases.
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

// Unseen returns the cases for a connector that does not see the site's responses: sessions that
// the site ends continue, and its command is passed to the client.
func Unseen(list []Case) []Case {
	for i, c := range list {
		if c.Needs == "answers" && c.Want == "left" {
			list[i].Want, list[i].Needs = "site", ""
		}
	}
	return slices.DeleteFunc(list, func(c Case) bool { return c.Needs == "answers" })
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 20 s: %s", what)
}
