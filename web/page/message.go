package page

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	xmessage "golang.org/x/text/message"
	"golang.org/x/text/number"
)

//go:embed messages/*.json
var messageFiles embed.FS

// errMessage is returned when a page asks for a message that is not there, or
// gives it other values than it has placeholders.
var errMessage = errors.New("page: message")

// message is a text by plural form: a category of
// https://cldr.unicode.org/index/cldr-spec/plural-rules, or "=7" for exactly
// seven. One without plural forms has "other" alone. Values stand in braces.
type message map[string]string

// UnmarshalJSON reads a text, or an object of forms.
func (m *message) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*m = message{"other": ""}
		var text string
		err := json.Unmarshal(data, &text)
		(*m)["other"] = text
		return err
	}
	return json.Unmarshal(data, (*map[string]string)(m))
}

// catalog is the messages of one language.
type catalog map[string]message

// speaker says things in one language.
type speaker struct {
	Lang    Lang
	catalog catalog
	tag     language.Tag
	printer *xmessage.Printer
}

// speakers reads the messages of every language.
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
		// Numbers stand beside times, links and codes in Western digits.
		s.printer = xmessage.NewPrinter(language.MustParse(string(l) + "-u-nu-latn"))
		all[l] = s
	}
	return all, nil
}

// Dir returns the direction of writing.
func (s *speaker) Dir() string {
	if s.Lang == "ar" {
		return "rtl"
	}
	return "ltr"
}

// Number writes a whole number.
func (s *speaker) Number(n uint64) string { return s.printer.Sprint(number.Decimal(n)) }

// Plain returns a message without values as text, for attributes.
func (s *speaker) Plain(key string) (string, error) {
	m, ok := s.catalog[key]
	if !ok {
		return "", fmt.Errorf("%w %q is not there", errMessage, key)
	}
	return m["other"], nil
}

// Say returns a message with values: names and what stands for them, which is
// HTML or a text to be escaped.
func (s *speaker) Say(key string, values ...any) (template.HTML, error) {
	text, err := s.Plain(key)
	if err != nil {
		return "", err
	}
	return s.expand(key, text, values)
}

// Count returns the form of a message for a number. With a name for what is
// counted, scripts find it by that name, with all forms to choose from.
func (s *speaker) Count(key, live string, n uint64) (template.HTML, error) {
	m, ok := s.catalog[key]
	if !ok {
		return "", fmt.Errorf("%w %q is not there", errMessage, key)
	}
	text, err := s.expand(key, m[s.form(m, n)], []any{"n", s.Number(n)})
	if err != nil || live == "" {
		return text, err
	}
	forms, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("write forms of %q: %w", key, err)
	}
	return trusted(`<span data-live="` + live + `" data-forms="` + html.EscapeString(string(forms)) + `">` + string(text) + `</span>`), nil
}

var categories = map[plural.Form]string{
	plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many", plural.Other: "other",
}

// form returns the form of a message for a number.
func (s *speaker) form(m message, n uint64) string {
	if exact := "=" + strconv.FormatUint(n, 10); m[exact] != "" {
		return exact
	}
	if category := s.category(n); m[category] != "" {
		return category
	}
	return "other"
}

// category returns the plural category of a number.
func (s *speaker) category(n uint64) string {
	const million = 1_000_000
	if n > million { // only the last digits decide in the languages we have
		n = million + n%million
	}
	return categories[plural.Cardinal.MatchPlural(s.tag, int(n), 0, 0, 0, 0)] //nolint:gosec // below two million
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// expand puts values in the place of the names in braces.
func (s *speaker) expand(key, text string, values []any) (template.HTML, error) {
	byName := map[string]string{}
	for i := 0; i+1 < len(values); i += 2 {
		name, _ := values[i].(string)
		switch v := values[i+1].(type) {
		case template.HTML:
			byName["{"+name+"}"] = string(v)
		case string:
			byName["{"+name+"}"] = html.EscapeString(v)
		default:
			return "", fmt.Errorf("%w %q: value of {%s} is %T", errMessage, key, name, v)
		}
	}
	var unknown string
	out := placeholder.ReplaceAllStringFunc(html.EscapeString(text), func(name string) string {
		v, ok := byName[name]
		if !ok {
			unknown = name
		}
		return v
	})
	if unknown != "" {
		return "", fmt.Errorf("%w %q: no value for %s", errMessage, key, unknown)
	}
	return trusted(out), nil
}

// trusted marks HTML that was put together from our own text and escaped values.
func trusted(s string) template.HTML { return template.HTML(s) } //nolint:gosec // see above

// Duration says how long something takes: in full minutes, or in seconds when
// that says much more.
func (s *speaker) Duration(d time.Duration) (template.HTML, error) {
	seconds := uint64(max(d, 0) / time.Second)
	if seconds >= 120 || seconds == 60 {
		return s.Count("minutes", "", seconds/60)
	}
	return s.Count("seconds", "", seconds)
}
