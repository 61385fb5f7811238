package page

import (
	"slices"

	"golang.org/x/text/language"
)

// Lang is a language of the pages, by its tag.
type Lang string

// Languages of the pages, the fallback first.
var languages = []Lang{"en", "de", "es", "fr", "it", "pt", "ja", "ar"}

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

// Match returns the language for a visitor: the chosen one, if it is one of
// ours, otherwise the best for an Accept-Language header.
func Match(acceptLanguage, chosen string) Lang {
	if l := Lang(chosen); slices.Contains(languages, l) {
		return l
	}
	wanted, _, err := language.ParseAcceptLanguage(acceptLanguage)
	if err != nil {
		return languages[0]
	}
	_, i, _ := matcher.Match(wanted...)
	return languages[i]
}
