// Package invalid defines the error for invalid input: a list of problems, each with the field that it concerns.
//
// Every package that accepts input returns it, and the packages that answer people print it: the HTTP API as a
// problem document, the console next to the fields of a form, commands line by line. The packages that an auditor
// reads define their own problem types, which [From] converts.
package invalid

import (
	"errors"
	"strings"
)

// Max is the maximum number of problems that an error prints: enough for a reader, and few enough that an input
// cannot produce an error much larger than itself. Parsers stop collecting at this number.
const Max = 100

// Problem is one error in an input.
type Problem struct {
	Field  string // field such as "windows[2].length"; empty: the input as a whole
	Detail string // continues a sentence that begins with the field: "must be a number"
}

// Error lists all problems of an input.
type Error struct{ Problems List }

// Error joins up to [Max] problems, each with its field, if it has one.
func (e *Error) Error() string {
	parts := make([]string, min(len(e.Problems), Max))
	for i, p := range e.Problems[:len(parts)] {
		parts[i] = strings.TrimSpace(p.Field + " " + p.Detail)
	}
	return strings.Join(parts, "; ")
}

// Field returns an [*Error] with one problem.
func Field(field, detail string) error { return &Error{List{{field, detail}}} }

// Problems returns the problems of the [*Error] that err is or wraps; nil if there is none.
func Problems(err error) List {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Problems
	}
	return nil
}

// From converts the problems of another package.
func From[P ~struct{ Field, Detail string }](list []P) List {
	var out List
	for _, p := range list {
		out = append(out, Problem(p))
	}
	return out
}

// List collects problems. The zero List is empty.
type List []Problem

// Add adds a problem.
func (l *List) Add(field, detail string) { *l = append(*l, Problem{field, detail}) }

// Check adds a problem unless ok is set.
func (l *List) Check(ok bool, field, detail string) {
	if !ok {
		l.Add(field, detail)
	}
}

// Err returns the problems as an [*Error]; nil if the list is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return &Error{l}
}
