package page

import (
	"slices"

	"golang.org/x/text/language"

	"github.com/proofline/proofline/room/locale"
)

// Lang is a language of the pages, by its tag.
type Lang string

// Languages of the pages, the fallback first.
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

// Match returns the language for a visitor: the chosen one, if it is offered,
// otherwise the best for an Accept-Language header. Offered are all, or those
// that a room names, its own first.
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
