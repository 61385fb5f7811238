package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestUnwatched checks that the packages tested without the race detector start no goroutines and
// share no state.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var pure []string
	for line := range strings.Lines(string(text)) {
		if names, ok := strings.CutPrefix(line, "PURE := "); ok {
			pure = strings.Fields(names)
		}
	}
	packages := list(t, "../../...")
	for _, name := range pure {
		p, ok := packages[name]
		if !ok {
			t.Errorf("%s: there is no such package", name)
		}
		if slices.Contains(p.Imports, "sync") || slices.Contains(p.Imports, "sync/atomic") {
			t.Errorf("%s shares what it has", name)
		}
		for _, file := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s: %s starts a goroutine", name, file)
				}
				return true
			})
		}
	}
	if len(pure) == 0 {
		t.Error("the Makefile names no package")
	}
}
