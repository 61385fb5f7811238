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

// Action is what has to be done to a room.
type Action string

// The actions.
const (
	Create Action = "create"
	Change Action = "change"
	Refuse Action = "refuse" // what the file wants cannot be: nothing is done
	Keep   Action = "keep"   // it is as the file says
)

// Step is what has to be done to one room.
type Step struct {
	Slug    string       `json:"slug"`
	Action  Action       `json:"action"`
	Changes []Difference `json:"changes"`
	Ended   bool         `json:"ended"` // nothing can change any more

	Wanted    *Wanted         `json:"-"`
	ETag      string          `json:"-"` // of the room as it was compared
	Amendment json.RawMessage `json:"-"` // what to send
}

// Difference is one member that is not as the file says.
type Difference struct {
	Field   string `json:"field"`
	From    any    `json:"from"`
	To      any    `json:"to"`
	Allowed bool   `json:"allowed"` // false: it cannot change once a room is published
}

// Present is a room as the server says it.
type Present struct {
	room.Config
	Host  *string `json:"host"`
	Phase string  `json:"phase"`
}

// Missing is the step for a room that does not exist; [ErrInvalid] when there
// can be none like that.
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

// Compare returns the step that makes a room what a file says.
func Compare(w *Wanted, present Present, etag string) (Step, error) {
	s := Step{Slug: w.Config.Slug, Action: Keep, Changes: []Difference{}, Wanted: w, ETag: etag, Ended: present.Phase == string(room.PhaseEnded)}
	amendment := map[string]any{}
	s.fixed(w, present)
	s.outflow(w, present, amendment)
	s.settings(w, present, amendment)
	s.windows(w, present, amendment)
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

// fixed compares what is published once and for all.
func (s *Step) fixed(w *Wanted, present Present) {
	host := ""
	if present.Host != nil {
		host = *present.Host
	}
	for _, m := range []struct {
		name     string
		from, to any
	}{
		{"host", host, w.Host},
		{"opens", instant(present.Opens), instant(w.Config.Opens)},
		{"starts", instant(present.Starts), instant(w.Config.Starts)},
		{"claim", present.Claim, w.Config.Claim},
		{"session", present.Session, w.Config.Session},
		{"beacon", present.Beacon, w.Config.Beacon},
		{"margin", present.Margin, w.Config.Margin},
		{"quorum", present.Quorum, w.Config.Quorum},
	} {
		if w.Says(m.name) && !isNothing(m.to) && !same(m.from, m.to) {
			s.differ(m.name, m.from, m.to, false)
		}
	}
}

// isNothing tells whether a member says that the default will do.
func isNothing(v any) bool { return same(v, nil) || same(v, "") }

// instant is a moment as transcripts have it.
func instant(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	cut := t.UTC().Truncate(time.Millisecond)
	return &cut
}

func (s *Step) outflow(w *Wanted, present Present, amendment map[string]any) {
	change := map[string]any{}
	compare := func(name string, from, to uint32) {
		if w.Says("outflow."+name) && from != to {
			s.differ("outflow."+name, from, to, true)
			change[name] = to
		}
	}
	if w.Config.Outflow.PerMinute > 0 {
		compare("per_minute", present.Outflow.PerMinute, w.Config.Outflow.PerMinute)
	}
	compare("max_active", present.Outflow.MaxActive, w.Config.Outflow.MaxActive)
	if len(change) > 0 {
		amendment["outflow"] = change
	}
}

// settings compares title, closing time, targets, signed returns, brand, the
// limit of people and the time zone.
func (s *Step) settings(w *Wanted, present Present, amendment map[string]any) {
	compare := func(name string, from, to, send any) {
		if w.Says(name) && !same(from, to) {
			s.differ(name, from, to, true)
			amendment[name] = send
		}
	}
	if w.Config.Title != "" {
		compare("title", present.Title, w.Config.Title, w.Config.Title)
	}
	if w.Says("closes") {
		s.closes(w, present, amendment)
	}
	targets := append([]string{}, w.Config.Targets...)
	compare("targets", append([]string{}, present.Targets...), targets, targets)
	compare("signed_return", present.SignedReturn, w.Config.SignedReturn, w.Config.SignedReturn)
	compare("brand", stored(present.Brand), stored(w.Config.Brand), w.Config.Brand)
	compare("max_waiting", present.MaxWaiting, w.Config.MaxWaiting, w.Config.MaxWaiting)
	compare("time_zone", present.TimeZone, w.Config.TimeZone, w.Config.TimeZone)
}

// closes compares when joins end. A room that closes cannot stay open for ever
// again.
func (s *Step) closes(w *Wanted, present Present, amendment map[string]any) {
	from, to := instant(present.Closes), instant(w.Config.Closes)
	if same(from, to) {
		return
	}
	s.differ("closes", from, to, to != nil)
	if to != nil {
		amendment["closes"] = to
	}
}

// windows compares the rules. Those that hold from the first difference on are
// what an amendment says; the server knows which have begun.
func (s *Step) windows(w *Wanted, present Present, amendment map[string]any) {
	if len(w.Config.Windows) == 0 {
		return
	}
	from, to := plain(present.Config.Windows, present.Opens), plain(w.Config.Windows, present.Opens)
	if same(from, to) {
		return
	}
	s.differ("windows", ruleWords(from), ruleWords(to), true)
	first := 0
	for first < len(from) && first < len(to) && same(from[first], to[first]) {
		first++
	}
	rest := to[first:]
	if len(rest) == 0 { // the rule before goes on where another one began
		rest = []room.WindowRule{{From: from[first].From, Length: to[first-1].Length}}
	}
	amendment["windows"] = rest
}

// plain returns rules with every moment said, and without those that change
// nothing.
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

// ruleWords are rules in short.
func ruleWords(rules []room.WindowRule) string {
	words := make([]string, len(rules))
	for i, r := range rules {
		words[i] = fmt.Sprintf("%s from %s", time.Duration(r.Length), r.From.Format(time.RFC3339))
	}
	return strings.Join(words, ", ")
}

// stored returns a brand as a server keeps it: logos without their metadata,
// and CSS as it is understood.
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

// Words says one difference for people, at most a line long.
func (d Difference) Words() string {
	if d.Field == "brand" {
		return "brand: is not the same"
	}
	return fmt.Sprintf("%s: %s -> %s", d.Field, short(d.From), short(d.To))
}

// maxWords is how much of a value is shown, in characters.
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
