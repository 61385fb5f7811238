package rooms

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/console/format"
)

// formField is one setting in a form, for the template "setting".
type formField struct {
	Name, Label, Hint, Value string
	Placeholder              string
	Control                  string // "input", "choice", "check" or "lines"
	Type, Inputmode          string // type and inputmode of an input
	Maxlength                int    // maximum number of characters; 0: no limit
	List                     string // ID of the list of suggestions
	Options                  []string
	Autofocus                bool
	Here                     bool // a script fills in the browser's time zone
}

// Values of the parameter isNew of [newField].
const (
	newRoom       = true
	publishedRoom = false
)

// newField returns the field of a setting. isNew distinguishes the form of a new room from that of a published one.
func newField(s setting.Setting, value string, isNew bool) formField {
	f := formField{
		Name: s.Name, Label: s.Label, Hint: s.Form.Hint, Value: value, Placeholder: s.Form.Placeholder,
		Control: "input", Type: "text",
	}
	if s.Form.Empty != "" && (isNew || s.Change == setting.Free) {
		f.Hint = strings.TrimSpace(f.Hint + " Empty: " + s.Form.Empty + ".")
	}
	if !isNew && s.Note != "" {
		f.Hint = strings.TrimSpace(f.Hint + " " + s.Note)
	}
	switch k := s.Kind.(type) {
	case setting.Text:
		f.Maxlength = k.Max
	case setting.Number:
		f.Inputmode = "numeric"
	case setting.Duration:
		f.List = "lengths"
	case setting.Time:
		f.Type, f.Label = "datetime-local", s.Label+" (UTC)"
	case setting.Source:
		f.Control = "choice"
	case setting.Flag:
		f.Control = "check"
	case setting.List, setting.Objects, setting.Methods:
		f.Control = "lines"
	}
	return f
}

// cleanTyped returns the text sent for a setting in the form's notation: times as in JSON, lists with one item per
// line.
func cleanTyped(k setting.Kind, sent string) string {
	text := format.Clean(sent)
	switch k.(type) {
	case setting.Time:
		return format.ReadMoment(text)
	case setting.List, setting.Objects, setting.Methods:
		return strings.Join(textLines(text), "\n")
	case setting.Flag:
		if text != flagOn {
			return ""
		}
	}
	return text
}

// jsonTyped returns the text typed for a setting as JSON, malformed or not; nil: nothing is typed.
func jsonTyped(k setting.Kind, text string) any {
	switch k := k.(type) {
	case setting.Number:
		return jsonNumber(text)
	case setting.Duration:
		return jsonLength(text)
	case setting.Flag:
		return jsonFlag(text == flagOn)
	case setting.List:
		if list := textLines(text); len(list) > 0 {
			return list
		}
		return nil
	case setting.Objects:
		if list := objectLines(k.Members, text); len(list) > 0 {
			return list
		}
		return nil
	case setting.Methods:
		if list := methodLines(text); len(list) > 0 {
			return list
		}
		return nil
	}
	return jsonMoment(text)
}

// jsonChanged does what jsonTyped does, for a change of a room, where an empty field clears the setting. The
// parser refuses to clear settings that need a value.
func jsonChanged(k setting.Kind, text string) any {
	if value := jsonTyped(k, text); value != nil {
		return value
	}
	if zero := k.Zero(); zero != nil {
		return zero
	}
	return text
}

// flagOn is the value of a checkbox.
const flagOn = "1"

// typedText returns the text that the form has for a stored value, malformed or not.
func typedText(k setting.Kind, raw json.RawMessage) string {
	switch k := k.(type) {
	case setting.Duration:
		return storedLength(raw)
	case setting.Flag:
		var on bool
		if json.Unmarshal(raw, &on) == nil && on {
			return flagOn
		}
		return ""
	case setting.List:
		var items []string
		_ = json.Unmarshal(raw, &items) // a value that is not a list has a problem, which is shown
		return strings.Join(items, "\n")
	case setting.Objects:
		return objectText(k.Members, raw)
	case setting.Methods:
		return methodText(raw)
	}
	return storedText(raw)
}

// absent represents a member that an object does not have.
const absent = "-"

// objectLines reads a list of objects, one per line: the values of the members in order, separated by spaces, and
// the items of lists separated by commas. Extra words become a member without a name.
func objectLines(members []setting.Setting, text string) []map[string]any {
	var list []map[string]any
	for _, line := range textLines(text) {
		object := map[string]any{}
		for i, word := range strings.Fields(line) {
			switch {
			case i >= len(members):
				object[""] = word
			case word == absent:
			default:
				object[members[i].Name] = jsonTyped(members[i].Kind, listed(members[i].Kind, word, ",", "\n"))
			}
		}
		list = append(list, object)
	}
	return list
}

// objectText writes a list of objects in the form that objectLines reads.
func objectText(members []setting.Setting, raw json.RawMessage) string {
	var objects []map[string]json.RawMessage
	_ = json.Unmarshal(raw, &objects) // a value that is not a list has a problem, which is shown
	lines := make([]string, len(objects))
	for i, object := range objects {
		words := make([]string, len(members))
		for j, m := range members {
			text := strings.ReplaceAll(listed(m.Kind, typedText(m.Kind, object[m.Name]), "\n", ","), " ", "")
			words[j] = cmp.Or(text, absent)
		}
		for len(words) > 1 && words[len(words)-1] == absent {
			words = words[:len(words)-1]
		}
		lines[i] = strings.Join(words, " ")
	}
	return strings.Join(lines, "\n")
}

// listed replaces the separators of a list's items.
func listed(k setting.Kind, text, from, to string) string {
	if _, ok := k.(setting.List); ok {
		return strings.ReplaceAll(text, from, to)
	}
	return text
}

// typedWords returns a typed text in the form shown to readers.
func typedWords(k setting.Kind, text string) string {
	switch k.(type) {
	case setting.Time:
		return format.MomentLine(text)
	case setting.Flag:
		return yesNo(text == flagOn)
	}
	return text
}

// fieldName returns the console's name of a field of a room's JSON, with rows of lists by their number from 1.
// Fields that no form has keep their names.
func fieldName(field string) string {
	if s, ok := setting.Find(field); ok && s.Label != "" {
		return s.Label
	}
	if field == "host" {
		return "Host"
	}
	if list, rest, ok := strings.Cut(field, "["); ok {
		index, _, closed := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(index); err == nil && closed && fieldName(list) != list {
			name := fmt.Sprintf("%s, row %d", fieldName(list), i+1)
			if member, _ := setting.Find(list + "[]." + field[strings.LastIndexByte(field, '.')+1:]); member.Label != "" {
				name += ", " + member.Label
			}
			return name
		}
	}
	if parent := field[:max(0, strings.LastIndexByte(field, '.'))]; parent != "" {
		return fieldName(parent)
	}
	return field
}
