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

// Bounds of a document.
const (
	MaxSize  = 1 << 20 // bytes
	maxRules = 1000
	maxRooms = 100
	maxDepth = 4 // of tests within tests

	maxProblems = 100 // that are said of a document
)

// Site is what a site's owner wants to wait in line. It comes from [Parse] and
// is not changed afterwards. Safe for concurrent use.
type Site struct {
	Version  int             `json:"version"`
	Hosts    []string        `json:"hosts,omitempty"` // globs; others are blocked. Empty: any
	Rooms    map[string]Room `json:"rooms"`
	Defaults string          `json:"defaults,omitempty"` // "on" (the default) or "off"
	Rules    []Rule          `json:"rules"`

	list []compiled // the rules and the defaults, in the order they are looked at
}

// Room is a waiting room that a rule names.
type Room struct {
	URL     string     `json:"url"`               // such as https://queue.example.com/r/sale
	Origin  string     `json:"origin,omitempty"`  // of its passes; from the URL unless it is said
	Mode    Mode       `json:"mode,omitempty"`    // [Always] unless it is said
	From    *time.Time `json:"from,omitempty"`    // with [Scheduled]
	Until   *time.Time `json:"until,omitempty"`   // with [Scheduled]
	Failure Failure    `json:"failure,omitempty"` // [Hold] unless it is said
	Bind    Bind       `json:"bind,omitempty"`    // [BindBrowser] unless it is said
}

// Mode is when a room keeps people waiting.
type Mode string

// Modes.
const (
	Always    Mode = "always"
	Scheduled Mode = "scheduled"  // from From on and until Until
	SafetyNet Mode = "safety-net" // while the room's gate is shut
	Off       Mode = "off"        // its rules let everybody through
	Closed    Mode = "closed"     // nobody gets in, with a pass or without
)

// Bind is what a visitor's session is tied to.
type Bind string

// What sessions are tied to.
const (
	BindBrowser Bind = "browser" // a key in the browser where scripts run, else its family
	BindNone    Bind = "none"
	BindNetwork Bind = "network" // the visitor's /24 (IPv4) or /48 (IPv6)
)

// Failure is what happens while a room's server cannot be reached: "hold",
// "page", or "open-after" and a duration.
type Failure string

// Failures. The third is written such as "open-after 30s".
const (
	Hold      Failure = "hold" // visitors see a page that tries again
	Page      Failure = "page" // visitors see the owner's own page
	openAfter         = "open-after "
)

// OpenAfter returns how long a room may be out of reach before everybody is
// let through; false: for ever.
func (f Failure) OpenAfter() (time.Duration, bool) {
	text, ok := strings.CutPrefix(string(f), openAfter)
	if !ok || !durationForm.MatchString(text) {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d <= 24*time.Hour
}

var durationForm = regexp.MustCompile(`^[1-9][0-9]{0,5}(s|m|h)$`)

// Rule says what happens to the requests that it is for.
type Rule struct {
	Name   string `json:"name"`
	When   When   `json:"when,omitzero"`
	Action string `json:"action"` // "queue ROOM", "bypass" or "block"
}

// When says which requests a rule is for: those of which everything that is
// said holds. Nothing said: all requests.
type When struct {
	Host      *Test           `json:"host,omitempty"`
	Path      *Test           `json:"path,omitempty"`
	Method    *Test           `json:"method,omitempty"`
	UserAgent *Test           `json:"user_agent,omitempty"`
	Network   *Test           `json:"network,omitempty"` // in, any and not alone
	Query     map[string]Test `json:"query,omitempty"`
	Header    map[string]Test `json:"header,omitempty"`
	Cookie    map[string]Test `json:"cookie,omitempty"`
}

// Test is a test of a text: exactly one member is there.
type Test struct {
	Equals *string  `json:"equals,omitempty"`
	Prefix *string  `json:"prefix,omitempty"` // of a path: whole segments
	Suffix *string  `json:"suffix,omitempty"`
	Glob   *string  `json:"glob,omitempty"` // * stands for any characters
	In     []string `json:"in,omitempty"`   // networks, such as 10.0.0.0/8
	Any    []Test   `json:"any,omitempty"`  // one of them holds
	Not    *Test    `json:"not,omitempty"`
}

// InvalidError lists what is wrong with a document, the first hundred at most.
type InvalidError struct{ Problems []Problem }

// Problem is one thing that is wrong.
type Problem struct {
	Field  string // such as rules[2].action
	Detail string
}

// Error names the problems.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = strings.TrimPrefix(p.Field+" "+p.Detail, " ")
	}
	return "invalid rules: " + strings.Join(lines, "; ")
}

// Parse reads a document. Error: [InvalidError].
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

// form is what a document keeps to before it is decoded: tests have two levels
// each, where they are in a list, and six around them.
var form = jsontext.Form{Depth: 6 + 2*(maxDepth+1), Name: misnamed}

// members are the names of all members, and those whose own are chosen freely.
var members = map[string]bool{
	"version": false, "hosts": false, "rooms": true, "defaults": false, "rules": false,
	"url": false, "origin": false, "mode": false, "from": false, "until": false, "failure": false, "bind": false,
	"name": false, "when": false, "action": false,
	"host": false, "path": false, "method": false, "user_agent": false, "network": false, "query": true, "header": true, "cookie": true,
	"equals": false, "prefix": false, "suffix": false, "glob": false, "in": false, "any": false, "not": false,
}

// misnamed says what is wrong with the name of a member: that it is only nearly
// a name, which Go takes and the rest of the world does not, or none at all.
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
			return "is no member: names are in lower case"
		}
	}
	return "is not known here"
}

// checker collects problems, fills in what is not said, and compiles.
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
			c.add(fmt.Sprintf("hosts[%d]", i), "must be a host name in lower case without port; * stands for any characters")
		}
	}
	c.rooms()
	c.rules()
}

var (
	hostGlob = regexp.MustCompile(`^([a-z0-9*_-]([a-z0-9*._-]*[a-z0-9*_-])?|[0-9a-f:*]*:[0-9a-f:*]*[:*][0-9a-f:*.]*)$`) // a name, or an IPv6 address; never a port
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
			r.Failure = Hold
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

// address checks where a room is, and returns its origin.
func (c *checker) address(at string, r Room) string {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(r.URL, "?#%\\") || strings.HasSuffix(r.URL, "/") ||
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
		c.add(at+".mode", "must be scheduled when from or until is there")
	case r.From != nil && r.Until != nil && !r.From.Before(*r.Until):
		c.add(at+".until", "must be after from")
	}
	if _, opens := r.Failure.OpenAfter(); r.Failure != Hold && r.Failure != Page && !opens {
		c.add(at+".failure", `must be "hold", "page", or "open-after" and a duration up to 24h, such as "open-after 30s"`)
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
	wide := len(s.Rules) // where the defaults go
	for i, r := range s.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		if r.Name == "" || len(r.Name) > 100 || seen[r.Name] || strings.HasPrefix(r.Name, "default:") {
			c.add(at+".name", "must be there, be another than those of other rules, have at most 100 bytes and not begin with default:")
		}
		seen[r.Name] = true
		rule := c.compile(at, r)
		s.list = append(s.list, rule)
		if rule.action == Queue && rule.isWide && wide == len(s.Rules) {
			wide = i
		}
		if r.When.Host != nil && len(s.Hosts) == 0 {
			c.add("hosts", "must be there when a rule tests the host, as %q does: visitors can invent others", r.Name)
		}
	}
	if s.Defaults == "on" {
		s.list = slices.Insert(s.list, wide, defaults()...)
	}
}
