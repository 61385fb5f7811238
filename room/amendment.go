package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/setting"
)

// Amendment is a change of a live room; nil fields stay as they are. Title and settings are not recorded in
// the transcript.
type Amendment struct {
	Title   *string        `json:"title,omitempty"`
	Outflow *OutflowChange `json:"outflow,omitempty"`
	Message *MessageChange `json:"-"`
	Windows []WindowRule   `json:"windows,omitempty"` // replace the rules from the first one's From on
	Closes  *time.Time     `json:"closes,omitempty"`
	Seats   *uint32        `json:"seats,omitempty"`
	SettingsChange
}

// OutflowChange is a change of the outflow; nil members stay as they are.
type OutflowChange struct {
	PerMinute *uint32 `json:"per_minute,omitempty"`
	MaxActive *uint32 `json:"max_active,omitempty"`
}

// on returns the outflow after the change.
func (c *OutflowChange) on(o fairness.Outflow) fairness.Outflow {
	if c.PerMinute != nil {
		o.PerMinute = *c.PerMinute
	}
	if c.MaxActive != nil {
		o.MaxActive = *c.MaxActive
	}
	return o
}

// ParseAmendment parses the JSON of a change. The error is an [*invalid.Error] that lists every field that is
// unknown, malformed, or invalid in any room.
func ParseAmendment(data []byte) (Amendment, error) {
	var a Amendment
	members, problems := setting.ReadAmendment(data)
	if members == nil {
		return a, problems.Err()
	}
	if err := json.Unmarshal(members, &a); err != nil {
		return a, fmt.Errorf("read an amendment: %w", err)
	}
	var message invalid.List
	a.Message, message = parseMessage(members)
	setting.Merge(&problems, message)
	setting.Merge(&problems, a.problems())
	return a, problems.Err()
}

// problems lists what is invalid in any room. If it is empty, the rules can refuse only the first entry.
func (a Amendment) problems() invalid.List {
	var list invalid.List
	if a.Title != nil {
		list = append(list, setting.Check("title", *a.Title)...)
	}
	if a.Message != nil {
		list = append(list, a.Message.problems()...)
	}
	if o := a.Outflow; o != nil && o.PerMinute != nil {
		list = append(list, setting.Check("outflow.per_minute", *o.PerMinute)...)
	}
	list = append(list, a.windowProblems()...)
	return append(list, a.on(Settings{}).Problems()...)
}

// windowProblems checks windows with the rules for new rooms.
func (a Amendment) windowProblems() invalid.List {
	var list invalid.List
	for i, w := range a.Windows {
		if w.From == nil {
			list.Add(fmt.Sprintf("windows[%d].from", i), "is needed")
		}
	}
	if len(list) > 0 || len(a.Windows) == 0 {
		return list
	}
	p := fairness.Policy{Windows: windowRules(a.Windows), Opens: millis.Of(*a.Windows[0].From),
		Closes: closing(a.Closes)}
	for _, problem := range p.Problems() {
		if strings.HasPrefix(problem.Field, "windows") {
			list.Add(problem.Field, problem.Detail)
		}
	}
	return list
}

// Check returns the [*invalid.Error] that [Room.Amend] would return now, or nil. It changes nothing.
func (r *Room) Check(a Amendment) error {
	if err := append(a.problems(), a.Message.untimely(r.Now())...).Err(); err != nil {
		return err
	}
	var err error
	r.view.Read(func(p *projection.Projection, _ uint64) { err = a.check(p, max(millis.Of(r.Now()), p.Now())) })
	return err
}

// check tries the amendment on a room with the same schedule and no visitors.
func (a Amendment) check(p *projection.Projection, now fairness.Time) error {
	if p.Ended() {
		return nil // Amend reports this error
	}
	policy := *p.Policy()
	policy.Windows, policy.Closes = p.Schedule().Rules(), p.Schedule().Closes()
	var trial fairness.State
	if trial.Apply(&fairness.Room{Policy: policy}, nil) != nil {
		return nil //nolint:nilerr // more window rules than a new room may have: Amend decides
	}
	for _, e := range a.entries(now, p.State, [fairness.HashSize]byte{}) {
		if v, ok := errors.AsType[*fairness.Violation](trial.Apply(e, nil)); ok {
			return refusal(v)
		}
	}
	return nil
}

// entries returns the transcript entries of the amendment; those that the rules may refuse come first.
// message is the hash of the message.
func (a Amendment) entries(now fairness.Time, s *fairness.State, message [fairness.HashSize]byte) []fairness.Entry {
	var list []fairness.Entry
	if a.Seats != nil && *a.Seats != s.InForce().Seats {
		list = append(list, &fairness.Amend{Time: now, Change: fairness.ChangeSeats, Seats: *a.Seats})
	}
	if len(a.Windows) > 0 || a.Closes != nil {
		list = append(list, a.schedule(now, s))
	}
	if a.Outflow != nil && a.Outflow.on(s.InForce().Outflow) != s.InForce().Outflow { // unchanged: no entry
		list = append(list, &fairness.Amend{Time: now, Change: fairness.ChangeOutflow,
			Outflow: a.Outflow.on(s.InForce().Outflow)})
	}
	if a.Message != nil && message != s.InForce().Message {
		list = append(list, &fairness.Amend{Time: now, Change: fairness.ChangeMessage, Message: message})
	}
	return list
}

// schedule returns the change of windows and close. Closing later must not extend the last window that begins within
// the notice, so the current rule begins anew where that window ends.
func (a Amendment) schedule(now fairness.Time, s *fairness.State) *fairness.Amend {
	e := &fairness.Amend{Time: now, Change: fairness.ChangeWindows, Closes: s.Schedule().Closes(),
		Windows: windowRules(a.Windows)}
	if a.Closes != nil {
		e.Closes = millis.Of(*a.Closes)
	}
	fixed, ok := s.Schedule().At(s.Policy().Fixed(now))
	isLast := ok && fixed.To == s.Schedule().Closes() && fixed.To < e.Closes
	if isLast && (len(e.Windows) == 0 || e.Windows[0].From > fixed.To) {
		rules := s.Schedule().Rules()
		again := fairness.WindowRule{From: fixed.To, Length: rules[len(rules)-1].Length}
		e.Windows = slices.Insert(e.Windows, 0, again)
	}
	return e
}

// refusal returns the [*invalid.Error] for an amendment that the rules refuse, with the field that they name.
func refusal(v *fairness.Violation) error {
	for _, field := range []string{"windows", "closes", "seats"} {
		if name, detail, ok := strings.Cut(v.Detail, " "); ok && strings.HasPrefix(name, field) {
			return invalid.Field(name, detail)
		}
	}
	return invalid.Field(string(v.Rule), v.Detail)
}
