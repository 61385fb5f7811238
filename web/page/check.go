package page

import (
	"html/template"
	"strings"
)

// checkPage is the page on which a visitor checks a place.
type checkPage struct {
	frame
	Ticket *Ticket
}

// checkLine is one line of the result, with everything that may be said.
type checkLine struct {
	ID      string
	Title   string // message
	Reasons []reason
}

// reason is one thing that may be said about a line.
type reason struct {
	Name string // as the checker names it; "red" stands for all red ones
	Text template.HTML
}

// reasons are what the checker may find, line by line. A number in the words
// is named after a slash.
var reasons = []struct {
	line  string
	names []string
}{
	{"record", []string{"included", "behind", "red"}},
	{"group", []string{"closed/lots", "unchecked", "pending", "not-found", "schedule", "red"}},
	{"draw", []string{"no-beacon", "unchecked", "pending", "not-found", "red"}},
	{"place", []string{"exact/position", "unchecked", "pending", "not-found", "too-large", "red"}},
}

// Lines returns the four lines.
func (p *checkPage) Lines() ([]checkLine, error) {
	list := make([]checkLine, len(reasons))
	for i, r := range reasons {
		list[i] = checkLine{ID: r.line, Title: "check." + r.line}
		for _, name := range r.names {
			name, live, _ := strings.Cut(name, "/")
			text, err := p.reason(r.line, name, live)
			if err != nil {
				return nil, err
			}
			list[i].Reasons = append(list[i].Reasons, reason{name, text})
		}
	}
	return list, nil
}

// reason returns the words for a reason: its own under that line, or those
// that all lines have.
func (p *checkPage) reason(line, name, live string) (template.HTML, error) {
	key := "check." + line + "." + name
	if _, own := p.catalog[key]; !own {
		key = "check." + name
	}
	switch live {
	case "":
		return p.Say(key)
	case "lots":
		return p.Count(key, live, 0)
	}
	return p.Say(key, live, trusted(`<b data-live="`+live+`"></b>`))
}

// Command is what checks a proof elsewhere.
func (p *checkPage) Command() template.HTML {
	return `<code dir="ltr">proofline-verify ticket FILE</code>`
}
