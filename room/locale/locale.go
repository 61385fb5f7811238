// Package locale lists the languages of the visitors' pages. Pages have texts in each of them, and organizers
// choose from them.
package locale

// language is a language's name and its tag (https://www.rfc-editor.org/rfc/rfc5646).
type language struct{ tag, name string }

// languages are all languages, the fallback first.
var languages = []language{
	{"en", "English"}, {"de", "German"}, {"es", "Spanish"}, {"fr", "French"},
	{"it", "Italian"}, {"pt", "Portuguese"}, {"ja", "Japanese"}, {"ar", "Arabic"},
}

// Tags returns the language tags, such as "en", the fallback first.
func Tags() []string {
	tags := make([]string, len(languages))
	for i, l := range languages {
		tags[i] = l.tag
	}
	return tags
}

// Name returns the English name of a language; empty if the tag is unknown.
func Name(tag string) string {
	for _, l := range languages {
		if l.tag == tag {
			return l.name
		}
	}
	return ""
}
