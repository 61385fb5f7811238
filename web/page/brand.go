package page

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Brand is the organizer's colours, as #rrggbb; empty for ours.
type Brand struct {
	Color      string // of buttons, links and the line
	Background string // of the page
}

// minContrast is what text needs (https://www.w3.org/TR/WCAG22/#contrast-minimum).
const minContrast = 4.5

// rgb is a colour in sRGB, each part from 0 to 1.
type rgb [3]float64

var (
	white = rgb{1, 1, 1}
	black = rgb{0, 0, 0}
	// lightPage and darkPage are the backgrounds of page.css.
	lightPage = rgb{1, 1, 1}
	darkPage  = hex(0x12, 0x14, 0x17)
)

func hex(r, g, b uint8) rgb { return rgb{float64(r) / 255, float64(g) / 255, float64(b) / 255} }

var colorForm = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

func parseColor(text string) (rgb, error) {
	if !colorForm.MatchString(text) {
		return rgb{}, fmt.Errorf("%w: %q", ErrColor, text)
	}
	n, err := strconv.ParseUint(text[1:], 16, 24)
	if err != nil {
		return rgb{}, fmt.Errorf("%w: %q", ErrColor, text)
	}
	return hex(uint8(n>>16), uint8(n>>8), uint8(n)), nil //nolint:gosec // the parts of 24 bits
}

// CSS returns the stylesheet that puts the colours in place of ours. Text
// colours are moved towards black or white until they contrast by 4.5 to 1
// with what they stand on. Error: [ErrColor].
func (b Brand) CSS() ([]byte, error) {
	var css strings.Builder
	light, dark := lightPage, darkPage
	if b.Background != "" {
		page, err := parseColor(b.Background)
		if err != nil {
			return nil, err
		}
		light = page
		if page.luminance() < 0.18 { // dark enough for the eyes at night
			dark = page
		}
	}
	accent := ""
	if b.Color != "" {
		if _, err := parseColor(b.Color); err != nil {
			return nil, err
		}
		accent = b.Color
	}
	writeScheme(&css, light, accent)
	css.WriteString("@media (prefers-color-scheme:dark){")
	writeScheme(&css, dark, accent)
	css.WriteString("}\n")
	return []byte(css.String()), nil
}

// signals are the colours of page.css that say right, open and wrong, in its
// light scheme.
var signals = []struct {
	name  string
	color rgb
}{{"good", hex(0x17, 0x70, 0x3c)}, {"open", hex(0x8a, 0x5a, 0x00)}, {"bad", hex(0xb3, 0x26, 0x1e)}}

// writeScheme writes the custom properties of one colour scheme.
func writeScheme(css *strings.Builder, page rgb, accent string) {
	ink := page.opposite()
	card := page.mix(ink, .04)
	if page.contrast(ink) < 7 { // no room: the card goes the other way
		card = page.mix(ink.opposite(), .04)
	}
	fmt.Fprintf(css, ":root{--page:%v;--ink:%v;--soft:%v;--card:%v;--rule:%v", page,
		page.mix(ink, .92).on(page, card), page.mix(ink, .66).on(page, card), card, page.mix(ink, .16))
	for _, s := range signals {
		fmt.Fprintf(css, ";--%s:%v", s.name, s.color.on(page, card))
	}
	if c, err := parseColor(accent); err == nil {
		fmt.Fprintf(css, ";--accent:%v;--on-accent:%v;--accent-ink:%v", c, c.opposite(), c.on(page, card))
	}
	css.WriteString("}")
}

// String returns the colour as #rrggbb.
func (c rgb) String() string {
	return fmt.Sprintf("#%02x%02x%02x", channel(c[0]), channel(c[1]), channel(c[2]))
}

func channel(v float64) int { return int(math.Round(v * 255)) }

// luminance is the relative luminance (https://www.w3.org/TR/WCAG22/#dfn-relative-luminance).
func (c rgb) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// contrast is the contrast ratio, from 1 to 21 (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio).
func (c rgb) contrast(d rgb) float64 {
	a, b := c.luminance(), d.luminance()
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

// opposite is black or white, whichever contrasts more. It is never below 4.58.
func (c rgb) opposite() rgb {
	if c.contrast(white) >= c.contrast(black) {
		return white
	}
	return black
}

// mix is the colour on the way to another, part of it.
func (c rgb) mix(d rgb, part float64) rgb {
	for i := range c {
		c[i] += (d[i] - c[i]) * part
	}
	return c
}

// on returns the colour, moved as little as it takes to be readable on a page
// and a card.
func (c rgb) on(page, card rgb) rgb {
	const enough = minContrast + 0.05 // for rounding to 8 bits
	ink := page.opposite()
	for part := 0.0; part < 1; part += 0.04 {
		if moved := c.mix(ink, part); moved.contrast(page) >= enough && moved.contrast(card) >= enough {
			return moved
		}
	}
	return ink
}
