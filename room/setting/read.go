package setting

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/jsontext"
)

// maxNested is the maximum nesting of lists and objects in a room's JSON.
const maxNested = 32

// Merge adds problems to a list, at most one per field. A field that is malformed gets no further problems.
func Merge(list *invalid.List, problems invalid.List) {
	for _, p := range problems {
		if len(*list) >= invalid.Max {
			return
		}
		known := func(k invalid.Problem) bool { return p.Field == k.Field || strings.HasPrefix(p.Field, k.Field+".") }
		if !slices.ContainsFunc(*list, known) {
			*list = append(*list, p)
		}
	}
}

// Read checks the JSON of a new room. It returns the JSON of all well-formed members, with the defaults of
// those that change freely, and the problems of the others. The JSON is nil if data is not an object.
func Read(data []byte) (json.RawMessage, invalid.List) {
	r := &reader{}
	clean := r.document(data, table)
	if clean == nil {
		return nil, r.list
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(clean, &members) // it was encoded just now
	for _, s := range table {
		if s.Change == Free && s.Initial != nil && members[s.Name] == nil {
			members[s.Name] = encode(s.Initial)
		}
	}
	return encode(members), r.list
}

// ReadAmendment checks the JSON of an amendment. It returns the JSON of all well-formed members, and the
// problems of the others. A message that is null is kept.
func ReadAmendment(data []byte) (json.RawMessage, invalid.List) {
	r := &reader{amends: true}
	may := amendable()
	clean := r.document(data, may)
	if isEmpty(data) {
		r.problem("", "changes nothing: give "+names(may, "or"))
	}
	return clean, r.list
}

// amendable lists the members of an amendment.
func amendable() []Setting {
	may := slices.DeleteFunc(slices.Clone(table), func(s Setting) bool { return s.Change == Never })
	after := slices.IndexFunc(may, func(s Setting) bool { return s.Name == "outflow" }) + 1
	return slices.Insert(may, after, Message)
}

// Check returns the problem with the value of a setting, given in the form that encoding/json
// writes.
func Check(name string, value any) invalid.List {
	s, _ := Find(name)
	r := &reader{}
	if text, ok := value.(string); ok && !utf8.ValidString(text) { // the encoder would replace invalid bytes
		r.problem(name, s.Kind.Want())
		return r.list
	}
	s.Kind.read(r, name, encode(value))
	return r.list
}

// CheckMembers returns the problems of a Go value whose JSON members are settings.
func CheckMembers(of any) invalid.List {
	r := &reader{}
	r.object("", encode(of), table)
	return r.list
}

// reader collects the problems of a document.
type reader struct {
	list   invalid.List
	amends bool // the document is an amendment
}

func (r *reader) problem(field, detail string) {
	Merge(&r.list, invalid.List{{Field: field, Detail: detail}})
}

func (r *reader) document(data []byte, members []Setting) json.RawMessage {
	if wrong := (jsontext.Form{Depth: maxNested}).Check(data); wrong != nil {
		r.problem(wrong.Field, wrong.Detail)
	}
	clean, _ := r.object("", data, members)
	return clean
}

// object reads an object. It returns the JSON of its well-formed members; false if it is not an object.
func (r *reader) object(path string, data []byte, members []Setting) (json.RawMessage, bool) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil || raw == nil {
		detail := Object{}.Want()
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			detail += fmt.Sprintf("; after %d bytes: %v", syntax.Offset, syntax)
		}
		r.problem(path, detail)
		return nil, false
	}
	r.unknown(path, raw, members)
	clean := map[string]json.RawMessage{}
	for _, s := range members {
		value, ok := raw[s.Name]
		if o, is := s.Kind.(Object); ok && isNull(value) {
			if is && o.Null {
				clean[s.Name] = value
			}
			continue
		}
		if !ok {
			continue
		}
		if value, ok = s.Kind.read(r, below(path, s.Name), value); ok {
			clean[s.Name] = value
		}
	}
	return encode(clean), true
}

// unknown adds problems for members that are not known.
func (r *reader) unknown(path string, raw map[string]json.RawMessage, members []Setting) {
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		isKnown := func(s Setting) bool { return s.Name == name }
		if len(r.list) < invalid.Max && !slices.ContainsFunc(members, isKnown) {
			r.problem(below(path, name), "is not known; known are "+names(members, ""))
		}
	}
}

func below(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// isEmpty reports whether text is an object without members.
func isEmpty(text []byte) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(text, &members) == nil && members != nil && len(members) == 0
}

// names lists the names of settings, with the given word before the last one.
func names(list []Setting, last string) string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = s.Name
	}
	if last == "" || len(all) < 2 {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:len(all)-1], ", ") + " " + last + " " + all[len(all)-1]
}

// encode returns a value as JSON.
func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // values of settings are texts, numbers, lists and maps of them
	}
	return text
}
