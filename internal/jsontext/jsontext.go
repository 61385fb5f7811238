// Package jsontext looks at JSON text before it is decoded: at how deep it is
// nested, and at the names of its members.
//
// Of a member that an object has twice programs take the first, the last, or
// both (https://www.rfc-editor.org/rfc/rfc8259#section-4); Go's decoder takes the
// last, and one in another case as the same. Whoever looks at a text on its way
// may therefore read another one than we do. So such texts are refused.
//
// The text is read once, without recursion, and nothing of its values is kept:
// a mebibyte takes about 2 ms, one of nothing but names 20 ms. Whether it is JSON at all is for the decoder
// to say, which is to read the same text afterwards.
package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Form is what a text keeps to.
type Form struct {
	// Depth is how many lists and objects may be within each other.
	Depth int
	// Name says what is wrong with the name of a member; empty for nothing. Within
	// are the names of the members that it is in, the outermost first: lists do not
	// count. nil: any name is fine.
	Name func(within []string, name string) string
}

// Error says what is wrong with a text.
type Error struct {
	Field  string // such as rooms.sale.url or rules[2].action; empty: the text as a whole
	Detail string // such as "must be there once"
}

func (e *Error) Error() string { return strings.TrimPrefix(e.Field+" "+e.Detail, " ") }

// Check returns the first thing that is wrong with a text; nil for nothing. Of a
// text that is not JSON it may say anything.
func (f Form) Check(text []byte) *Error {
	s := scanner{Form: f, text: text}
	for s.at < len(text) {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// level is a list or an object that is being read.
type level struct {
	names  map[string]bool // of an object's members so far; nil: it is a list
	name   string          // of the member that is being read
	index  int             // in the list
	isName bool            // a name comes next
}

// scanner reads a text.
type scanner struct {
	Form
	text   []byte
	at     int
	levels []level
	within []string
}

// step reads one character, or one string.
func (s *scanner) step() *Error {
	c := s.text[s.at]
	s.at++
	if c == '"' {
		return s.string()
	}
	n := len(s.levels)
	switch {
	case c == '{', c == '[':
		return s.open(c == '{')
	case n == 0:
	case c == '}', c == ']':
		if s.levels = s.levels[:n-1]; n > 1 && s.levels[n-2].names != nil {
			s.within = s.within[:len(s.within)-1]
		}
	case c == ',':
		s.levels[n-1].index++
		s.levels[n-1].isName = s.levels[n-1].names != nil
	}
	return nil
}

// open begins a list or an object.
func (s *scanner) open(isObject bool) *Error {
	n := len(s.levels)
	if n == s.Depth {
		return &Error{s.place(), fmt.Sprintf("must not be nested deeper than %d lists and objects", s.Depth)}
	}
	if n > 0 && s.levels[n-1].names != nil {
		s.within = append(s.within, s.levels[n-1].name)
	}
	next := level{}
	if isObject {
		next = level{names: map[string]bool{}, isName: true}
	}
	s.levels = append(s.levels, next)
	return nil
}

// string reads a string whose first quotation mark was read.
func (s *scanner) string() *Error {
	begin, isPlain := s.at, true
	for {
		i := bytes.IndexAny(s.text[s.at:], `"\`)
		if i < 0 {
			s.at = len(s.text)
			return nil
		}
		s.at += i + 1
		if s.text[s.at-1] == '"' {
			break
		}
		isPlain = false
		s.at = min(s.at+1, len(s.text))
	}
	n := len(s.levels)
	if n == 0 || !s.levels[n-1].isName {
		return nil
	}
	name := string(s.text[begin : s.at-1])
	if !isPlain || !isASCII(name) {
		_ = json.Unmarshal(s.text[begin-1:s.at], &name) // as the decoder reads it, who says what is wrong
	}
	return s.named(name)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// named takes the name of a member.
func (s *scanner) named(name string) *Error {
	l := &s.levels[len(s.levels)-1]
	l.name, l.isName = name, false
	if s.Name != nil {
		if detail := s.Name(s.within, name); detail != "" {
			return &Error{s.place(), detail}
		}
	}
	if l.names[name] {
		return &Error{s.place(), "must be there once"}
	}
	l.names[name] = true
	return nil
}

// maxShown is how many bytes of a name are shown.
const maxShown = 100

// place names what is being read.
func (s *scanner) place() string {
	var b strings.Builder
	for _, l := range s.levels {
		switch {
		case l.names == nil:
			fmt.Fprintf(&b, "[%d]", l.index)
		case len(l.name) > maxShown:
			b.WriteString("." + strings.ToValidUTF8(l.name[:maxShown], "") + "...")
		default:
			b.WriteString("." + l.name)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}
