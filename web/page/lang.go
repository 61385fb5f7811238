package page

import (
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/proofline/proofline/room/locale"
)

// Lang is the language tag of a language of the pages.
type Lang string

// languages of the pages, the fallback first.
var languages = func() (all []Lang) {
	for _, tag := range locale.Tags() {
		all = append(all, Lang(tag))
	}
	return all
}()

var matcher = language.NewMatcher(tags(languages))

func tags(langs []Lang) []language.Tag {
	list := make([]language.Tag, len(langs))
	for i, l := range langs {
		list[i] = language.MustParse(string(l))
	}
	return list
}

// Languages returns the languages of the pages, the fallback first.
func Languages() []Lang { return slices.Clone(languages) }

// maxWanted is the maximum number of a visitor's languages that are considered.
const maxWanted = 10

// Wanted returns the languages of a visitor, best first: those of the Accept-Language header and that
// of the page. The page's language is first if the visitor chose it over the browser's.
func Wanted(acceptLanguage string, page Lang, offered ...Lang) []string {
	accepted, _, err := language.ParseAcceptLanguage(acceptLanguage)
	if err != nil {
		accepted = nil
	}
	var list []string
	for _, tag := range accepted[:min(len(accepted), maxWanted)] {
		list = append(list, tag.String())
	}
	if Match(acceptLanguage, "", offered...) == page {
		return append(list, string(page))
	}
	return append([]string{string(page)}, list...)
}

// Match returns the language for a visitor: the chosen one, if it is offered, else the best match for
// an Accept-Language header. Offered lists the room's languages, its own first; empty means all.
func Match(acceptLanguage, chosen string, offered ...Lang) Lang {
	if len(offered) == 0 {
		offered = languages
	}
	if l := Lang(chosen); slices.Contains(offered, l) {
		return l
	}
	wanted, _, err := language.ParseAcceptLanguage(acceptLanguage)
	if err != nil {
		return offered[0]
	}
	if len(offered) == len(languages) {
		if _, i, confidence := matcher.Match(wanted...); confidence != language.No {
			return languages[i]
		}
		return offered[0]
	}
	for _, tag := range wanted {
		if _, i, confidence := matcher.Match(tag); confidence != language.No && slices.Contains(offered, languages[i]) {
			return languages[i]
		}
	}
	return offered[0]
}

// LanguageOf returns the offered language that matches a culture; false if there is none. No offered
// languages means all.
func LanguageOf(culture string, offered []Lang) (Lang, bool) {
	if len(offered) == 0 {
		offered = Languages()
	}
	base, _, _ := strings.Cut(culture, "-")
	for _, l := range offered {
		if strings.EqualFold(base, string(l)) {
			return l, true
		}
	}
	return "", false
}
