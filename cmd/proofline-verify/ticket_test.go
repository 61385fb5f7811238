package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier/ticket"
)

func TestTicketScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/ticket",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "columns": columns,
			"proof": writeProof, "line": lineOf},
		Setup: func(env *testscript.Env) error {
			for name, operator := range map[string]string{"VKEY": "honest", "RIVAL": "rival"} {
				keys, err := roomtest.NewKeys("queue.example.com/r/ticket", operator)
				if err != nil {
					return err
				}
				env.Setenv(name, keys.VKey)
				hash := keys.Chain.Chain().Hash()
				env.Setenv(name+"_CHAIN", hex.EncodeToString(hash[:]))
				for i, w := range keys.Witnesses {
					env.Setenv(fmt.Sprintf("%s_WITNESS%d", name, i), w.String())
				}
			}
			return nil
		},
	})
}

// savedProofs returns the files of the vectors by name.
func savedProofs() (map[string]string, error) {
	content, err := os.ReadFile(filepath.Join("..", "..", "verifier", "ticket", "testdata", "vectors.json"))
	if err != nil {
		return nil, err
	}
	var vectors struct{ Files []struct{ Name, File string } }
	err = json.Unmarshal(content, &vectors)
	files := map[string]string{}
	for _, f := range vectors.Files {
		files[f.Name] = f.File
	}
	return files, err
}

// proof NAME FILE [OLD NEW] writes a file of the vectors, optionally with a change.
func writeProof(ts *testscript.TestScript, _ bool, args []string) {
	files, err := savedProofs()
	ts.Check(err)
	content, ok := files[args[0]]
	if !ok {
		ts.Fatalf("no file %q", args[0])
	}
	if len(args) > 2 {
		if !strings.Contains(content, args[2]) {
			ts.Fatalf("no %q", args[2])
		}
		content = strings.Replace(content, args[2], args[3], 1)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(content), 0o600))
}

// line ID STATUS REASON looks up a line in the printed JSON.
func lineOf(ts *testscript.TestScript, _ bool, args []string) {
	var r placeResult
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &r))
	for _, line := range r.Lines {
		if string(line.ID) != args[0] {
			continue
		}
		if string(line.Status) != args[1] || string(line.Reason) != args[2] {
			ts.Fatalf("line %s: %s %s", line.ID, line.Status, line.Reason)
		}
		return
	}
	ts.Fatalf("no line %s", args[0])
}

// TestPlaceWords expects a sentence for every possible result, and no others.
func TestPlaceWords(t *testing.T) {
	for id, reasons := range ticket.Verdicts {
		want, got := slices.Sorted(maps.Keys(reasons)), slices.Sorted(maps.Keys(placeWords[id]))
		if !slices.Equal(want, got) || placeTitles[id] == "" {
			t.Errorf("%s: words for %v, want %v", id, got, want)
		}
	}
}

// TestTicketVectors prints every file of the vectors: the exit code matches the colours, no sentence lacks a
// fact, and every line fits.
func TestTicketVectors(t *testing.T) {
	files, err := savedProofs()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		file := filepath.Join(t.TempDir(), "proof.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		print := func(args ...string) (string, int) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append([]string{"ticket", file}, args...), &stdout, &stderr,
				func(string) string { return "" })
			if stderr.Len() > 0 {
				t.Errorf("%s: %s", name, &stderr)
			}
			return stdout.String(), code
		}
		text, code := print()
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); strings.Contains(line, "?") || len([]rune(line)) > width &&
				len(strings.Fields(line)) > 1 {
				t.Errorf("%s: %q", name, line)
			}
		}
		var r placeResult
		asJSON, again := print("--json")
		if err := json.Unmarshal([]byte(asJSON), &r); err != nil || code != again {
			t.Errorf("%s: exit codes %d and %d, %v", name, code, again, err)
		}
		isRed := slices.ContainsFunc(r.Lines, func(l placeLine) bool { return l.Status == ticket.Red })
		if want := map[bool]int{false: exitVerified, true: exitFailed}[isRed]; code != want ||
			isRed != (r.Status == ticket.Red) {
			t.Errorf("%s: exit code %d, want %d, status %s", name, code, want, r.Status)
		}
		for _, line := range r.Lines {
			if !strings.Contains(text, line.Title) || line.Text == "" {
				t.Errorf("%s: no %q in %s", name, line.Title, text)
			}
		}
	}
}

func TestTicketUnwritable(t *testing.T) {
	files, err := savedProofs()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "proof.json")
	if err := os.WriteFile(file, []byte(files["four good lines"]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ticket", file}, {"ticket", file, "--json"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, broken{}, &stderr,
			func(string) string { return "" }); code != exitUnreadable {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
}

// TestPlaceColours checks that a line has the colour of its status.
func TestPlaceColours(t *testing.T) {
	for status, code := range map[ticket.Status]int{ticket.Green: 32, ticket.Neutral: 90, ticket.Amber: 33,
		ticket.Red: 31} {
		line := placeLine{ticket.Line{ID: ticket.PlaceLine, Status: status, Reason: ticket.Exact}, "Title", "Text"}
		term, out, _ := on(true, nil)
		lines := []placeLine{{}, {}, {}, line}
		if err := term.printPlace(&placeResult{Status: status, Lines: lines}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), fmt.Sprintf("\x1b[%dm", code)); n != 3 {
			t.Errorf("%s: painted %d times in %q", status, n, out)
		}
	}
}
