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

// night is the luminance below which a page is dark enough for the eyes at night.
const night = 0.18

// IsNight tells whether a page of this colour is dark.
func (c Color) IsNight() bool { return c.Luminance() < night }

// signals are the colours of page.css that say right, open and wrong, in its
// light scheme.
var (
	good = RGB(0x17, 0x70, 0x3c)
	open = RGB(0x8a, 0x5a, 0x00)
	bad  = RGB(0xb3, 0x26, 0x1e)
)

// Palette is every colour of a page. Ink, Soft, AccentInk, Good, Open and Bad
// are texts, readable on Page and on Card; OnAccent is readable on Accent.
type Palette struct {
	Page, Ink, Soft, Card, Rule Color
	Accent, OnAccent, AccentInk Color
	Good, Open, Bad             Color
}

// NewPalette makes the colours of a page. Without an accent it is ours.
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

// paletteOn makes the colours of what stands on all of these, the first before
// all others; false when nothing can be read on all of them. It has no accent
// but the ink.
func paletteOn(colors ...Color) (Palette, bool) {
	on := newGrounds(colors...)
	page, ink := colors[0], on.opposite()
	card := page.Mix(ink, .04)
	if on.least(ink) < 7 { // no room: the card goes the other way
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

// local is the palette without what buttons look like.
func (p Palette) local() string {
	var b strings.Builder
	for i, c := range []struct {
		name  string
		color Color
	}{
		{"page", p.Page}, {"ink", p.Ink}, {"soft", p.Soft}, {"card", p.Card}, {"rule", p.Rule}, {"accent-ink", p.AccentInk},
		{"good", p.Good}, {"open", p.Open}, {"bad", p.Bad},
	} {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, "--%s:%v", c.name, c.color)
	}
	return b.String()
}
