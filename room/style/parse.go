package style

import (
	"strings"

	"github.com/tdewolff/parse/v2/css"
)

// Limits of custom CSS.
const (
	MaxSource    = 16 << 10 // bytes
	maxProblems  = 20
	maxSelectors = 20 // selectors per rule
	maxRules     = 300
)

// parser parses a sheet. It records every problem and continues.
type parser struct {
	source   string
	all      []token
	at       int // index in all
	rules    int
	problems []Problem
}

// Parse parses custom CSS. If there are problems, it returns no sheet.
func Parse(source string) (*Sheet, []Problem) {
	p := &parser{source: source}
	if len(source) > MaxSource {
		p.refuse(0, "CSS is at most %d KiB", MaxSource>>10)
		return nil, p.problems
	}
	s := &Sheet{}
	if p.tokens() {
		s.blocks = p.sheet()
	}
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return s, nil
}

func (p *parser) sheet() []block {
	var list []block
	for {
		p.space()
		switch t := p.peek(); t.kind {
		case end:
			return list
		case css.AtKeywordToken:
			if b, ok := p.media(); ok {
				list = append(list, b)
			}
		default:
			r, ok := p.rule()
			if !ok {
				continue
			}
			if n := len(list); n > 0 && list[n-1].media == nil {
				list[n-1].rules = append(list[n-1].rules, r)
			} else {
				list = append(list, block{rules: []rule{r}})
			}
		}
	}
}

// media parses an @media block.
func (p *parser) media() (block, bool) {
	var b block
	if t := p.next(); t.text != "@media" {
		p.refuse(t.at, "%s is not allowed, only @media", t.name())
		p.skipBlock()
		return b, false
	}
	var ok bool
	if b.media, ok = p.features(); !ok {
		p.skipBlock()
		return b, false
	}
	opened := p.next() // the opening brace
	for {
		p.space()
		switch t := p.peek(); t.kind {
		case end:
			p.refuse(opened.at, "this { is not closed")
			return b, false
		case css.RightBraceToken:
			p.next()
			return b, len(b.rules) > 0
		case css.AtKeywordToken:
			p.next()
			p.refuse(t.at, "%s is not allowed inside of @media", t.name())
			p.skipBlock()
		default:
			if r, ok := p.rule(); ok {
				b.rules = append(b.rules, r)
			}
		}
	}
}

// rule parses selectors and their declarations. It returns false for a rule that is refused or empty.
func (p *parser) rule() (rule, bool) {
	start := p.peek()
	selectors, ok := p.selectors()
	if ok && p.peek().kind != css.LeftBraceToken {
		p.refuse(p.peek().at, "%s is not allowed in a selector", p.peek().name())
		ok = false
	}
	if !ok {
		p.skipBlock()
		return rule{}, false
	}
	if p.rules++; p.rules > maxRules {
		p.refuse(start.at, "there are at most %d rules", maxRules)
	}
	r := rule{selectors: selectors}
	opened := p.next()
	for {
		p.space()
		switch t := p.peek(); t.kind {
		case end:
			p.refuse(opened.at, "this { is not closed")
			return r, false
		case css.RightBraceToken:
			p.next()
			p.colors(start.at, &r)
			return r, len(r.declarations) > 0
		case css.SemicolonToken:
			p.next()
		default:
			if d, ok := p.declaration(&r); ok {
				r.set(d)
			} else {
				p.skipDeclaration()
			}
		}
	}
}

// declaration parses one declaration up to its end.
func (p *parser) declaration(r *rule) (declaration, bool) {
	name := p.next()
	d := declaration{property: strings.ToLower(name.text), at: name.at}
	if name.kind != css.IdentToken && name.kind != css.CustomPropertyNameToken {
		p.refuse(name.at, "%s is not the name of a property", name.name())
		return d, false
	}
	property, ok := properties[d.property]
	if !ok {
		p.refuse(name.at, "%s is not a property that may be set: the list is in THEMING.md", name.name())
		return d, false
	}
	if p.space(); p.peek().kind != css.ColonToken {
		p.refuse(p.peek().at, "a colon and a value must follow %s", d.property)
		return d, false
	}
	p.next()
	values, ok := p.values()
	if !ok {
		return d, false
	}
	d.values = values
	for _, s := range r.selectors {
		if reason := property.refuses(s, &d); reason != "" {
			p.refuse(name.at, "%s: %s", d.property, reason)
			return d, true // the declaration has ended
		}
	}
	return d, true
}

// skipDeclaration skips the rest of a declaration.
func (p *parser) skipDeclaration() {
	for depth := 0; ; p.at++ {
		switch p.peek().kind {
		case end:
			return
		case css.LeftBraceToken:
			depth++
		case css.RightBraceToken:
			if depth == 0 {
				return
			}
			depth--
		case css.SemicolonToken:
			if depth == 0 {
				return
			}
		}
	}
}

// skipBlock skips the next block, or everything up to a semicolon before it.
func (p *parser) skipBlock() {
	for depth := 0; ; {
		t := p.next()
		switch t.kind {
		case end:
			return
		case css.LeftBraceToken:
			depth++
		case css.RightBraceToken:
			if depth--; depth <= 0 {
				return
			}
		case css.SemicolonToken:
			if depth == 0 {
				return
			}
		}
	}
}
