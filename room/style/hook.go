package style

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/css"
)

// Hook is an element or class of the visitors' pages that selectors may name.
type Hook struct {
	Name  string
	About string // description
	// Honest: the element shows place, time or check, or contains one that does.
	Honest bool
}

// Elements are the elements that selectors may name, all below body.
var Elements = []Hook{
	{"body", "the whole page", false},
	{"header", "logo, title, organizer and headline", false},
	{"main", "what the page is about", false},
	{"footer", "help, links and languages", false},
	{"section", "a part with its own heading", false},
	{"aside", "notices above the line", false},
	{"nav", "the languages", false},
	{"h1", "the heading: place, group or what happened", true},
	{"h2", "the heading of a part", false},
	{"p", "a paragraph", true},
	{"ol", "the way to the front, and the lines of the check", true},
	{"ul", "the languages, and the links of the footer", false},
	{"li", "an item of a list", true},
	{"a", "a link", false},
	{"b", "a number that stands out", true},
	{"time", "a time of day", true},
	{"button", "a button", true},
	{"summary", "a button that opens something", false},
	{"details", "the content that such a button opens", false},
	{"img", "the logo", false},
}

// Classes are the classes that selectors may name.
var Classes = []Hook{
	{"upcoming", "main before the line opens", false},
	{"joinable", "main while visitors can join", false},
	{"full", "main while the line is full", false},
	{"waiting", "main for a place that is not drawn yet", false},
	{"drawn", "main for a drawn place", false},
	{"called", "main for a called visitor", false},
	{"admitted", "main for an admitted visitor", false},
	{"over", "main for a visitor whose visit is over", false},
	{"missed", "main for a visitor who did not claim in time", false},
	{"left", "main for a visitor who gave up the place", false},
	{"revoked", "main for a revoked place", false},
	{"closed", "main when joining is over", false},
	{"ended", "main when the line is over", false},
	{"headline", "the organizer's headline", false},
	{"intro", "the organizer's introduction", false},
	{"message", "the organizer's message", false},
	{"notices", "notices of the page", true},
	{"notice", "a notice: a pause, little time", true},
	{"urgent", "the notice that little time is left", true},
	{"rehearsal", "the banner of a rehearsal", true},
	{"lead", "the sentence below the heading", true},
	{"countdown", "the remaining time", true},
	{"track", "the way to the front", true},
	{"expected", "the expected time of the call", true},
	{"confirm", "how an issuer confirms the visitor, for a place or for one more lot, and what is published", true},
	{"verdict", "the result of the check", true},
	{"lines", "the lines of the check", true},
	{"status", "the result of one line", true},
	{"update", "how the page is kept up to date", false},
	{"actions", "the part with the visitor's actions", false},
	{"choices", "the buttons of that part", false},
	{"saved", "the link to the place", false},
	{"copy", "the link to the place, with its button", false},
	{"main", "the button that matters most", true},
	{"button", "a link that looks like a button", true},
	{"plain", "a link that looks like the other buttons", true},
	{"small", "small print", false},
	{"help", "the organizer's help", false},
	{"own", "the organizer's text in the footer", false},
	{"links", "the organizer's links in the footer", false},
	{"languages", "the languages to choose from", false},
}

// Pseudos are the pseudo-classes that selectors may name.
var Pseudos = []string{"hover", "active", "focus-visible", "first-child", "last-child"}

// decorative are hooks of parts that contain nothing honest.
var decorative = []string{"header", "footer", "nav", ".headline", ".intro", ".message", ".help", ".own", ".links",
	".languages"}

// signals are hooks whose colours show the result of a check, or that time is short.
var signals = []string{".lines", ".status", ".verdict", ".urgent"}

// maxDepth is the maximum number of parts in a selector.
const maxDepth = 4

// compound is one part of a selector: p.lead:hover.
type compound struct {
	child   bool // directly below the previous part
	element string
	classes []string
	pseudos []string
}

func (c compound) String() string {
	var b strings.Builder
	b.WriteString(c.element)
	for _, class := range c.classes {
		b.WriteString("." + class)
	}
	for _, pseudo := range c.pseudos {
		b.WriteString(":" + pseudo)
	}
	return b.String()
}

// hooks returns the element, and the classes with a dot.
func (c compound) hooks() []string {
	list := []string{c.element}
	for _, class := range c.classes {
		list = append(list, "."+class)
	}
	return list
}

// selector is a list of nested parts; the last one is selected.
type selector []compound

func (s selector) String() string {
	var b strings.Builder
	for i, c := range s {
		if i > 0 {
			b.WriteString(map[bool]string{false: " ", true: " > "}[c.child])
		}
		b.WriteString(c.String())
	}
	return b.String()
}

// names reports whether the selected element has one of the hooks.
func (s selector) names(hooks ...string) bool {
	return slices.ContainsFunc(s[len(s)-1].hooks(), func(hook string) bool { return slices.Contains(hooks, hook) })
}

// passes reports whether one of the parts has one of the hooks.
func (s selector) passes(hooks []string) bool {
	return slices.ContainsFunc(s, func(c compound) bool {
		return slices.ContainsFunc(c.hooks(), func(hook string) bool { return slices.Contains(hooks, hook) })
	})
}

// honest reports whether the selected element may show place, time or check. Below a decorative part it never
// does.
func (s selector) honest() bool {
	if s.passes(decorative) {
		return false
	}
	last := s[len(s)-1]
	for _, class := range last.classes {
		if find(Classes, class).Honest {
			return true
		}
	}
	return last.element == "" || find(Elements, last.element).Honest
}

func find(hooks []Hook, name string) Hook {
	if i := slices.IndexFunc(hooks, func(h Hook) bool { return h.Name == name }); i >= 0 {
		return hooks[i]
	}
	return Hook{}
}

// selectors parses a list of selectors up to the brace.
func (p *parser) selectors() ([]selector, bool) {
	var list []selector
	for {
		s, ok := p.selector()
		if !ok {
			return nil, false
		}
		list = append(list, s)
		if len(list) > maxSelectors {
			p.refuse(p.peek().at, "a rule has at most %d selectors", maxSelectors)
			return nil, false
		}
		if p.peek().kind != css.CommaToken {
			return list, true
		}
		p.next()
	}
}

func (p *parser) selector() (selector, bool) {
	var s selector
	p.space()
	for child := false; ; {
		at := p.peek().at
		c, ok := p.compound()
		if !ok {
			return nil, false
		}
		c.child = child
		s = append(s, c)
		if c.element == "body" && len(s) > 1 {
			p.refuse(at, "body comes first in a selector")
			return nil, false
		}
		if len(s) > maxDepth {
			p.refuse(at, "a selector has at most %d parts", maxDepth)
			return nil, false
		}
		spaced := p.space()
		child = p.peek().is(">")
		if child {
			p.next()
			p.space()
		} else if k := p.peek().kind; !spaced || k == css.LeftBraceToken || k == css.CommaToken || k == end {
			return s, true
		}
	}
}

// compound parses one part of a selector.
func (p *parser) compound() (compound, bool) {
	var c compound
	for {
		t := p.peek()
		switch {
		case t.kind == css.IdentToken && c.element == "" && c.classes == nil && c.pseudos == nil:
			c.element = p.next().text
			if find(Elements, c.element).Name == "" {
				p.refuse(t.at, "%s is not an element that may be styled: %s", t.name(), names(Elements))
				return c, false
			}
		case t.is("."):
			p.next()
			class := p.next()
			if class.kind != css.IdentToken || find(Classes, class.text).Name == "" {
				p.refuse(t.at, ".%s is not a class that may be styled: %s", class.name(), names(Classes))
				return c, false
			}
			c.classes = append(c.classes, class.text)
		case t.kind == css.ColonToken:
			p.next()
			pseudo := p.next()
			if pseudo.kind != css.IdentToken || !slices.Contains(Pseudos, pseudo.text) {
				p.refuse(t.at, ":%s is not allowed, only :%s", pseudo.name(), strings.Join(Pseudos, ", :"))
				return c, false
			}
			c.pseudos = append(c.pseudos, pseudo.text)
		case c.element == "" && c.classes == nil && c.pseudos == nil:
			p.refuse(t.at, "%s is not allowed in a selector: name elements, classes and pseudo-classes of the page",
				t.name())
			return c, false
		default:
			return c, true
		}
	}
}

func names(hooks []Hook) string {
	list := make([]string, len(hooks))
	for i, h := range hooks {
		list[i] = h.Name
	}
	return strings.Join(list, ", ")
}
