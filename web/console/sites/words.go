package sites

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
)

// word is a part of a phrase: text, a quotation from the rules, or a moment.
type word struct {
	Text   string
	IsCode bool      // quoted from the rules
	Moment time.Time // replaces the text; zero: none
}

// phrase is a sentence or clause about rules.
type phrase []word

func say(text string) phrase { return phrase{{Text: text}} }

func quote(text string) phrase { return phrase{{Text: text, IsCode: true}} }

func (s phrase) and(more ...phrase) phrase {
	for _, m := range more {
		s = append(s, m...)
	}
	return s
}

// joined joins phrases with a separator.
func joined(list []phrase, between string) (s phrase) {
	for i, one := range list {
		if i > 0 {
			s = s.and(say(between))
		}
		s = s.and(one)
	}
	return s
}

// String returns the phrase without markup.
func (s phrase) String() string {
	var b strings.Builder
	for _, w := range s {
		if !w.Moment.IsZero() {
			w.Text = format.Moment(w.Moment.UTC()) + " UTC"
		}
		b.WriteString(w.Text)
	}
	return b.String()
}

// ruleLine describes a rule.
type ruleLine struct {
	Name  string // empty: not a rule of the document, but implied by it
	Words phrase
	Mark  format.Badge
}

// Badges of what happens to requests.
var (
	marksQueue  = format.Good("waits")
	marksBypass = format.Plain("passes")
	marksShut   = format.Bad("closed")
	marksBlock  = format.Bad("blocked")
)

// ruleLines describes rules in the order in which they are checked.
func ruleLines(s *rules.Site) (lines []ruleLine) {
	if len(s.Hosts) > 0 {
		others := say("Hosts other than ").and(quotes(s.Hosts), say(": blocked"))
		lines = append(lines, ruleLine{Words: others, Mark: marksBlock})
	}
	defaults := ruleLine{
		Words: say("Site files, health checks, webhooks of payment providers, preflights and static files: " +
			"pass, by the default rules"),
		Mark: marksBypass,
	}
	hasDefaults := s.Defaults != "off"
	isAll := false
	for _, r := range s.Rules {
		does, mark := actionWords(s, r.Action)
		if hasDefaults && r.IsWide() && isQueue(r) {
			lines, hasDefaults = append(lines, defaults), false
		}
		lines = append(lines, ruleLine{r.Name, whenWords(r.When).and(say(": "), does), mark})
		isAll = isAll || isForAll(r.When)
	}
	if hasDefaults {
		lines = append(lines, defaults)
	}
	if !isAll {
		lines = append(lines, ruleLine{Words: say("Everything else: passes, because no rule matches"),
			Mark: marksBypass})
	}
	return lines
}

func isQueue(r rules.Rule) bool { return strings.HasPrefix(r.Action, "queue ") }

func isForAll(w rules.When) bool {
	return w.Host == nil && w.Method == nil && w.UserAgent == nil && w.Network == nil &&
		len(w.Query)+len(w.Header)+len(w.Cookie) == 0 &&
		(w.Path == nil || w.Path.Prefix != nil && *w.Path.Prefix == "/")
}

func quotes(list []string) phrase {
	var all []phrase
	for _, text := range list {
		all = append(all, quote(text))
	}
	return joined(all, ", ")
}

// actionWords describes what happens to requests that match a rule.
func actionWords(s *rules.Site, action string) (phrase, format.Badge) {
	name, isQueue := strings.CutPrefix(action, "queue ")
	switch {
	case action == "bypass":
		return say("pass"), marksBypass
	case !isQueue:
		return say("are blocked"), marksBlock
	}
	r := s.Rooms[name]
	waits := say("wait in line for ").and(quote(name))
	switch r.Mode {
	case rules.SafetyNet:
		return waits.and(say(" while its gate is shut")), marksQueue
	case rules.Scheduled:
		if r.From != nil {
			waits = waits.and(say(" from "), phrase{{Moment: *r.From}})
		}
		if r.Until != nil {
			waits = waits.and(say(" until "), phrase{{Moment: *r.Until}})
		}
		return waits, marksQueue
	case rules.Off:
		return say("pass, because ").and(quote(name), say(" is off")), marksBypass
	case rules.Closed:
		return say("are refused, because ").and(quote(name), say(" is closed")), marksShut
	default:
		return waits, marksQueue
	}
}

// whenWords describes the requests that match a rule.
func whenWords(w rules.When) phrase {
	subject := say("All requests")
	if w.Path != nil {
		subject = pathWords(*w.Path)
	}
	var conditions []phrase
	add := func(what phrase, t *rules.Test) {
		if t != nil {
			conditions = append(conditions, what.and(testWords(*t, asserted)))
		}
	}
	add(say("the host "), w.Host)
	add(say("the method "), w.Method)
	add(say("the user agent "), w.UserAgent)
	add(say("the visitor's address "), w.Network)
	for _, named := range []struct {
		what  string
		tests map[string]rules.Test
	}{{"the parameter ", w.Query}, {"the header ", w.Header}, {"the cookie ", w.Cookie}} {
		for _, name := range slices.Sorted(maps.Keys(named.tests)) {
			test := named.tests[name]
			add(say(named.what).and(quote(name), say(" ")), &test)
		}
	}
	if len(conditions) == 0 {
		return subject
	}
	return subject.and(say(", if "), joined(conditions, ", and "))
}

// pathWords describes the paths of a test.
func pathWords(t rules.Test) phrase {
	switch {
	case t.Prefix != nil && *t.Prefix == "/":
		return say("All paths")
	case t.Prefix != nil:
		return say("Paths below ").and(quote(*t.Prefix))
	case t.Equals != nil:
		return say("The path ").and(quote(*t.Equals))
	case t.Suffix != nil:
		return say("Paths that end with ").and(quote(*t.Suffix))
	case t.Glob != nil:
		return say("Paths like ").and(quote(*t.Glob))
	case t.Any != nil && !slices.ContainsFunc(t.Any, isCompound):
		var all []phrase
		for i, one := range t.Any {
			words := pathWords(one)
			if i > 0 { // not at the beginning of the phrase
				words[0].Text = strings.ToLower(words[0].Text[:1]) + words[0].Text[1:]
			}
			all = append(all, words)
		}
		return joined(all, ", ")
	}
	return say("Paths each of which ").and(testWords(t, asserted))
}

// isCompound reports whether a test consists of other tests.
func isCompound(t rules.Test) bool { return t.Any != nil || t.Not != nil }

// claim is what a phrase says of a test.
type claim bool

const (
	asserted claim = true
	denied   claim = false
)

// testWords describes a test: "is x", or if it is denied "is not x".
func testWords(t rules.Test, c claim) phrase {
	verb := func(is, not, what string) phrase {
		if c == denied {
			is = not
		}
		return say(is + " ").and(quote(what))
	}
	switch {
	case t.Not != nil:
		return testWords(*t.Not, !c)
	case t.Any != nil:
		var all []phrase
		for _, one := range t.Any {
			all = append(all, testWords(one, c))
		}
		between, begin := " or ", "either "
		if c == denied {
			between, begin = " and ", ""
		}
		if len(all) == 1 {
			begin = ""
		}
		return say(begin).and(joined(all, between))
	case t.Prefix != nil:
		return verb("begins with", "does not begin with", *t.Prefix)
	case t.Suffix != nil:
		return verb("ends with", "does not end with", *t.Suffix)
	case t.Glob != nil:
		return verb("is like", "is not like", *t.Glob)
	case t.Equals != nil:
		return verb("is", "is not", *t.Equals)
	}
	is := "is in "
	if c == denied {
		is = "is not in "
	}
	return say(is).and(quotes(t.In))
}

// modeWords are the badges of modes.
var modeWords = map[rules.Mode]format.Badge{
	rules.Always:    format.Good("always"),
	rules.SafetyNet: format.Good("safety net"),
	rules.Scheduled: format.Good("scheduled"),
	rules.Off:       format.Warn("off"),
	rules.Closed:    format.Bad("closed"),
}

// failureWords describes what visitors see while a room is out of reach.
func failureWords(f rules.Failure) string {
	if d, ok := f.FailOpenAfter(); ok {
		return fmt.Sprintf("visitors get the retry page, and after %s everyone gets in", format.Duration(d))
	}
	if f == rules.Page {
		return "visitors get your own page"
	}
	return "visitors get the retry page"
}

// doubts lists possible mistakes in rules.
func doubts(s *rules.Site) (list []phrase) {
	waits, holds := false, false // whether a rule queues, and whether one does for a room that is not off
	for _, r := range s.Rules {
		name, ok := strings.CutPrefix(r.Action, "queue ")
		waits, holds = waits || ok, holds || ok && s.Rooms[name].Mode != rules.Off
	}
	switch {
	case !waits:
		return []phrase{say("No rule makes visitors wait: everyone gets in.")}
	case !holds:
		return []phrase{say("Every room is off: everyone gets in without waiting.")}
	}
	for i, r := range s.Rules {
		hides := slices.ContainsFunc(s.Rules[i+1:], isQueue)
		switch {
		case r.Action != "bypass" || !hides || !r.IsWide():
		case isForAll(r.When):
			list = append(list, say("Rule ").and(quote(r.Name),
				say(" lets everything pass before the rules below it are checked.")))
		case isClaimed(r.When):
			list = append(list, say("Rule ").and(quote(r.Name),
				say(" lets all paths pass if the browser sends certain values: any visitor can send them.")))
		}
	}
	return list
}

// isClaimed reports whether a rule only tests values that clients choose.
func isClaimed(w rules.When) bool { return w.Network == nil && w.Host == nil }

// present describes what visitors without a session get right now.
type present struct {
	Mark  format.Badge
	Words phrase
}

// roomState is the state of a room of this server. Rooms of other servers have the zero state.
type roomState struct {
	*room.Snapshot
	isFull bool // the line is full
}

// presentOf describes what visitors get from rules with a room.
func presentOf(r rules.Room, s roomState, now time.Time) present {
	passes := format.Plain("open")
	switch r.Mode {
	case rules.Off:
		return present{passes, say("they pass without waiting, because the room is off in the rules")}
	case rules.Closed:
		return present{marksShut, say("they are refused, even with a pass, because the room is closed in the rules")}
	case rules.Scheduled:
		if r.From != nil && now.Before(*r.From) {
			return present{passes, say("they pass without waiting until ").and(momentOf(*r.From))}
		}
		if r.Until != nil && !now.Before(*r.Until) {
			return present{passes, say("they pass without waiting, since ").and(momentOf(*r.Until))}
		}
		line := lineOf(s, now)
		if r.Until != nil {
			line.Words = line.Words.and(say("; this applies until "), momentOf(*r.Until))
		}
		return line
	case rules.SafetyNet:
		return netOf(s, now)
	default:
		return lineOf(s, now)
	}
}

func momentOf(t time.Time) phrase { return phrase{{Moment: t}} }

// netOf describes what visitors get from a safety net.
func netOf(s roomState, now time.Time) present {
	line := lineOf(s, now)
	if s.Snapshot == nil || s.Ended {
		return line
	}
	switch s.Gate {
	case room.GateOpen:
		words := "they pass without waiting, as long as at most " + format.Number(s.Outflow.PerMinute) +
			" sessions begin per minute"
		if s.Outflow.MaxActive > 0 {
			words += fmt.Sprintf(" and %s are active at once", format.Number(s.Outflow.MaxActive))
		}
		return present{format.Good("open"), say(words)}
	case room.GateNone:
		line.Words = line.Words.and(say("; the gate is shut until a connector reports"))
	default:
		line.Words = line.Words.and(say("; the gate is shut"))
	}
	return line
}

// lineOf describes what visitors get when they are sent to a room.
func lineOf(s roomState, now time.Time) present {
	line, held := format.Good("line"), format.Warn("line")
	if s.Snapshot == nil {
		return present{line, say("they are sent to the room, which is on another server")}
	}
	switch {
	case s.Ended:
		return present{marksShut, say("they are refused: the room has ended")}
	case now.Before(s.Opens):
		return present{held, say("they see the opening time: ").and(momentOf(s.Opens))}
	case s.Closes != nil && !now.Before(*s.Closes):
		return present{marksShut, say("they cannot join any more; visitors in line still go in")}
	case s.isFull:
		return present{held, say("they are turned away: the line is full")}
	case s.Paused:
		return present{held, say("they join the line, and no visitor is called until you resume")}
	case now.Before(s.Starts):
		return present{line, say("they join the line; the first visitors are called at ").and(momentOf(s.Starts))}
	case s.Pull:
		return present{line, say("they wait in line until your backend calls them")}
	case s.Closes != nil:
		return present{line, say("they wait in line; joining ends at ").and(momentOf(*s.Closes))}
	}
	return present{line, say("they wait in line")}
}
