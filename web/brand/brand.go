// Package brand turns what an organizer said about the looks of a room into
// what its pages show: settings of package room in, views of package page out.
package brand

import (
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/style"
	"github.com/proofline/proofline/web/page"
)

// HasLooks tells whether the pages have another stylesheet than ours.
func HasLooks(b *room.Brand) bool {
	return b.Color != "" || b.Background != "" || b.Dark.Color != "" || b.Dark.Background != "" || b.Font != "" || b.Corners != "" || b.CSS != ""
}

// Looks returns what that stylesheet is made of. Own CSS that is not allowed,
// or not any more, is left out.
func Looks(b *room.Brand) page.Brand {
	looks := page.Brand{Colors: colors(b.Scheme), Dark: colors(b.Dark), Font: b.Font, Corners: b.Corners}
	if b.CSS != "" {
		looks.Own, _ = style.Parse(b.CSS)
	}
	return looks
}

func colors(s room.Scheme) page.Colors { return page.Colors{Color: s.Color, Background: s.Background} }

// Languages returns the languages that visitors may choose from, the room's
// own first; nil for all.
func Languages(b *room.Brand) []page.Lang {
	var list []page.Lang
	for _, l := range b.Languages {
		list = append(list, page.Lang(l))
	}
	return list
}

// Texts returns the organizer's words for a visitor who reads that language.
func Texts(b *room.Brand, lang page.Lang) page.Texts {
	if len(b.Texts) == 0 {
		return page.Texts{}
	}
	text := func(of func(room.Texts) string) page.Text {
		words, in := b.Text(string(lang), of)
		return page.Text{Words: words, Lang: page.Lang(in)}
	}
	link := func(of func(room.Texts) string) string {
		url, _ := b.Text(string(lang), of)
		return url
	}
	return page.Texts{
		Headline:   text(func(t room.Texts) string { return t.Headline }),
		Intro:      text(func(t room.Texts) string { return t.Intro }),
		Help:       text(func(t room.Texts) string { return t.Help }),
		Footer:     text(func(t room.Texts) string { return t.Footer }),
		HelpURL:    link(func(t room.Texts) string { return t.HelpURL }),
		PrivacyURL: link(func(t room.Texts) string { return t.PrivacyURL }),
		ImprintURL: link(func(t room.Texts) string { return t.ImprintURL }),
	}
}
