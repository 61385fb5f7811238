package page

import (
	"fmt"
	"strings"

	"github.com/proofline/proofline/room/style"
)

// Brand is the organizer's looks; empty members leave ours.
type Brand struct {
	Colors
	Dark    Colors // what is different in the dark
	Font    string // system, serif, rounded or mono
	Corners string // round or square
	Own     *style.Sheet
}

// Colors are an organizer's colours, as #rrggbb.
type Colors struct {
	Color      string // of buttons, links and the line
	Background string // of the page
}

// ErrColor is returned for a colour that is not of the form #rrggbb.
var ErrColor = style.ErrColor

// fonts are families that come with the devices of visitors.
var fonts = map[string]string{
	"serif":   `ui-serif,Georgia,Cambria,"Noto Serif",serif`,
	"rounded": `ui-rounded,"SF Pro Rounded","Hiragino Maru Gothic ProN",Quicksand,Nunito,system-ui,sans-serif`,
	"mono":    `ui-monospace,Menlo,Consolas,"Noto Sans Mono",monospace`,
}

// CSS returns the stylesheet that puts the looks in place of ours. Text
// colours are moved towards black or white until they contrast by 4.5 to 1
// with what they stand on. Error: [ErrColor].
func (b Brand) CSS() ([]byte, error) { return b.In(style.Any) }

// In is CSS in one scheme, whatever the device prefers, unless it is
// [style.Any].
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

// palettes returns the colours of a light and of a dark page.
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

// parseColors reads colours; nil for those that are empty.
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

// Finding is one pair of colours: what was chosen, what it needs, and what is
// shown in its place.
type Finding struct {
	Scheme   style.Scheme // light or dark
	Pair     string       // what stands on what, in English
	Where    string       // on the page
	Given    string       // colour that was chosen, or ours
	Ground   string       // what it stands on
	Ratio    float64      // of these two, from 1 to 21
	Required float64
	Shown    string // colour that is shown
	Then     float64
	// Repaired tells that another colour is shown than was given. One that is
	// not, with too low a ratio, is left to whoever chose it.
	Repaired bool
}

// Good tells whether what is shown can be seen well.
func (f Finding) Good() bool { return f.Then >= f.Required }

// Contrast returns what becomes of the colours that were chosen, the same
// pairs for light and dark. Error: [ErrColor].
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
		list = append(list, finding(s.scheme, "a button on the page", "join, go in", s.Accent, s.Accent, s.Page, style.PartContrast))
	}
	return list, nil
}

func finding(scheme style.Scheme, pair, where string, given, shown, ground style.Color, required float64) Finding {
	return Finding{
		Scheme: scheme, Pair: pair, Where: where, Given: given.String(), Ground: ground.String(), Ratio: given.Contrast(ground), Required: required,
		Shown: shown.String(), Then: shown.Contrast(ground), Repaired: given != shown,
	}
}
