package web

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of routes into API.md")

// TestRoutesDocumented compares the table in API.md with the program's routes.
func TestRoutesDocumented(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	c := contractOf(t, s.api)
	var table strings.Builder
	table.WriteString("| route | scope | |\n|---|---|---|\n")
	for _, n := range s.api.Needs() {
		scope := n.Scope.String()
		if n.Server {
			scope = "server"
		}
		summary := c.document.Paths[n.Path][strings.ToLower(n.Method)].Summary
		fmt.Fprintf(&table, "| `%s %s` | %s | %s |\n", n.Method, n.Path, scope, summary)
	}
	text, err := os.ReadFile("API.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- routes -->\n", "<!-- /routes -->"
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("API.md has no place for the routes")
	}
	if *update {
		if err := os.WriteFile("API.md", []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != table.String() {
		t.Errorf("API.md does not list the routes as they are: go test ./web -run TestRoutesDocumented -update")
	}
}

// TestExamples runs the commands of API.md in a shell. Each shown response must be a part of the real one.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program, "is not on this machine")
		}
	}
	s := newTenants(t)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "proofline-data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "proofline-data", "admin-token"), []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("API.md")
	if err != nil {
		t.Fatal(err)
	}
	setup, examples := "", regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```json\n(.*?)```\n)?").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 10 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, example := range examples {
		commands := strings.ReplaceAll(example[1], "http://127.0.0.1:8080", s.url)
		if setup == "" {
			setup = commands[:strings.LastIndex(strings.TrimSpace(commands), "\n")] + "\n"
		}
		shell := exec.CommandContext(t.Context(), "sh", "-eu")
		shell.Dir, shell.Stdin = dir, strings.NewReader(setup+commands)
		var out, complaint bytes.Buffer
		shell.Stdout, shell.Stderr = &out, &complaint
		if err := shell.Run(); err != nil {
			t.Fatalf("%v: %s\n%s\n%s", err, commands, out.Bytes(), complaint.Bytes())
		}
		if example[2] != "" {
			// The first report opens a gate a moment later, or before it gets its reply.
			printed := strings.ReplaceAll(out.String(), `"gate":"open","share":600`, `"gate":"shut","share":0`)
			contains(t, commands, printed, example[2])
		}
	}
}

// contains compares the last line of an example's output with the shown response.
func contains(t *testing.T, commands, printed, shown string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	var got, want any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	if err := json.Unmarshal([]byte(shown), &want); err != nil {
		t.Fatalf("%v: %s", err, shown)
	}
	if !isPart(want, got) {
		t.Errorf("%s\nprints %s\nwhich is not %s", commands, lines[len(lines)-1], shown)
	}
}

// isPart reports whether a shown value is a part of the real one. IDs, addresses and secrets differ each
// time.
func isPart(shown, real any) bool {
	switch shown := shown.(type) {
	case map[string]any:
		members, ok := real.(map[string]any)
		for name, value := range shown {
			other, there := members[name]
			volatile := name == "id" || name == "token" || name == "url" || name == "link" || name == "key"
			ok = ok && there && (isPart(value, other) || volatile && reflect.TypeOf(value) == reflect.TypeOf(other))
		}
		return ok
	case []any:
		list, ok := real.([]any)
		for _, value := range shown {
			found := false
			for _, other := range list {
				found = found || isPart(value, other)
			}
			ok = ok && found
		}
		return ok
	}
	return reflect.DeepEqual(shown, real)
}
