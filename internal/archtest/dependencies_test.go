package archtest

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

var (
	// depsRow is a row of a table of dependencies: what is named, and why.
	depsRow = regexp.MustCompile(`(?m)^\| (\[.*?) \| (.+) \|$`)
	// depsLink is the name of one, as a link.
	depsLink = regexp.MustCompile(`\[([^\]]+)\]\(https://`)
)

// named returns what the tables of a text name, each with a reason, in lower
// case.
func named(text string) map[string]bool {
	found := map[string]bool{}
	for _, row := range depsRow.FindAllStringSubmatch(text, -1) {
		for _, link := range depsLink.FindAllStringSubmatch(row[1], -1) {
			found[strings.ToLower(link[1])] = true
		}
	}
	return found
}

// required returns what a go.mod needs directly, by the names of the README.
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

// installed returns what all package.json files here have npm install.
func installed(t *testing.T) (list []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == "node_modules" || d.Name() == ".git":
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

// TestDependencies has the README name everything that this needs, with a
// reason, and nothing that it does not.
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

// TestInteropDependencies has the README of audit/interop name what that module
// needs and the product does not.
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
		if foreign++; !strings.Contains(string(readme), "pkg.go.dev/github.com/"+name) && !strings.Contains(string(readme), "pkg.go.dev/"+name) {
			t.Errorf("the README of audit/interop does not name %s", name)
		}
	}
	if foreign < 3 {
		t.Errorf("%d foreign modules", foreign)
	}
}
