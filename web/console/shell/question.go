package shell

import (
	"html/template"
	"time"

	"github.com/proofline/proofline/web/console/format"
)

// Question is the page or dialog that asks before something is done. It shows what changes and what
// the consequences are.
type Question struct {
	Title    string // ends with a question mark
	Warnings []string
	Changes  []Change
	Notes    []string
	Choices  []Option // the options of one field
	Button   string
	IsDanger bool

	// Saved reports whether the form was saved before the question, so that "Cancel" has to load the
	// page again.
	Saved bool
}

// Change is a line of a question: an old and a new value, or the new one only. A value is a text, a
// moment, HTML, or a list of lines.
type Change struct {
	Label string
	Was   any // nil: not shown
	Is    any
}

// Changed returns a line that shows the old and the new value.
func Changed(label string, was, is any) Change { return Change{label, was, is} }

// Shown returns a line that shows a value.
func Shown(label string, is any) Change { return Change{Label: label, Is: is} }

// Option is one of several answers to a question.
type Option struct {
	Name, Value string
	Label, Hint string
	IsChosen    bool
}

// Ask returns a question without a list of changes.
func Ask(title, button string, notes ...string) Question {
	return Question{Title: title, Button: button, Notes: notes}
}

// Dangerous marks the question's button as destructive.
func (q Question) Dangerous() Question {
	q.IsDanger = true
	return q
}

// questionPage is the data of the page.
type questionPage struct {
	Question
	Fields map[string]string // fields that are sent again, with "confirmed"
	Path   string            // path that they are sent to
	Back   string
}

// Confirm asks before something is done. The answer sends the form again, with [Request.IsConfirmed].
// back is the page to cancel to. The script shows the question as a dialog.
func (x *Request) Confirm(q Question, back string) error {
	fields := map[string]string{}
	for name, values := range x.Request().PostForm {
		if len(values) > 0 {
			fields[name] = values[0]
		}
	}
	for _, one := range q.Choices {
		delete(fields, one.Name)
	}
	return x.ConfirmFields(q, fields, x.Request().URL.Path, Path+back)
}

// ConfirmFields does what Confirm does, but sends other fields to another path. path and back begin with [Path].
func (x *Request) ConfirmFields(q Question, fields map[string]string, path, back string) error {
	fields["confirmed"] = "1"
	return x.Page("confirm-act", questionPage{q, fields, path, back})
}

// IsConfirmed reports whether the person has answered the question.
func (x *Request) IsConfirmed() bool { return x.Form("confirmed") == "1" }

// shown writes a value of a change.
func shown(v any) template.HTML {
	switch v := v.(type) {
	case time.Time, *time.Time:
		return format.When(v)
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
