package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/setting"
)

// Action is the kind of a step.
type Action string

// The actions.
const (
	Create Action = "create"
	Change Action = "change"
	Refuse Action = "refuse" // the file asks for an impossible change: nothing is done
	Keep   Action = "keep"   // the room equals the file
)

// Step is the change that makes one room equal to the file.
type Step struct {
	Slug    string       `json:"slug"`
	Action  Action       `json:"action"`
	Changes []Difference `json:"changes"`
	Ended   bool         `json:"ended"` // the room has ended and cannot change

	Wanted    *Wanted         `json:"-"`
	ETag      string          `json:"-"` // ETag of the room that was compared
	Amendment json.RawMessage `json:"-"` // request body of a change
}

// Difference is a member whose value on the server differs from the file's.
type Difference struct {
	Field   string `json:"field"`
	From    any    `json:"from"`
	To      any    `json:"to"`
	Allowed bool   `json:"allowed"` // false: it cannot change once the room is published
}

// Missing returns the step for a room that does not exist, or [ErrInvalid] if its
// configuration is invalid.
func Missing(w *Wanted, now time.Time) (Step, error) {
	problems := w.Config.Problems(now)
	if len(problems) == 0 {
		return Step{Slug: w.Config.Slug, Action: Create, Changes: []Difference{}, Wanted: w}, nil
	}
	list := make([]error, len(problems))
	for i, p := range problems {
		list[i] = fmt.Errorf("line %d: %s: %s", w.lines.of(p.Field), p.Field, p.Detail)
	}
	return Step{}, fmt.Errorf("%w:\n%w", ErrInvalid, errors.Join(list...))
}

// Compare returns the step that makes an existing room equal to a file's.
func Compare(w *Wanted, current wire.Room, etag string) (Step, error) {
	s := Step{
		Slug: w.Config.Slug, Action: Keep, Changes: []Difference{}, Wanted: w, ETag: etag,
		Ended: current.Phase == room.PhaseEnded,
	}
	amendment := map[string]any{}
	if err := s.compare(w, current, amendment); err != nil {
		return s, err
	}
	for _, d := range s.Changes {
		switch {
		case !d.Allowed || s.Ended:
			s.Action = Refuse
		case s.Action == Keep:
			s.Action = Change
		}
	}
	text, err := json.Marshal(amendment)
	s.Amendment = text
	return s, err
}

func (s *Step) differ(d Difference) { s.Changes = append(s.Changes, d) }

// compare adds the differences of all settings that the file sets, and their values to the amendment.
func (s *Step) compare(w *Wanted, current wire.Room, amendment map[string]any) error {
	from, errFrom := json.Marshal(current.Config)
	to, errTo := json.Marshal(w.Config)
	if err := errors.Join(errFrom, errTo); err != nil {
		return err
	}
	host := ""
	if current.Host != nil {
		host = *current.Host
	}
	if w.Host != "" && host != w.Host {
		s.differ(Difference{Field: "host", From: host, To: w.Host})
	}
	for _, d := range setting.All() {
		switch d.Kind.(type) {
		case setting.Windows:
			s.windows(w, current, amendment)
		case setting.Brand:
			s.brand(w, current, amendment)
		default:
			s.value(w, d, valueOf(d, setting.Get(from, d.Name)), valueOf(d, setting.Get(to, d.Name)), amendment)
		}
	}
	return nil
}

// value compares the values of one setting.
func (s *Step) value(w *Wanted, d setting.Setting, from, to any, amendment map[string]any) {
	if !w.Sets(d.Name) || leaves(d, to) || same(from, to) {
		return
	}
	isAllowed := d.Change != setting.Never && to != nil
	s.differ(Difference{Field: d.Name, From: from, To: to, Allowed: isAllowed})
	if isAllowed {
		setting.Put(amendment, d.Name, to)
	}
}

// valueOf returns a value of a room's configuration; nil or the kind's zero if it is missing.
func valueOf(d setting.Setting, raw json.RawMessage) any {
	isMissing := len(raw) == 0 || string(raw) == "null"
	if _, ok := d.Kind.(setting.Time); ok && !isMissing {
		var t time.Time
		if json.Unmarshal(raw, &t) == nil {
			return instant(&t)
		}
	}
	switch {
	case isMissing && d.Change == setting.Never:
		return nil
	case isMissing:
		return d.Kind.Zero()
	}
	return raw
}

// leaves reports whether a file's value leaves a setting as it is. An empty title or pace does, because no
// amendment can remove those; an empty closing time does not.
func leaves(d setting.Setting, to any) bool {
	switch k := d.Kind.(type) {
	case setting.Zone:
		return false
	case setting.Time:
		return to == nil && d.Change == setting.Never
	case setting.Number:
		return to == nil || k.Min > 0 && same(to, 0)
	}
	return same(to, nil) || same(to, "")
}

// instant rounds a time to the resolution of transcripts.
func instant(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	cut := t.UTC().Truncate(time.Millisecond)
	return &cut
}

// brand compares the branding.
func (s *Step) brand(w *Wanted, current wire.Room, amendment map[string]any) {
	if w.Sets("brand") && !same(stored(current.Brand), stored(w.Config.Brand)) {
		s.differ(Difference{Field: "brand", From: stored(current.Brand), To: stored(w.Config.Brand), Allowed: true})
		amendment["brand"] = w.Config.Brand
	}
}

// windows compares the window rules. An amendment has the rules from the first
// difference on; the server knows which ones have begun.
func (s *Step) windows(w *Wanted, current wire.Room, amendment map[string]any) {
	if len(w.Config.Windows) == 0 {
		return
	}
	from, to := plain(current.Config.Windows, current.Opens), plain(w.Config.Windows, current.Opens)
	if same(from, to) {
		return
	}
	s.differ(Difference{Field: "windows", From: ruleWords(from), To: ruleWords(to), Allowed: true})
	first := 0
	for first < len(from) && first < len(to) && same(from[first], to[first]) {
		first++
	}
	rest := to[first:]
	if len(rest) == 0 { // the file drops the last rules: the one before them continues
		rest = []room.WindowRule{{From: from[first].From, Length: to[first-1].Length}}
	}
	amendment["windows"] = rest
}

// plain returns rules with explicit times, and without those that change nothing.
func plain(rules []room.WindowRule, opens *time.Time) []room.WindowRule {
	var list []room.WindowRule
	for _, r := range rules {
		if r.From == nil {
			r.From = opens
		}
		r.From = instant(r.From)
		if len(list) > 0 {
			last := list[len(list)-1]
			goesOn := r.Length == last.Length && r.From.Sub(*last.From)%time.Duration(r.Length) == 0
			if goesOn {
				continue
			}
		}
		list = append(list, r)
	}
	return list
}

// ruleWords returns a short text of rules.
func ruleWords(rules []room.WindowRule) string {
	words := make([]string, len(rules))
	for i, r := range rules {
		words[i] = fmt.Sprintf("%s from %s", time.Duration(r.Length), r.From.Format(time.RFC3339))
	}
	return strings.Join(words, ", ")
}

// stored returns a brand as a server stores it. The result shares no memory with the argument.
func stored(b branding.Brand) branding.Brand {
	b = b.Stored()
	b.Languages = slices.Clone(b.Languages)
	return b
}

// Words describes the difference on one line.
func (d Difference) Words() string {
	if d.Field == "brand" {
		return "brand: differs"
	}
	return fmt.Sprintf("%s: %s -> %s", d.Field, short(d.From), short(d.To))
}

// maxWords is the maximum length of a value in [Difference.Words], in characters.
const maxWords = 120

func short(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	words := strings.Trim(string(text), `"`)
	if words == "" || words == "null" {
		return "none"
	}
	if letters := []rune(words); len(letters) > maxWords {
		return string(letters[:maxWords]) + "..."
	}
	return words
}
