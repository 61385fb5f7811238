// Package brand converts a room's brand settings (package room/branding) to the views of its pages
// (package page).
package brand

import (
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/style"
	"github.com/proofline/proofline/web/page"
)

// HasLooks reports whether the pages need a style sheet besides the default one.
func HasLooks(b *branding.Brand) bool {
	return b.Color != "" || b.Background != "" || b.Dark.Color != "" || b.Dark.Background != "" || b.Font != "" ||
		b.Corners != "" || b.CSS != ""
}

// Looks returns the content of that style sheet. Custom CSS that is not, or no longer, allowed is
// left out.
func Looks(b *branding.Brand) page.Brand {
	looks := page.Brand{Colors: colors(b.Scheme), Dark: colors(b.Dark), Font: b.Font, Corners: b.Corners}
	if b.CSS != "" {
		looks.Own, _ = style.Parse(b.CSS)
	}
	return looks
}

func colors(s branding.Scheme) page.Colors {
	return page.Colors{Color: s.Color, Background: s.Background}
}

// Languages returns the languages that visitors can choose, the room's own first; nil means all.
func Languages(b *branding.Brand) []page.Lang {
	var list []page.Lang
	for _, l := range b.Languages {
		list = append(list, page.Lang(l))
	}
	return list
}

// Texts returns the organizer's texts in a visitor's language.
func Texts(b *branding.Brand, lang page.Lang) page.Texts {
	if len(b.Texts) == 0 {
		return page.Texts{}
	}
	text := func(of func(branding.Texts) string) page.Text {
		words, in := b.Text(string(lang), of)
		return page.Text{Words: words, Lang: page.Lang(in)}
	}
	link := func(of func(branding.Texts) string) string {
		url, _ := b.Text(string(lang), of)
		return url
	}
	return page.Texts{
		Headline:   text(func(t branding.Texts) string { return t.Headline }),
		Intro:      text(func(t branding.Texts) string { return t.Intro }),
		Help:       text(func(t branding.Texts) string { return t.Help }),
		Footer:     text(func(t branding.Texts) string { return t.Footer }),
		HelpURL:    link(func(t branding.Texts) string { return t.HelpURL }),
		PrivacyURL: link(func(t branding.Texts) string { return t.PrivacyURL }),
		ImprintURL: link(func(t branding.Texts) string { return t.ImprintURL }),
	}
}
