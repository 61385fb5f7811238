package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/proofline/proofline/web/manage"
)

// contract is the API's document, prepared for comparisons with requests and responses.
type contract struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by pointer
	document struct {
		Paths map[string]map[string]struct {
			Responses   map[string]struct{ Content map[string]any }
			RequestBody *struct {
				Content map[string]struct{ Example any }
			}
			OperationID, Summary string
		}
	}
}

// contracts are shared by sites that have the same document. The keys are the APIs of running sites, and the
// documents.
var contracts sync.Map

func contractOf(t testing.TB, api *manage.API) *contract {
	t.Helper()
	if known, ok := contracts.Load(api); ok {
		return known.(*contract)
	}
	c := contractFrom(t, api.StrictDocument())
	contracts.Store(api, c)
	t.Cleanup(func() { contracts.Delete(api) })
	return c
}

func contractFrom(t testing.TB, text []byte) *contract {
	t.Helper()
	if known, ok := contracts.Load(string(text)); ok {
		return known.(*contract)
	}
	c := &contract{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.compiler.AddResource("https://example.com/openapi.json", parsed); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c.document); err != nil {
		t.Fatal(err)
	}
	contracts.Store(string(text), c)
	return c
}

// check validates a JSON text against the schema at a pointer into the document.
func (c *contract) check(t testing.TB, what, text string, place ...string) {
	t.Helper()
	pointer := ""
	for _, part := range place {
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	c.mu.Lock()
	s, ok := c.schemas[pointer]
	if !ok {
		var err error
		if s, err = c.compiler.Compile("https://example.com/openapi.json#" + pointer); err != nil {
			c.mu.Unlock()
			t.Fatalf("schema %s: %v", pointer, err)
		}
		c.schemas[pointer] = s
	}
	c.mu.Unlock()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Errorf("%s is no JSON: %s", what, text)
		return
	}
	if err := s.Validate(value); err != nil {
		t.Errorf("%s does not fit the document: %v\n%s", what, err, text)
	}
}

var pathParameter = regexp.MustCompile(`\{\w+\}`)

// route returns the path template in the document that matches a path.
func (c *contract) route(path string) string {
	path, _, _ = strings.Cut(path, "?")
	for known := range c.document.Paths {
		form := "^" + pathParameter.ReplaceAllString(known, `[^/]+`) + "$"
		if regexp.MustCompile(form).MatchString(path) {
			return known
		}
	}
	return ""
}

// conforms validates a response of the management API against the document.
func (s *site) conforms(method, path string, a answer) {
	s.Helper()
	if s.api == nil || !strings.HasPrefix(path, manage.Prefix) || method == http.MethodOptions || method == http.MethodHead {
		return
	}
	c := contractOf(s, s.api)
	known := c.route(path)
	operation, ok := c.document.Paths[known][strings.ToLower(method)]
	what := method + " " + path + ": the answer " + strconv.Itoa(a.status)
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	switch {
	case a.status >= http.StatusBadRequest:
		c.check(s, what, a.body, "components", "schemas", "Problem")
	case !ok:
		if path != "/v1/openapi.json" {
			s.Errorf("%s is of no route of the document", what)
		}
	default:
		response, ok := operation.Responses[strconv.Itoa(a.status)]
		if _, hasMedia := response.Content[media]; !ok || hasMedia != (a.body != "") {
			s.Errorf("%s, %s, is not in the document", what, media)
		} else if media == "application/json" {
			c.check(s, what, a.body, "paths", known, strings.ToLower(method), "responses", strconv.Itoa(a.status), "content", media, "schema")
		}
	}
}

// TestDocument checks that the document has exactly the existing routes, and that its examples match their
// schemas.
func TestDocument(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	a := s.get("/v1/openapi.json", "Authorization: ").want(http.StatusOK)
	if got := a.header.Get("Content-Type"); got != "application/json" || !strings.Contains(a.body, `"openapi":"3.1.0"`) {
		t.Errorf("%s: %.100s", got, a.body)
	}
	c := contractOf(t, s.api)
	documented, names := []string{}, []string{}
	for path, operations := range c.document.Paths {
		for method, o := range operations {
			documented = append(documented, strings.ToUpper(method)+" "+path)
			names = append(names, o.OperationID)
			if o.RequestBody == nil {
				continue
			}
			example, err := json.Marshal(o.RequestBody.Content["application/json"].Example)
			if err != nil || string(example) == "null" {
				t.Errorf("%s %s has no example of its body", method, path)
			}
			c.check(t, "the example of "+o.OperationID, string(example), "paths", path, method, "requestBody", "content", "application/json", "schema")
		}
	}
	var routed []string
	for _, r := range s.echo.Routes() {
		if strings.HasPrefix(r.Path, manage.Prefix) && r.Path != "/v1/openapi.json" {
			routed = append(routed, r.Method+" "+regexp.MustCompile(`:(\w+)`).ReplaceAllString(r.Path, "{$1}"))
		}
	}
	slices.Sort(documented)
	slices.Sort(routed)
	slices.Sort(names)
	if !slices.Equal(documented, routed) {
		t.Errorf("documented %q\nrouted %q", documented, routed)
	}
	if len(slices.Compact(names)) != len(documented) || names[0] == "" {
		t.Errorf("operation names are not unique: %q", names)
	}
	c.check(t, "a room with too much", `{"slug":"a"}`, "paths", "/v1/rooms", "post", "requestBody", "content", "application/json", "schema")
}

// TestContractBites checks that the validation finds violations.
func TestContractBites(t *testing.T) {
	t.Parallel()
	c := contractOf(t, newTenants(t).api)
	for _, body := range []string{`{"slug":7}`, `{"slug":"a","colour":"red"}`, `[]`} {
		bad := &silent{TB: t}
		c.check(bad, "a body", body, "paths", "/v1/rooms", "post", "requestBody", "content", "application/json", "schema")
		if !bad.failed {
			t.Errorf("%s fits", body)
		}
	}
	bad := &silent{TB: t}
	if c.check(bad, "an answer", `{"rooms":[],"next":null,"more":1}`, "paths", "/v1/rooms", "get", "responses", "200", "content", "application/json", "schema"); !bad.failed {
		t.Error("an answer with an unknown member fits")
	}
}

// silent records a failure without failing the test.
type silent struct {
	testing.TB
	failed bool
}

func (s *silent) Errorf(string, ...any) { s.failed = true }
func (s *silent) Helper()               {}
