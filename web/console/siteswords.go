package console

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

// word is a part of a phrase.
type word struct {
	Text   string
	IsCode bool      // as it stands in the rules
	Moment time.Time // in place of the text; zero: none
}

// phrase says something about rules.
type phrase []word

func say(text string) phrase { return phrase{{Text: text}} }

func quote(text string) phrase { return phrase{{Text: text, IsCode: true}} }

func (s phrase) and(more ...phrase) phrase {
	for _, m := range more {
		s = append(s, m...)
	}
	return s
}

// joined are sentences with something between them.
func joined(list []phrase, between string) (s phrase) {
	for i, one := range list {
		if i > 0 {
			s = s.and(say(between))
		}
		s = s.and(one)
	}
	return s
}

// String is the phrase without its markup.
func (s phrase) String() string {
	var b strings.Builder
	for _, w := range s {
		if !w.Moment.IsZero() {
			w.Text = momentWords(w.Moment.UTC()) + " UTC"
		}
		b.WriteString(w.Text)
	}
	return b.String()
}

// ruleLine is a rule in words.
type ruleLine struct {
	Name  string // empty: it follows from the rest of the document
	Words phrase
	Mark  badge
}

// Marks of what happens.
var (
	marksQueue  = format.Good("waits")
	marksBypass = format.Plain("passes")
	marksShut   = format.Bad("closed")
	marksBlock  = format.Bad("blocked")
)

// ruleLines say what rules do, in the order they are looked at.
func ruleLines(s *rules.Site) (lines []ruleLine) {
	if len(s.Hosts) > 0 {
		lines = append(lines, ruleLine{Words: say("Hosts other than ").and(quotes(s.Hosts), say(": nobody gets there")), Mark: marksBlock})
	}
	shipped := ruleLine{Words: say("Site files, health checks, webhooks of payment providers, preflights and static files: pass, by the shipped rules"), Mark: marksBypass}
	isShipped := s.Defaults != "off"
	isAll := false
	for _, r := range s.Rules {
		does, mark := actionWords(s, r.Action)
		if isShipped && r.IsWide() && isQueue(r) {
			lines, isShipped = append(lines, shipped), false
		}
		lines = append(lines, ruleLine{r.Name, whenWords(r.When).and(say(": "), does), mark})
		isAll = isAll || isForAll(r.When)
	}
	if isShipped {
		lines = append(lines, shipped)
	}
	if !isAll {
		lines = append(lines, ruleLine{Words: say("Everything else: passes, as no rule is for it"), Mark: marksBypass})
	}
	return lines
}

func isQueue(r rules.Rule) bool { return strings.HasPrefix(r.Action, "queue ") }

func isForAll(w rules.When) bool {
	return w.Host == nil && w.Method == nil && w.UserAgent == nil && w.Network == nil && len(w.Query)+len(w.Header)+len(w.Cookie) == 0 &&
		(w.Path == nil || w.Path.Prefix != nil && *w.Path.Prefix == "/")
}

func quotes(list []string) phrase {
	var all []phrase
	for _, text := range list {
		all = append(all, quote(text))
	}
	return joined(all, ", ")
}

// actionWords say what happens to what a rule is for.
func actionWords(s *rules.Site, action string) (phrase, badge) {
	name, isQueue := strings.CutPrefix(action, "queue ")
	switch {
	case action == "bypass":
		return say("pass"), marksBypass
	case !isQueue:
		return say("nobody gets there"), marksBlock
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
		return say("pass, as ").and(quote(name), say(" is off")), marksBypass
	case rules.Closed:
		return say("nobody gets there, as ").and(quote(name), say(" is closed")), marksShut
	}
	return waits, marksQueue
}

// whenWords say which requests a rule is for.
func whenWords(w rules.When) phrase {
	subject := say("All requests")
	if w.Path != nil {
		subject = pathWords(*w.Path)
	}
	var conditions []phrase
	add := func(what phrase, t *rules.Test) {
		if t != nil {
			conditions = append(conditions, what.and(testWords(*t, false)))
		}
	}
	add(say("the host "), w.Host)
	add(say("the method "), w.Method)
	add(say("the browser's name "), w.UserAgent)
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

// pathWords name the paths of a test.
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
	case t.Any != nil && !slices.ContainsFunc(t.Any, func(one rules.Test) bool { return one.Any != nil || one.Not != nil }):
		var all []phrase
		for i, one := range t.Any {
			words := pathWords(one)
			if i > 0 { // the first word begins no phrase
				words[0].Text = strings.ToLower(words[0].Text[:1]) + words[0].Text[1:]
			}
			all = append(all, words)
		}
		return joined(all, ", ")
	}
	return say("Paths of which each ").and(testWords(t, false))
}

// testWords say what holds of a text: "is x", "does not begin with y".
func testWords(t rules.Test, isNot bool) phrase {
	verb := func(is, not, what string) phrase {
		if isNot {
			is = not
		}
		return say(is + " ").and(quote(what))
	}
	switch {
	case t.Not != nil:
		return testWords(*t.Not, !isNot)
	case t.Any != nil:
		var all []phrase
		for _, one := range t.Any {
			all = append(all, testWords(one, isNot))
		}
		between, begin := " or ", "either "
		if isNot {
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
	if isNot {
		is = "is not in "
	}
	return say(is).and(quotes(t.In))
}

// modeWords say what a room's mode in the rules means.
var modeWords = map[rules.Mode]badge{
	rules.Always:    format.Good("always"),
	rules.SafetyNet: format.Good("safety net"),
	rules.Scheduled: format.Good("scheduled"),
	rules.Off:       format.Warn("off"),
	rules.Closed:    format.Bad("closed"),
}

// failureWords say what visitors see while a room is out of reach.
func failureWords(f rules.Failure) string {
	if d, ok := f.FailOpenAfter(); ok {
		return fmt.Sprintf("visitors are held, and after %s everybody gets in", duration(d))
	}
	if f == rules.Page {
		return "visitors see your own page"
	}
	return "visitors are held on a page that tries again"
}

// doubts are what may be a mistake in rules.
func doubts(s *rules.Site) (list []phrase) {
	waits, holds := false, false // some rule queues; of these some has a room that is not off
	for _, r := range s.Rules {
		name, ok := strings.CutPrefix(r.Action, "queue ")
		waits, holds = waits || ok, holds || ok && s.Rooms[name].Mode != rules.Off
	}
	switch {
	case !waits:
		return []phrase{say("No rule lets anybody wait: everybody gets in.")}
	case !holds:
		return []phrase{say("Every room is off: everybody gets in without waiting.")}
	}
	for i, r := range s.Rules {
		hides := slices.ContainsFunc(s.Rules[i+1:], isQueue)
		switch {
		case r.Action != "bypass" || !hides || !r.IsWide():
		case isForAll(r.When):
			list = append(list, say("Rule ").and(quote(r.Name), say(" lets everything through, before the rules below it are looked at.")))
		case isClaimed(r.When):
			list = append(list, say("Rule ").and(quote(r.Name), say(" lets all paths through for what a visitor's browser says of itself: visitors can say that too.")))
		}
	}
	return list
}

// isClaimed tells whether a rule goes by what clients choose, and by nothing else.
func isClaimed(w rules.When) bool { return w.Network == nil && w.Host == nil }

// present is what visitors who have no session get right now.
type present struct {
	Mark  badge
	Words phrase
}

// presentOf says what they get where rules have them wait for a room, which is
// nil where it is not this server's.
func presentOf(r rules.Room, s *room.Snapshot, isFull bool, now time.Time) present {
	passes := format.Plain("open")
	switch r.Mode {
	case rules.Off:
		return present{passes, say("they pass without waiting, as the rules say off")}
	case rules.Closed:
		return present{marksShut, say("nobody gets in, pass or no pass, as the rules say closed")}
	case rules.Scheduled:
		if r.From != nil && now.Before(*r.From) {
			return present{passes, say("they pass without waiting until ").and(momentOf(*r.From))}
		}
		if r.Until != nil && !now.Before(*r.Until) {
			return present{passes, say("they pass without waiting, since ").and(momentOf(*r.Until))}
		}
		line := lineOf(s, isFull, now)
		if r.Until != nil {
			line.Words = line.Words.and(say("; so it is until "), momentOf(*r.Until))
		}
		return line
	case rules.SafetyNet:
		return netOf(s, isFull, now)
	}
	return lineOf(s, isFull, now)
}

func momentOf(t time.Time) phrase { return phrase{{Moment: t}} }

// netOf says what they get of a safety net.
func netOf(s *room.Snapshot, isFull bool, now time.Time) present {
	line := lineOf(s, isFull, now)
	if s == nil || s.Ended {
		return line
	}
	switch s.Gate {
	case room.GateOpen:
		words := fmt.Sprintf("they pass without waiting, as long as no more than %s begin a minute", number(s.Outflow.PerMinute))
		if s.Outflow.MaxActive > 0 {
			words += fmt.Sprintf(" and %s are there at once", number(s.Outflow.MaxActive))
		}
		return present{format.Good("open"), say(words)}
	case room.GateNone:
		line.Words = line.Words.and(say("; the gate is shut until a connector reports"))
	default:
		line.Words = line.Words.and(say("; the gate is shut"))
	}
	return line
}

// lineOf says what they get when they are led to a room.
func lineOf(s *room.Snapshot, isFull bool, now time.Time) present {
	line, held := format.Good("line"), format.Warn("line")
	if s == nil {
		return present{line, say("they are led to the room, which is not here")}
	}
	switch {
	case s.Ended:
		return present{marksShut, say("nobody gets in: the room has ended")}
	case now.Before(s.Opens):
		return present{held, say("they see when the room opens: ").and(momentOf(s.Opens))}
	case s.Closes != nil && !now.Before(*s.Closes):
		return present{marksShut, say("nobody can join any more; who is in line goes in")}
	case isFull:
		return present{held, say("they are turned away: the line is full")}
	case s.Paused:
		return present{held, say("they join the line, and nobody is called, as calls are held")}
	case now.Before(s.Starts):
		return present{line, say("they join the line; nobody is let in before ").and(momentOf(s.Starts))}
	case s.Pull:
		return present{line, say("they wait in line until your backend calls them")}
	case s.Closes != nil:
		return present{line, say("they wait in line; nobody can join from ").and(momentOf(*s.Closes), say(" on"))}
	}
	return present{line, say("they wait in line")}
}
