package rules

import (
	"fmt"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
)

// compiled is a rule prepared for matching.
type compiled struct {
	name   string
	action Outcome
	room   string
	isWide bool // see [Rule.IsWide]

	host, path, method, agent, network matcher
	query, header, cookie              []named
}

// named is a test of all values with a name.
type named struct {
	name  string
	match matcher
}

// matcher tests a list of values. A positive test requires one value that matches, so "not" means
// that none does. nil: no test.
type matcher func(*values) bool

// values are the tested values: texts in lower case, or an address.
type values struct {
	one  string
	more []string // further values, if there are several
	none bool     // there is no value
	addr netip.Addr
}

func (v *values) some(f func(string) bool) bool {
	return !v.none && (f(v.one) || slices.ContainsFunc(v.more, f))
}

func (c *checker) compile(at string, r Rule) compiled {
	out := compiled{name: r.Name, isWide: r.IsWide()}
	kind, room, _ := strings.Cut(r.Action, " ")
	switch {
	case kind == "queue":
		out.action, out.room = Queue, room
		if _, ok := c.site.Rooms[room]; !ok {
			c.add(at+".action", "must name one of the rooms")
		}
	case r.Action == "block":
		out.action = Block
	case r.Action != "bypass":
		c.add(at+".action", `must be "queue ROOM", "bypass" or "block"`)
	}
	out.host = c.test(at+".when.host", r.When.Host, ofText)
	out.path = c.test(at+".when.path", r.When.Path, ofPath)
	out.method = c.test(at+".when.method", r.When.Method, ofText)
	out.agent = c.test(at+".when.user_agent", r.When.UserAgent, ofText)
	out.network = c.test(at+".when.network", r.When.Network, ofNetwork)
	out.query = c.named(at+".when.query", r.When.Query, strings.ToLower)
	out.header = c.named(at+".when.header", r.When.Header, textproto.CanonicalMIMEHeaderKey)
	out.cookie = c.named(at+".when.cookie", r.When.Cookie, strings.ToLower)
	return out
}

func (c *checker) named(at string, tests map[string]Test, spell func(string) string) (list []named) {
	for name, t := range tests {
		if !isASCII(name) {
			c.add(at, "must have ASCII names")
		}
		list = append(list, named{spell(name), c.test(at+"."+name, &t, ofText)})
	}
	slices.SortFunc(list, func(a, b named) int { return strings.Compare(a.name, b.name) })
	return list
}

func isASCII(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}

// kind is the kind of value that a test is for.
type kind int

const (
	ofText kind = iota
	ofPath
	ofNetwork
)

func (c *checker) test(at string, t *Test, k kind) matcher {
	if t == nil {
		return nil
	}
	return c.deepTest(at, t, k, 0)
}

func (c *checker) deepTest(at string, t *Test, k kind, depth int) matcher {
	if depth == maxDepth {
		c.add(at, "must not be nested deeper than %d tests", maxDepth)
		return nil
	}
	if t.members() != 1 {
		c.add(at, "must have exactly one of equals, prefix, suffix, glob, in, any and not, and it must not be empty")
		return nil
	}
	switch {
	case t.Not != nil:
		inner := c.deepTest(at+".not", t.Not, k, depth+1)
		return func(v *values) bool { return !inner(v) }
	case t.Any != nil:
		list := make([]matcher, len(t.Any))
		for i := range t.Any {
			list[i] = c.deepTest(fmt.Sprintf("%s.any[%d]", at, i), &t.Any[i], k, depth+1)
		}
		return func(v *values) bool {
			return slices.ContainsFunc(list, func(m matcher) bool { return m(v) })
		}
	case (t.In != nil) != (k == ofNetwork):
		c.add(at, `must use "in" for networks, and only for networks`)
		return nil
	case t.In != nil:
		return c.networks(at, t.In)
	}
	return c.text(at, t, k)
}

func (t *Test) members() (n int) {
	for _, there := range []bool{t.Equals != nil, t.Prefix != nil, t.Suffix != nil, t.Glob != nil, len(t.In) > 0,
		len(t.Any) > 0, t.Not != nil} {
		if there {
			n++
		}
	}
	return n
}

func (c *checker) networks(at string, list []string) matcher {
	networks := make([]netip.Prefix, len(list))
	for i, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Masked() != p || p.Addr().Is4In6() {
			c.add(fmt.Sprintf("%s.in[%d]", at, i),
				"must be a network, such as 10.0.0.0/8 or 2001:db8::/32, with zeros after its prefix length")
		}
		networks[i] = p
	}
	return func(v *values) bool {
		return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(v.addr) })
	}
}

// text compiles a test of a text.
func (c *checker) text(at string, t *Test, k kind) matcher {
	switch {
	case t.Equals != nil:
		want := c.pattern(at+".equals", *t.Equals, k)
		return func(v *values) bool { return v.some(func(s string) bool { return s == want }) }
	case t.Prefix != nil && k == ofPath:
		want := c.pattern(at+".prefix", *t.Prefix, k)
		return func(v *values) bool { return v.some(func(s string) bool { return isBelow(s, want) }) }
	case t.Prefix != nil:
		want := lower(*t.Prefix)
		return func(v *values) bool { return v.some(func(s string) bool { return strings.HasPrefix(s, want) }) }
	case t.Suffix != nil:
		want := lower(*t.Suffix)
		return func(v *values) bool { return v.some(func(s string) bool { return strings.HasSuffix(s, want) }) }
	}
	want := strings.Split(lower(*t.Glob), "*")
	return func(v *values) bool { return v.some(func(s string) bool { return globs(s, want) }) }
}

// pattern returns a pattern in the form that requests are compared in. A path must already be
// normalized, except for case and a trailing slash.
func (c *checker) pattern(at, text string, k kind) string {
	if k != ofPath {
		return lower(text)
	}
	path, ok := spelledOnce(text)
	if !ok || !strings.HasPrefix(text, "/") || strings.ContainsAny(text, "?#") {
		c.add(at, "must be a path that begins with /, decoded, without query, dot segments, double slashes, ; and backslash")
		return text
	}
	return path
}

// escapePercent protects decoded text from being decoded again.
var escapePercent = strings.NewReplacer("%", "%25", " ", "%20").Replace

// spelledOnce returns a path pattern in the form that readings of requests are compared in. It
// returns false if the path can be read in more than one way.
func spelledOnce(text string) (string, bool) {
	b, ok := decodePath(escapePercent(text))
	if !ok {
		return "", false
	}
	b = compatible(b)
	if waysOf(b)&^readTrimmed != 0 {
		return "", false
	}
	return (&reader{path: b}).read(0)
}

// isBelow reports whether a path is that of a folder or below it.
func isBelow(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == '/' || folder == "/")
}

// globs reports whether s consists of the parts with any characters between them.
func globs(s string, parts []string) bool {
	if len(parts) == 1 {
		return s == parts[0]
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

// IsWide reports whether a rule is not limited to certain paths. The default rules come before the
// first such rule that queues.
func (r Rule) IsWide() bool { return r.When.Path == nil || isWide(*r.When.Path) }

// isWide reports whether a path test matches more than certain folders.
func isWide(t Test) bool {
	switch {
	case t.Equals != nil:
		return false
	case t.Prefix != nil:
		return *t.Prefix == "/"
	case t.Glob != nil:
		return !slices.ContainsFunc(strings.Split(*t.Glob, "/"),
			func(segment string) bool { return segment != "" && segment[0] != '*' })
	case t.Any != nil:
		return slices.ContainsFunc(t.Any, isWide)
	}
	return true
}

// lower returns a text with ASCII letters in lower case. Other letters stay, because programming
// languages convert them differently.
func lower(s string) string {
	for i := range len(s) {
		if c := s[i]; 'A' <= c && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if c := b[i]; 'A' <= c && c <= 'Z' {
					b[i] = c + 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
