package room

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Amendment is what an organizer may change while a room lives; fields that
// are nil stay as they are. Title and settings are no matter of the transcript.
type Amendment struct {
	Title   *string
	Outflow *OutflowChange
	Message *MessageChange
	Windows []WindowRule // hold from the first one's moment on
	Closes  *time.Time
	SettingsChange
}

// OutflowChange is a change of the outflow; a member that is nil stays as it is.
type OutflowChange struct{ PerMinute, MaxActive *uint32 }

// on returns the outflow with the change.
func (c *OutflowChange) on(o fairness.Outflow) fairness.Outflow {
	if c.PerMinute != nil {
		o.PerMinute = *c.PerMinute
	}
	if c.MaxActive != nil {
		o.MaxActive = *c.MaxActive
	}
	return o
}

// ParseAmendment reads the JSON of a change. The error is an [*InvalidError]
// that lists every field that is unknown, cannot be read or is wrong in any
// room.
func ParseAmendment(data []byte) (Amendment, error) {
	var a Amendment
	d := newFields(data, "title", "outflow", "message", "windows", "closes", "targets", "signed_return", "brand", "max_waiting", "time_zone")
	read(d, "title", &a.Title, wantText)
	a.Message = d.message()
	read(d, "closes", &a.Closes, wantTime)
	d.windows(&a.Windows)
	if d.has("outflow") {
		a.Outflow = &OutflowChange{}
		in := d.outflow()
		if in.raw != nil && len(in.raw) == 0 {
			in.problem("", "changes nothing: give per_minute or max_active")
		}
		read(in, "per_minute", &a.Outflow.PerMinute, wantRate)
		read(in, "max_active", &a.Outflow.MaxActive, wantCount)
	}
	a.SettingsChange = d.settings()
	d.add(a.problems())
	if len(d.raw) == 0 {
		d.problem("", "changes nothing: give title, outflow, message, windows, closes, targets, signed_return, brand, max_waiting or time_zone")
	}
	return a, d.err()
}

// problems lists what is wrong in any room. With none of them, the first of
// the entries is the only one that the rules may refuse.
func (a Amendment) problems() []fairness.Problem {
	var list []fairness.Problem
	if a.Title != nil {
		list = append(list, textProblems("title", *a.Title, maxTitle)...)
	}
	if a.Message != nil {
		list = append(list, a.Message.problems()...)
	}
	if o := a.Outflow; o != nil && o.PerMinute != nil && (*o.PerMinute < 1 || *o.PerMinute > fairness.MaxRate) {
		list = append(list, fairness.Problem{Field: "outflow.per_minute", Detail: wantRate})
	}
	list = append(list, a.windowProblems()...)
	return append(list, a.on(Settings{}).problems()...)
}

// windowProblems lets the rules for new rooms say what is wrong with windows.
func (a Amendment) windowProblems() []fairness.Problem {
	var list []fairness.Problem
	for i, w := range a.Windows {
		if w.From == nil {
			list = append(list, fairness.Problem{Field: fmt.Sprintf("windows[%d].from", i), Detail: "is needed"})
		}
	}
	if len(list) > 0 || len(a.Windows) == 0 {
		return list
	}
	p := fairness.Policy{Windows: windowRules(a.Windows), Opens: fromTime(*a.Windows[0].From), Closes: closing(a.Closes)}
	for _, problem := range p.Problems() {
		if strings.HasPrefix(problem.Field, "windows") {
			list = append(list, problem)
		}
	}
	return list
}

// Check returns the [*InvalidError] that [Room.Amend] would return now, nil for
// none. Nothing is changed.
func (r *Room) Check(a Amendment) error {
	if problems := append(a.problems(), a.Message.untimely(r.Now())...); len(problems) > 0 {
		return &InvalidError{problems}
	}
	now := fromTime(r.Now())
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.live.Ended() {
		return nil // Amend says so
	}
	policy := *r.live.Policy()
	policy.Windows, policy.Closes = r.live.Schedule().Rules(), r.live.Schedule().Closes()
	var trial fairness.State // a room with the schedule of this one, and no visitors
	if trial.Apply(&fairness.Room{Policy: policy}, nil) != nil {
		return nil // more rules than a new room may have: Amend decides
	}
	for _, e := range a.entries(max(now, r.live.Now()), r.live.State, [fairness.HashSize]byte{}) {
		if v, ok := errors.AsType[*fairness.Violation](trial.Apply(e, nil)); ok {
			return &InvalidError{[]fairness.Problem{refusal(v)}}
		}
	}
	return nil
}

// entries returns the amendments as entries of the transcript, the one that
// the rules may refuse first. The message is given by its hash.
func (a Amendment) entries(now fairness.Time, s *fairness.State, message [fairness.HashSize]byte) []fairness.Entry {
	var list []fairness.Entry
	if len(a.Windows) > 0 || a.Closes != nil {
		list = append(list, a.schedule(now, s))
	}
	if a.Outflow != nil && a.Outflow.on(s.Outflow()) != s.Outflow() { // what is so already is no entry
		list = append(list, &fairness.Amend{Time: now, Change: fairness.ChangeOutflow, Outflow: a.Outflow.on(s.Outflow())})
	}
	if a.Message != nil && message != s.Message() {
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
	open, ok := s.Schedule().At(now)
	isLast := ok && open.To == s.Schedule().Closes() && open.To < e.Closes
	if isLast && (len(e.Windows) == 0 || e.Windows[0].From > open.To) {
		rules := s.Schedule().Rules()
		again := fairness.WindowRule{From: open.To, Length: rules[len(rules)-1].Length}
		e.Windows = slices.Insert(e.Windows, 0, again)
	}
	return e
}

// refusal says which field of an amendment the rules refuse.
func refusal(v *fairness.Violation) fairness.Problem {
	for _, field := range []string{"windows", "closes"} {
		if name, detail, ok := strings.Cut(v.Detail, " "); ok && strings.HasPrefix(name, field) {
			return fairness.Problem{Field: name, Detail: detail}
		}
	}
	return fairness.Problem{Field: string(v.Rule), Detail: v.Detail}
}
