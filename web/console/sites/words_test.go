package sites

import (
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

const someRooms = `"rooms": {"sale": {"url": "https://queue.example.com/r/sale"},
	"net": {"url": "https://queue.example.com/r/net", "mode": "safety-net"}, "gone": {"url": "https://queue.example.com/r/gone", "mode": "closed"},
	"off": {"url": "https://queue.example.com/r/off", "mode": "off"},
	"later": {"url": "https://queue.example.com/r/later", "mode": "scheduled", "from": "2030-05-01T12:00:00Z", "until": "2030-05-02T12:00:00+02:00"}}`

func mustRead(t *testing.T, list string) *rules.Site {
	t.Helper()
	s, err := rules.Parse([]byte(`{"version": 1, "hosts": ["a.example", "b.example"], ` + someRooms + `, "rules": [` + list + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRuleLines checks the words for every kind of test and action.
func TestRuleLines(t *testing.T) {
	t.Parallel()
	const rest = "Everything else: passes, because no rule matches"
	for rule, want := range map[string]string{
		`{"name": "r", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}`:                                     "Paths below /tickets: wait in line for sale",
		`{"name": "r", "when": {"path": {"prefix": "/"}, "method": {"equals": "POST"}}, "action": "queue net"}`:               "All paths, if the method is POST: wait in line for net while its gate is shut",
		`{"name": "r", "when": {"path": {"any": [{"equals": "/a"}, {"glob": "/*/b"}, {"suffix": ".x"}]}}, "action": "block"}`: "The path /a, paths like /*/b, paths that end with .x: are blocked",
		`{"name": "r", "when": {"path": {"not": {"any": [{"prefix": "/a"}, {"equals": "/b"}]}}}, "action": "queue gone"}`:     "Paths each of which does not begin with /a and is not /b: are refused, because gone is closed",
		`{"name": "r", "when": {"network": {"not": {"in": ["10.0.0.0/8", "192.0.2.0/24"]}}}, "action": "queue off"}`:          "All requests, if the visitor's address is not in 10.0.0.0/8, 192.0.2.0/24: pass, because off is off",
		`{"name": "r", "when": {"network": {"in": ["10.0.0.0/8"]}}, "action": "bypass"}`:                                      "All requests, if the visitor's address is in 10.0.0.0/8: pass",
		`{"name": "r", "when": {"host": {"any": [{"prefix": "a."}, {"suffix": ".b"}]}, "user_agent": {"glob": "*bot*"}}, "action": "queue later"}`: "All requests, if the host either begins with a. or ends with .b, and the user agent is like *bot*: " +
			"wait in line for later from 1 May 2030, 12:00 UTC until 2 May 2030, 10:00 UTC",
		`{"name": "r", "when": {"query": {"b": {"equals": "1"}, "a": {"not": {"equals": "2"}}}, "header": {"x": {"not": {"suffix": "3"}}}, "cookie": {"c": {"not": {"glob": "4*"}}}}, "action": "bypass"}`: "All requests, if the parameter a is not 2, and the parameter b is 1, and the header x does not end with 3, and the cookie c is not like 4*: pass",
	} {
		var said []string
		for _, line := range ruleLines(mustRead(t, rule)) {
			if line.Name == "r" {
				said = append(said, line.Words.String())
			}
		}
		if diff := cmp.Diff([]string{want}, said); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
	lines := ruleLines(mustRead(t, `{"name": "one", "when": {"path": {"prefix": "/x"}}, "action": "queue sale"}, {"name": "two", "action": "queue sale"}, {"name": "three", "action": "block"}`))
	var names []string
	for _, line := range lines {
		names = append(names, line.Name)
		if line.Words.String() == rest {
			t.Error("something is left behind a rule for everything")
		}
	}
	if diff := cmp.Diff([]string{"", "one", "", "two", "three"}, names); diff != "" { // the default rules come before the first wide rule that queues
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines := ruleLines(mustRead(t, "")); lines[len(lines)-1].Words.String() != rest || !strings.Contains(lines[0].Words.String(), "other than a.example, b.example") {
		t.Errorf("of no rules: %v", lines)
	}
}

// TestPresent checks the words for what visitors get right now.
func TestPresent(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(hours int) *time.Time {
		m := now.Add(time.Duration(hours) * time.Hour)
		return &m
	}
	serving := func(change ...func(*room.Snapshot)) *room.Snapshot {
		s := &room.Snapshot{Opens: *at(-2), Starts: *at(-1), Outflow: fairness.Outflow{PerMinute: 1200, MaxActive: 5000}}
		for _, f := range change {
			f(s)
		}
		return s
	}
	gate := func(g room.Gate) func(*room.Snapshot) { return func(s *room.Snapshot) { s.Gate = g } }
	ended := func(s *room.Snapshot) { s.Ended = true }
	const waits = "line: they wait in line"
	for name, c := range map[string]struct {
		r      rules.Room
		s      *room.Snapshot
		isFull bool
		want   string
	}{
		"always":                {rules.Room{Mode: rules.Always}, serving(), false, waits},
		"elsewhere":             {rules.Room{Mode: rules.Always}, nil, false, "line: they are sent to the room, which is on another server"},
		"off":                   {rules.Room{Mode: rules.Off}, serving(ended), false, "open: they pass without waiting, because the room is off in the rules"},
		"closed":                {rules.Room{Mode: rules.Closed}, nil, false, "closed: they are refused, even with a pass, because the room is closed in the rules"},
		"before the schedule":   {rules.Room{Mode: rules.Scheduled, From: at(1), Until: at(2)}, serving(), false, "open: they pass without waiting until 1 May 2030, 13:00 UTC"},
		"when it begins":        {rules.Room{Mode: rules.Scheduled, From: at(0)}, serving(), false, waits},
		"in the schedule":       {rules.Room{Mode: rules.Scheduled, Until: at(2)}, serving(), false, waits + "; this applies until 1 May 2030, 14:00 UTC"},
		"after the schedule":    {rules.Room{Mode: rules.Scheduled, From: at(-2), Until: at(0)}, serving(), false, "open: they pass without waiting, since 1 May 2030, 12:00 UTC"},
		"ended":                 {rules.Room{Mode: rules.Always}, serving(ended), false, "closed: they are refused: the room has ended"},
		"upcoming":              {rules.Room{Mode: rules.Always}, serving(func(s *room.Snapshot) { s.Opens = *at(1) }), false, "line: they see the opening time: 1 May 2030, 13:00 UTC"},
		"open":                  {rules.Room{Mode: rules.Always}, serving(func(s *room.Snapshot) { s.Starts = *at(1) }), false, "line: they join the line; the first visitors are called at 1 May 2030, 13:00 UTC"},
		"paused":                {rules.Room{Mode: rules.Always}, serving(func(s *room.Snapshot) { s.Paused = true }), false, "line: they join the line, and no visitor is called until you resume"},
		"paused after the last": {rules.Room{Mode: rules.Always}, serving(func(s *room.Snapshot) { s.Paused, s.Closes = true, at(-1) }), false, "closed: they cannot join any more; visitors in line still go in"},
		"closes later":          {rules.Room{Mode: rules.Always}, serving(func(s *room.Snapshot) { s.Closes = at(1) }), false, waits + "; joining ends at 1 May 2030, 13:00 UTC"},
		"pulled":                {rules.Room{Mode: rules.Always}, serving(func(s *room.Snapshot) { s.Pull = true }), false, waits + " until your backend calls them"},
		"full":                  {rules.Room{Mode: rules.Always}, serving(), true, "line: they are turned away: the line is full"},
		"net, open":             {rules.Room{Mode: rules.SafetyNet}, serving(gate(room.GateOpen)), false, "open: they pass without waiting, as long as at most 1,200 sessions begin per minute and 5,000 are active at once"},
		"net, open, one limit":  {rules.Room{Mode: rules.SafetyNet}, serving(gate(room.GateOpen), func(s *room.Snapshot) { s.Outflow.MaxActive = 0 }), false, "open: they pass without waiting, as long as at most 1,200 sessions begin per minute"},
		"net, shut":             {rules.Room{Mode: rules.SafetyNet}, serving(gate(room.GateShut)), false, waits + "; the gate is shut"},
		"net, never":            {rules.Room{Mode: rules.SafetyNet}, serving(), false, waits + "; the gate is shut until a connector reports"},
		"net, ended":            {rules.Room{Mode: rules.SafetyNet}, serving(gate(room.GateShut), ended), false, "closed: they are refused: the room has ended"},
		"net, elsewhere":        {rules.Room{Mode: rules.SafetyNet}, nil, false, "line: they are sent to the room, which is on another server"},
	} {
		p := presentOf(c.r, roomState{c.s, c.isFull}, now)
		if got := p.Mark.Word + ": " + p.Words.String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestDoubts(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		``:                                      {"No rule makes visitors wait"},
		`{"name": "a", "action": "queue off"}`:  {"Every room is off"},
		`{"name": "a", "action": "queue sale"}`: nil,
		`{"name": "a", "action": "bypass"}, {"name": "b", "action": "queue sale"}`:                                                                       {"Rule a lets everything pass before"},
		`{"name": "b", "action": "queue sale"}, {"name": "a", "action": "bypass"}`:                                                                       nil,
		`{"name": "a", "when": {"cookie": {"c": {"equals": "1"}}}, "action": "bypass"}, {"name": "b", "action": "queue sale"}`:                           {"Rule a lets all paths pass if the browser sends certain values"},
		`{"name": "a", "when": {"network": {"in": ["10.0.0.0/8"]}}, "action": "bypass"}, {"name": "b", "action": "queue sale"}`:                          nil,
		`{"name": "a", "when": {"path": {"prefix": "/x"}, "cookie": {"c": {"equals": "1"}}}, "action": "bypass"}, {"name": "b", "action": "queue sale"}`: nil,
	} {
		found := doubts(mustRead(t, list))
		if len(found) != len(want) {
			t.Errorf("%s: %v, want %v", list, found, want)
			continue
		}
		for i, text := range want {
			if !strings.HasPrefix(found[i].String(), text) {
				t.Errorf("%s: %s, want %s", list, found[i], text)
			}
		}
	}
}

// TestDiff compares random texts: the common and the removed lines make up the first, the common and the
// added lines the second.
func TestDiff(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(12) {
			fmt.Fprintln(&b, r.IntN(4))
		}
		return b.String()
	}
	for range 2000 {
		before, after := text(), text()
		var one, other strings.Builder
		edits := 0
		for _, line := range changes(linesOf(before), linesOf(after)) {
			if line.Kind != "added" {
				fmt.Fprintln(&one, line.Text)
			}
			if line.Kind != "removed" {
				fmt.Fprintln(&other, line.Text)
			}
			if line.Kind != "same" {
				edits++
			}
		}
		if one.String() != before || other.String() != after {
			t.Fatalf("%q and %q became %q and %q", before, after, one.String(), other.String())
		}
		if before == after && edits > 0 || (diffOf(before, after) == nil) != (before == after) {
			t.Fatalf("%q, %q: %d edits", before, after, edits)
		}
	}
	long := strings.Repeat("same\n", 20)
	want := []diffLine{{"skipped", "17 unchanged lines"}, {"same", "same"}, {"same", "same"}, {"same", "same"}, {"removed", "a"}, {"added", "b"}, {"same", "same"}, {"same", "same"}, {"same", "same"}, {"skipped", "17 unchanged lines"}}
	if diff := cmp.Diff(want, diffOf(long+"a\n"+long, long+"b\n"+long)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	many := strings.Repeat("x\n", 3000)
	if list := diffOf(many+"a\n"+many, "b\n"+strings.Repeat("y\n", 3000)); len(list) != 6001+3001 {
		t.Errorf("%d lines of texts that have too little in common to be compared", len(list))
	}
	list := diffOf(strings.Repeat("\n", 900_000), strings.Repeat("x\n", 400_000))
	if last := list[len(list)-1]; len(list) != maxDiffLines+1 || last != (diffLine{"skipped", "1,290,000 more lines"}) {
		t.Errorf("%d lines of very long texts, at last %v", len(list), last)
	}
}

// TestMisplaceLongLines shows only a little of a long line, however many problems it has.
func TestMisplaceLongLines(t *testing.T) {
	t.Parallel()
	document := `{"version":1,"hosts":["` + strings.Repeat(`\u00e4!","`, 20_000) + `a"]}`
	_, err := readDocument(document)
	wrong, ok := errors.AsType[*invalid.Error](err)
	if !ok || len(wrong.Problems) != 100 {
		t.Fatalf("%d problems, %v", len(wrong.Problems), err)
	}
	for _, m := range misplace(document, wrong.Problems) {
		if m.Line != 1 || len(m.Excerpt) > maxExcerpt || !strings.Contains(m.Excerpt, `u00e4!"`) {
			t.Errorf("%s: line %d, %q", m.Field, m.Line, m.Excerpt)
		}
	}
}

// FuzzMisplace locates the problems of any document.
func FuzzMisplace(f *testing.F) {
	for _, text := range []string{"", "{", "[]", `{"version": 1, "rooms": {"a.b": {"url": 1}}}`, "{\n\"rules\":\n[1,\n{\"when\": []}]}", `{"a": "\u00"}`, `{"version":1,"hots":[]}`} {
		f.Add(text, "rules[1].when", "must be")
	}
	f.Fuzz(func(t *testing.T, document, field, detail string) {
		problems := invalid.List{{Field: field, Detail: detail}}
		if _, err := readDocument(document); err != nil {
			problems.Add("rules", strings.TrimPrefix(err.Error(), "invalid rules: "))
		}
		for _, m := range misplace(document, problems) {
			if m.Line < 0 || m.Line > strings.Count(document, "\n")+1 {
				t.Errorf("line %d of %q", m.Line, document)
			}
		}
	})
}

// FuzzSiteForm makes documents from forms: each accepted one can be parsed, and gives the same form.
func FuzzSiteForm(f *testing.F) {
	f.Add("shop.example.com", "/tickets\n/members", "/paid", "always", "retry-page", "5 min", "2030-01-01T00:00:00Z", false)
	f.Add("*.example.com\nexample.com", "", "/a b\n/\"quoted\"", "scheduled", "fail-open-after", "24 h", "2030-01-01T00:00:00Z", true)
	f.Add("https://Shop.example.com/x", "https://shop.example.com/tickets?x", "/\u00e4", "safety-net", "page", "", "", false)
	f.Fuzz(func(t *testing.T, hosts, paths, exceptions, mode, failure, after, from string, isAll bool) {
		form := siteForm{Hosts: hosts, Room: "https://queue.example.com/r/sale", Scope: scopePaths, Paths: paths, Exceptions: exceptions, Mode: mode, Failure: failure, FailOpenAfter: after, From: from}
		if isAll {
			form.Scope = scopeAll
		}
		d, err := form.document()
		if err != nil {
			return
		}
		read, err := readDocument(d.text)
		if err != nil {
			return // the problems are shown next to the fields
		}
		again, ok := siteFormOf([]byte(d.text))
		if !ok {
			t.Fatalf("no form shows %s", d.text)
		}
		second, err := again.document()
		if err != nil || second.text != d.text {
			t.Fatalf("%s became %s, %v", d.text, second.text, err)
		}
		for _, line := range ruleLines(read) {
			_ = html.EscapeString(line.Words.String())
		}
	})
}

// TestSiteFormOf shows rules in the form only if it can represent them.
func TestSiteFormOf(t *testing.T) {
	t.Parallel()
	const begin = `{"version": 1, "hosts": ["a.example"], `
	const oneRoom = `"rooms": {"sale": {"url": "https://queue.example.com/r/sale", "failure": "fail-open-after 90s"}}, `
	for text, want := range map[string]bool{
		begin + oneRoom + `"rules": [{"name": "wait /t", "when": {"path": {"prefix": "/t"}}, "action": "queue sale"}]}`:                                                                                  true,
		begin + oneRoom + `"rules": [{"name": "wait /", "when": {"path": {"prefix": "/"}}, "action": "queue sale"}]}`:                                                                                    true,
		begin + oneRoom + `"rules": [{"name": "tickets", "when": {"path": {"prefix": "/t"}}, "action": "queue sale"}]}`:                                                                                  false, // its name would be lost
		begin + oneRoom + `"rules": [{"name": "wait /t", "when": {"path": {"prefix": "/t"}, "method": {"equals": "GET"}}, "action": "queue sale"}]}`:                                                     false,
		begin + oneRoom + `"defaults": "off", "rules": [{"name": "wait /t", "when": {"path": {"prefix": "/t"}}, "action": "queue sale"}]}`:                                                               false,
		begin + oneRoom + `"rules": [{"name": "wait /t", "when": {"path": {"prefix": "/t"}}, "action": "queue sale"}, {"name": "pass /t/x", "when": {"path": {"prefix": "/t/x"}}, "action": "bypass"}]}`: false, // the form has them in another order
		begin + oneRoom + `"rules": [{"name": "wait /t", "when": {"path": {"prefix": "/t"}}, "action": "block"}]}`:                                                                                       false,
		begin + someRooms + `, "rules": []}`: false,
		`{"version": 2}`:                     false,
	} {
		if _, ok := siteFormOf([]byte(text)); ok != want {
			t.Errorf("%t for %s", ok, text)
		}
	}
}

// TestWouldHaveWaited ignores the counts of connectors that have not reported for an hour.
func TestWouldHaveWaited(t *testing.T) {
	t.Parallel()
	list := []site.Connector{{Node: site.Node{Counts: map[string]uint64{"observed_hour_sale": 7}}}}
	if text := wouldHaveWaited(list, "sale", time.Now()); text != "" {
		t.Errorf("long ago: %q", text)
	}
}
