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
	"github.com/proofline/proofline/console/desk/pgdesk"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// schema is a JSON Schema of the dialect 2020-12, as OpenAPI 3.1 has it.
type schema = map[string]any

// schemas makes the schemas of Go types: their JSON tags say the names, "doc"
// describes a member, "enum" lists its values, and "need" marks what a body
// must have.
type schemas struct {
	strict bool // answers have no members but these
	named  map[string]schema
	types  map[string]reflect.Type // whose schemas these are
}

func enum[T ~string](values ...T) schema {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return schema{"type": "string", "enum": list}
}

// wantDuration describes how durations are written.
const wantDuration = "A duration such as 30s, 5m or 1h30m."

// known are the types whose JSON is not that of their parts.
var known = map[reflect.Type]schema{
	reflect.TypeFor[time.Time]():         {"type": "string", "format": "date-time"},
	reflect.TypeFor[uuid.UUID]():         {"type": "string", "format": "uuid"},
	reflect.TypeFor[json.RawMessage]():   {"type": "object"},
	reflect.TypeFor[room.Duration]():     {"type": "string", "description": wantDuration},
	reflect.TypeFor[simulate.Duration](): {"type": "string", "description": wantDuration},
	reflect.TypeFor[room.Phase]():        enum(room.PhaseUpcoming, room.PhaseOpen, room.PhaseServing, room.PhasePaused, room.PhaseHeld, room.PhaseClosed, room.PhaseEnded, room.PhaseStopped),
	reflect.TypeFor[pgdesk.Outcome]():    enum("", pgdesk.Done, pgdesk.Refused, pgdesk.Failed),
	reflect.TypeFor[account.Role]():      enum(account.Owner, account.Operator, account.Viewer),
	reflect.TypeFor[fairness.Reason]():   enum(fairness.NoShow, fairness.Left, fairness.Revoked, fairness.RevokedBot, fairness.RevokedDuplicate, fairness.RevokedFraud, fairness.RevokedRequest),
	reflect.TypeFor[simulate.Shape]():    enum(simulate.Burst, simulate.Steady, simulate.Early, simulate.Recorded),
}

// of returns the schema of a type, in a body that is sent or in an answer.
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

// reference names the schema of a struct, and makes it if need be.
func (s *schemas) reference(t reflect.Type, sent bool) schema {
	name := nameOf(t)
	if sent && !strings.HasSuffix(name, "Input") {
		name += "Input"
	}
	if other, ok := s.types[name]; ok && other != t {
		panic("two types are called " + name) // in the table of routes
	} else if !ok {
		s.types[name] = t
		s.named[name] = nil // a type may hold itself
		s.named[name] = s.object(t, sent)
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

// nameOf is what the schema of a struct is called: roomJSON is Room, and
// live.Figures is LiveFigures.
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

// memberOf returns how a field is written; false when it is not.
func memberOf(f reflect.StructField) (name string, optional, ok bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" || name == "" {
		return "", false, false // embedded structs are written by their fields
	}
	return name, strings.Contains(options, "omit"), true
}

// member is the schema of one field. A pointer that is always written may be null.
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

// described are members of types of other packages, by the name of the type
// and by that of the member alone.
var described = map[string]string{
	"opens":          "Joins begin. Default: with the first window, or at once.",
	"starts":         "Calls begin. Default: opens.",
	"closes":         "Joins end. Default: never.",
	"slug":           "Name in the address: 1 to 63 of a-z, 0-9 and -.",
	"title":          "What people see.",
	"windows":        "From each moment on, one window of that length after the other. Default: one until starts, then a minute each.",
	"per_minute":     "People let in a minute.",
	"max_active":     "People called or admitted at once; 0 for no limit.",
	"claim":          "How long a called visitor may claim. Default: 5m.",
	"session":        "How long a session lasts from the admission, and from its latest touch on. A pass must be redeemed in this time, and within five minutes. Default: 15m.",
	"beacon":         "Public randomness that decides the draws: a drand chain that the server has relays of, such as drand:quicknet, or none.",
	"margin":         "How long after a freeze the beacon's round appears, at least. Default: 3s.",
	"quorum":         "How many of the server's witnesses should sign each freeze. Default: more than half of them.",
	"targets":        "URLs that admitted visitors may be sent to, the first by default.",
	"signed_return":  "Admitted visitors are sent only where a connector of the site has signed that it takes a pass, others to the first target.",
	"brand":          "What the pages look like.",
	"max_waiting":    "People in line at once, about; 0 for no limit. Default of a new room: 1000000.",
	"time_zone":      "Where the event is, as a name of the IANA time zone database: reports and pages without scripts give times in it. Default: UTC.",
	"logo":           "Data URL of a PNG, JPEG or WebP image of at most 64 KiB.",
	"color":          "Of buttons and links, #rrggbb.",
	"background":     "#rrggbb.",
	"css":            "Own CSS, in the subset of THEMING.md.",
	"texts":          "By language.",
	"languages":      "That visitors may choose from, the first unless they prefer another; none: all.",
	"RoomBrand.dark": "What is different in the dark.",
}
