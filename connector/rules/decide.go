package rules

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Request is a client's request to decide about. Callers must not fill it from headers that clients
// can forge, unless one of the site's own proxies has set them.
type Request struct {
	Method string
	Host   string              // host from the Host header; that of an absolute target takes precedence
	Target string              // request target: path and query, or absolute form
	Header map[string][]string // fields by canonical name
	Client netip.Addr
}

// Outcome is what happens to a request; larger values are stricter.
type Outcome uint8

// Outcomes.
const (
	Bypass Outcome = iota // passed to the site
	Queue                 // passed to the site with a pass of the room, otherwise sent to the room
	Shut                  // refused: the room is closed
	Block                 // refused
)

// String returns the outcome's name in FORMAT.md.
func (o Outcome) String() string { return [...]string{"bypass", "queue", "closed", "block"}[o] }

// Decision is the outcome for a request, with its reason.
type Decision struct {
	Outcome Outcome
	Room    string // set for Queue and Shut, and for Bypass by a rule whose room is off
	Rule    string // name of the rule, or one of the constants below
}

// Values of Decision.Rule for decisions not made by a rule.
const (
	NoRule    = ""                  // no rule matches: the request passes
	Malformed = "default:malformed" // the request is malformed and blocked
	WrongHost = "default:hosts"     // the host is not one of the site's: blocked
)

// Decide returns what happens to a request at time now. Where origins may read its path
// differently, it returns the strictest decision of all readings, and among equal ones that of the
// first reading.
func (s *Site) Decide(r *Request, now time.Time) Decision {
	v, ok := viewOf(r)
	if !ok {
		return Decision{Block, "", Malformed}
	}
	if len(s.Hosts) > 0 && !s.answersTo(v.host.one) {
		return Decision{Block, "", WrongHost}
	}
	if path, ok := plain(v.rawPath); ok {
		v.path.one = path
		return s.first(v, now)
	}
	list, ok := readings(v.rawPath)
	if !ok {
		return Decision{Block, "", Malformed}
	}
	var strictest Decision
	for i, path := range list {
		v.path.one = path
		if d := s.first(v, now); i == 0 {
			strictest = d
		} else {
			strictest = s.Stricter(strictest, d)
		}
	}
	return strictest
}

// Stricter returns the stricter of two decisions; if they are equal, the first.
func (s *Site) Stricter(a, b Decision) Decision {
	if s.isStricter(b, a) {
		return b
	}
	return a
}

// isStricter reports whether a decision is stricter than another. Waiting for a room in mode safety-net is less
// strict than waiting in any other mode: otherwise an unqueued session of the former room would bypass the line of
// the latter.
func (s *Site) isStricter(d, than Decision) bool {
	if d.Outcome == Queue && than.Outcome == Queue {
		return s.Rooms[d.Room].Mode != SafetyNet && s.Rooms[than.Room].Mode == SafetyNet
	}
	return d.Outcome > than.Outcome
}

// Methods with special request targets.
const (
	methodConnect = "CONNECT"
	methodOptions = "OPTIONS"
)

// view is a request in the form that rules test.
type view struct {
	*Request
	rawPath, rawQuery  string
	host, path, method values // path is one reading of the path
	client             values
}

func viewOf(r *Request) (*view, bool) {
	host, path, query, ok := splitTarget(r.Target)
	if !ok || r.Method == methodConnect || path == "*" && r.Method != methodOptions {
		return nil, false
	}
	if host == "" {
		host = r.Host
	}
	host, ok = hostName(host)
	return &view{
		Request: r, rawPath: path, rawQuery: query,
		host: values{one: host}, method: values{one: lower(r.Method)}, client: values{addr: r.Client.Unmap()},
	}, ok
}

func (s *Site) answersTo(host string) bool {
	return slices.ContainsFunc(s.Hosts, func(glob string) bool { return globs(host, strings.Split(glob, "*")) })
}

// first returns the decision of the first matching rule.
func (s *Site) first(v *view, now time.Time) Decision {
	for i := range s.list {
		if c := &s.list[i]; c.isFor(v) {
			d := Decision{c.action, c.room, c.name}
			if c.action == Queue {
				d.Outcome = s.Rooms[c.room].outcome(now)
			}
			return d
		}
	}
	return Decision{Bypass, "", NoRule}
}

// outcome returns the outcome at time now for requests that wait for the room.
func (r Room) outcome(now time.Time) Outcome {
	switch {
	case r.Mode == Off, r.From != nil && now.Before(*r.From), r.Until != nil && !now.Before(*r.Until):
		return Bypass
	case r.Mode == Closed:
		return Shut
	}
	return Queue
}

func (c *compiled) isFor(v *view) bool {
	return holds(c.path, &v.path) && holds(c.host, &v.host) && holds(c.method, &v.method) &&
		holds(c.network, &v.client) &&
		(c.agent == nil || c.agent(valuesOf(v.Header["User-Agent"]))) &&
		each(c.query, v.queryValues) && each(c.cookie, v.cookieValues) &&
		each(c.header, func(name string) *values { return valuesOf(v.Header[name]) })
}

func holds(m matcher, v *values) bool { return m == nil || m(v) }

func each(tests []named, get func(string) *values) bool {
	return !slices.ContainsFunc(tests, func(n named) bool { return !n.match(get(n.name)) })
}

func valuesOf(list []string) *values {
	v := &values{none: true}
	for _, text := range list {
		v.add(lower(text))
	}
	return v
}

func (v *values) add(text string) {
	if v.none {
		v.one, v.none = text, false
		return
	}
	v.more = append(v.more, text)
}

// queryValues returns all values of a query parameter.
func (v *view) queryValues(name string) *values {
	found := &values{none: true}
	for part := range strings.SplitSeq(v.rawQuery, "&") {
		key, value, _ := strings.Cut(part, "=")
		if lower(decodeQuery(key)) == name {
			found.add(lower(decodeQuery(value)))
		}
	}
	return found
}

// decodeQuery decodes a part of a query. Invalid escapes are left unchanged.
func decodeQuery(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			b = append(b, ' ')
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// cookieValues returns all values of a cookie.
func (v *view) cookieValues(name string) *values {
	found := &values{none: true}
	for _, line := range v.Header["Cookie"] {
		for part := range strings.SplitSeq(line, ";") {
			key, value, ok := strings.Cut(strings.Trim(part, " \t"), "=")
			if ok && lower(key) == name {
				found.add(lower(strings.Trim(value, `"`)))
			}
		}
	}
	return found
}
