package archtest

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

var (
	// depsRow is a row of a table of dependencies: a name and a reason.
	depsRow = regexp.MustCompile(`(?m)^\| (\[.*?) \| (.+) \|$`)
	// depsLink is a dependency's name as a link.
	depsLink = regexp.MustCompile(`\[([^\]]+)\]\(https://`)
)

// named returns the dependencies listed in a text's tables, in lower case.
func named(text string) map[string]bool {
	found := map[string]bool{}
	for _, row := range depsRow.FindAllStringSubmatch(text, -1) {
		for _, link := range depsLink.FindAllStringSubmatch(row[1], -1) {
			found[strings.ToLower(link[1])] = true
		}
	}
	return found
}

// required returns the direct requirements of a go.mod, by the names that the README uses.
func required(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(file, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range parsed.Require {
		if !r.Indirect && r.Mod.Path+"/" != module {
			list = append(list, strings.TrimPrefix(r.Mod.Path, "github.com/"))
		}
	}
	return list
}

// installed returns the npm dependencies in all package.json files.
func installed(t *testing.T) (list []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"): // .git is a file in a worktree
			return fs.SkipDir
		case d.Name() != "package.json":
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var p struct{ Dependencies, DevDependencies map[string]string }
		if err := json.Unmarshal(text, &p); err != nil {
			return err
		}
		for _, names := range []map[string]string{p.Dependencies, p.DevDependencies} {
			for name := range names {
				list = append(list, name)
			}
		}
		return nil
	})
	if err != nil || files < 4 {
		t.Fatalf("%d files, %v", files, err)
	}
	return list
}

// TestDependencies checks that the README lists every dependency with a reason, and no others.
func TestDependencies(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Dependencies, and why\n")
	section, _, _ = strings.Cut(section, "\n## ")
	known := named(section)
	wanted := map[string]bool{}
	for _, name := range append(required(t, "../../go.mod"), installed(t)...) {
		name = strings.ToLower(name)
		wanted[name] = true
		if !known[name] {
			t.Errorf("the README does not say why %s is needed", name)
		}
	}
	for name := range known {
		if !wanted[name] {
			t.Errorf("the README says why %s is needed, and it is not", name)
		}
	}
}

// TestInteropDependencies checks that the README of audit/interop lists the dependencies that only
// that module has.
func TestInteropDependencies(t *testing.T) {
	readme, err := os.ReadFile("../../audit/interop/README.md")
	if err != nil {
		t.Fatal(err)
	}
	ours, foreign := map[string]bool{}, 0
	for _, name := range required(t, "../../go.mod") {
		ours[name] = true
	}
	for _, name := range required(t, "../../audit/interop/go.mod") {
		if ours[name] {
			continue
		}
		if foreign++; !strings.Contains(string(readme), "pkg.go.dev/github.com/"+name) &&
			!strings.Contains(string(readme), "pkg.go.dev/"+name) {
			t.Errorf("the README of audit/interop does not name %s", name)
		}
	}
	if foreign < 3 {
		t.Errorf("%d foreign modules", foreign)
	}
}

// withScripts lists the npm packages with install scripts, and why their scripts need not run. They
// never do.
var withScripts = map[string]string{
	"esbuild": "its program is in @esbuild/PLATFORM, an optional dependency; the script only saves the start of Node.js",
	"deno":    "its program is in @deno/PLATFORM, an optional dependency, which the first call finds",
	"workerd": "its program is in @cloudflare/workerd-PLATFORM, an optional dependency",
	"sharp":   "a part of miniflare for images, which no test uses",
}

// TestInstallScripts checks that npm runs no install scripts, because a compromised package could
// then run code on every developer's machine.
func TestInstallScripts(t *testing.T) {
	var projects, scripted []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err == nil && d.Name() == "package-lock.json" {
			projects = append(projects, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(projects) < 4 {
		t.Fatalf("projects %v, %v", projects, err)
	}
	for _, dir := range projects {
		if text, err := os.ReadFile(filepath.Join(dir, ".npmrc")); err != nil ||
			!strings.Contains("\n"+string(text), "\nignore-scripts=true\n") {
			t.Errorf("%s/.npmrc does not say ignore-scripts=true (%v)", dir, err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
		if err != nil {
			t.Fatal(err)
		}
		var lock struct {
			Packages map[string]struct{ HasInstallScript bool }
		}
		if err := json.Unmarshal(text, &lock); err != nil {
			t.Fatal(err)
		}
		for name, p := range lock.Packages {
			if at := strings.LastIndex(name, "node_modules/"); at >= 0 {
				name = name[at+len("node_modules/"):]
			}
			if p.HasInstallScript {
				scripted = append(scripted, name)
				if withScripts[name] == "" {
					t.Errorf("%s wants to run a script when it is installed: say why it need not, or do without it",
						name)
				}
			}
		}
	}
	for name := range withScripts {
		if !slices.Contains(scripted, name) {
			t.Errorf("%s has no install script any more", name)
		}
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(makefile)) {
		if strings.Contains(line, "npm ci") && !strings.Contains(line, "--ignore-scripts") {
			t.Errorf("the Makefile runs scripts of packages: %s", line)
		}
	}
}
