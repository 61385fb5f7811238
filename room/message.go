package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/proofline/proofline/internal/invalid"
)

// Limits of a message to visitors.
const (
	maxMessage          = 1000 // characters in each language
	MaxMessageLanguages = 12
)

// Message is the organizer's message to everyone in line: one text per language, shown until a given time or
// until it is withdrawn. fairness/RULES.md has the canonical form, whose hash the transcript records.
type Message struct {
	Default string            `json:"default" doc:"Language of the text for visitors who read none of the others. Optional with one text."`
	Texts   map[string]string `json:"texts" doc:"By BCP 47 language tag."`
	Until   *time.Time        `json:"until,omitempty" doc:"When the message vanishes by itself. Absent: it stays until it is taken back."`
}

// MessageChange is a new message. Without texts it withdraws the message.
type MessageChange struct {
	Message
	For Duration `json:"for" doc:"How long the message is shown, in the place of until."`
}

// IsNone reports whether the change withdraws the message.
func (c *MessageChange) IsNone() bool { return len(c.Texts) == 0 }

// At returns the message as shown from now on.
func (c *MessageChange) At(now time.Time) Message {
	m := c.Message
	if m.Default == "" && len(m.Texts) == 1 {
		m.Default = slices.Collect(maps.Keys(m.Texts))[0]
	}
	if c.For != 0 {
		until := now.Add(time.Duration(c.For) + time.Second - 1).Truncate(time.Second) // whole seconds, for readers
		m.Until = &until
	}
	if m.Until != nil {
		until := m.Until.UTC().Truncate(time.Millisecond)
		m.Until = &until
	}
	return m
}

// ErrMessage is returned for a text that no amendment can have had.
var ErrMessage = errors.New("not a message to visitors")

// ParseMessage reads the canonical form of a message.
func ParseMessage(text string) (m Message, err error) {
	c := MessageChange{}
	err = json.Unmarshal([]byte(text), &c.Message)
	if err == nil {
		err = c.problems().Err()
	}
	if err != nil || c.IsNone() || c.Canonical() != text {
		return m, fmt.Errorf("%w: %.80q", ErrMessage, text)
	}
	return c.Message, nil
}

// isLive reports whether the message is shown at now.
func (m *Message) isLive(now time.Time) bool {
	return m != nil && (m.Until == nil || now.Before(*m.Until))
}

// Tags returns the languages of the message, the default first.
func (m *Message) Tags() []string {
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(m.Texts)), func(tag string) bool { return tag == m.Default })
	return append([]string{m.Default}, rest...)
}

// For returns the text and its language for a visitor who reads the wanted languages, best first. A language
// matches its own text, that of a more general tag, or the first of a related one: de-AT matches de-AT, de or
// de-CH. The pages' script chooses in the same way (web/ui/src/page/room.ts).
func (m *Message) For(wanted []string) (words, tag string) {
	tags := slices.Sorted(maps.Keys(m.Texts))
	for _, want := range wanted {
		want = strings.ToLower(want)
		for prefix := want; prefix != ""; prefix = prefix[:max(0, strings.LastIndexByte(prefix, '-'))] {
			if i := slices.IndexFunc(tags, func(tag string) bool { return strings.ToLower(tag) == prefix }); i >= 0 {
				return m.Texts[tags[i]], tags[i]
			}
		}
		base, _, _ := strings.Cut(want, "-")
		if i := slices.IndexFunc(tags,
			func(tag string) bool { return strings.HasPrefix(strings.ToLower(tag), base+"-") }); i >= 0 {
			return m.Texts[tags[i]], tags[i]
		}
	}
	return m.Texts[m.Default], m.Default
}

// messageTime is the time format of the canonical form.
const messageTime = "2006-01-02T15:04:05.000Z"

// escapes covers all that JSON escapes in texts without control characters.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Canonical returns the canonical form (RFC 8785).
func (m *Message) Canonical() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"default":"%s","texts":{`, m.Default)
	for i, tag := range slices.Sorted(maps.Keys(m.Texts)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%s":"%s"`, tag, escapes.Replace(m.Texts[tag]))
	}
	b.WriteByte('}')
	if m.Until != nil {
		fmt.Fprintf(&b, `,"until":"%s"`, m.Until.UTC().Format(messageTime))
	}
	b.WriteByte('}')
	return b.String()
}

// problems lists what is invalid at any time.
func (c *MessageChange) problems() invalid.List {
	var list invalid.List
	wrong := func(field, detail string, args ...any) {
		list.Add("message"+field, fmt.Sprintf(detail, args...))
	}
	if c.IsNone() {
		if c.Default != "" || c.Until != nil || c.For != 0 {
			wrong(".texts", "is needed; a null message removes the current one")
		}
		return list
	}
	if len(c.Texts) > MaxMessageLanguages {
		wrong(".texts", "must have at most %d languages, not %d", MaxMessageLanguages, len(c.Texts))
		return list
	}
	for _, tag := range slices.Sorted(maps.Keys(c.Texts)) {
		if detail := tagProblem(tag); detail != "" {
			wrong(".texts", "%s", detail)
		} else if detail := messageProblem(c.Texts[tag]); detail != "" {
			wrong(".texts."+tag, "%s", detail)
		}
	}
	if _, ok := c.Texts[c.Default]; !ok && (c.Default != "" || len(c.Texts) > 1) {
		wrong(".default", "must be the language of one of the texts")
	}
	switch {
	case c.For != 0 && c.Until != nil:
		wrong(".for", "and until cannot both be given")
	case c.For < 0:
		wrong(".for", "must be longer than 0")
	}
	return list
}

// tagProblem describes what is wrong with a language tag; "": nothing.
func tagProblem(tag string) string {
	const longest = 35 // RFC 5646, section 4.4.1
	parsed, err := language.Parse(tag)
	if err != nil || len(tag) > longest || parsed == language.Und {
		return fmt.Sprintf("%.40q is not a language tag such as en or pt-BR", tag)
	}
	if canonical := parsed.String(); canonical != tag {
		return fmt.Sprintf("write the language %s as %s", tag, canonical)
	}
	return ""
}

// messageProblem describes what is wrong with a text; "": nothing.
func messageProblem(text string) string {
	odd := func(r rune) bool { return unicode.IsControl(r) && r != '\n' }
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		return "needs a text"
	case n > maxMessage:
		return fmt.Sprintf("must be at most %d characters, not %d", maxMessage, n)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, odd):
		return "must be UTF-8 without control characters other than line breaks"
	}
	return ""
}

// untimely lists what is invalid as of now.
func (c *MessageChange) untimely(now time.Time) invalid.List {
	if c == nil || c.IsNone() || c.Until == nil || c.Until.Truncate(time.Millisecond).After(now) {
		return nil
	}
	return invalid.List{{Field: "message.until",
		Detail: "must be later than now, " + now.UTC().Format(messageTime)}}
}

// parseMessage reads the message from the well-formed members of an amendment; nil: there is none. A null message
// withdraws the current one.
func parseMessage(members []byte) (*MessageChange, invalid.List) {
	var given struct {
		Message json.RawMessage `json:"message"`
	}
	c := &MessageChange{}
	if json.Unmarshal(members, &given) != nil || given.Message == nil {
		return nil, nil
	}
	if json.Unmarshal(given.Message, c) != nil || len(c.Texts) == 0 && string(given.Message) != "null" {
		return c, invalid.List{{Field: "message.texts", Detail: "is needed; a null message removes the current one"}}
	}
	return c, nil
}
