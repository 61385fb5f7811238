package console

import (
	"html/template"
	"time"
)

// question is the page or dialog that asks before something is done: what
// changes, and what follows from it.
type question struct {
	Title    string // ends with a question mark
	Warnings []string
	Changes  []change
	Notes    []string
	Choices  []option // of one field; none: nothing to choose
	Button   string
	IsDanger bool

	// Saved reports whether the form was saved before the question, so that
	// "Cancel" has to load the page again.
	Saved bool
}

// change is one line of what a question shows: an old and a new value, or the
// new one alone. A value is a text, a moment or a list of texts.
type change struct {
	Label string
	Was   any // nil: there was none, or it does not matter
	Is    any
}

// option is one of several answers to a question.
type option struct {
	Name, Value string
	Label, Hint string
	IsChosen    bool
}

// plainQuestion asks without listing changes.
func plainQuestion(title, button string, notes ...string) question {
	return question{Title: title, Button: button, Notes: notes}
}

// dangerous marks the question's button as one that takes something away.
func (q question) dangerous() question {
	q.IsDanger = true
	return q
}

// questionPage is what the template gets.
type questionPage struct {
	question
	Fields map[string]string // sent again, with "confirmed"
	Path   string            // where they are sent
	Back   string
}

// confirm asks before something is done: its form sends again what was sent.
// The script of the pages shows the same as a dialog.
func (x *request) confirm(q question, back string) error {
	fields := map[string]string{}
	for name, values := range x.Request().PostForm {
		if len(values) > 0 {
			fields[name] = values[0]
		}
	}
	for _, one := range q.Choices {
		delete(fields, one.Name)
	}
	fields["confirmed"] = "1"
	return x.page("confirm-act", questionPage{q, fields, x.Request().URL.Path, Path + back})
}

// isConfirmed reports whether the person was asked.
func (x *request) isConfirmed() bool { return x.form("confirmed") == "1" }

// shown writes a value of a change.
func shown(v any) template.HTML {
	switch v := v.(type) {
	case time.Time, *time.Time:
		return when(v)
	case template.HTML:
		return v
	case []string:
		var list template.HTML
		for i, line := range v {
			if i > 0 {
				list += "<br>"
			}
			list += template.HTML(template.HTMLEscapeString(line)) //nolint:gosec // escaped
		}
		return list
	case string:
		return template.HTML(template.HTMLEscapeString(v)) //nolint:gosec // escaped
	}
	return ""
}
