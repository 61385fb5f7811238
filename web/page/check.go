package page

import "html/template"

// checkPage is the page on which a visitor checks a place.
type checkPage struct {
	frame
	Ticket *Ticket
}

// Expects tells whether a check most likely ends with that sentence, for which the
// page keeps room.
func (p *checkPage) Expects(sentence string) bool { return p.Room.expects(p.Ticket, sentence) }

// Expects is the same of the check beside the place.
func (p *linePage) Expects(sentence string) bool { return p.View.Room.expects(p.View.Ticket, sentence) }

func (r *Room) expects(t *Ticket, sentence string) bool {
	switch {
	case t == nil || t.Position == 0:
		return sentence == "neutral"
	case r.Chance == ChanceNone:
		return sentence == "level1"
	}
	return sentence == "green"
}

// checkLine is one line of the result, with everything that may be said.
type checkLine struct {
	ID      string
	Title   string // message
	Reasons []reason
}

// IsDrawn reports whether the line is about something that comes with the draw.
func (l checkLine) IsDrawn() bool { return l.ID != "record" }

// DrawTime is the part of the second reading of the templates that writes when
// the visitor's group is drawn.
func (*translation) DrawTime() template.HTML { return "{{$.Time $.Ticket.Window.Draws}}" }

// ProofOrigin is where a script writes which line a saved proof is of.
func (*translation) ProofOrigin() template.HTML { return `<code dir="ltr" data-proof-origin></code>` }

// reason is one thing that may be said about a line.
type reason struct {
	Name string // as the checker names it; "red" stands for all red ones
	Text template.HTML
}

// reasons are what the checker may find, line by line: its name for it, the
// message, and what is counted or named in the message.
var reasons = []struct {
	line    string
	reasons [][3]string
}{
	{"record", [][3]string{
		{"included", "check.record.included"},
		{"behind", "check.record.behind"},
		{"red", "check.record.red"},
	}},
	{"group", [][3]string{
		{"closed", "check.group.closed", "lots"},
		{"unchecked", "check.unchecked"},
		{"pending", "check.group.pending"},
		{"not-found", "check.not-found"},
		{"schedule", "check.group.schedule"},
		{"red", "check.group.red"},
	}},
	{"draw", [][3]string{
		{"witnessed", "check.draw.witnessed", "cosigned"},
		{"unpredictable", "check.draw.unpredictable"},
		{"own-beacon", "check.draw.own-beacon"},
		{"no-beacon", "check.draw.no-beacon"},
		{"unchecked", "check.unchecked"},
		{"pending", "check.draw.pending"},
		{"not-found", "check.not-found"},
		{"red", "check.draw.red"},
	}},
	{"place", [][3]string{
		{"exact", "check.place.exact", "position"},
		{"unchecked", "check.unchecked"},
		{"pending", "check.place.pending"},
		{"not-found", "check.not-found"},
		{"too-large", "check.place.too-large"},
		{"red", "check.place.red"},
	}},
}

// Lines returns the four lines.
func (t *translation) Lines() ([]checkLine, error) {
	list := make([]checkLine, len(reasons))
	for i, r := range reasons {
		list[i] = checkLine{ID: r.line, Title: "check." + r.line}
		for _, one := range r.reasons {
			text, err := t.reason(one[1], one[2])
			if err != nil {
				return nil, err
			}
			list[i].Reasons = append(list[i].Reasons, reason{one[0], text})
		}
	}
	return list, nil
}

// reason returns a message, with room for the number that a script puts there.
func (t *translation) reason(key, live string) (template.HTML, error) {
	switch live {
	case "":
		return t.Say(key)
	case "position":
		return t.Say(key, live, trusted(`<b data-live="position"></b>`))
	}
	return t.Count(key, live, 0)
}

// Command is what checks a proof elsewhere.
func (*translation) Command() template.HTML {
	return `<code dir="ltr">proofline-verify ticket FILE</code>`
}

// CompareCommand is what checks a receipt elsewhere. URL is the room's address.
func (*translation) CompareCommand() template.HTML {
	return `<code dir="ltr">proofline-verify compare receipt.txt URL</code>`
}
