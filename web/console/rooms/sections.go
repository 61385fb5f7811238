package rooms

import (
	"cmp"
	"slices"
	"strings"

	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/console/format"
)

// section is a part of the editor that can be folded.
type section struct {
	ID, Title string
	groups    []string // of its settings, in the order of their fields
	also      []string // names of its other fields
}

// sections are all of them, in the order of the page.
var sections = []section{
	{ID: "windows", Title: "Times and windows", groups: []string{"times", "zone", "slots"}, also: []string{"windows"}},
	{ID: "outflow", Title: "How fast people are let in", groups: []string{"pace", "turn", "seats"},
		also: []string{"capacity", "stay", "people", "no_show"}},
	{ID: "door", Title: "Door: who may join", groups: []string{"methods", "lanes"}},
	{ID: "proof", Title: "What the room can prove", groups: []string{"proof"}},
	{ID: "shop", Title: "The shop and the line", groups: []string{"shop", "line"}},
	{ID: "trial", Title: "What will this do?",
		also: []string{"simulation", "sim_visitors", "sim_tickets", "sim_bots", "sim_no_show"}},
}

// opens returns the section with the fields that matter most in rooms of the preset.
func (p preset) opens() string {
	switch {
	case p.IsNet():
		return "outflow"
	case p.HasDoor():
		return "door"
	}
	return "windows"
}

// has reports whether a field belongs to the section.
func (s section) has(field string) bool {
	list, _, _ := strings.Cut(field, "[")
	if slices.Contains(s.also, list) {
		return true
	}
	found, ok := setting.Find(list)
	return ok && slices.Contains(s.groups, found.Form.Group)
}

// shownSection is a section as the editor shows it.
type shownSection struct {
	section
	Open bool
	Said string // what is set, in a line
}

// Section returns a section of the editor.
func (p editorPage) Section(id string) shownSection {
	i := slices.IndexFunc(sections, func(s section) bool { return s.ID == id })
	s := shownSection{section: sections[i], Open: p.Open == id || id == "trial" && p.Result != nil}
	for _, problem := range p.Problems {
		s.Open = s.Open || s.has(problem.Field)
	}
	var said []string
	if id == "trial" {
		said = append(said, saidOf("Visitors", p.Trial.Visitors), saidOf("Tickets on sale", p.Trial.Tickets),
			saidOf("Bots, %", p.Trial.Bots), saidOf("Do not come, %", p.Trial.NoShow))
	}
	for _, group := range s.groups {
		for _, f := range p.Fields(group) {
			said = append(said, p.said(f))
		}
		if group == "times" {
			said = append(said, saidOf("Windows", p.Form.lengths()))
		}
	}
	said = slices.DeleteFunc(said, func(text string) bool { return text == "" })
	s.Said = cmp.Or(strings.Join(said, " · "), "Nothing is set.")
	return s
}

// said returns a field and its value in words; empty: it has none. The editor's script says the same.
func (p editorPage) said(f formField) string {
	found, _ := setting.Find(f.Name)
	switch _, isMethods := found.Kind.(setting.Methods); {
	case f.Value == "":
		return ""
	case f.Control == "check":
		return f.Label
	case isMethods:
		var names []string
		for _, m := range p.Methods().Rows {
			names = append(names, m.Name)
		}
		return saidOf(f.Label, cmp.Or(strings.Join(names, ", "), "as text"))
	case f.Control == "lines":
		return saidOf(f.Label, strings.Join(textLines(f.Value), ", "))
	}
	return saidOf(strings.TrimSuffix(f.Label, " (UTC)"), format.MomentLine(f.Value))
}

func saidOf(label, value string) string {
	if value == "" {
		return ""
	}
	return label + ": " + value
}

// lengths returns the lengths of the windows in a line.
func (f *roomForm) lengths() string {
	list := make([]string, len(f.Windows))
	for i, w := range f.Windows {
		list[i] = w.Length
	}
	return strings.Join(list, ", then ")
}

// named is a problem in the list at the top of the editor.
type named struct {
	Field, Label, Detail string
	At                   string // ID of the field; empty: the form has none
}

// Named lists the problems that prevent publication.
func (p editorPage) Named() (list []named) {
	for _, problem := range p.Problems {
		if problem.Field == "" || slices.Contains(helperFields, problem.Field) {
			continue
		}
		n := named{Field: problem.Field, Label: fieldName(problem.Field), Detail: problem.Detail}
		outer, _, _ := strings.Cut(n.Field, "[")
		s, _ := setting.Find(outer)
		switch isRows := outer == "methods" && !p.Methods().AsText; {
		case !p.Form.shows(n.Field):
		case isRows && slices.ContainsFunc(setting.Members(s.Kind), func(m setting.Setting) bool {
			return strings.HasSuffix(n.Field, "]."+m.Name)
		}):
			n.At = "f-" + n.Field
		case isRows:
			n.At = "methods"
		case n.Field == "windows":
			n.At = n.Field
		case newField(s, "", newRoom).Control == "lines":
			n.Field, n.At = outer, "f-"+outer
		default:
			n.At = "f-" + n.Field
		}
		list = append(list, n)
	}
	return list
}
