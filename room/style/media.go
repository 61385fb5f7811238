package style

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/css"
)

// Features are the features of @media and their values; nil: a length.
var Features = map[string][]string{
	"prefers-color-scheme":   {"dark", "light"},
	"prefers-reduced-motion": {"reduce", "no-preference"},
	"min-width":              nil,
	"max-width":              nil,
}

// maxWidth limits the lengths of features, in rem.
const maxWidth = 200

// feature is one condition of @media.
type feature struct{ name, value string }

func (f feature) String() string { return "(" + f.name + ": " + f.value + ")" }

// features parses the conditions of @media up to the brace.
func (p *parser) features() ([]feature, bool) {
	var list []feature
	for {
		p.space()
		f, ok := p.feature()
		if !ok {
			return nil, false
		}
		list = append(list, f)
		p.space()
		switch t := p.peek(); {
		case t.kind == css.LeftBraceToken:
			return list, true
		case t.kind == css.IdentToken && strings.EqualFold(t.text, "and") && len(list) < maxDepth:
			p.next()
		default:
			p.refuse(t.at, "%s is not allowed in @media: write (feature: value) and (feature: value)", t.name())
			return nil, false
		}
	}
}

func (p *parser) feature() (feature, bool) {
	var f feature
	open := p.next()
	p.space()
	name := p.next()
	p.space()
	colon := p.next()
	p.space()
	value := p.next()
	p.space()
	if open.kind != css.LeftParenthesisToken || name.kind != css.IdentToken || colon.kind != css.ColonToken ||
		p.peek().kind != css.RightParenthesisToken {
		p.refuse(open.at, "@media takes (prefers-color-scheme: dark), (prefers-reduced-motion: reduce), (min-width: 40rem) and (max-width: 40rem)")
		return f, false
	}
	p.next()
	f.name = strings.ToLower(name.text)
	keywords, ok := Features[f.name]
	if !ok {
		p.refuse(name.at, "%s is not allowed in @media", name.name())
		return f, false
	}
	if keywords != nil {
		f.value = strings.ToLower(value.text)
		if value.kind != css.IdentToken || !slices.Contains(keywords, f.value) {
			p.refuse(value.at, "%s is one of %s", f.name, strings.Join(keywords, ", "))
			return f, false
		}
		return f, true
	}
	v := read(value)
	if v.kind != length || v.number < 0 || v.rem() > maxWidth || v.unit == "%" {
		p.refuse(value.at, "%s is a length from 0 to %drem", f.name, maxWidth)
		return f, false
	}
	f.value = v.String()
	return f, true
}
