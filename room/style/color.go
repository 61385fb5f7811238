package style

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// ErrColor is returned for a colour that is not of the form #rrggbb.
var ErrColor = errors.New("colour must be #rrggbb")

// Minimum contrast of text and of other parts of the page (https://www.w3.org/TR/WCAG22/#contrast-minimum,
// #non-text-contrast).
const (
	TextContrast = 4.5
	PartContrast = 3.0
)

// Color is an opaque sRGB colour with channels from 0 to 1.
type Color [3]float64

var (
	white = Color{1, 1, 1}
	black = Color{0, 0, 0}
)

// RGB returns the colour of three 8-bit channels.
func RGB(r, g, b uint8) Color { return Color{float64(r) / 255, float64(g) / 255, float64(b) / 255} }

var colorForm = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// ParseColor parses #rrggbb. Error: [ErrColor].
func ParseColor(text string) (Color, error) {
	if !colorForm.MatchString(text) {
		return Color{}, fmt.Errorf("%w: %q", ErrColor, text)
	}
	n, err := strconv.ParseUint(text[1:], 16, 24)
	if err != nil {
		return Color{}, fmt.Errorf("%w: %q", ErrColor, text)
	}
	return RGB(uint8(n>>16), uint8(n>>8), uint8(n)), nil //nolint:gosec // the parts of 24 bits
}

// String returns the colour as #rrggbb.
func (c Color) String() string {
	return fmt.Sprintf("#%02x%02x%02x", channel(c[0]), channel(c[1]), channel(c[2]))
}

func channel(v float64) int { return int(math.Round(v * 255)) }

// Luminance returns the relative luminance (https://www.w3.org/TR/WCAG22/#dfn-relative-luminance).
func (c Color) Luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// Contrast returns the contrast ratio, from 1 to 21 (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio).
func (c Color) Contrast(d Color) float64 { return contrast(c.Luminance(), d.Luminance()) }

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

// Opposite returns black or white, whichever contrasts more: at least 4.58.
func (c Color) Opposite() Color { return newGrounds(c).opposite() }

// grounds are the luminances of a text's backgrounds.
type grounds []float64

func newGrounds(colors ...Color) grounds {
	g := make(grounds, len(colors))
	for i, c := range colors {
		g[i] = c.Luminance()
	}
	return g
}

// opposite returns black or white, whichever contrasts more with all backgrounds.
func (g grounds) opposite() Color {
	if g.least(white) >= g.least(black) {
		return white
	}
	return black
}

// least returns the lowest contrast of a colour with any of the backgrounds.
func (g grounds) least(c Color) float64 {
	least, luminance := 21.0, c.Luminance()
	for _, ground := range g {
		least = min(least, contrast(luminance, ground))
	}
	return least
}

// Mix returns the colour at the fraction part of the way from c to d.
func (c Color) Mix(d Color, part float64) Color {
	for i := range c {
		c[i] += (d[i] - c[i]) * part
	}
	return c
}

// move returns c, moved towards ink as little as is needed to be readable on all backgrounds.
func (g grounds) move(c, ink Color) Color {
	const enough = TextContrast + 0.05 // margin for rounding to 8 bits
	for part := 0.0; part < 1; part += 0.04 {
		if moved := c.Mix(ink, part); g.least(moved) >= enough {
			return moved
		}
	}
	return ink
}
