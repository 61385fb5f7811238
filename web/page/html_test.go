package page_test

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// element is one element of a page.
type element struct {
	name       string
	attributes map[string]string
	parent     *element
	children   []*element
	words      string // of a text node, which is an element named #text
}

// parseHTML parses a page, and fails if an element is not closed exactly once.
func parseHTML(t *testing.T, name, html string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &element{name: "#document"}
	for at := root; ; {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			if at != root {
				t.Fatalf("%s: <%s> is not closed", name, at.name)
			}
			return root
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attributes: map[string]string{}, parent: at}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			at.children = append(at.children, e)
			at = e
		case xml.EndElement:
			if at.name != token.Name.Local {
				t.Fatalf("%s: </%s> closes <%s>", name, token.Name.Local, at.name)
			}
			at = at.parent
		case xml.CharData:
			at.children = append(at.children, &element{name: "#text", words: string(token), parent: at})
		}
	}
}

// all returns the matching elements below, except those in templates.
func (e *element) all(match func(*element) bool) []*element {
	var found []*element
	for _, c := range e.children {
		if match(c) {
			found = append(found, c)
		}
		if c.name != "template" {
			found = append(found, c.all(match)...)
		}
	}
	return found
}

func (e *element) named(names ...string) []*element {
	return e.all(func(c *element) bool { return slices.Contains(names, c.name) })
}

// has reports whether the element has an attribute.
func (e *element) has(attribute string) bool {
	_, ok := e.attributes[attribute]
	return ok
}

// isShown reports whether neither the element nor a parent is hidden.
func (e *element) isShown() bool {
	for ; e != nil; e = e.parent {
		if e.has("hidden") || e.name == "template" || e.attributes["type"] == "hidden" {
			return false
		}
	}
	return true
}

// text returns the visible text, with single spaces.
func (e *element) text() string {
	var b strings.Builder
	e.write(&b)
	return strings.Join(strings.Fields(b.String()), " ")
}

func (e *element) write(b *strings.Builder) {
	if !e.isShown() {
		return
	}
	b.WriteString(e.words)
	for _, c := range e.children {
		if !slices.Contains([]string{"b", "span", "time", "#text"}, c.name) {
			b.WriteString(" ")
		}
		c.write(b)
	}
}
