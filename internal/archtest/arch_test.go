// Package archtest enforces the architecture: which packages may import which, and how much an
// auditor has to read.
package archtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/proofline/proofline/"

// core lists the packages that an auditor reads. They depend on no other package of this module.
var core = []string{"vrf", "fairness", "fairness/beacon", "fairness/credential", "fairness/table", "audit", "verifier"}

// serverSide lists files of the core that only servers need. Auditors need not read them: the
// auditor's program compiles without them.
var serverSide = []string{"fairness/next.go", "fairness/standing.go", "fairness/undo.go", "fairness/table/server.go", "vrf/prove.go", "audit/extension.go", "audit/write.go"}

// coreLines is the maximum length of the rest of the core, without tests and blank lines, and partLines that of the
// parts among it: see docs/decisions/0040.
const (
	coreLines = 4500
	partLines = 700
)

// parts are packages of the core that know no rule: signature schemes, and containers. Each can be read, tested and
// replaced on its own.
var parts = []string{"fairness/beacon", "fairness/credential", "fairness/table"}

// pkg is a package in the output of go list.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
	Standard   bool
}

func list(t *testing.T, args ...string) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list",
		"-json=ImportPath,Dir,GoFiles,Imports,Deps,Standard"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(p.ImportPath, module)] = p
	}
}

// TestImports checks which packages may import which others of this module. Packages not listed may import
// any.
func TestImports(t *testing.T) {
	const connectorInternal = module + "connector/internal/"
	allowed := map[string][]string{
		"vrf": {"github.com/cloudflare/circl/group"},
		"fairness": {"github.com/cloudflare/circl/xof", module + "fairness/beacon", module + "fairness/credential",
			module + "fairness/table"},
		"fairness/table": {},
		"fairness/beacon": {"github.com/cloudflare/circl/sign/bls",
			"github.com/cloudflare/circl/ecc/bls12381"},
		"fairness/credential":        {"filippo.io/edwards25519", "github.com/cloudflare/circl/blindsign/blindrsa"},
		"fairness/credential/issued": {"golang.org/x/mod/sumdb/note"},
		"fairness/credential/issuer": {module + "fairness/credential", module + "fairness/credential/issued", module + "internal/filelock",
			"github.com/cloudflare/circl/blindsign/blindrsa", "golang.org/x/net/idna", "golang.org/x/text/unicode/norm"},
		"fairness/beacon/relay": {module + "fairness/beacon"},
		"fairness/beacon/local": {module + "fairness/beacon", module + "fairness/beacon/relay",
			"github.com/cloudflare/circl/sign/bls"},
		"audit": {"golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog",
			"github.com/transparency-dev/merkle/compact"},
		"audit/roomlog": {module + "audit", "golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog"},
		"audit/witness": {module + "audit", module + "internal/filelock", "golang.org/x/mod/sumdb/note",
			"golang.org/x/mod/sumdb/tlog"},
		"verifier/ticket": {module + "fairness", module + "fairness/beacon", module + "vrf", module + "audit",
			"golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog"},
		"verifier/numeral": {},
		"verifier/stats":   {module + "fairness", module + "verifier/numeral", "gonum.org/v1/gonum/mathext"},
		"verifier/evidence": {module + "fairness", module + "audit", module + "verifier/ticket",
			"golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog"},
		"verifier/watch": {module + "fairness", module + "fairness/credential", module + "vrf", module + "audit",
			module + "audit/roomlog", module + "verifier", module + "verifier/ticket", module + "verifier/evidence", "golang.org/x/mod/sumdb/note"},
		"verifier/report": {module + "fairness", module + "fairness/beacon", module + "fairness/credential",
			module + "audit", module + "verifier", module + "verifier/counted", module + "verifier/findings", module + "verifier/numeral",
			module + "verifier/stats"},
		"verifier/counted": {module + "fairness/credential", module + "fairness/credential/issued", module + "verifier",
			module + "verifier/numeral", "golang.org/x/mod/sumdb/note"},
		"verifier/rooms": {module + "fairness", module + "audit", module + "audit/roomlog", module + "verifier",
			module + "verifier/findings", module + "verifier/numeral", module + "verifier/watch"},
		"verifier/findings": {module + "fairness", module + "audit", module + "verifier/numeral"},
		"internal/invalid":  {},
		"connector/rules":   {module + "internal/jsontext", "golang.org/x/text/unicode/norm"},
		"connector": {module + "connector/rules", connectorInternal + "address", connectorInternal + "background",
			connectorInternal + "batch", connectorInternal + "gate", connectorInternal + "id", connectorInternal + "reach",
			connectorInternal + "recent", connectorInternal + "report", connectorInternal + "roomapi",
			connectorInternal + "session", connectorInternal + "source", connectorInternal + "state",
			connectorInternal + "token"},
		"connector/internal/address":    {},
		"connector/internal/background": {},
		"connector/internal/id":         {},
		"connector/internal/recent":     {},
		"connector/internal/replace":    {},
		"connector/internal/token":      {},
		"connector/internal/session":    {connectorInternal + "id", module + "connector/rules"},
		"connector/internal/gate": {connectorInternal + "id", connectorInternal + "recent",
			connectorInternal + "session"},
		"connector/internal/reach": {connectorInternal + "background", connectorInternal + "id"},
		"connector/internal/roomapi": {connectorInternal + "background", connectorInternal + "id",
			connectorInternal + "reach", connectorInternal + "session", "github.com/golang-jwt/jwt/v5"},
		"connector/internal/batch": {connectorInternal + "background", connectorInternal + "id",
			connectorInternal + "roomapi", connectorInternal + "session"},
		"connector/internal/report": {connectorInternal + "background", connectorInternal + "gate",
			connectorInternal + "id", connectorInternal + "reach", connectorInternal + "roomapi",
			connectorInternal + "session", connectorInternal + "token", module + "connector/rules"},
		"connector/internal/source": {connectorInternal + "address", connectorInternal + "background",
			connectorInternal + "replace", connectorInternal + "roomapi", connectorInternal + "token",
			module + "connector/rules", "golang.org/x/mod/sumdb/note"},
		"connector/internal/state": {connectorInternal + "address", connectorInternal + "background",
			connectorInternal + "gate", connectorInternal + "id", connectorInternal + "reach",
			connectorInternal + "replace"},
		"connector/metrics": {module + "connector", "github.com/prometheus/client_golang/prometheus"},
		"connector/proxy": {module + "connector", module + "internal/conns",
			"github.com/prometheus/client_golang/prometheus"},
		"connector/conformance": {"github.com/golang-jwt/jwt/v5", "golang.org/x/mod/sumdb/note", "golang.org/x/sync/errgroup"},
		"console/simulate": {module + "fairness", module + "fairness/beacon", module + "fairness/credential",
			module + "internal/invalid"},
		"console/simulate/chart": {module + "console/simulate"},
		"internal/visitor":       {module + "console/simulate"},
		"internal/rawhttp":       {},
		"room/projection": {module + "fairness", module + "fairness/credential", module + "audit", module + "vrf",
			module + "internal/millis"},
		"room/door": {module + "fairness", module + "fairness/credential", module + "internal/invalid",
			module + "internal/jsontext", module + "internal/millis", module + "room/projection"},
		"room/clock": {module + "audit/pglog", "github.com/google/uuid"},
		"room/keys": {module + "audit", module + "vrf", module + "room/pgroom", "github.com/google/uuid",
			"golang.org/x/mod/sumdb/note"},
		"room/transfer": {module + "fairness", module + "room/pgroom", "github.com/google/uuid"},
		"room/style":    {"github.com/tdewolff/parse/v2", "github.com/tdewolff/parse/v2/css"},
		"room/locale":   {},
		"room/branding": {module + "internal/invalid", module + "room/locale", module + "room/setting",
			module + "room/style"},
		"room/setting": {module + "fairness", module + "fairness/credential", module + "internal/invalid", module + "internal/jsontext", module + "internal/zone",
			module + "room/locale"},
		"web/page": {module + "room/locale", module + "room/style", "golang.org/x/text/feature/plural",
			"golang.org/x/text/language", "golang.org/x/text/message", "golang.org/x/text/number"},
		"verifier": {module + "fairness", module + "fairness/beacon", module + "fairness/credential", module + "vrf",
			module + "audit", "golang.org/x/mod/sumdb/note"},
	}
	packages := list(t, "../../...")
	for name, may := range allowed {
		p, ok := packages[name]
		if !ok {
			t.Errorf("package %s is missing", name)
		}
		for _, imported := range p.Imports {
			if strings.Contains(strings.Split(imported, "/")[0], ".") && !slices.Contains(may, imported) {
				t.Errorf("%s imports %s", name, imported)
			}
		}
	}
}

// TestPure keeps I/O, clocks and servers out of the packages that must give the same results
// everywhere, including their dependencies in this module.
func TestPure(t *testing.T) {
	packages := list(t, "../../...")
	const simulator = "console/simulate" // uses random numbers from a seed in the plan
	for _, name := range append(slices.Clone(core), "audit/roomlog", "verifier/ticket", "verifier/numeral", "verifier/findings",
		"verifier/stats", "verifier/evidence", "verifier/watch", "verifier/rooms", "verifier/report", "room/locale", "room/projection", "room/setting", "room/style", "web/page", "connector/rules", simulator, simulator+"/chart") {
		for _, forbidden := range []string{"net/http", "log/slog", "os/exec", "math/rand/v2", "database/sql"} {
			if slices.Contains(packages[name].Imports, forbidden) &&
				(name != simulator || forbidden != "math/rand/v2") {
				t.Errorf("%s imports %s", name, forbidden)
			}
		}
		for _, dep := range packages[name].Deps {
			if strings.Contains(dep, "jackc/pgx") || strings.Contains(dep, "labstack/echo") {
				t.Errorf("%s depends on %s", name, dep)
			}
		}
	}
}

// TestLayers keeps HTTP in web and its subpackages, SQL in packages named pg, and the server out of
// everything an auditor runs.
func TestLayers(t *testing.T) {
	packages := list(t, "../../...")
	for name, p := range packages {
		for _, imported := range p.Imports {
			switch {
			case strings.Contains(imported, "labstack/echo") && name != "web" && !strings.HasPrefix(name, "web/") &&
				!strings.HasPrefix(name, "internal/"):
				t.Errorf("%s imports echo: HTTP lives in web", name)
			case strings.Contains(imported, "jackc/pgx") && !mayQuery(name) &&
				(name != "room" || imported != "github.com/jackc/pgx/v5"):
				t.Errorf("%s imports pgx: SQL lives in packages named pg", name)
			}
		}
	}
	for _, dep := range packages["cmd/proofline-verify"].Deps {
		if strings.Contains(dep, "jackc/pgx") || strings.Contains(dep, "labstack/echo") || dep == module+"room" ||
			dep == module+"web" {
			t.Errorf("the auditor's program depends on %s", dep)
		}
	}
}

// mayQuery reports whether a package may access PostgreSQL.
func mayQuery(name string) bool {
	return strings.HasPrefix(path.Base(name), "pg") || name == "migrations" || strings.HasPrefix(name, "internal/") ||
		strings.HasPrefix(name, "cmd/proofline")
}

// TestCoreSize keeps the core short enough to read, as far as it is part of the auditor's program.
func TestCoreSize(t *testing.T) {
	packages, rules, inParts := list(t, "../../..."), 0, 0
	for _, name := range core {
		if !slices.Contains(packages["cmd/proofline-verify"].Deps, module+name) {
			t.Logf("%s is not part of the auditor's program", name)
			continue
		}
		lines := 0
		for _, file := range packages[name].GoFiles {
			if slices.Contains(serverSide, name+"/"+file) {
				continue
			}
			lines += countLines(t, filepath.Join(packages[name].Dir, file))
		}
		t.Logf("%5d lines in %s", lines, name)
		if slices.Contains(parts, name) {
			inParts += lines
		} else {
			rules += lines
		}
	}
	t.Logf("%5d lines in all, and %d in its parts", rules, inParts)
	if rules > coreLines || inParts > partLines {
		t.Errorf("the core has %d lines and its parts %d, at most %d and %d", rules, inParts, coreLines, partLines)
	}
}

// packageLines is the maximum length of a package without tests. A longer one owns more than one thing.
const packageLines = 4000

func TestPackageSize(t *testing.T) {
	for name, p := range list(t, "../../...") {
		lines := 0
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(text, []byte("\n"))
		}
		if lines > packageLines {
			t.Errorf("%s has %d lines without tests, at most %d", name, lines, packageLines)
		}
	}
}

// TestAuditorWithoutServerSide compiles the auditor's program without the serverSide files.
func TestAuditorWithoutServerSide(t *testing.T) {
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for _, file := range serverSide {
		path, err := filepath.Abs("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[path] = ""
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "-o", os.DevNull,
		"../../cmd/proofline-verify").CombinedOutput() //nolint:gosec // our own
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func countLines(t *testing.T, path string) (n int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if strings.TrimSpace(scan.Text()) != "" {
			n++
		}
	}
	return n
}
