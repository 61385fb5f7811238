package apply

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/style"
)

// Action is the kind of a step.
type Action string

// The actions.
const (
	Create Action = "create"
	Change Action = "change"
	Refuse Action = "refuse" // the file asks for a change that is not possible: nothing is done
	Keep   Action = "keep"   // the room equals the file
)

// Step is the change that makes one room equal to the file.
type Step struct {
	Slug    string       `json:"slug"`
	Action  Action       `json:"action"`
	Changes []Difference `json:"changes"`
	Ended   bool         `json:"ended"` // the room has ended and cannot change

	Wanted    *Wanted         `json:"-"`
	ETag      string          `json:"-"` // of the room that was compared
	Amendment json.RawMessage `json:"-"` // request body of a change
}

// Difference is a member whose value on the server differs from the file's.
type Difference struct {
	Field   string `json:"field"`
	From    any    `json:"from"`
	To      any    `json:"to"`
	Allowed bool   `json:"allowed"` // false: it cannot change once the room is published
}

// Current is a room in the server's answer.
type Current struct {
	room.Config
	Host  *string `json:"host"`
	Phase string  `json:"phase"`
}

// Missing returns the step for a room that does not exist; [ErrInvalid] if its
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
func Compare(w *Wanted, current Current, etag string) (Step, error) {
	s := Step{
		Slug: w.Config.Slug, Action: Keep, Changes: []Difference{}, Wanted: w, ETag: etag,
		Ended: current.Phase == string(room.PhaseEnded),
	}
	amendment := map[string]any{}
	s.fixed(w, current)
	s.outflow(w, current, amendment)
	s.settings(w, current, amendment)
	s.windows(w, current, amendment)
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

func (s *Step) differ(field string, from, to any, allowed bool) {
	s.Changes = append(s.Changes, Difference{field, from, to, allowed})
}

// fixed compares the members that cannot change after publication.
func (s *Step) fixed(w *Wanted, current Current) {
	host := ""
	if current.Host != nil {
		host = *current.Host
	}
	for _, m := range []struct {
		name     string
		from, to any
	}{
		{"host", host, w.Host},
		{"opens", instant(current.Opens), instant(w.Config.Opens)},
		{"starts", instant(current.Starts), instant(w.Config.Starts)},
		{"claim", current.Claim, w.Config.Claim},
		{"session", current.Session, w.Config.Session},
		{"beacon", current.Beacon, w.Config.Beacon},
		{"margin", current.Margin, w.Config.Margin},
		{"quorum", current.Quorum, w.Config.Quorum},
	} {
		if w.Sets(m.name) && !isNothing(m.to) && !same(m.from, m.to) {
			s.differ(m.name, m.from, m.to, false)
		}
	}
}

// isNothing reports whether a value leaves the member at its default.
func isNothing(v any) bool { return same(v, nil) || same(v, "") }

// instant rounds a time to the resolution of transcripts.
func instant(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	cut := t.UTC().Truncate(time.Millisecond)
	return &cut
}

func (s *Step) outflow(w *Wanted, current Current, amendment map[string]any) {
	change := map[string]any{}
	compare := func(name string, from, to uint32) {
		if w.Sets("outflow."+name) && from != to {
			s.differ("outflow."+name, from, to, true)
			change[name] = to
		}
	}
	if w.Config.Outflow.PerMinute > 0 {
		compare("per_minute", current.Outflow.PerMinute, w.Config.Outflow.PerMinute)
	}
	compare("max_active", current.Outflow.MaxActive, w.Config.Outflow.MaxActive)
	if len(change) > 0 {
		amendment["outflow"] = change
	}
}

// settings compares the members that can change, but for outflow and windows.
func (s *Step) settings(w *Wanted, current Current, amendment map[string]any) {
	compare := func(name string, from, to, send any) {
		if w.Sets(name) && !same(from, to) {
			s.differ(name, from, to, true)
			amendment[name] = send
		}
	}
	if w.Config.Title != "" {
		compare("title", current.Title, w.Config.Title, w.Config.Title)
	}
	if w.Sets("closes") {
		s.closes(w, current, amendment)
	}
	targets := append([]string{}, w.Config.Targets...)
	compare("targets", append([]string{}, current.Targets...), targets, targets)
	compare("signed_return", current.SignedReturn, w.Config.SignedReturn, w.Config.SignedReturn)
	compare("brand", stored(current.Brand), stored(w.Config.Brand), w.Config.Brand)
	compare("max_waiting", current.MaxWaiting, w.Config.MaxWaiting, w.Config.MaxWaiting)
	compare("time_zone", current.TimeZone, w.Config.TimeZone, w.Config.TimeZone)
}

// closes compares the closing times. A closing time can move, but not be removed.
func (s *Step) closes(w *Wanted, current Current, amendment map[string]any) {
	from, to := instant(current.Closes), instant(w.Config.Closes)
	if same(from, to) {
		return
	}
	s.differ("closes", from, to, to != nil)
	if to != nil {
		amendment["closes"] = to
	}
}

// windows compares the window rules. An amendment has the rules from the first
// difference on; the server knows which ones have begun.
func (s *Step) windows(w *Wanted, current Current, amendment map[string]any) {
	if len(w.Config.Windows) == 0 {
		return
	}
	from, to := plain(current.Config.Windows, current.Opens), plain(w.Config.Windows, current.Opens)
	if same(from, to) {
		return
	}
	s.differ("windows", ruleWords(from), ruleWords(to), true)
	first := 0
	for first < len(from) && first < len(to) && same(from[first], to[first]) {
		first++
	}
	rest := to[first:]
	if len(rest) == 0 { // the file drops the last rules: the one before them goes on
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

// stored returns a brand as a server stores it: logos without metadata, and CSS
// normalized.
func stored(b room.Brand) room.Brand {
	for _, scheme := range []*room.Scheme{&b.Scheme, &b.Dark} {
		if mediaType, image, ok := scheme.Image(); ok {
			scheme.Logo = "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(image)
		}
	}
	if sheet, problems := style.Parse(b.CSS); len(problems) == 0 {
		b.CSS = sheet.Source()
	}
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
