// Package setting describes every setting of a room once: its name in JSON, what values it takes, its default,
// whether it may change after publication, and the words that forms, commands and documents use for it.
//
// The table determines the parsing of rooms and amendments with all "must be" texts, the forms of the console, the
// flags of "room amend", the plan of "room apply", the rows of "room show", the schemas of the OpenAPI document
// and the table in the README. Package room implements what a setting does.
package setting

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Change says whether and how a setting may change once its room is published.
type Change int

// The ways to change a setting.
const (
	Never    Change = iota // fixed with the policy
	Recorded               // by an amendment that the transcript records
	Free                   // by an amendment outside the transcript
)

// Setting describes one setting of a room.
type Setting struct {
	Name   string // path in a room's JSON, such as "outflow.per_minute"
	Kind   Kind
	Change Change
	// Label names the setting in the console.
	Label string
	// Help says what the setting is, in a phrase without a period at its end. The README, the API document and
	// the command line's help use it.
	Help string
	// Default says what applies to a room that does not have the setting.
	Default string
	// Initial is the JSON value of the default; nil: the default depends on other settings. The parser fills it in
	// for settings that change freely.
	Initial any
	// Note says what is special about changing the setting; empty: nothing.
	Note string
	Form Form
	Row  Row
}

// Form is the setting's field in the console's forms.
type Form struct {
	Group       string // name shared by adjacent fields, such as "pace"; empty: the forms have no field
	Hint        string // text below the field
	Empty       string // what an empty field means in the form of a new room; empty: the hint says it
	Placeholder string
}

// Row is the setting's row in the output of "room show". Settings with the same label share a row.
type Row struct {
	Label  string // empty: no row
	Format string // format of the value, such as "at most %s"; empty: the value alone
	None   string // text for a zero value; empty: nothing is printed
}

// Last returns the last part of the name, such as "per_minute".
func (s Setting) Last() string { return s.Name[strings.LastIndexByte(s.Name, '.')+1:] }

// Sentence returns Help as a sentence.
func (s Setting) Sentence() string {
	first, size := utf8.DecodeRuneInString(s.Help)
	return string(unicode.ToUpper(first)) + s.Help[size:] + "."
}

// All returns the settings of new rooms in the order of the table. Members of objects that change one by one, such
// as "outflow.per_minute", are listed as separate settings.
func All() []Setting { return flat("", table) }

// Amendable returns the settings that may change after publication.
func Amendable() []Setting {
	return slices.DeleteFunc(All(), func(s Setting) bool { return s.Change == Never })
}

// Find returns the setting at a path, such as "outflow.per_minute", "brand.dark.color" or "message".
func Find(path string) (Setting, bool) {
	list := append(slices.Clone(table), Message)
	outer, rest, isInner := strings.Cut(path, ".")
	for {
		i := slices.IndexFunc(list, func(s Setting) bool { return s.Name == strings.TrimSuffix(outer, "[]") })
		if i < 0 {
			return Setting{}, false
		}
		found := list[i]
		if !isInner {
			found.Name = path
			return found, true
		}
		list = Members(found.Kind)
		outer, rest, isInner = strings.Cut(rest, ".")
	}
}

// Members returns the members of an object, or of the objects of a list; nil for other kinds.
func Members(k Kind) []Setting {
	switch k := k.(type) {
	case Object:
		return k.Members
	case Objects:
		return k.Members
	case Brand:
		return k.Members
	case Windows:
		return k.Members
	case Methods:
		return k.Members
	}
	return nil
}

// flat returns settings with objects replaced by their members.
func flat(prefix string, list []Setting) []Setting {
	var all []Setting
	for _, s := range list {
		s.Name = prefix + s.Name
		if o, ok := s.Kind.(Object); ok && o.Split {
			all = append(all, flat(s.Name+".", o.Members)...)
			continue
		}
		all = append(all, s)
	}
	return all
}
