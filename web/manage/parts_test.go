package manage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/room"
)

// TestParts checks that the API has every part that this package declares: the tests of access control see the
// routes of these parts only.
func TestParts(t *testing.T) {
	t.Parallel()
	var declared, wired []string
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), ".go") && !strings.HasSuffix(file.Name(), "_test.go") {
			declared = append(declared, routers(t, file.Name())...)
		}
	}
	a := New(Options{
		Control: &control.Rooms{Options: control.Options{Rehearsals: &rehearse.Rehearsals{}}}, Rooms: &room.Rooms{},
		Accounts: &account.Accounts{}, Live: &live.Live{}, Webhooks: &webhook.Service{}, Sites: &site.Sites{},
		Activity: &activity.Log{},
	})
	routes := 0
	for _, p := range a.parts {
		wired = append(wired, reflect.TypeOf(p).Name())
		routes += len(p.routes())
	}
	slices.Sort(declared)
	slices.Sort(wired)
	if len(declared) == 0 || !slices.Equal(declared, wired) {
		t.Errorf("declared %q\nwired %q", declared, wired)
	}
	if needs := len(a.Needs()); needs != routes || len(a.Routes()) != routes+1 { // and the document
		t.Errorf("%d routes, %d of them served, %d tested", routes, len(a.Routes()), needs)
	}
}

// routers returns the types in a file that have a method routes.
func routers(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != "routes" {
			continue
		}
		receiver := f.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		names = append(names, receiver.(*ast.Ident).Name) //nolint:forcetypeassert,errcheck // no generic types
	}
	return names
}
