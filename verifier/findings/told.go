package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// maxNames is the maximum number of categories, and of reasons, that are added up by name.
const maxNames = 32

// told adds up the statements of the operator.
type told struct {
	stock, refused sums
	prices         uint64
	unguarded      uint64         // requests admitted without a pass
	raised         uint64         // index of the latest amendment that raised the seats
	seats          uint32         // in force
	auto           *fairness.Tell // the change of a program that has still to come; nil: none
	autos          uint64
	by             string // words about the program that made the current amendment; "": none did
}

// sums are numbers by name, in the order in which the names came.
type sums struct {
	list   []sum
	others uint64 // statements about further names
}

// sum is what was stated about one name.
type sum struct {
	name  fairness.Lane
	count uint64 // the latest stock, or all refused joins
	entry uint64 // index of the latest statement
}

// of returns the sum of a name, and whether it is new; nil if there are too many names.
func (l *sums) of(name fairness.Lane) (one *sum, isNew bool) {
	i := slices.IndexFunc(l.list, func(s sum) bool { return s.name == name })
	switch {
	case i >= 0:
		return &l.list[i], false
	case len(l.list) == maxNames:
		l.others++
		return nil, false
	}
	l.list = append(l.list, sum{name: name})
	return &l.list[len(l.list)-1], true
}

// words lists the sums, such as "stalls 12, balcony 3".
func (l *sums) words() string {
	var words []string
	for _, s := range l.list {
		words = append(words, string(s.name)+" "+numeral.Group(s.count))
	}
	if l.others > 0 {
		words = append(words, numeral.Count(l.others, "statement about another name", "statements about other names"))
	}
	return strings.Join(words, ", ")
}

// tell adds a statement.
func (f *Finder) tell(s *fairness.State, e *fairness.Tell) {
	t, text := &f.told, ""
	switch e.Subject {
	case fairness.TellStock:
		text = fmt.Sprintf("Of %s, %s left.", e.Name, numeral.Count(e.Count, "seat was", "seats were"))
		t.tellStock(f, s, e)
	case fairness.TellPrice:
		t.prices++
		text = fmt.Sprintf("%s cost %s to %s minor units of %s.", e.Name, numeral.Group(e.Min), numeral.Group(e.Max), e.Currency)
		if e.Min > e.Max {
			f.add(Contrary, s, string(e.Subject), "The lowest price of "+string(e.Name)+" is above the highest.", 0)
		}
	case fairness.TellRefused:
		text = fmt.Sprintf("%s refused (%s) between %s and %s.",
			numeral.Count(e.Count, "join was", "joins were"), e.Name, moment(e.From), moment(e.Until))
		if one, _ := t.refused.of(e.Name); f.isOver(s, e) && one != nil {
			one.count += min(e.Count, 1<<62-one.count)
		}
	case fairness.TellUnguarded:
		text = fmt.Sprintf("From %s, for %s, the site could not reach the room and admitted %s without a pass, as reported by its connectors.",
			moment(e.From), span(fairness.Millis(max(e.Until-e.From, 0))),
			numeral.Count(e.Count, "request", "requests"))
		if f.isOver(s, e) {
			t.unguarded += min(e.Count, 1<<62-t.unguarded)
			f.add(FailOpen, s, string(e.Subject), text, fairness.Millis(e.Until-e.From))
		}
	case fairness.TellAuto:
		t.autos++
		announced := *e
		t.auto = &announced
		text = "A program announced the next change of the pace: " + string(e.Name) + "."
	}
	f.add(Told, s, string(e.Subject), text, 0)
}

// tellStock takes a stock, which rises only after an amendment has raised the seats.
func (t *told) tellStock(f *Finder, s *fairness.State, e *fairness.Tell) {
	one, isNew := t.stock.of(e.Name)
	if one == nil {
		return
	}
	if !isNew && e.Count > one.count && t.raised <= one.entry {
		f.add(Contrary, s, string(e.Subject), fmt.Sprintf("Of %s, %s were left, after %s at entry %s. No amendment had raised the number of seats in between.",
			e.Name, numeral.Group(e.Count), numeral.Group(one.count), number(one.entry)), 0)
	}
	one.count, one.entry = e.Count, s.Size()-1
}

// isOver reports whether the interval of a statement is not empty and has ended, and adds a contradiction if not.
func (f *Finder) isOver(s *fairness.State, e *fairness.Tell) bool {
	if e.From < e.Until && e.Until <= e.Time {
		return true
	}
	f.add(Contrary, s, string(e.Subject), fmt.Sprintf("The interval from %s until %s is empty, or was not over at %s.",
		moment(e.From), moment(e.Until), moment(e.Time)), 0)
	return false
}

// follow checks that the amendment that a program makes comes next of all acts of the operator, and notes when seats
// are raised. The state is the one after the entry.
func (t *told) follow(f *Finder, s *fairness.State, e fairness.Entry) {
	t.by = ""
	if seats := s.InForce().Seats; seats != t.seats {
		if seats > t.seats {
			t.raised = s.Size() - 1
		}
		t.seats = seats
	}
	if t.auto == nil {
		return
	}
	switch e := e.(type) {
	case *fairness.Amend:
		if e.Change == fairness.ChangeOutflow {
			t.by, t.auto = " A program made this change: "+string(t.auto.Name)+".", nil
			return
		}
	case *fairness.Tell, *fairness.End:
	default:
		return
	}
	text := fmt.Sprintf("A program's change of the pace (%s) was announced at %s, and did not come next.",
		t.auto.Name, moment(t.auto.Time))
	f.add(Contrary, s, string(fairness.TellAuto), text, 0)
	t.auto = nil
}

// words adds up the statements.
func (t *told) words(n uint64) string {
	text := numeral.Count(n, "statement", "statements") + ", each in the record with its time. They change nothing, and nothing in the record proves them."
	for _, part := range []struct{ head, words string }{
		{"Refused joins by reason: ", t.refused.words()}, {"Left by category, as stated last: ", t.stock.words()},
	} {
		if part.words != "" {
			text += " " + part.head + part.words + "."
		}
	}
	if t.unguarded > 0 {
		text += " " + numeral.Count(t.unguarded, "request", "requests") + " admitted without a pass."
	}
	if t.prices > 0 {
		text += " Prices were stated " + numeral.Count(t.prices, "time", "times") + "."
	}
	if t.autos > 0 {
		text += " " + numeral.Count(t.autos, "change", "changes") + " of the pace were announced as those of a program."
	}
	return text
}
