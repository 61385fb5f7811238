// Package brand converts a room's brand settings (package room/branding) to the views of its pages
// (package page).
package brand

import (
	"strconv"

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

// Links are the addresses of what a room's pages look like.
type Links struct {
	CSS        string // style sheet; empty: the default one alone
	Logo, Dark string // logo, and another one for dark pages; empty: none
}

// LinksOf returns the addresses below the path of a room's page. The version is that of the room's settings, and logo
// that of its organization's logo; empty: it has none.
func LinksOf(path string, b *branding.Brand, version int64, logo string) (l Links) {
	of := strconv.FormatInt(version, 10)
	if logo != "" {
		l.Logo = path + "/logo?v=" + logo
	}
	if b.Logo != "" {
		l.Logo = path + "/logo?v=" + of
	}
	if b.Dark.Logo != "" {
		l.Dark = path + "/logo?scheme=dark&v=" + of
	}
	if HasLooks(b) {
		l.CSS = path + "/brand.css?v=" + of
	}
	return l
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
