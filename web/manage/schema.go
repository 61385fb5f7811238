package manage

import (
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
	"github.com/proofline/proofline/room"
)

// schema is a JSON Schema of dialect 2020-12, which OpenAPI 3.1 uses.
type schema = map[string]any

// schemas generates the schemas of Go types. JSON tags give the names, "doc" describes a member,
// "enum"
// lists its values, and "need" marks required members of a body.
type schemas struct {
	strict bool // answers have no other members
	named  map[string]schema
	types  map[string]reflect.Type // types by schema name
}

func enum[T ~string](values ...T) schema {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return schema{"type": "string", "enum": list}
}

// wantDuration describes the format of durations.
const wantDuration = "A duration such as 30s, 5m or 1h30m."

// known lists the types whose JSON does not follow from their structure.
var known = map[reflect.Type]schema{
	reflect.TypeFor[time.Time]():         {"type": "string", "format": "date-time"},
	reflect.TypeFor[uuid.UUID]():         {"type": "string", "format": "uuid"},
	reflect.TypeFor[json.RawMessage]():   {"type": "object"},
	reflect.TypeFor[room.Duration]():     {"type": "string", "description": wantDuration},
	reflect.TypeFor[simulate.Duration](): {"type": "string", "description": wantDuration},
	reflect.TypeFor[room.Phase]():        enum(room.PhaseUpcoming, room.PhaseOpen, room.PhaseServing, room.PhasePaused, room.PhaseClaimsFrozen, room.PhaseClosed, room.PhaseEnded, room.PhaseStopped),
	reflect.TypeFor[activity.Outcome]():  enum("", activity.Done, activity.Refused, activity.Failed),
	reflect.TypeFor[account.Role]():      enum(account.Owner, account.Operator, account.Viewer),
	reflect.TypeFor[fairness.Reason]():   enum(fairness.NoShow, fairness.Left, fairness.Revoked, fairness.RevokedBot, fairness.RevokedDuplicate, fairness.RevokedFraud, fairness.RevokedRequest),
	reflect.TypeFor[simulate.Shape]():    enum(simulate.Burst, simulate.Steady, simulate.Early, simulate.Recorded),
}

// of returns the schema of a type, in a request body if sent, else in an answer.
func (s *schemas) of(t reflect.Type, sent bool) schema {
	if fixed, ok := known[t]; ok {
		return clone(fixed)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), sent)
	case reflect.Struct:
		return s.reference(t, sent)
	case reflect.Slice, reflect.Array:
		return schema{"type": "array", "items": s.of(t.Elem(), sent)}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.of(t.Elem(), sent)}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}
	}
	return schema{"type": "integer"}
}

func clone(s schema) schema {
	out := schema{}
	for name, value := range s {
		out[name] = value
	}
	return out
}

// reference returns a reference to the schema of a struct, and generates the schema if needed.
func (s *schemas) reference(t reflect.Type, sent bool) schema {
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
	return schema{"$ref": "#/components/schemas/" + name}
}

// nameOf returns the schema name of a struct: roomJSON is Room, and live.Figures is LiveFigures.
func nameOf(t reflect.Type) string {
	name := strings.TrimSuffix(t.Name(), "JSON")
	folder := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	if folder != "manage" && !strings.HasPrefix(strings.ToLower(name), folder) {
		name = capital(folder) + name
	}
	return capital(name)
}

func capital(name string) string {
	letters := []rune(name)
	letters[0] = unicode.ToUpper(letters[0])
	return string(letters)
}

func (s *schemas) object(t reflect.Type, sent bool) schema {
	members, needed := schema{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, optional, ok := memberOf(f)
		if !ok {
			continue
		}
		members[name] = s.member(f, t, sent, optional)
		if !sent && !optional || f.Tag.Get("need") == "true" {
			needed = append(needed, name)
		}
	}
	out := schema{"type": "object", "properties": members}
	if len(needed) > 0 {
		slices.Sort(needed)
		out["required"] = needed
	}
	if sent || s.strict {
		out["additionalProperties"] = false
	}
	return out
}

// memberOf returns the JSON name of a field; false if it is not encoded.
func memberOf(f reflect.StructField) (name string, optional, ok bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" || name == "" {
		return "", false, false // fields of embedded structs are visited themselves
	}
	return name, strings.Contains(options, "omit"), true
}

// member returns the schema of one field. A pointer without omitempty may be null.
func (s *schemas) member(f reflect.StructField, in reflect.Type, sent, optional bool) schema {
	out := s.of(f.Type, sent)
	if values := f.Tag.Get("enum"); values != "" {
		out = enum(strings.Split(values, ",")...)
	}
	if f.Type.Kind() == reflect.Pointer && !optional {
		out = schema{"anyOf": []any{out, schema{"type": "null"}}}
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	about := f.Tag.Get("doc")
	if about == "" {
		about = described[nameOf(in)+"."+name]
	}
	if about == "" {
		about = described[name]
	}
	if about != "" {
		out["description"] = about
	}
	return out
}

// described has descriptions of members of other packages' types, by type and member name, or by
// member
// name alone.
var described = map[string]string{
	"opens":          "Time at which joins begin. Default: start of the first window, or at once.",
	"starts":         "Time at which calls begin. Default: opens.",
	"closes":         "Time at which joins end. Default: never.",
	"slug":           "Name in the address: 1 to 63 of a-z, 0-9 and -.",
	"title":          "Title shown to visitors.",
	"windows":        "From each time on, consecutive windows of that length. Default: one window until starts, then one per minute.",
	"per_minute":     "Admissions per minute.",
	"max_active":     "Visitors called or admitted at the same time; 0: no limit.",
	"claim":          "Time that a called visitor has to claim. Default: 5m.",
	"session":        "Length of a session after the admission or its latest touch. A pass must be redeemed in this time, and within five minutes. Default: 15m.",
	"beacon":         "Source of public randomness for draws: a drand chain for which the server has relays, such as drand:quicknet, or none.",
	"margin":         "Minimum time between a freeze and the beacon's round. Default: 3s.",
	"quorum":         "Number of the server's witnesses that should sign each freeze. Default: more than half of them.",
	"targets":        "URLs that admitted visitors may be sent to, the first is the default.",
	"signed_return":  "Visitors are sent only to URLs that a connector of the site has signed, otherwise to the first target.",
	"brand":          "Appearance of the pages.",
	"max_waiting":    "Approximate maximum number of visitors in line; 0: no limit. Default for a new room: 1000000.",
	"time_zone":      "Time zone of the event (IANA name), used by reports and by pages without scripts. Default: UTC.",
	"logo":           "Data URL of a PNG, JPEG or WebP image of at most 64 KiB.",
	"color":          "Colour of buttons and links, #rrggbb.",
	"background":     "Background colour, #rrggbb.",
	"css":            "Custom CSS, in the subset that THEMING.md describes.",
	"texts":          "Texts by language.",
	"languages":      "Languages that visitors can choose; the first is the default. Empty: all.",
	"RoomBrand.dark": "Settings that differ in dark mode.",
}
