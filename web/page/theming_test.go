package page_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/room/style"
)

var update = flag.Bool("update", false, "write the lists of THEMING.md")

// lists are the generated lists in THEMING.md, between its marks.
func lists() map[string]string {
	hooks := func(name string, list []style.Hook, prefix string) string {
		b := strings.Builder{}
		fmt.Fprintf(&b, "| %s | what it is | honest |\n|---|---|---|\n", name)
		for _, h := range list {
			fmt.Fprintf(&b, "| `%s%s` | %s | %s |\n", prefix, h.Name, h.About, map[bool]string{true: "yes"}[h.Honest])
		}
		return b.String()
	}
	properties := strings.Builder{}
	properties.WriteString("| property | takes | where it is honest | only on |\n|---|---|---|---|\n")
	for _, p := range style.Properties {
		fmt.Fprintf(&properties, "| `%s` | %s | %s | %s |\n", p.Name, p.Values, p.Honest, strings.Join(p.Only, ", "))
	}
	return map[string]string{
		"elements": hooks("element", style.Elements, ""), "classes": hooks("class", style.Classes, "."), "properties": properties.String(),
		"pseudos": "`:" + strings.Join(style.Pseudos, "`, `:") + "`\n", "roles": "`--" + strings.Join(style.Roles, "`, `--") + "`\n",
	}
}

// TestTheming checks that THEMING.md agrees with package style; go test -update rewrites its lists.
func TestTheming(t *testing.T) {
	text, err := os.ReadFile("THEMING.md")
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, list := range lists() {
		marks := regexp.MustCompile(`(?s)(<!-- ` + name + ` -->\n).*?(\n<!-- end -->)`)
		if !marks.MatchString(want) {
			t.Errorf("no list of %s", name)
		}
		want = marks.ReplaceAllString(want, "${1}\n"+strings.ReplaceAll(list, "$", "$$")+"${2}")
	}
	if *update {
		if err := os.WriteFile("THEMING.md", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("THEMING.md differs from package style: go test ./web/page -run Theming -update")
	}
}

// TestThemingExamples checks that the examples are accepted.
func TestThemingExamples(t *testing.T) {
	text, err := os.ReadFile("THEMING.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```css\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 2 {
		t.Errorf("%d examples", len(examples))
	}
	for _, e := range examples {
		if _, problems := style.Parse(e[1]); len(problems) > 0 {
			t.Errorf("%s: %v", e[1], problems)
		}
	}
}

// TestHooks checks that every class in the pages of a line is a documented hook, and that every hook
// occurs in a page.
func TestHooks(t *testing.T) {
	ours := []string{"unseen", "done"} // not for organizers
	p := newPages(t, manifest)
	classes, elements := map[string]bool{}, map[string]bool{}
	for name, html := range all(t, p, "en") {
		for _, e := range parseHTML(t, name, html).all(func(*element) bool { return true }) {
			elements[e.name] = true
			for _, class := range strings.Fields(e.attributes["class"]) {
				classes[class] = true
			}
		}
	}
	for class := range classes {
		if !slices.ContainsFunc(style.Classes, func(h style.Hook) bool { return h.Name == class }) && !slices.Contains(ours, class) {
			t.Errorf("class %s is no hook", class)
		}
	}
	for _, h := range style.Classes {
		if !classes[h.Name] {
			t.Errorf("no page has the class %s", h.Name)
		}
	}
	for _, h := range style.Elements {
		if !elements[h.Name] {
			t.Errorf("no page has <%s>", h.Name)
		}
	}
}
