package style

import (
	"fmt"
	"slices"
	"strings"
)

// Property is a property that custom CSS may set.
type Property struct {
	Name   string
	Values string // description of the values that it takes
	// Honest describes the restrictions on elements that show place, time and check; empty: none.
	Honest string
	// Only lists the hooks that it may be set on; nil: all.
	Only []string

	inherited bool // elements inside inherit it, so honest bounds apply to everything that contains an honest element
	check     func(values []value, honest bool) bool
}

// Limits of lengths, in rem. Horizontal space is scarcer on a phone.
const (
	mostBlock, mostInline     = 8, 2
	honestBlock, honestInline = 2, 1
)

// Properties are the properties that custom CSS may set.
var Properties = slices.Concat(
	[]Property{
		{Name: "color", Values: "a colour of the page, or, with a background in the same rule, #rrggbb",
			check: one(isTextColor)},
		{Name: "background-color", Values: "#rrggbb, var(--page), var(--card) or var(--accent)", check: one(isGround)},
		{Name: "background-image", Values: "a linear-gradient() or radial-gradient() of #rrggbb",
			check: one(isGradient)},
		{Name: "background", Values: "a value of either property above",
			check: one(func(v value) bool { return isGround(v) || isGradient(v) })},
	},
	spaces("margin", true), spaces("padding", false),
	[]Property{{Name: "gap", Values: "0 to 2rem", check: one(between(0, mostInline, "px", "rem"))}},
	borders(),
	[]Property{
		{Name: "border-radius", Values: "0 to 999px, or 0 to 50%", check: one(isRadius)},
		{
			Name:   "box-shadow",
			Values: "none, or x, y and blur up to 0.5rem, 0.5rem and 1.5rem and a colour of at most 25%: #rrggbb40",
			Honest: "none alone", check: isShadow,
		},
		{
			Name: "font-size", Values: "0.75rem to 3rem, px too",
			Honest:    "0.875rem to 1.5rem, h2 to 2rem, h1 to 3.75rem, b to 4.5rem; elements around them likewise",
			inherited: true, check: bounds(.75, 3, .875, 4.5, "px", "rem"),
		},
		{Name: "font-weight", Values: "normal, bold, 300 to 900", check: one(isWeight)},
		{Name: "font-style", Values: "normal, italic", check: one(is("normal", "italic"))},
		{
			Name:   "font-family",
			Values: "system-ui, sans-serif, serif, monospace, ui-sans-serif, ui-serif, ui-rounded, ui-monospace",
			check: one(is("system-ui", "sans-serif", "serif", "monospace", "ui-sans-serif", "ui-serif",
				"ui-rounded", "ui-monospace")),
		},
		{Name: "line-height", Values: "a number from 1 to 2",
			check: one(func(v value) bool { return v.kind == number && v.number >= 1 && v.number <= 2 })},
		{
			Name: "letter-spacing", Values: "normal, -0.05em to 0.2em",
			Honest: "normal, -0.05em to 0.05em; elements around them likewise", inherited: true,
			check: func(values []value, honest bool) bool {
				return one(is("normal"))(values, honest) || bounds(-.05, .2, -.05, .05, "em")(values, honest)
			},
		},
		{Name: "text-align", Values: "start, center, end", check: one(is("start", "center", "end"))},
		{Name: "text-transform", Values: "none, uppercase, capitalize",
			check: one(is("none", "uppercase", "capitalize"))},
		{Name: "text-decoration-style", Values: "solid, dotted, dashed, wavy",
			check: one(is("solid", "dotted", "dashed", "wavy"))},
		{Name: "text-decoration-thickness", Values: "from-font, 0.05em to 0.25em",
			check: one(func(v value) bool { return is("from-font")(v) || between(.05, .25, "em")(v) })},
		{Name: "text-underline-offset", Values: "0 to 0.5em", check: one(between(0, .5, "em"))},
		{Name: "justify-content", Values: "start, center, end, space-between",
			check: one(is("start", "center", "end", "space-between"))},
		{Name: "align-items", Values: "start, center, end, baseline",
			Only: []string{"header", ".choices", ".links",
				".languages"}, check: one(is("start", "center", "end", "baseline"))},
		{Name: "flex-direction", Values: "row, column", Only: []string{"header"}, check: one(is("row", "column"))},
		{Name: "max-width", Values: "of body 24rem to 60rem, of img 1rem to 20rem", Only: []string{"body", "img"},
			check: one(between(1, 60, "px", "rem"))},
		{Name: "max-height", Values: "1rem to 8rem", Only: []string{"img"}, check: one(between(1, 8, "px", "rem"))},
	},
)

// properties maps names to Properties.
var properties = byName(Properties)

func byName(list []Property) map[string]Property {
	all := map[string]Property{}
	for _, p := range list {
		all[p.Name] = p
	}
	return all
}

// refuses returns why a declaration is not allowed for the selected element; "": it is allowed.
func (p Property) refuses(s selector, d *declaration) string {
	honest := s.honest() || p.inherited && !s.passes(decorative)
	switch {
	case p.isColor() && s.passes(signals):
		return "may not be set here, where colours show a result: " + s.String()
	case p.Only != nil && !s.names(p.Only...):
		return "may be set on " + strings.Join(p.Only, ", ") + " alone"
	case p.Name == "max-width" && !isWidth(d.values, s.names("img")):
		return "takes " + p.Values
	case p.check(d.values, honest) && !(p.Name == "font-size" && honest && d.values[0].rem() > s.largest()):
		return ""
	case honest && p.Honest != "":
		return fmt.Sprintf("takes %s on %s, which may say place, time or check", p.Honest, s)
	}
	return "takes " + p.Values
}

// isColor reports whether the property changes the meaning of colours.
func (p Property) isColor() bool {
	return p.Name == "color" || strings.HasPrefix(p.Name, "background") || strings.HasPrefix(p.Name, "border") &&
		p.Name != "border-radius"
}

// largest returns the largest text size, in rem, at which times and places, which do not wrap, fit on a
// phone.
func (s selector) largest() float64 {
	last := s[len(s)-1]
	switch {
	case last.classes != nil:
		return 1.5
	case last.element == "h2":
		return 2
	case last.element == "h1":
		return 3.75
	case last.element == "b":
		return 4.5
	}
	return 1.5
}

func isWidth(values []value, image bool) bool {
	if image {
		return one(between(1, 20, "px", "rem"))(values, false)
	}
	return one(between(24, 60, "px", "rem"))(values, false)
}

// one returns a check for a property with a single value.
func one(check func(value) bool) func([]value, bool) bool {
	return func(values []value, _ bool) bool { return len(values) == 1 && check(values[0]) }
}

// is returns a check for keywords.
func is(keywords ...string) func(value) bool {
	return func(v value) bool { return v.kind == keyword && slices.Contains(keywords, v.text) }
}

// between returns a check for a length within bounds, in rem or em.
func between(least, most float64, units ...string) func(value) bool {
	return func(v value) bool { return v.isLength(units...) && v.rem() >= least && v.rem() <= most }
}

// bounds returns a check for a length with separate bounds on honest elements.
func bounds(least, most, honestLeast, honestMost float64, units ...string) func([]value, bool) bool {
	return func(values []value, honest bool) bool {
		if honest {
			least, most := honestLeast, honestMost
			return one(between(least, most, units...))(values, honest)
		}
		return one(between(least, most, units...))(values, honest)
	}
}

var textRoles = []string{"ink", "soft", "accent-ink", "on-accent"}

func isTextColor(v value) bool {
	return v.kind == color && v.alpha == 1 || v.kind == role && slices.Contains(textRoles, v.text)
}

func isGround(v value) bool {
	return v.kind == color && v.alpha == 1 || v.kind == role &&
		slices.Contains([]string{"page", "card", "accent"}, v.text)
}

func isGradient(v value) bool { return v.kind == gradient }

// spaces returns the properties of margin or padding.
func spaces(name string, auto bool) []Property {
	const values, honest = "0 to 8rem, sideways 0 to 2rem; px too", "0 to 2rem, sideways 0 to 1rem"
	side := func(isInline bool) func(value, bool) bool {
		return func(v value, isHonest bool) bool {
			most := map[bool]float64{false: mostBlock, true: mostInline}[isInline]
			if isHonest {
				most = map[bool]float64{false: honestBlock, true: honestInline}[isInline]
			}
			return between(0, most, "px", "rem")(v) || auto && isInline && is("auto")(v)
		}
	}
	sides := func(most int, isInline func(i, n int) bool) func([]value, bool) bool {
		return func(list []value, isHonest bool) bool {
			for i, v := range list {
				if !side(isInline(i, len(list)))(v, isHonest) {
					return false
				}
			}
			return len(list) <= most
		}
	}
	said := values
	if auto {
		said += "; sideways auto"
	}
	all := []Property{{Name: name, Values: said, Honest: honest,
		check: sides(4, func(i, n int) bool { return i%2 == 1 || n == 1 })}}
	for _, s := range []struct {
		name   string
		most   int
		inline bool
	}{
		{"-block", 2, false}, {"-block-start", 1, false}, {"-block-end", 1, false}, {"-top", 1, false}, {"-bottom",
			1, false},
		{"-inline", 2, true}, {"-inline-start", 1, true}, {"-inline-end", 1, true}, {"-left", 1, true}, {"-right",
			1, true},
	} {
		p := Property{Name: name + s.name, Values: "0 to 8rem; px too", Honest: "0 to 2rem",
			check: sides(s.most, func(int, int) bool { return s.inline })}
		if s.inline {
			p.Values, p.Honest = "0 to 2rem; px too", "0 to 1rem"
			if auto {
				p.Values += "; auto"
			}
		}
		all = append(all, p)
	}
	return all
}

// borders returns the border properties.
func borders() []Property {
	var all []Property
	for _, side := range []string{"", "-top", "-bottom", "-left", "-right", "-block-start", "-block-end",
		"-inline-start", "-inline-end"} {
		all = append(all, Property{Name: "border" + side, Values: "a width up to 0.5rem, a style and a colour",
			check: isBorder})
	}
	return append(all,
		Property{Name: "border-width", Values: "0 to 0.5rem", check: one(isLine)},
		Property{Name: "border-style", Values: "none, solid, dashed, dotted, double", check: one(isStroke)},
		Property{Name: "border-color", Values: "#rrggbb, or a colour of the page", check: one(isAnyColor)},
	)
}

var (
	isLine   = between(0, .5, "px", "rem")
	isStroke = is("none", "solid", "dashed", "dotted", "double")
)

func isAnyColor(v value) bool { return v.kind == color && v.alpha == 1 || v.kind == role }

// isBorder reports whether the values are width, style and colour, each at most once.
func isBorder(values []value, _ bool) bool {
	seen := map[string]bool{}
	for _, v := range values {
		part := ""
		switch {
		case isLine(v):
			part = "width"
		case isStroke(v):
			part = "style"
		case isAnyColor(v):
			part = "color"
		}
		if part == "" || seen[part] {
			return false
		}
		seen[part] = true
	}
	return true
}

func isRadius(v value) bool {
	return between(0, 62.5, "px", "rem")(v) || v.isLength("%") && v.number >= 0 && v.number <= 50
}

func isWeight(v value) bool {
	return is("normal", "bold")(v) || v.kind == number && v.number >= 300 && v.number <= 900 &&
		v.number == float64(int(v.number))
}

// faintest is the maximum alpha of a shadow's colour, of 255.
const faintest = 0x40

// isShadow reports whether a shadow falls outside the element and leaves the text below it readable.
func isShadow(values []value, honest bool) bool {
	if one(is("none"))(values, honest) {
		return true
	}
	if honest || len(values) != 4 {
		return false
	}
	offset := between(-.5, .5, "px", "rem")
	c := values[3]
	isFaint := c.kind == color && channel(c.alpha) <= faintest || c.kind == role && c.text == "rule"
	return offset(values[0]) && offset(values[1]) && between(0, 1.5, "px", "rem")(values[2]) && isFaint
}
