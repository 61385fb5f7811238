package web

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestParts checks that the server has every part that this package declares.
func TestParts(t *testing.T) {
	t.Parallel()
	var declared, wired []string
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(gotoken.NewFileSet(), file.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv != nil && f.Name.Name == "register" {
				star := f.Recv.List[0].Type.(*ast.StarExpr)           //nolint:forcetypeassert,errcheck // like the other parts
				declared = append(declared, star.X.(*ast.Ident).Name) //nolint:forcetypeassert,errcheck // no generic types
			}
		}
	}
	o := Options{Assets: built, Log: slog.New(slog.DiscardHandler), Ready: func() bool { return true }}
	for _, p := range New(o).newParts(o, &customHosts{}, http.NewCrossOriginProtection()) {
		wired = append(wired, reflect.TypeOf(p).Elem().Name())
	}
	slices.Sort(declared)
	slices.Sort(wired)
	if len(declared) == 0 || !slices.Equal(declared, wired) {
		t.Errorf("declared %q\nwired %q", declared, wired)
	}
}
