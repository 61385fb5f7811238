package page

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	xmessage "golang.org/x/text/message"
	"golang.org/x/text/number"
)

//go:embed messages/*.json
var messageFiles embed.FS

// errMessage means that a page uses a message that does not exist, or with values that do not match
// its placeholders.
var errMessage = errors.New("page: message")

// message holds the texts of a message by plural form: a category of
// https://cldr.unicode.org/index/cldr-spec/plural-rules, or "=7" for exactly seven. A message without plural forms
// has only "other". Placeholders are in braces.
type message struct {
	texts map[string]string
	html  map[string]string // the texts, escaped
	forms string            // all texts for scripts: JSON, escaped for an attribute
}

// UnmarshalJSON parses a string, or an object of forms.
func (m *message) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		m.texts = map[string]string{"other": text}
	} else if err := json.Unmarshal(data, &m.texts); err != nil {
		return err
	}
	m.html = make(map[string]string, len(m.texts))
	for form, text := range m.texts {
		m.html[form] = html.EscapeString(text)
	}
	forms, err := json.Marshal(m.texts)
	m.forms = html.EscapeString(string(forms))
	return err
}

// catalog holds the messages of one language.
type catalog map[string]message

// speaker formats texts and numbers in one language.
type speaker struct {
	Lang    Lang
	catalog catalog
	tag     language.Tag
	printer *xmessage.Printer
}

// speakers loads the messages of every language.
func speakers() (map[Lang]*speaker, error) {
	all := map[Lang]*speaker{}
	for _, l := range languages {
		data, err := messageFiles.ReadFile("messages/" + string(l) + ".json")
		if err != nil {
			return nil, fmt.Errorf("read messages: %w", err)
		}
		s := &speaker{Lang: l, tag: language.MustParse(string(l))}
		if err := json.Unmarshal(data, &s.catalog); err != nil {
			return nil, fmt.Errorf("read messages of %s: %w", l, err)
		}
		// Western digits, because numbers appear next to times, links and codes.
		s.printer = xmessage.NewPrinter(language.MustParse(string(l) + "-u-nu-latn"))
		all[l] = s
	}
	return all, nil
}

// Dir returns the text direction.
func (s *speaker) Dir() string {
	if s.Lang == "ar" {
		return "rtl"
	}
	return "ltr"
}

// Number formats a whole number.
func (s *speaker) Number(n uint64) string { return s.printer.Sprint(number.Decimal(n)) }

// message returns a message by its key.
func (s *speaker) message(key string) (message, error) {
	m, ok := s.catalog[key]
	if !ok {
		return m, fmt.Errorf("%w %q does not exist", errMessage, key)
	}
	return m, nil
}

// Say returns a message as HTML, which is valid in attributes, too. Values are pairs of a
// placeholder's name and its value, which is HTML, or a string to escape.
func (s *speaker) Say(key string, values ...any) (template.HTML, error) {
	m, err := s.message(key)
	if err != nil {
		return "", err
	}
	return expand(key, m.html["other"], values)
}

// Count returns the form of a message for a number. If live is not empty, scripts find the text,
// with all forms to choose from, by that name.
func (s *speaker) Count(key, live string, n uint64) (template.HTML, error) {
	m, err := s.message(key)
	if err != nil {
		return "", err
	}
	text, err := expand(key, m.html[s.form(m, n)], []any{"n", s.Number(n)})
	if err != nil || live == "" {
		return text, err
	}
	return trusted(`<span data-live="` + live + `" data-forms="` + m.forms + `">` + string(text) + `</span>`), nil
}

var categories = map[plural.Form]string{
	plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many",
	plural.Other: "other",
}

// form returns the form of a message for a number.
func (s *speaker) form(m message, n uint64) string {
	if exact := "=" + strconv.FormatUint(n, 10); m.texts[exact] != "" {
		return exact
	}
	if category := s.category(n); m.texts[category] != "" {
		return category
	}
	return "other"
}

// category returns the plural category of a number.
func (s *speaker) category(n uint64) string {
	const million = 1_000_000
	if n > million { // the last digits decide in the supported languages
		n = million + n%million
	}
	return categories[plural.Cardinal.MatchPlural(s.tag, int(n), 0, 0, 0, 0)] //nolint:gosec // below two million
}

// expand replaces the placeholders of a text.
func expand(key, text string, values []any) (template.HTML, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "{")
		out.WriteString(before)
		if !found {
			return trusted(out.String()), nil
		}
		name, rest, _ := strings.Cut(after, "}")
		value, ok := valueOf(name, values)
		if !ok {
			return "", fmt.Errorf("%w %q: no text for {%s}", errMessage, key, name)
		}
		out.WriteString(value)
		text = rest
	}
}

// valueOf returns the value of a placeholder as HTML.
func valueOf(name string, values []any) (string, bool) {
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] != name {
			continue
		}
		switch v := values[i+1].(type) {
		case template.HTML:
			return string(v), true
		case string:
			return html.EscapeString(v), true
		}
	}
	return "", false
}

// trusted marks HTML that consists of our own text and escaped values.
func trusted(s string) template.HTML { return template.HTML(s) } //nolint:gosec // see above

// Duration formats a duration in whole minutes, or in seconds if it is short.
func (s *speaker) Duration(d time.Duration) (template.HTML, error) {
	seconds := uint64(max(d, 0) / time.Second)
	if seconds >= 120 || seconds == 60 {
		return s.Count("minutes", "", seconds/60)
	}
	return s.Count("seconds", "", seconds)
}
