package page

import "html/template"

// checkPage is the data of the page on which visitors check their places.
type checkPage struct {
	frame
	Ticket *Ticket
}

// Expects reports whether a check will probably end with the given sentence, for which the page
// reserves space.
func (p *checkPage) Expects(sentence string) bool { return p.Room.expects(p.Ticket, sentence) }

// Expects reports the same for the check on the page of the line.
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

// checkLine is one line of the check's result, with all its possible texts.
type checkLine struct {
	ID      string
	Title   string // message
	Reasons []reason
}

// IsDrawn reports whether the line is known only after the draw.
func (l checkLine) IsDrawn() bool { return l.ID != "record" }

// DrawTime returns the template action that writes the time of the draw.
func (*translation) DrawTime() template.HTML { return "{{$.Time $.Ticket.Window.Draws}}" }

// ProofOrigin returns the element in which a script writes the origin of a saved proof.
func (*translation) ProofOrigin() template.HTML { return `<code dir="ltr" data-proof-origin></code>` }

// reason is a possible text of a line.
type reason struct {
	// name that the checker uses; "red" covers all failures, and "closed-lots" is "closed" where tickets may have more
	// than one lot
	Name string
	Text template.HTML
}

// reasons lists the checker's possible results for each line: their name, the message, and the number
// that the message contains, if any.
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
		{"more-lots", "check.place.more-lots"},
		{"unchecked", "check.unchecked"},
		{"pending", "check.place.pending"},
		{"not-found", "check.not-found"},
		{"too-large", "check.place.too-large"},
		{"red", "check.place.red"},
	}},
}

// Lines returns the four lines of the result.
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
	closed, err := t.reason("check.group.lots", "lots")
	list[1].Reasons = append(list[1].Reasons, reason{"closed-lots", closed})
	return list, err
}

// Own returns the message about the lots of a ticket that has several.
func (t *translation) Own() (template.HTML, error) { return t.reason("check.place.lots", "own") }

// reason returns a message, with space for the number that a script writes.
func (t *translation) reason(key, live string) (template.HTML, error) {
	switch live {
	case "":
		return t.Say(key)
	case "position":
		return t.Say(key, live, trusted(`<b data-live="position"></b>`))
	}
	return t.Count(key, live, 0)
}

// Command returns the command that checks a proof elsewhere.
func (*translation) Command() template.HTML {
	return `<code dir="ltr">proofline-verify ticket FILE</code>`
}

// CompareCommand returns the command that checks a receipt elsewhere. URL is the room's address.
func (*translation) CompareCommand() template.HTML {
	return `<code dir="ltr">proofline-verify compare receipt.txt URL</code>`
}
