package style

import (
	"fmt"
	"strings"
)

// LightPage and DarkPage are the backgrounds of page.css.
var (
	LightPage = white
	DarkPage  = RGB(0x12, 0x14, 0x17)
)

// Accents of page.css, for light and for dark pages.
var (
	lightAccent = RGB(0x1d, 0x4e, 0xd8)
	darkAccent  = RGB(0x8f, 0xb0, 0xff)
)

// night is the luminance below which a page counts as dark.
const night = 0.18

// IsNight reports whether a page of this colour is dark.
func (c Color) IsNight() bool { return c.Luminance() < night }

// signals are the colours of page.css for good, open and bad results, in its light scheme.
var (
	good = RGB(0x17, 0x70, 0x3c)
	open = RGB(0x8a, 0x5a, 0x00)
	bad  = RGB(0xb3, 0x26, 0x1e)
)

// Palette holds all colours of a page. Ink, Soft, AccentInk, Good, Open and Bad are text colours, readable on Page
// and Card; OnAccent is readable on Accent.
type Palette struct {
	Page, Ink, Soft, Card, Rule Color
	Accent, OnAccent, AccentInk Color
	Good, Open, Bad             Color
}

// NewPalette returns the colours of a page. A nil accent selects the default.
func NewPalette(page Color, accent *Color) Palette {
	p, _ := paletteOn(page)
	p.Accent = lightAccent
	if page.IsNight() {
		p.Accent = darkAccent
	}
	if accent != nil {
		p.Accent = *accent
	}
	p.OnAccent = p.Accent.Opposite()
	p.AccentInk = newGrounds(page, p.Card).move(p.Accent, page.Opposite())
	return p
}

// paletteOn returns the colours for elements on all of these backgrounds, of which the first matters most, or
// false when no text is readable on all of them. Its only accent is the ink.
func paletteOn(colors ...Color) (Palette, bool) {
	on := newGrounds(colors...)
	page, ink := colors[0], on.opposite()
	card := page.Mix(ink, .04)
	if on.least(ink) < 7 { // too little contrast: the card moves the other way
		card = page.Mix(ink.Opposite(), .04)
	}
	on = append(on, card.Luminance())
	p := Palette{
		Page: page, Card: card, Rule: page.Mix(ink, .16),
		Ink: on.move(page.Mix(ink, .92), ink), Soft: on.move(page.Mix(ink, .66), ink),
		Good: on.move(good, ink), Open: on.move(open, ink), Bad: on.move(bad, ink),
	}
	p.Accent, p.OnAccent, p.AccentInk = page, p.Ink, p.Ink
	return p, on.least(ink) >= TextContrast
}

// Colors returns the palette as declarations of custom properties.
func (p Palette) Colors() string {
	return p.local() + fmt.Sprintf(";--accent:%v;--on-accent:%v", p.Accent, p.OnAccent)
}

// local returns the declarations of the palette without the colours of buttons.
func (p Palette) local() string {
	var b strings.Builder
	for i, c := range []struct {
		name  string
		color Color
	}{
		{"page", p.Page}, {"ink", p.Ink}, {"soft", p.Soft}, {"card", p.Card}, {"rule", p.Rule}, {"accent-ink",
			p.AccentInk},
		{"good", p.Good}, {"open", p.Open}, {"bad", p.Bad},
	} {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, "--%s:%v", c.name, c.color)
	}
	return b.String()
}
