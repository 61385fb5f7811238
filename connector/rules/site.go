package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/internal/jsontext"
)

// Version is the version of the format.
const Version = 1

// Limits of a document.
const (
	MaxSize  = 1 << 20 // bytes
	maxRules = 1000
	maxRooms = 100
	maxDepth = 4 // depth of nested tests

	maxProblems = 100 // problems reported per document
)

// Site holds the rules of a site's owner. [Parse] returns it; it must not be changed, and is safe
// for concurrent use.
type Site struct {
	Version  int             `json:"version"`
	Hosts    []string        `json:"hosts,omitempty"` // globs of hosts; others are blocked. Empty: any host
	Rooms    map[string]Room `json:"rooms"`
	Defaults string          `json:"defaults,omitempty"` // "on" (the default) or "off"
	Rules    []Rule          `json:"rules"`

	list []compiled // rules and defaults, in the order of evaluation
}

// Room is a waiting room that rules can name.
type Room struct {
	URL     string     `json:"url"`               // address such as https://queue.example.com/r/sale
	Origin  string     `json:"origin,omitempty"`  // audience of its passes; "": derived from the URL
	Mode    Mode       `json:"mode,omitempty"`    // "": [Always]
	From    *time.Time `json:"from,omitempty"`    // only with [Scheduled]
	Until   *time.Time `json:"until,omitempty"`   // only with [Scheduled]
	Failure Failure    `json:"failure,omitempty"` // "": [RetryPage]
	Bind    Bind       `json:"bind,omitempty"`    // "": [BindBrowser]
}

// Mode determines when visitors must wait for a room.
type Mode string

// Modes.
const (
	Always    Mode = "always"
	Scheduled Mode = "scheduled"  // between From and Until
	SafetyNet Mode = "safety-net" // only while the room's gate is shut
	Off       Mode = "off"        // never: its rules let all requests pass
	Closed    Mode = "closed"     // no visitor enters, with or without a pass
)

// Bind determines what a visitor's session is tied to.
type Bind string

// Values of Bind.
const (
	BindBrowser Bind = "browser" // a key in the browser if scripts run, otherwise the browser family
	BindNone    Bind = "none"
	BindNetwork Bind = "network" // the visitor's /24 (IPv4) or /48 (IPv6)
)

// Failure determines what happens while a room cannot be reached: "retry-page", "page", or "fail-open-after" and a
// duration.
type Failure string

// Values of Failure; the third is "fail-open-after" and a duration, such as "fail-open-after 30s".
const (
	RetryPage     Failure = "retry-page" // a page that retries
	Page          Failure = "page"       // the site owner's own page
	failOpenAfter         = "fail-open-after "
)

// FailOpenAfter returns how long a room may be out of reach before the connector fails open; false:
// never.
func (f Failure) FailOpenAfter() (time.Duration, bool) {
	text, ok := strings.CutPrefix(string(f), failOpenAfter)
	if !ok || !durationForm.MatchString(text) {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d <= 24*time.Hour
}

var durationForm = regexp.MustCompile(`^[1-9][0-9]{0,5}(s|m|h)$`)

// Rule is an action with the requests it applies to.
type Rule struct {
	Name   string `json:"name"`
	When   When   `json:"when,omitzero"`
	Action string `json:"action"` // "queue ROOM", "bypass" or "block"
}

// When selects requests: those for which all given tests match. Without tests, all requests.
type When struct {
	Host      *Test           `json:"host,omitempty"`
	Path      *Test           `json:"path,omitempty"`
	Method    *Test           `json:"method,omitempty"`
	UserAgent *Test           `json:"user_agent,omitempty"`
	Network   *Test           `json:"network,omitempty"` // only in, any and not
	Query     map[string]Test `json:"query,omitempty"`
	Header    map[string]Test `json:"header,omitempty"`
	Cookie    map[string]Test `json:"cookie,omitempty"`
}

// Test is a test of a text, with exactly one member.
type Test struct {
	Equals *string  `json:"equals,omitempty"`
	Prefix *string  `json:"prefix,omitempty"` // a prefix; of a path, in whole segments
	Suffix *string  `json:"suffix,omitempty"`
	Glob   *string  `json:"glob,omitempty"`
	In     []string `json:"in,omitempty"`  // networks, such as 10.0.0.0/8
	Any    []Test   `json:"any,omitempty"` // one of them matches
	Not    *Test    `json:"not,omitempty"`
}

// InvalidError lists the problems of a document, at most the first hundred.
type InvalidError struct{ Problems []Problem }

// Problem is one error in a document.
type Problem struct {
	Field  string // location such as rules[2].action
	Detail string
}

// Error lists the problems.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = strings.TrimPrefix(p.Field+" "+p.Detail, " ")
	}
	return "invalid rules: " + strings.Join(lines, "; ")
}

// Parse reads a document. The error is an [InvalidError].
func Parse(text []byte) (*Site, error) {
	if len(text) > MaxSize {
		return nil, invalid("", "must be at most 1 MiB")
	}
	if wrong := form.Check(text); wrong != nil {
		return nil, invalid(wrong.Field, wrong.Detail)
	}
	var s Site
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, invalid("", "must be a JSON object: "+err.Error())
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // never wrapped
		return nil, invalid("", "must end after the object")
	}
	c := checker{site: &s}
	c.check()
	if len(c.problems) > 0 {
		return nil, &InvalidError{c.problems}
	}
	return &s, nil
}

func invalid(field, detail string) error { return &InvalidError{[]Problem{{field, detail}}} }

// form limits a document before it is decoded: each test in a list takes two levels, and six levels
// surround the tests.
var form = jsontext.Form{Depth: 6 + 2*(maxDepth+1), Name: misnamed}

// members are the names of all members, and the members whose own member names are free.
var members = map[string]bool{
	"version": false, "hosts": false, "rooms": true, "defaults": false, "rules": false,
	"url": false, "origin": false, "mode": false, "from": false, "until": false, "failure": false, "bind": false,
	"name": false, "when": false, "action": false,
	"host": false, "path": false, "method": false, "user_agent": false, "network": false, "query": true, "header": true,
	"cookie": true,
	"equals": false, "prefix": false, "suffix": false, "glob": false, "in": false, "any": false, "not": false,
}

// misnamed returns what is wrong with a member's name, or "": it has the wrong case, which only Go
// accepts, or is unknown.
func misnamed(within []string, name string) string {
	isFree := false
	for _, outer := range within {
		isFree = members[outer] && !isFree
	}
	if _, ok := members[name]; ok || isFree {
		return ""
	}
	for known := range members {
		if strings.EqualFold(known, name) {
			return "is not a known member: names are in lower case"
		}
	}
	return "is not a known member here"
}

// checker collects problems, fills in defaults, and compiles.
type checker struct {
	site     *Site
	problems []Problem
}

func (c *checker) add(field, detail string, args ...any) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, Problem{field, fmt.Sprintf(detail, args...)})
	}
}

func (c *checker) check() {
	s := c.site
	if s.Version != Version {
		c.add("version", "must be %d", Version)
		return
	}
	if s.Defaults == "" {
		s.Defaults = "on"
	}
	if s.Defaults != "on" && s.Defaults != "off" {
		c.add("defaults", `must be "on" or "off"`)
	}
	for i, h := range s.Hosts {
		if !hostGlob.MatchString(h) {
			c.add(fmt.Sprintf("hosts[%d]", i),
				"must be a host name in lower case without port; * matches any characters")
		}
	}
	c.rooms()
	c.rules()
}

var (
	// a name or an IPv6 address, without a port
	hostGlob = regexp.MustCompile(`^([a-z0-9*_-]([a-z0-9*._-]*[a-z0-9*_-])?|[0-9a-f:*]*:[0-9a-f:*]*[:*][0-9a-f:*.]*)$`)
	nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	original = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)
	loopback = regexp.MustCompile(`^(localhost|127\.[0-9]+\.[0-9]+\.[0-9]+|::1)$`)
)

func (c *checker) rooms() {
	if len(c.site.Rooms) > maxRooms {
		c.add("rooms", "must be at most %d", maxRooms)
	}
	for name, r := range c.site.Rooms {
		at := "rooms." + name
		if !nameForm.MatchString(name) {
			c.add(at, "must be named with a-z, 0-9 and -, at most 63 of them")
		}
		if r.Mode == "" {
			r.Mode = Always
		}
		if r.Failure == "" {
			r.Failure = RetryPage
		}
		if r.Bind == "" {
			r.Bind = BindBrowser
		}
		r.Origin = c.address(at, r)
		c.mode(at, r)
		c.site.Rooms[name] = r
	}
	slices.SortFunc(c.problems, func(a, b Problem) int { return strings.Compare(a.Field, b.Field) })
}

// address checks a room's URL and returns its origin.
func (c *checker) address(at string, r Room) string {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(r.URL, "?#%\\") ||
		strings.HasSuffix(r.URL, "/") ||
		u.Scheme != "https" && (u.Scheme != "http" || !loopback.MatchString(u.Hostname())) || len(r.URL) > 500 {
		c.add(at+".url", "must be a room's URL, such as https://queue.example.com/r/sale, with https unless it is on this machine")
		return r.Origin
	}
	if r.Origin == "" {
		return u.Host + u.Path
	}
	if !original.MatchString(r.Origin) {
		c.add(at+".origin", "must be the room's origin, such as queue.example.com/r/sale")
	}
	return r.Origin
}

func (c *checker) mode(at string, r Room) {
	switch r.Mode {
	case Always, Off, Closed, Scheduled, SafetyNet:
	default:
		c.add(at+".mode", "must be always, scheduled, safety-net, off or closed")
	}
	hasTime := r.From != nil || r.Until != nil
	switch {
	case r.Mode == Scheduled && !hasTime:
		c.add(at+".mode", "needs from, until, or both")
	case r.Mode != Scheduled && hasTime:
		c.add(at+".mode", "must be scheduled if from or until is present")
	case r.From != nil && r.Until != nil && !r.From.Before(*r.Until):
		c.add(at+".until", "must be after from")
	}
	if _, opens := r.Failure.FailOpenAfter(); r.Failure != RetryPage && r.Failure != Page && !opens {
		c.add(at+".failure", `must be "retry-page", "page", or "fail-open-after" and a duration up to 24h, such as "fail-open-after 30s"`)
	}
	if r.Bind != BindBrowser && r.Bind != BindNone && r.Bind != BindNetwork {
		c.add(at+".bind", "must be browser, network or none")
	}
}

func (c *checker) rules() {
	s := c.site
	if len(s.Rules) > maxRules {
		c.add("rules", "must be at most %d", maxRules)
		return
	}
	seen := map[string]bool{}
	wide := len(s.Rules) // index at which the defaults are inserted
	for i, r := range s.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		if r.Name == "" || len(r.Name) > 100 || seen[r.Name] || strings.HasPrefix(r.Name, "default:") {
			c.add(at+".name", "must be present and unique, have at most 100 bytes and not begin with default:")
		}
		seen[r.Name] = true
		rule := c.compile(at, r)
		s.list = append(s.list, rule)
		if rule.action == Queue && rule.isWide && wide == len(s.Rules) {
			wide = i
		}
		if r.When.Host != nil && len(s.Hosts) == 0 {
			c.add("hosts", "is required if a rule tests the host, as %q does: clients can send any host", r.Name)
		}
	}
	if s.Defaults == "on" {
		s.list = slices.Insert(s.list, wide, defaults()...)
	}
}
