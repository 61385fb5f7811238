package style

import (
	"fmt"
	"slices"
	"strings"
)

// Sheet is parsed custom CSS.
type Sheet struct{ blocks []block }

// block is a group of rules for some screens; without media, for all.
type block struct {
	media []feature
	rules []rule
}

type rule struct {
	selectors    []selector
	declarations []declaration
	ground       *declaration // its background; nil: none
	text         *declaration // its text colour; nil: none
}

type declaration struct {
	property string
	values   []value
	at       int // offset in the source
}

func (d declaration) String() string {
	parts := make([]string, len(d.values))
	for i, v := range d.values {
		parts[i] = v.String()
	}
	return d.property + ": " + strings.Join(parts, " ")
}

// set adds a declaration, or replaces the one of the same property.
func (r *rule) set(d declaration) {
	r.declarations = append(slices.DeleteFunc(r.declarations,
		func(other declaration) bool { return other.property == d.property }), d)
}

// colors finds the colours of a rule and checks that text is readable.
func (p *parser) colors(at int, r *rule) {
	for i := range r.declarations {
		d := &r.declarations[i]
		switch {
		case d.property == "color":
			r.text = d
		case strings.HasPrefix(d.property, "background") && r.ground != nil:
			p.refuse(d.at, "a rule has one of background, background-color and background-image")
		case strings.HasPrefix(d.property, "background"):
			r.ground = d
		}
	}
	if reason := r.unreadable(); reason != "" {
		for _, d := range []*declaration{r.ground, r.text} {
			if d != nil {
				at = d.at
			}
		}
		p.refuse(at, "%s", reason)
	}
}

// buttons are hooks with their own background.
var buttons = []string{"button", "summary", ".main", ".button", ".plain"}

// onButton reports whether a selector may select an element with its own background.
func (s selector) onButton() bool {
	last := s[len(s)-1]
	return s.names(buttons...) || last.element == "" && last.classes == nil
}

// unreadable returns why text would be unreadable; "": it is readable.
func (r *rule) unreadable() string {
	if r.text == nil && r.ground == nil {
		return ""
	}
	text, ground := only(r.text), only(r.ground)
	onAccent := ground.kind == role && ground.text == "accent"
	switch {
	case onAccent != (text.text == "on-accent") && text.kind != unknown:
		return "var(--accent) and var(--on-accent) must be used together"
	case ground.kind == unknown && text.kind == color:
		return "a text colour needs a background-color in the same rule; or use a colour of the page such as var(--accent-ink)"
	case ground.kind == unknown && slices.ContainsFunc(r.selectors, selector.onButton):
		return "the colour of a button's text needs a background-color in the same rule"
	case ground.kind == role && text.kind == color:
		return "a text colour such as #rrggbb needs such a background-color, too, not one of the page"
	case ground.kind != color && ground.kind != gradient:
		return ""
	}
	under := ground.grounds()
	if _, ok := paletteOn(under...); !ok {
		return "neither black nor white text is readable on all of this background: use colours that are more alike"
	}
	if ratio := newGrounds(under...).least(text.color); text.kind == color && ratio < TextContrast {
		return fmt.Sprintf("the text contrasts by %.1f to 1 with its background, and needs %.1f", ratio, TextContrast)
	}
	return ""
}

// only returns the value of a declaration, or unknown if d is nil.
func only(d *declaration) value {
	if d == nil || len(d.values) != 1 {
		return value{}
	}
	return d.values[0]
}

// Source returns the sheet in the language; [Parse] returns an equal sheet for it.
func (s *Sheet) Source() string {
	var b strings.Builder
	for i, block := range s.blocks {
		if i > 0 {
			b.WriteString("\n")
		}
		indent := ""
		if block.media != nil {
			b.WriteString("@media " + conditions(block.media) + " {\n")
			indent = "  "
		}
		for _, r := range block.rules {
			b.WriteString(indent + list(r.selectors, ",\n"+indent, selector.String) + " {\n")
			for _, d := range r.declarations {
				b.WriteString(indent + "  " + d.String() + ";\n")
			}
			b.WriteString(indent + "}\n")
		}
		if block.media != nil {
			b.WriteString("}\n")
		}
	}
	return b.String()
}

func conditions(media []feature) string { return list(media, " and ", feature.String) }

func list[T any](all []T, between string, text func(T) string) string {
	parts := make([]string, len(all))
	for i, one := range all {
		parts[i] = text(one)
	}
	return strings.Join(parts, between)
}

// Scheme is a colour scheme of a page.
type Scheme string

// The schemes. Any follows the visitor's device.
const (
	Any   Scheme = ""
	Light Scheme = "light"
	Dark  Scheme = "dark"
)

// CSS returns the stylesheet for browsers, scoped to body, for one scheme or any.
func (s *Sheet) CSS(scheme Scheme) string {
	var b strings.Builder
	for _, block := range s.blocks {
		media, ok := in(block.media, scheme)
		if !ok {
			continue
		}
		if media != nil {
			b.WriteString("@media " + conditions(media) + "{")
		}
		for _, r := range block.rules {
			b.WriteString(list(r.selectors, ",", selector.css) + "{" + list(r.css(), ";", strings.TrimSpace) + "}")
		}
		if media != nil {
			b.WriteString("}")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// in returns the conditions that remain when the scheme is known, or false when they cannot hold.
func in(media []feature, scheme Scheme) ([]feature, bool) {
	if scheme == Any {
		return media, true
	}
	var left []feature
	for _, f := range media {
		switch {
		case f.name != "prefers-color-scheme":
			left = append(left, f)
		case f.value != string(scheme):
			return nil, false
		}
	}
	return left, true
}

// css returns the selector for browsers. It leaves out links that look like buttons and results of a check,
// which have their own colours.
func (s selector) css() string {
	text := s.String()
	switch last := s[len(s)-1]; {
	case last.classes != nil:
	case last.element == "a":
		text += ":where(:not(.button))"
	case last.element == "p" || last.element == "":
		text += ":where(:not(.status))"
	}
	if s[0].element != "body" {
		text = "body " + text
	}
	return text
}

// css returns the declarations for browsers. A background is set together with the colours of everything on it,
// so that no page colour shows on it.
func (r *rule) css() []string {
	var parts []string
	for _, d := range r.declarations {
		if d.property != "color" && !strings.HasPrefix(d.property, "background") {
			parts = append(parts, d.String())
		}
	}
	text, ground := only(r.text), only(r.ground)
	if ground.kind == unknown {
		if text.kind != unknown {
			parts = append(parts, "color:"+text.String())
		}
		return parts
	}
	return append(parts, colorsOn(ground, text)...)
}

// colorsOn returns the declarations of a background and of the text colours on it.
func colorsOn(ground, text value) []string {
	const image = "background-image:%s!important"
	said := "var(--ink)"
	if text.kind == role {
		said = text.String()
	}
	if ground.kind == role {
		parts := []string{"background-color:" + ground.String() + "!important", fmt.Sprintf(image, "none")}
		if ground.text == "accent" {
			said = "var(--on-accent)"
			for _, name := range []string{"ink", "soft", "accent-ink", "good", "open", "bad", "rule"} {
				parts = append(parts, "--"+name+":var(--on-accent)")
			}
			parts = append(parts, "--page:var(--accent)", "--card:var(--accent)")
		}
		return append(parts, "color:"+said+"!important")
	}
	p, _ := paletteOn(ground.grounds()...)
	if text.kind == color {
		p.Ink = text.color
	}
	drawn := "none"
	if ground.kind == gradient {
		drawn = ground.text
	}
	return []string{p.local(), "background-color:" + p.Page.String() + "!important", fmt.Sprintf(image, drawn),
		"color:" + said + "!important"}
}
