package page

import (
	"fmt"
	"strings"

	"github.com/proofline/proofline/room/style"
)

// Brand is the organizer's appearance settings; empty members mean the defaults.
type Brand struct {
	Colors
	Dark    Colors // colours that differ in dark mode
	Font    string // system, serif, rounded or mono
	Corners string // round or square
	Own     *style.Sheet
}

// Colors are an organizer's colours, in the form #rrggbb.
type Colors struct {
	Color      string // colour of buttons, links and the progress line
	Background string // colour of the page
}

// ErrColor means that a colour does not have the form #rrggbb.
var ErrColor = style.ErrColor

// fonts are font families that devices have installed.
var fonts = map[string]string{
	"serif":   `ui-serif,Georgia,Cambria,"Noto Serif",serif`,
	"rounded": `ui-rounded,"SF Pro Rounded","Hiragino Maru Gothic ProN",Quicksand,Nunito,system-ui,sans-serif`,
	"mono":    `ui-monospace,Menlo,Consolas,"Noto Sans Mono",monospace`,
}

// CSS returns the style sheet for the brand. It moves text colours towards black or white until they
// contrast by 4.5 to 1 with their background. Error: [ErrColor].
func (b Brand) CSS() ([]byte, error) { return b.In(style.Any) }

// In does what CSS does, for one colour scheme whatever the device prefers. [style.Any] follows the
// device.
func (b Brand) In(scheme style.Scheme) ([]byte, error) {
	light, dark, err := b.palettes()
	if err != nil {
		return nil, err
	}
	var css strings.Builder
	const night = "@media (prefers-color-scheme:dark){:root{%s}}"
	switch hasColors := b.Colors != (Colors{}) || b.Dark != (Colors{}); {
	case scheme == style.Light:
		fmt.Fprintf(&css, ":root{color-scheme:light;%s}"+night, light.Colors(), light.Colors())
	case scheme == style.Dark:
		fmt.Fprintf(&css, ":root{color-scheme:dark;%s}"+night, dark.Colors(), dark.Colors())
	case hasColors:
		fmt.Fprintf(&css, ":root{%s}"+night, light.Colors(), dark.Colors())
	}
	if family := fonts[b.Font]; family != "" {
		css.WriteString("html{font-family:" + family + "}")
	}
	if b.Corners == "square" {
		css.WriteString(":root{--round:0}")
	}
	css.WriteString("\n")
	if b.Own != nil {
		css.WriteString(b.Own.CSS(scheme))
	}
	return []byte(css.String()), nil
}

// palettes returns the colours of the light and the dark page.
func (b Brand) palettes() (light, dark style.Palette, err error) {
	day, night := style.LightPage, style.DarkPage
	background, err := parseColors(b.Background, b.Dark.Background)
	if err != nil {
		return light, dark, err
	}
	accents, err := parseColors(b.Color, b.Dark.Color)
	if err != nil {
		return light, dark, err
	}
	if page := background[0]; page != nil {
		day = *page
		if page.IsNight() {
			night = *page
		}
	}
	if page := background[1]; page != nil {
		night = *page
	}
	if accents[1] == nil {
		accents[1] = accents[0]
	}
	return style.NewPalette(day, accents[0]), style.NewPalette(night, accents[1]), nil
}

// parseColors parses colours; nil for empty ones.
func parseColors(texts ...string) ([]*style.Color, error) {
	list := make([]*style.Color, len(texts))
	for i, text := range texts {
		if text == "" {
			continue
		}
		c, err := style.ParseColor(text)
		if err != nil {
			return nil, err
		}
		list[i] = &c
	}
	return list, nil
}

// Finding is the contrast of one pair of colours: the chosen one, and the one shown instead.
type Finding struct {
	Scheme   style.Scheme // light or dark
	Pair     string       // foreground and background, in English
	Where    string       // place on the page
	Given    string       // chosen colour, or the default
	Ground   string       // background colour
	Ratio    float64      // contrast of Given and Ground, from 1 to 21
	Required float64
	Shown    string // colour that is shown
	Then     float64
	// Repaired is set if Shown differs from Given. If it is not set and the contrast is too low, the
	// organizer must choose another colour.
	Repaired bool
}

// Good reports whether the shown colour has enough contrast.
func (f Finding) Good() bool { return f.Then >= f.Required }

// Contrast returns the contrast of the brand's colours, the same pairs for light and dark. Error:
// [ErrColor].
func (b Brand) Contrast() ([]Finding, error) {
	light, dark, err := b.palettes()
	if err != nil {
		return nil, err
	}
	var list []Finding
	for _, s := range []struct {
		scheme style.Scheme
		style.Palette
	}{{style.Light, light}, {style.Dark, dark}} {
		text := func(pair, where string, given, shown, ground style.Color) {
			list = append(list, finding(s.scheme, pair, where, given, shown, ground, style.TextContrast))
		}
		text("text on the page", "everywhere", s.Ink, s.Ink, s.Page)
		text("small text on a card", "hints, the way to the front", s.Soft, s.Soft, s.Card)
		text("links on the page", "links, numbers that stand out", s.Accent, s.AccentInk, s.Page)
		text("links on a card", "links in notices", s.Accent, s.AccentInk, s.Card)
		text("text of a button", "join, go in", s.OnAccent, s.OnAccent, s.Accent)
		list = append(list, finding(s.scheme, "a button on the page", "join, go in", s.Accent, s.Accent, s.Page,
			style.PartContrast))
	}
	return list, nil
}

func finding(scheme style.Scheme, pair, where string, given, shown, ground style.Color, required float64) Finding {
	return Finding{
		Scheme: scheme, Pair: pair, Where: where, Given: given.String(), Ground: ground.String(),
		Ratio: given.Contrast(ground), Required: required,
		Shown: shown.String(), Then: shown.Contrast(ground), Repaired: given != shown,
	}
}
