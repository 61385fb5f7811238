package room

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/proofline/proofline/fairness"
)

const maxMessage = 2000 // characters

// Amendment is what an organizer may change while a room lives; fields that
// are nil stay as they are. The title alone is no matter of the transcript.
type Amendment struct {
	Title   *string
	Outflow *Outflow
	Message *string
	Windows []WindowRule // hold from the first one's moment on
	Closes  *time.Time
}

// ParseAmendment reads the JSON of a change. The error is an [*InvalidError]
// that lists every field that is unknown or cannot be read.
func ParseAmendment(data []byte) (Amendment, error) {
	var a Amendment
	d := newFields(data, "title", "outflow", "message", "windows", "closes")
	d.read("title", &a.Title, "must be a text")
	d.read("message", &a.Message, "must be a text")
	d.read("closes", &a.Closes, wantTime)
	d.windows(&a.Windows)
	if _, ok := d.raw["outflow"]; ok {
		a.Outflow = &Outflow{}
		d.outflow(a.Outflow)
		if n := a.Outflow.PerMinute; n < 1 || n > fairness.MaxRate {
			d.problem("outflow.per_minute", fmt.Sprintf("must be between 1 and %d", fairness.MaxRate))
		}
	}
	if a.Title != nil {
		*d.problems = append(*d.problems, titleProblems(*a.Title)...)
	}
	if a.Message != nil && (!utf8.ValidString(*a.Message) || utf8.RuneCountInString(*a.Message) > maxMessage) {
		d.problem("message", "must be at most 2000 characters of UTF-8")
	}
	for i, w := range a.Windows {
		if w.From == nil {
			d.problem(fmt.Sprintf("windows[%d].from", i), "is needed")
		}
	}
	if len(d.raw) == 0 && len(*d.problems) == 0 {
		d.problem("", "changes nothing: give title, outflow, message, windows or closes")
	}
	return a, d.err()
}

// entries returns the amendments as entries of the transcript, the one that
// the rules may refuse first. The message is given by its hash.
func (a Amendment) entries(now fairness.Time, s *fairness.State, message [fairness.HashSize]byte) []fairness.Entry {
	var list []fairness.Entry
	if len(a.Windows) > 0 || a.Closes != nil {
		list = append(list, a.schedule(now, s))
	}
	if a.Outflow != nil {
		list = append(list, &fairness.Amend{Time: now, Change: fairness.ChangeOutflow, Outflow: fairness.Outflow(*a.Outflow)})
	}
	if a.Message != nil {
		list = append(list, &fairness.Amend{Time: now, Change: fairness.ChangeMessage, Message: message})
	}
	return list
}

// schedule is the change of windows and close. A later close must not make
// the open window longer, so the rule in force begins anew where it ends.
func (a Amendment) schedule(now fairness.Time, s *fairness.State) *fairness.Amend {
	e := &fairness.Amend{Time: now, Change: fairness.ChangeWindows, Closes: s.Schedule().Closes(), Windows: windowRules(a.Windows)}
	if a.Closes != nil {
		e.Closes = fromTime(*a.Closes)
	}
	if open, ok := s.Schedule().At(now); ok && open.To == s.Schedule().Closes() && e.Closes > open.To && len(e.Windows) == 0 {
		rules := s.Schedule().Rules()
		e.Windows = []fairness.WindowRule{{From: open.To, Length: rules[len(rules)-1].Length}}
	}
	return e
}
