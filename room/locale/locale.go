// Package locale names the languages that visitors' pages speak: whoever renders
// pages has words in each of them, and whoever makes a room chooses from them.
package locale

// language is one of them, by its tag (https://www.rfc-editor.org/rfc/rfc5646).
type language struct{ tag, name string }

// languages are all, the fallback first.
var languages = []language{
	{"en", "English"}, {"de", "German"}, {"es", "Spanish"}, {"fr", "French"}, {"it", "Italian"}, {"pt", "Portuguese"}, {"ja", "Japanese"}, {"ar", "Arabic"},
}

// Tags returns the tags of the languages, such as "en", the fallback first.
func Tags() []string {
	tags := make([]string, len(languages))
	for i, l := range languages {
		tags[i] = l.tag
	}
	return tags
}

// Name returns the English name of a language, empty for another.
func Name(tag string) string {
	for _, l := range languages {
		if l.tag == tag {
			return l.name
		}
	}
	return ""
}
