// Package jsonschema makes JSON Schemas of the Go types that the management API sends and takes.
package jsonschema

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
)

// Schema is a JSON Schema of dialect 2020-12, which OpenAPI 3.1 uses.
type Schema = map[string]any

// Types makes the schemas of Go types. JSON tags give the names, "doc" describes a member,
// "enum" lists its values, and "need" marks required members of a body.
type Types struct {
	unknown UnknownMembers
	named   map[string]Schema
	types   map[string]reflect.Type // types by schema name
}

// New returns Types with a schema that follows from no type, such as that of errors.
func New(u UnknownMembers, name string, s Schema) *Types {
	return &Types{unknown: u, named: map[string]Schema{name: s}, types: map[string]reflect.Type{name: nil}}
}

// Named returns the schemas that others refer to, by name.
func (s *Types) Named() map[string]Schema { return s.named }

// UnknownMembers determines how the schemas of answers treat members that they do not name.
type UnknownMembers bool

// Values of [UnknownMembers].
const (
	AllowUnknown  UnknownMembers = false
	RefuseUnknown UnknownMembers = true
)

// Uses of a type: schemas of requests allow no unknown members, and list those that are required.
const (
	InAnswer  = false
	InRequest = true
)

// IsKnown reports whether the JSON of a type does not follow from its structure.
func IsKnown(t reflect.Type) bool { return known[t] != nil }

// Enum returns the schema of a string that has one of the values.
func Enum[T ~string](values ...T) Schema {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return Schema{"type": "string", "enum": list}
}

// wantDuration describes the format of durations.
const wantDuration = "A duration such as 30s, 5m or 1h30m."

// known lists the types whose JSON does not follow from their structure.
var known = map[reflect.Type]Schema{
	reflect.TypeFor[time.Time]():         {"type": "string", "format": "date-time"},
	reflect.TypeFor[uuid.UUID]():         {"type": "string", "format": "uuid"},
	reflect.TypeFor[json.RawMessage]():   {"type": "object"},
	reflect.TypeFor[room.Duration]():     {"type": "string", "description": wantDuration},
	reflect.TypeFor[simulate.Duration](): {"type": "string", "description": wantDuration},
	reflect.TypeFor[room.Phase](): Enum(room.PhaseUpcoming, room.PhaseOpen, room.PhaseServing, room.PhasePaused,
		room.PhaseClaimsFrozen, room.PhaseClosed, room.PhaseEnded, room.PhaseStopped),
	reflect.TypeFor[activity.Outcome](): Enum("", activity.Done, activity.Refused, activity.Failed),
	reflect.TypeFor[account.Role]():     Enum(account.Owner, account.Operator, account.Viewer),
	reflect.TypeFor[fairness.Reason](): Enum(fairness.NoShow, fairness.Left, fairness.TooLarge, fairness.Revoked,
		fairness.RevokedBot, fairness.RevokedDuplicate, fairness.RevokedFraud, fairness.RevokedRequest),
	reflect.TypeFor[simulate.Shape](): Enum(simulate.Burst, simulate.Steady, simulate.Early, simulate.Recorded),
}

// Of returns the schema of a type: in a request body if sent is set, else in an answer.
func (s *Types) Of(t reflect.Type, sent bool) Schema {
	if fixed, ok := known[t]; ok {
		return clone(fixed)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.Of(t.Elem(), sent)
	case reflect.Struct:
		return s.reference(t, sent)
	case reflect.Slice, reflect.Array:
		return Schema{"type": "array", "items": s.Of(t.Elem(), sent)}
	case reflect.Map:
		return Schema{"type": "object", "additionalProperties": s.Of(t.Elem(), sent)}
	case reflect.String:
		return Schema{"type": "string"}
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Float64:
		return Schema{"type": "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Schema{"type": "integer", "minimum": 0}
	}
	return Schema{"type": "integer"}
}

func clone(s Schema) Schema {
	out := Schema{}
	for name, value := range s {
		out[name] = value
	}
	return out
}

// reference returns a reference to the schema of a struct, and generates the schema if needed.
func (s *Types) reference(t reflect.Type, sent bool) Schema {
	name := nameOf(t)
	if sent && !strings.HasSuffix(name, "Input") {
		name += "Input"
	}
	if other, ok := s.types[name]; ok && other != t {
		panic("two types are called " + name) // an error in the route table
	} else if !ok {
		s.types[name] = t
		s.named[name] = nil // a type may contain itself
		s.named[name] = s.object(t, sent)
	}
	return Schema{"$ref": "#/components/schemas/" + name}
}

// nameOf returns the schema name of a struct: wire.Room is Room, and live.Figures is LiveFigures.
func nameOf(t reflect.Type) string {
	name := t.Name()
	folder := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	if folder != "wire" && !strings.HasPrefix(strings.ToLower(name), folder) {
		name = capital(folder) + name
	}
	return capital(name)
}

func capital(name string) string {
	letters := []rune(name)
	letters[0] = unicode.ToUpper(letters[0])
	return string(letters)
}

func (s *Types) object(t reflect.Type, sent bool) Schema {
	members, needed := Schema{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, optional, ok := MemberOf(f)
		if !ok || isFixed(t, f) {
			continue
		}
		members[name] = s.member(f, t, sent, optional)
		if !sent && !optional || f.Tag.Get("need") == "true" {
			needed = append(needed, name)
		}
	}
	out := Schema{"type": "object", "properties": members}
	if len(needed) > 0 {
		slices.Sort(needed)
		out["required"] = needed
	}
	if sent || s.unknown == RefuseUnknown {
		out["additionalProperties"] = false
	}
	return out
}

// MemberOf returns the JSON name of a field; false if it is not encoded.
func MemberOf(f reflect.StructField) (name string, optional, ok bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" || name == "" {
		return "", false, false // fields of embedded structs are visited separately
	}
	return name, strings.Contains(options, "omit"), true
}

// member returns the schema of one field. A pointer without omitempty may be null.
func (s *Types) member(f reflect.StructField, in reflect.Type, sent, optional bool) Schema {
	out := s.Of(f.Type, sent)
	if values := f.Tag.Get("enum"); values != "" {
		out = Enum(strings.Split(values, ",")...)
	}
	if f.Type.Kind() == reflect.Pointer && !optional {
		out = Schema{"anyOf": []any{out, Schema{"type": "null"}}}
	}
	about := f.Tag.Get("doc")
	if s, ok := settingOf(in, f); ok {
		bounds(out, s)
		if in == reflect.TypeFor[wire.CreateInput]() && s.Initial != nil {
			out["default"] = s.Initial
		}
		about = cmp.Or(about, describe(s, in, sent))
	} else if about == "" {
		about = aboutMember(f)
	}
	if about != "" {
		out["description"] = about
	}
	return out
}

// settingOf returns the setting of a room that a field of a struct holds.
func settingOf(in reflect.Type, f reflect.StructField) (setting.Setting, bool) {
	prefix, isPart := parts[in]
	holder := in
	if len(f.Index) > 1 {
		holder = in.FieldByIndex(f.Index[:len(f.Index)-1]).Type
	}
	isRoom := holder == reflect.TypeFor[room.Config]() || holder == reflect.TypeFor[room.Settings]() || in == amendType
	if !isPart && !isRoom {
		return setting.Setting{}, false
	}
	return setting.Find(prefix + nameOfMember(f))
}

func nameOfMember(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// aboutMember describes a field that has the name of a setting but belongs to another type, such as a list's
// "title".
func aboutMember(f reflect.StructField) string {
	for _, s := range setting.All() {
		if s.Last() == nameOfMember(f) {
			return s.Sentence()
		}
	}
	return ""
}

// parts are the types of parts of a room, with the prefixes of their settings.
var parts = func() map[reflect.Type]string {
	found := map[reflect.Type]string{reflect.TypeFor[room.MessageChange](): "message."}
	addParts(found, reflect.TypeFor[room.Config](), "")
	return found
}()

// addParts adds the types of those fields of a struct that are objects or lists of objects.
func addParts(found map[reflect.Type]string, in reflect.Type, prefix string) {
	for _, f := range reflect.VisibleFields(in) {
		t := f.Type
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		path := prefix + nameOfMember(f)
		s, ok := setting.Find(path)
		if _, isKnown := found[t]; ok && !isKnown && t.Kind() == reflect.Struct && setting.Members(s.Kind) != nil {
			found[t] = path + "."
			addParts(found, t, path+".")
		}
	}
}

// bounds adds a setting's bounds to its schema.
func bounds(out Schema, s setting.Setting) {
	switch k := s.Kind.(type) {
	case setting.Number:
		out["minimum"], out["maximum"] = k.Min, k.Max
	case setting.Text:
		if k.Max > 0 {
			out["maxLength"] = k.Max
		}
	case setting.List:
		if k.Max > 0 {
			out["maxItems"] = k.Max
		}
	}
}

// describe returns the description of a setting.
func describe(s setting.Setting, in reflect.Type, sent bool) string {
	if s.Help == "" {
		return ""
	}
	about := s.Sentence()
	if d, ok := s.Kind.(setting.Duration); ok && d.Max > 0 {
		about = strings.TrimSuffix(about, ".") + ", " + d.Range() + "."
	}
	switch {
	case in == amendType:
		return strings.TrimSpace(about + " " + s.Note)
	case sent && s.Default != "":
		about += " Default of a new room: " + s.Default + "."
	}
	return about
}

// amendType is the body of an amendment, which has the settings of a room that may change.
var amendType = reflect.TypeFor[wire.AmendInput]()

// isFixed reports whether a field is a setting that an amendment cannot change.
func isFixed(in reflect.Type, f reflect.StructField) bool {
	s, ok := settingOf(in, f)
	return in == amendType && ok && s.Change == setting.Never
}
