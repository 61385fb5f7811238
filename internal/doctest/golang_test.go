package doctest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/doctest"
)

// frame is the context of Go code in a document: its imports and the variables that it expects.
type frame struct {
	imports []string
	given   string // parameters
	leaves  string // variables that later code in the document uses
}

const own = "github.com/proofline/proofline/"

// frames complete the Go blocks of documents, in order.
var frames = map[string][]frame{
	"../../connector/README.md": {
		{[]string{"net/http", "os", own + "connector"}, "shop http.Handler", "c, err"},
		{[]string{"os", own + "connector"}, "", "c, err"},
	},
	"../../verifier/README.md": {
		{[]string{own + "verifier", own + "verifier/source"}, "ctx context.Context, key string, checkpoint []byte",
			"report, err"},
	},
}

// lines are the Go expressions within sentences of connector/README.md.
var lines = map[string]frame{
	"e.Pre(echo.WrapMiddleware(c.Middleware))": {imports: []string{"github.com/labstack/echo/v4", own +
		"connector"}, given: "e *echo.Echo, c *connector.Connector"},
	"r.Use(c.Middleware)": {imports: []string{"net/http", own + "connector"},
		given: "r interface{ Use(...func(http.Handler) http.Handler) }, c *connector.Connector"},
	"connector.VisitorOf(r.Context())": {imports: []string{"net/http", own + "connector"},
		given: "r *http.Request"},
	"registry.MustRegister(metrics.Collector(c))": {imports: []string{"github.com/prometheus/client_golang/prometheus",
		own + "connector", own + "connector/metrics"}, given: "registry *prometheus.Registry, c *connector.Connector"},
}

// source returns code completed by its frame.
func (f frame) source(code string) string {
	var s strings.Builder
	fmt.Fprintln(&s, "package shown")
	for _, name := range f.imports {
		fmt.Fprintf(&s, "import %q\n", name)
	}
	if strings.Contains(f.given, "context.") {
		fmt.Fprintln(&s, `import "context"`)
	}
	if f.leaves != "" {
		code += strings.Repeat("_, ", strings.Count(f.leaves, ",")) + "_ = " + f.leaves + "\n"
	}
	fmt.Fprintf(&s, "var _ = func(%s) error {\n%s\nreturn nil }\n", f.given, code)
	return s.String()
}

// TestGo compiles the Go code of all documents in a temporary package.
func TestGo(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, document := range doctest.Documents(t, "../..") {
		shown := doctest.All(doctest.Read(t, document))
		shown = slices.DeleteFunc(shown, func(b doctest.Block) bool { return b.Language != "go" })
		around := frames[filepath.ToSlash(document)]
		if len(shown) != len(around) {
			t.Errorf("%s has %d blocks of Go, and the frames of %d are known", document, len(shown), len(around))
			continue
		}
		for i, b := range shown {
			sources = append(sources, around[i].source(b.Text))
		}
	}
	spans := doctest.Spans(doctest.Read(t, "../../connector/README.md"))
	for line, f := range lines {
		if !slices.Contains(spans, line) {
			t.Errorf("connector/README.md does not have %q", line)
			continue
		}
		sources = append(sources, f.source(line))
	}
	dir, folder := t.TempDir(), "shown"
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, source := range sources {
		name := fmt.Sprintf("block%d.go", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(folder, name)] = filepath.Join(dir, name)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "build", "-buildvcs=false", "-overlay",
		filepath.Join(dir, "overlay.json"), "./shown").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, strings.Join(sources, "\n"))
	}
}
