package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const oneRoom = `"rooms":{"sale":{"url":"https://queue.example.com/r/sale"}}`

func withRoom(members string) string {
	return `{"version":1,"rooms":{"sale":{"url":"https://queue.example.com/r/sale",` + members + `}}}`
}

func withRule(members string) string {
	return `{"version":1,` + oneRoom + `,"rules":[{"name":"a","action":"queue sale",` + members + `}]}`
}

// documents are texts with the place of the first problem in each; a text without a place is valid. Loose
// documents pass the schema, which cannot express all rules.
var documents = []struct {
	name, text, field string
	isLoose           bool
}{
	{"smallest", `{"version":1}`, "", false},
	{"all of a room", withRoom(`"origin":"queue.example.com/r/sale","mode":"scheduled","from":"2027-01-01T10:00:00Z","until":"2027-01-02T10:00:00Z","failure":"fail-open-after 30s","bind":"network"`), "", false},
	{"loopback", `{"version":1,"rooms":{"a":{"url":"http://127.0.0.1:8080/r/a"},"b":{"url":"http://localhost:80/r/b"},"c":{"url":"http://[::1]:80/r/c"}}}`, "", false},
	{"all tests", withRule(`"when":{"path":{"any":[{"equals":"/a"},{"prefix":"/b c"},{"suffix":".x"},{"glob":"/*"},{"not":{"equals":"/q"}}]},"network":{"not":{"in":["10.0.0.0/8"]}},"header":{"in":{"equals":""}},"cookie":{"any":{"prefix":"x"}}}`), "", false},
	{"no version", `{}`, "version", false},
	{"other version", `{"version":2}`, "version", false},
	{"unknown member", `{"version":1,"safety":1}`, "safety", false},
	{"unknown deep member", withRule(`"when":{"path":{"any":[{"equals":"/a"},{"regex":"/b"}]}}`), "rules[0].when.path.any[1].regex", false},
	{"member of a room that is called as one", `{"version":1,"rooms":{"rooms":{"Url":"https://queue.example.com/r/a"}}}`, "rooms.rooms.Url", false},
	{"case of a member", `{"version":1,"Rules":[]}`, "Rules", false},
	{"case of a deep member", withRule(`"when":{"path":{"Prefix":"/a"}}`), "rules[0].when.path.Prefix", false},
	{"defaults", `{"version":1,"defaults":"maybe"}`, "defaults", false},
	{"hosts", `{"version":1,"hosts":["Shop.example.com"]}`, "hosts[0]", false},
	{"a port", `{"version":1,"hosts":["shop.example.com/x"]}`, "hosts[0]", false},
	{"name of a room", `{"version":1,"rooms":{"A b":{"url":"https://queue.example.com/r/sale"}}}`, "rooms.A b", false},
	{"no TLS", `{"version":1,"rooms":{"a":{"url":"http://queue.example.com/r/a"}}}`, "rooms.a.url", false},
	{"not quite loopback", `{"version":1,"rooms":{"a":{"url":"http://localhost.example.com/r/a"}}}`, "rooms.a.url", false},
	{"a last slash", `{"version":1,"rooms":{"a":{"url":"https://queue.example.com/r/a/"}}}`, "rooms.a.url", false},
	{"a query", `{"version":1,"rooms":{"a":{"url":"https://queue.example.com/r/a?x"}}}`, "rooms.a.url", false},
	{"origin", withRoom(`"origin":"a b"`), "rooms.sale.origin", false},
	{"safety net", withRoom(`"mode":"safety-net"`), "", false},
	{"safety net by another name", withRoom(`"mode":"safetynet"`), "rooms.sale.mode", false},
	{"safety net with a schedule", withRoom(`"mode":"safety-net","from":"2027-01-01T10:00:00Z"`), "rooms.sale.mode", true},
	{"scheduled for ever", withRoom(`"mode":"scheduled"`), "rooms.sale.mode", true},
	{"from without schedule", withRoom(`"from":"2027-01-01T10:00:00Z"`), "rooms.sale.mode", true},
	{"ends before it begins", withRoom(`"mode":"scheduled","from":"2027-01-02T10:00:00Z","until":"2027-01-02T10:00:00Z"`), "rooms.sale.until", true},
	{"failure", withRoom(`"failure":"open"`), "rooms.sale.failure", false},
	{"opens at once", withRoom(`"failure":"fail-open-after 0s"`), "rooms.sale.failure", false},
	{"opens after days", withRoom(`"failure":"fail-open-after 25h"`), "rooms.sale.failure", true},
	{"bind", withRoom(`"bind":"device"`), "rooms.sale.bind", false},
	{"no name", `{"version":1,"rules":[{"action":"bypass"}]}`, "rules[0].name", false},
	{"name of a default", `{"version":1,"rules":[{"name":"default:x","action":"bypass"}]}`, "rules[0].name", false},
	{"same names", `{"version":1,"rules":[{"name":"a","action":"bypass"},{"name":"a","action":"bypass"}]}`, "rules[1].name", true},
	{"unknown room", `{"version":1,"rules":[{"name":"a","action":"queue sale"}]}`, "rules[0].action", true},
	{"unknown action", `{"version":1,"rules":[{"name":"a","action":"allow"}]}`, "rules[0].action", false},
	{"two tests", withRule(`"when":{"path":{"equals":"/a","prefix":"/b"}}`), "rules[0].when.path", false},
	{"no test", withRule(`"when":{"path":{}}`), "rules[0].when.path", false},
	{"empty list", withRule(`"when":{"path":{"any":[]}}`), "rules[0].when.path", false},
	{"deep", withRule(`"when":{"path":{"not":{"not":{"not":{"not":{"equals":"/a"}}}}}}`), "rules[0].when.path.not.not.not.not", true},
	{"relative path", withRule(`"when":{"path":{"prefix":"a"}}`), "rules[0].when.path.prefix", true},
	{"path that is never read", withRule(`"when":{"path":{"prefix":"/a/../b"}}`), "rules[0].when.path.prefix", true},
	{"path with query", withRule(`"when":{"path":{"equals":"/a?b"}}`), "rules[0].when.path.equals", true},
	{"network as text", withRule(`"when":{"network":{"equals":"10.0.0.1"}}`), "rules[0].when.network", false},
	{"path as network", withRule(`"when":{"path":{"in":["10.0.0.0/8"]}}`), "rules[0].when.path", false},
	{"bits behind the length", withRule(`"when":{"network":{"in":["10.0.0.1/8"]}}`), "rules[0].when.network.in[0]", true},
	{"name of a header", withRule(`"when":{"header":{"a b":{"equals":"1"}}}`), "rules[0].when.header", false},
	{"host without hosts", withRule(`"when":{"host":{"equals":"a"}}`), "hosts", true},
	{"text", `[]`, "", false},
	{"two objects", `{"version":1} {}`, "", false},
}

// TestTooDeep checks that documents with too deep nesting are refused before decoding.
func TestTooDeep(t *testing.T) {
	t.Parallel()
	for name, levels := range map[string][2]string{"not": {`{"not":`, `}`}, "any": {`{"any":[`, `]}`}, "lists": {`[`, `]`}} {
		text := withRule(`"when":{"path":` + strings.Repeat(levels[0], 9000) + `{"equals":"/a"}` + strings.Repeat(levels[1], 9000) + `}`)
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "deeper than 16") || len(err.Error()) > 500 {
			t.Errorf("%s: %.500v", name, err)
		}
	}
	for _, list := range []int{4, 5} { // the deepest allowed, and one level more
		text := withRule(`"when":{"path":` + strings.Repeat(`{"any":[`, list-1) + `{"equals":"/a"}` + strings.Repeat(`]}`, list-1) + `}`)
		if _, err := Parse([]byte(text)); (err == nil) != (list == 4) || err != nil && !strings.Contains(err.Error(), "4 tests") {
			t.Errorf("%d tests within each other: %v", list, err)
		}
	}
}

// BenchmarkParseDeep parses a document as deep as Go's decoder allows.
func BenchmarkParseDeep(b *testing.B) {
	text := []byte(withRule(`"when":{"path":` + strings.Repeat(`{"not":`, 9000) + `{"equals":"/a"}` + strings.Repeat(`}`, 9000) + `}`))
	for b.Loop() {
		_, _ = Parse(text)
	}
}

// TestManyProblems checks that the problems of a completely wrong document are reported in a few words.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`{"version":1,"hosts":["` + strings.Repeat(`!","`, 100_000) + `a"]}`))
	wrong, ok := errors.AsType[*InvalidError](err)
	if !ok || len(wrong.Problems) != maxProblems {
		t.Errorf("%.200v", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	for _, d := range documents {
		s, err := Parse([]byte(d.text))
		isFine := d.field == "" && s != nil
		if bad := (*InvalidError)(nil); !isFine && (!errors.As(err, &bad) || bad.Problems[0].Field != d.field || !strings.Contains(err.Error(), bad.Problems[0].Detail)) {
			t.Errorf("%s: %v, want a problem with %q", d.name, err, d.field)
		}
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(d.text))
		if err == nil {
			err = schema.Validate(instance)
		}
		if (err == nil) != (isFine || d.isLoose) {
			t.Errorf("%s: parsed: %t, the schema says %v", d.name, isFine, err)
		}
	}
	if _, err := Parse(bytes.Repeat([]byte(" "), MaxSize+1)); err == nil {
		t.Error("a document of more than 1 MiB is taken")
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("rules.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("rules.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestFilledIn(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `{"version":1,`+oneRoom+`}`)
	r := s.Rooms["sale"]
	if r.Origin != "queue.example.com/r/sale" || r.Mode != Always || r.Failure != RetryPage || r.Bind != BindBrowser || s.Defaults != "on" {
		t.Errorf("room %+v, defaults %q", r, s.Defaults)
	}
	for text, want := range map[Failure]time.Duration{"fail-open-after 30s": 30 * time.Second, "fail-open-after 24h": 24 * time.Hour, "retry-page": 0, "page": 0, "fail-open-after 1s30s": 0} {
		if got, ok := text.FailOpenAfter(); got != want || ok != (want > 0) {
			t.Errorf("%s opens after %v, %t", text, got, ok)
		}
	}
}

// TestDefaults checks that the default rules are valid as a document's rules, except for their names.
func TestDefaults(t *testing.T) {
	t.Parallel()
	list := Defaults()
	for i := range list {
		if !strings.HasPrefix(list[i].Name, "default:") || list[i].Action != "bypass" {
			t.Errorf("rule %+v", list[i])
		}
		list[i].Name = strings.TrimPrefix(list[i].Name, "default:")
	}
	text, err := json.Marshal(map[string]any{"version": 1, "rules": list})
	if err != nil {
		t.Fatal(err)
	}
	mustParse(t, string(text))
}
