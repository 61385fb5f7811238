package style

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tdewolff/parse/v2/css"
)

// kind is the kind of a value.
type kind uint8

const (
	unknown  kind = iota
	keyword       // text
	number        // number, without a unit
	length        // number and unit: px, rem, em or %
	color         // color, and alpha below 1
	role          // the name of a page colour
	gradient      // a direction as text, and stops
)

// value is one part of a declaration's value.
type value struct {
	kind   kind
	text   string
	number float64
	unit   string
	color  Color
	alpha  float64
	stops  []Color
}

// String formats the value in the language, with at most four decimal places.
func (v value) String() string {
	switch v.kind {
	case number, length:
		return strconv.FormatFloat(v.number, 'f', -1, 64) + v.unit
	case color:
		if v.alpha < 1 {
			return v.color.String() + fmt.Sprintf("%02x", channel(v.alpha))
		}
		return v.color.String()
	case role:
		return "var(--" + v.text + ")"
	default:
		return v.text
	}
}

// pixels is the number of pixels in a rem, unless a visitor has chosen another text size.
const pixels = 16

// rem returns a length in rem; em and % are taken as if the surrounding text had 1rem.
func (v value) rem() float64 {
	switch v.unit {
	case "px":
		return v.number / pixels
	case "%":
		return v.number / 100
	}
	return v.number
}

// isLength reports whether the value is zero, or a length in one of the units.
func (v value) isLength(units ...string) bool {
	return v.kind == length && slices.Contains(units, v.unit) || v.kind == number && v.number == 0
}

var numberForm = regexp.MustCompile(`^([+-]?(?:[0-9]{1,6}(?:\.[0-9]{1,4})?|\.[0-9]{1,4}))(px|rem|em|%)?$`)

var hashForm = regexp.MustCompile(`^#(?:[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})$`)

// read returns the value of a single token, or unknown.
func read(t token) value {
	text := strings.ToLower(t.text)
	switch t.kind {
	case css.IdentToken:
		if isPlain(text) {
			return value{kind: keyword, text: text}
		}
	case css.NumberToken, css.DimensionToken, css.PercentageToken:
		if m := numberForm.FindStringSubmatch(text); m != nil {
			n, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				return value{}
			}
			v := value{kind: number, number: n + 0, unit: m[2]} // n + 0 turns minus zero into zero
			if v.unit != "" {
				v.kind = length
			}
			return v
		}
	case css.HashToken:
		if hashForm.MatchString(text) {
			return readColor(text)
		}
	}
	return value{}
}

// isPlain reports whether a text consists of letters, digits and hyphens.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text,
		func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') })
}

// readColor parses #rgb, #rrggbb or #rrggbbaa.
func readColor(text string) value {
	if len(text) == 4 {
		text = string([]byte{'#', text[1], text[1], text[2], text[2], text[3], text[3]})
	}
	v := value{kind: color, alpha: 1}
	if len(text) == 9 {
		a, err := strconv.ParseUint(text[7:], 16, 8)
		if err != nil {
			return value{}
		}
		v.alpha, text = float64(a)/255, text[:7]
	}
	c, err := ParseColor(text)
	if err != nil {
		return value{}
	}
	v.color = c
	return v
}

// values parses the value of a declaration up to its end.
func (p *parser) values() ([]value, bool) {
	var list []value
	for {
		p.space()
		t := p.peek()
		switch t.kind {
		case css.SemicolonToken, css.RightBraceToken, end:
			if len(list) == 0 {
				p.refuse(t.at, "a value is missing")
			}
			return list, len(list) > 0
		case css.FunctionToken:
			v, ok := p.function()
			if !ok {
				return nil, false
			}
			list = append(list, v)
		default:
			v := read(t)
			if v.kind == unknown {
				p.refuse(t.at, "%s is not allowed in a value", t.name())
				return nil, false
			}
			p.next()
			list = append(list, v)
		}
	}
}

// Roles are the colours of the page, for var(--name).
var Roles = []string{"ink", "soft", "accent-ink", "page", "card", "rule", "accent", "on-accent"}

// function parses var() or a gradient.
func (p *parser) function() (value, bool) {
	t := p.next()
	switch name := strings.ToLower(t.text); name {
	case "var(":
		p.space()
		custom := p.next()
		p.space()
		name := strings.TrimPrefix(custom.text, "--")
		if p.next().kind != css.RightParenthesisToken || custom.text == name || !slices.Contains(Roles, name) {
			p.refuse(t.at, "var() only takes a colour of the page: --%s", strings.Join(Roles, ", --"))
			return value{}, false
		}
		return value{kind: role, text: name}, true
	case "linear-gradient(", "radial-gradient(":
		return p.gradient(name, t.at)
	}
	p.refuse(t.at, "%s) is not allowed, only var(), linear-gradient() and radial-gradient()", t.name())
	return value{}, false
}

// maxStops is the maximum number of colours in a gradient.
const maxStops = 6

// gradient parses the arguments of a gradient: a direction, and colours.
func (p *parser) gradient(name string, at int) (value, bool) {
	v := value{kind: gradient}
	var parts []string
	for {
		p.space()
		part, c, ok := p.gradientPart(name == "linear-gradient(" && len(parts) == 0)
		if !ok {
			p.refuse(at, "a gradient takes a direction such as 45deg or to right, and colours such as #fff 20%%")
			return v, false
		}
		if c != nil {
			v.stops = append(v.stops, *c)
		}
		parts = append(parts, part)
		switch t := p.next(); {
		case t.kind == css.CommaToken && len(v.stops) < maxStops:
		case t.kind == css.RightParenthesisToken && len(v.stops) >= 2:
			v.text = name + strings.Join(parts, ", ") + ")"
			return v, true
		default:
			p.refuse(at, "a gradient has 2 to %d colours, each with at most one percentage", maxStops)
			return v, false
		}
	}
}

var degreeForm = regexp.MustCompile(`^-?[0-9]{1,3}deg$`)

var sides = []string{"top", "right", "bottom", "left"}

// gradientPart parses one argument of a gradient: a colour, or the direction, which must come first.
func (p *parser) gradientPart(first bool) (string, *Color, bool) {
	t := p.next()
	text := strings.ToLower(t.text)
	switch {
	case first && t.kind == css.DimensionToken && degreeForm.MatchString(text):
		p.space()
		return text, nil, true
	case first && text == "to":
		for p.space(); p.peek().kind == css.IdentToken; p.space() {
			side := strings.ToLower(p.next().text)
			if !slices.Contains(sides, side) || strings.Count(text, " ") == 2 {
				return "", nil, false
			}
			text += " " + side
		}
		return text, nil, text != "to"
	}
	v := read(t)
	if v.kind != color || v.alpha < 1 {
		return "", nil, false
	}
	text = v.String()
	if p.space(); p.peek().kind == css.PercentageToken {
		at := read(p.next())
		if at.kind != length || at.number < 0 || at.number > 100 {
			return "", nil, false
		}
		text += " " + at.String()
		p.space()
	}
	return text, &v.color, true
}

// grounds returns the background colours of text on the value.
func (v value) grounds() []Color {
	if v.kind != gradient {
		return []Color{v.color}
	}
	const between = 16
	var list []Color
	for i, stop := range v.stops[1:] {
		for k := range between {
			list = append(list, v.stops[i].Mix(stop, float64(k)/between))
		}
	}
	return append(list, v.stops[len(v.stops)-1])
}
