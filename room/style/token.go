package style

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
)

// Problem is a refused part of the source, and where it begins.
type Problem struct {
	Line   int    `json:"line"`   // line, from 1
	Column int    `json:"column"` // column, from 1, in characters
	Detail string `json:"detail"`
}

// String returns the problem with its position.
func (p Problem) String() string {
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Detail)
}

// token is a CSS token (https://www.w3.org/TR/css-syntax-3/#tokenization). Comments count as white space.
type token struct {
	kind css.TokenType
	text string
	at   int // offset in bytes
}

// end is the kind of the token after the last one.
const end = css.ErrorToken

// forbidden reports whether the language does not need a character that could make browsers read a text
// differently from this parser.
func forbidden(r rune) bool {
	switch r {
	case '\\', '<', utf8.RuneError, '\uFEFF':
		return true
	case '\n', '\r', '\t', '\f':
		return false
	}
	return r < ' ' || r == 0x7f
}

// tokens splits the source into tokens. It returns false, with a problem, if there are forbidden characters.
func (p *parser) tokens() bool {
	if i := strings.IndexFunc(p.source, forbidden); i >= 0 {
		p.refuse(i, "this character is not allowed")
		return false
	}
	lexer, at := css.NewLexer(parse.NewInputString(p.source)), 0
	for {
		kind, text := lexer.Next()
		if kind == css.ErrorToken {
			p.all = append(p.all, token{end, "", at})
			if at != len(p.source) {
				p.refuse(at, "cannot be read from here on")
				return false
			}
			return true
		}
		if kind == css.CommentToken {
			kind = css.WhitespaceToken
		}
		p.all = append(p.all, token{kind, string(text), at})
		at += len(text)
	}
}

// refuse records a problem.
func (p *parser) refuse(at int, format string, args ...any) {
	if len(p.problems) >= maxProblems {
		return
	}
	before := p.source[:min(at, len(p.source))]
	line := strings.LastIndexByte(before, '\n') + 1
	p.problems = append(p.problems, Problem{
		Line: 1 + strings.Count(before, "\n"), Column: 1 +
			utf8.RuneCountInString(before[line:]), Detail: fmt.Sprintf(format, args...),
	})
}

// peek returns the current token; next returns it and advances.
func (p *parser) peek() token { return p.all[min(p.at, len(p.all)-1)] }

func (p *parser) next() token {
	t := p.peek()
	p.at++
	return t
}

// space skips white space, and reports whether there was any.
func (p *parser) space() bool {
	was := p.at
	for p.peek().kind == css.WhitespaceToken {
		p.at++
	}
	return p.at > was
}

// is reports whether the token is the delimiter.
func (t token) is(delim string) bool { return t.kind == css.DelimToken && t.text == delim }

// name returns the token's name in messages.
func (t token) name() string {
	if t.kind == end {
		return "the end"
	}
	if r := []rune(t.text); len(r) > 40 {
		return string(r[:40]) + "..."
	}
	return t.text
}
