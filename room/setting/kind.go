package setting

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/proofline/proofline/internal/zone"
)

// Kind describes the values that a setting takes. Consumers that render or convert values switch on its type.
type Kind interface {
	// Want returns the problem of a malformed value, such as "must be true or false".
	Want() string
	// Zero returns the JSON value of a setting that a room does not have.
	Zero() any
	// read returns the well-formed part of a value; false if there is none. Problems are added to r.
	read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool)
}

// Text is the kind of text settings.
type Text struct {
	Max   int               // characters; 0: no limit
	Check func(string) bool // nil: every text within that length
	Wants string            // what Check accepts, such as "must be a colour"
}

// Number is a whole number.
type Number struct{ Min, Max uint32 }

// Duration is a text such as "1m30s", of whole milliseconds.
type Duration struct{ Min, Max time.Duration }

// Time is an RFC 3339 time.
type Time struct{}

// Flag is true or false.
type Flag struct{}

// Zone is the name of a time zone.
type Zone struct{}

// Source is a source of public randomness: "none" or the name of a drand chain.
type Source struct{}

// List is a list of texts.
type List struct {
	Each  Text
	Max   int // items; 0: no limit
	Wants string
}

// Objects is a list of objects.
type Objects struct {
	Members []Setting
	Wants   string
}

// Object is an object with members.
type Object struct {
	Members []Setting
	Split   bool // amendments change its members one by one; false: they replace it as a whole
	Null    bool // an amendment may remove it with null
}

// Windows is the list of window rules, which is compared and amended by time.
type Windows struct{ Objects }

// Methods is the list of ways to show something about a ticket's holder. Forms have each as a policy has it: NAME work
// BITS, or NAME signed or blind, KEY and LIMIT.
type Methods struct{ Objects }

// Brand is the look of the pages. Package room/branding checks the values of its members.
type Brand struct{ Object }

// Map is an object with any names, whose values are texts.
type Map struct{ Wants string }

// Want implements [Kind].
func (k Text) Want() string {
	switch {
	case k.Wants != "":
		return k.Wants
	case k.Max > 0:
		return fmt.Sprintf("must be a text of at most %d characters of UTF-8, none of them NUL", k.Max)
	}
	return "must be a text"
}

// Want implements [Kind].
func (k Number) Want() string {
	return fmt.Sprintf("must be a whole number from %d to %d", k.Min, k.Max)
}

// Want implements [Kind].
func (k Duration) Want() string {
	if k.Max == 0 {
		return `must be a duration such as "30s"`
	}
	return fmt.Sprintf(`must be a duration %s, such as "30s"`, k.Range())
}

// Range returns the bounds in words, such as "from 1 second to 1 hour".
func (k Duration) Range() string { return "from " + words(k.Min) + " to " + words(k.Max) }

// Want implements [Kind].
func (Time) Want() string { return "must be an RFC 3339 time such as 2030-05-01T12:00:00Z" }

// Want implements [Kind].
func (Flag) Want() string { return "must be true or false" }

// Want implements [Kind].
func (Zone) Want() string {
	return `must be a name of the IANA time zone database, such as "Europe/Vienna"`
}

// Want implements [Kind].
func (Source) Want() string {
	return `must be "none", or a drand chain such as "drand:quicknet"`
}

// Want implements [Kind].
func (k List) Want() string { return k.Wants }

// Want implements [Kind].
func (k Objects) Want() string { return k.Wants }

// Want implements [Kind].
func (Object) Want() string { return "must be a JSON object" }

// Want implements [Kind].
func (k Map) Want() string { return k.Wants }

// Zero implements [Kind].
func (Text) Zero() any { return "" }

// Zero implements [Kind].
func (Number) Zero() any { return uint32(0) }

// Zero implements [Kind].
func (Duration) Zero() any { return nil }

// Zero implements [Kind].
func (Time) Zero() any { return nil }

// Zero implements [Kind].
func (Flag) Zero() any { return false }

// Zero implements [Kind].
func (Zone) Zero() any { return "" }

// Zero implements [Kind].
func (Source) Zero() any { return "" }

// Zero implements [Kind].
func (List) Zero() any { return []string{} }

// Zero implements [Kind].
func (Objects) Zero() any { return []any{} }

// Zero implements [Kind].
func (Object) Zero() any { return map[string]any{} }

// Zero implements [Kind].
func (Map) Zero() any { return map[string]any{} }

// words returns a duration in its largest unit, such as "1 hour".
func words(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch n := d / unit.length; {
		case n == 1 && d%unit.length == 0:
			return "1 " + unit.name
		case n > 1 && d%unit.length == 0:
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// Accepts reports whether a text is well formed.
func (k Text) Accepts(text string) bool {
	return utf8.ValidString(text) && (k.Max == 0 || utf8.RuneCountInString(text) <= k.Max) &&
		(k.Max == 0 || !strings.ContainsRune(text, 0)) && (k.Check == nil || k.Check(text))
}

// ParseDuration parses a duration of whole milliseconds, as time.ParseDuration does.
func ParseDuration(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil && d%time.Millisecond == 0
}

// decode returns raw if it is JSON of the type T that ok accepts; otherwise it adds a problem.
func decode[T any](r *reader, k Kind, path string, raw json.RawMessage, ok func(T) bool) (json.RawMessage, bool) {
	var value T
	if json.Unmarshal(raw, &value) != nil || !ok(value) {
		r.problem(path, k.Want())
		return nil, false
	}
	return raw, true
}

func (k Text) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	return decode(r, k, path, raw, k.Accepts)
}

func (k Number) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	return decode(r, k, path, raw, func(n uint32) bool { return n >= k.Min && n <= k.Max })
}

func (k Duration) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	return decode(r, k, path, raw, func(text string) bool {
		d, ok := ParseDuration(text)
		return ok && (k.Max == 0 || d >= k.Min && d <= k.Max)
	})
}

func (k Time) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	return decode(r, k, path, raw, func(time.Time) bool { return true })
}

func (k Flag) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	return decode(r, k, path, raw, func(bool) bool { return true })
}

func (k Zone) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	return decode(r, k, path, raw, func(name string) bool {
		_, err := zone.Parse(name)
		return err == nil
	})
}

func (k Source) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	return decode(r, k, path, raw, func(name string) bool {
		return name == "" || name == NoBeacon || strings.HasPrefix(name, ChainPrefix)
	})
}

func (k Map) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	return decode(r, k, path, raw, func(map[string]string) bool { return true })
}

func (k List) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	var items []string
	if json.Unmarshal(raw, &items) != nil {
		r.problem(path, k.Want())
		return nil, false
	}
	if k.Max > 0 && len(items) > k.Max {
		r.problem(path, fmt.Sprintf("must be at most %d", k.Max))
	}
	for i, item := range items {
		if !k.Each.Accepts(item) {
			r.problem(fmt.Sprintf("%s[%d]", path, i), k.Each.Want())
		}
	}
	return raw, true
}

func (k Objects) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		r.problem(path, k.Want())
		return nil, false
	}
	for i, item := range items { // a malformed item is replaced by an empty one
		clean, ok := r.object(fmt.Sprintf("%s[%d]", path, i), item, k.Members)
		if items[i] = clean; !ok {
			items[i] = json.RawMessage("{}")
		}
	}
	return encode(items), true
}

func (k Object) read(r *reader, path string, raw json.RawMessage) (json.RawMessage, bool) {
	clean, ok := r.object(path, raw, k.Members)
	if ok && r.amends && k.Split && isEmpty(raw) {
		r.problem(path, "changes nothing: give "+names(k.Members, "or"))
	}
	return clean, ok
}
