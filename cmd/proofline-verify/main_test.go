package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"proofline-verify": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"room":    writeRoom,
			"serve":   serve,
			"columns": columns,
			"report":  reported,

			"unreadable": unreadableFiles,
			"unpack":     unpack,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/xdg")
			return nil
		},
	})
}

// exits CODE COMMAND... runs a command, which must exit with that code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if failed := (&exec.ExitError{}); errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// room NAME DIR writes a published log, and sets VKEY to its key.
func writeRoom(ts *testscript.TestScript, _ bool, args []string) {
	operator := "honest"
	if args[0] == "rival" {
		operator = "rival"
	}
	keys, err := roomtest.NewKeys("queue.example.com/r/sale", operator)
	ts.Check(err)
	r := roomtest.Small(keys, keys.Policy())
	ts.Check(r.Err())
	entries := r.Entries()
	half := len(entries) / 2
	switch args[0] {
	case "half":
		entries = entries[:half]
	case "forked": // half as long, with a different last entry
		entries = append(slices.Clone(entries[:half-1]), fmt.Appendf(nil, "end %d", r.State().Now()))
	case "unfair":
		entries = slices.Delete(slices.Clone(entries), 3, 4)
	}
	files, err := roomtest.Publish(keys, entries)
	ts.Check(err)
	ts.Check(files.Write(ts.MkAbs(args[1])))
	ts.Setenv("VKEY", keys.VKey)
}

// serve DIR publishes a directory and sets URL.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	s := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(s.Close)
	ts.Setenv("URL", s.URL)
}

// unreadable DIR replaces each file by a directory.
func unreadableFiles(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	files, err := os.ReadDir(dir)
	ts.Check(err)
	for _, f := range files {
		ts.Check(os.Remove(filepath.Join(dir, f.Name())))
		ts.Check(os.Mkdir(filepath.Join(dir, f.Name()), 0o700))
	}
}

// columns N checks that output lines are at most N columns wide, unless they are one word.
func columns(ts *testscript.TestScript, _ bool, args []string) {
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		line = strings.TrimRight(line, "\n")
		if len([]rune(line)) > most && len(strings.Fields(line)) > 1 {
			ts.Fatalf("%d columns: %s", len([]rune(line)), line)
		}
	}
}

// report CHECK STATUS looks up a check in the printed JSON.
func reported(ts *testscript.TestScript, _ bool, args []string) {
	var r verifier.Report
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &r))
	for _, c := range r.Checks {
		if c.ID == args[0] {
			if string(c.Status) != args[1] {
				ts.Fatalf("check %s: %s: %s", c.ID, c.Status, c.Detail)
			}
			return
		}
	}
	ts.Fatalf("no check %s", args[0])
}

// on returns a terminal that writes into buffers.
func on(attached bool, env map[string]string) (t *terminal, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	return &terminal{out, err, func(name string) string { return env[name] },
		func(io.Writer) bool { return attached }}, out, err
}

func TestColour(t *testing.T) {
	r := &verifier.Report{OK: true, Level: 1, Checks: []verifier.Check{{ID: "x", Title: "X", Status: verifier.Pass}}}
	for _, c := range []struct {
		attached bool
		env      map[string]string
		want     bool
	}{
		{true, nil, true},
		{true, map[string]string{"NO_COLOR": "1"}, false},
		{true, map[string]string{"TERM": "dumb"}, false},
		{false, nil, false},
	} {
		term, out, _ := on(c.attached, c.env)
		if err := term.printReport(r, nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "\x1b["); got != c.want {
			t.Errorf("attached %v, %v: coloured %v", c.attached, c.env, got)
		}
	}
}

func TestBar(t *testing.T) {
	term, _, out := on(true, nil)
	b := term.bar("entries")
	b.show(500, 1000)
	b.show(501, 1000) // too early to draw again
	if want := "\r\x1b[K[" + strings.Repeat("#", 15) + strings.Repeat(".", 15) +
		"] 500 of 1,000 entries"; out.String() != want {
		t.Errorf("drew %q, want %q", out, want)
	}
	<-b.turns
	b.turns <- time.Now().Add(-time.Second)
	b.show(1000, 1000)
	b.clear()
	if want := strings.Repeat("#", 30) + "] 1,000 of 1,000 entries\r\x1b[K"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("drew %q, want %q at the end", out, want)
	}
	term, _, out = on(false, nil)
	b = term.bar("entries")
	b.show(1, 2)
	b.clear()
	if out.Len() > 0 {
		t.Errorf("drew %q without a terminal", out)
	}
}

func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	keys, err := roomtest.NewKeys("queue.example.com/r/sale", "honest")
	if err != nil {
		t.Fatal(err)
	}
	if err := roomtest.Generate(keys, roomtest.Dir(dir), roomtest.Size{Visitors: 300, Windows: 1}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"audit", "--no-keep", dir}, {"fetch", dir, t.TempDir()}} {
		var stdout, stderr bytes.Buffer
		code := run(ctx, args, &stdout, &stderr, func(string) string { return "" })
		if code != exitUnreadable || stdout.Len() > 0 || !strings.Contains(stderr.String(), "hint: interrupted") {
			t.Errorf("%v: exit code %d, %q, %q", args, code, &stdout, &stderr)
		}
	}
}

// Texts from servers must not control the terminal.
func TestErrorsArePrintable(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("\x1b[2J\u202eorigin\n1\nroot\n\n"))
	}))
	defer s.Close()
	for _, command := range [][]string{{"fetch", s.URL, t.TempDir()}, {"audit", s.URL}} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), command, &stdout, &stderr, func(string) string { return "" })
		if code == exitVerified || strings.ContainsAny(stdout.String()+stderr.String(), "\x1b\u202e") {
			t.Errorf("%v: exit code %d, %q, %q", command, code, &stdout, &stderr)
		}
	}
}

func TestUnwritable(t *testing.T) {
	keys, err := roomtest.NewKeys("queue.example.com/r/sale", "honest")
	if err != nil {
		t.Fatal(err)
	}
	files, err := roomtest.Small(keys, keys.Policy()).Publish()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"audit", dir}, {"audit", dir, "--json"}, {"version"},
		{"fetch", dir, t.TempDir()}} {
		var stderr bytes.Buffer
		env := func(string) string { return "" }
		if code := run(context.Background(), args, broken{}, &stderr, env); code != exitUnreadable {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestFileName(t *testing.T) {
	seen := map[string]bool{}
	for _, origin := range []string{"a/b", "a_b", "../../etc/passwd", "..", ".", strings.Repeat("long", 60), "é/ü",
		"C:\\x"} {
		name := fileName(origin)
		if seen[name] || len(name) > 200 || strings.ContainsAny(name, `/\:`) || strings.HasPrefix(name, ".") {
			t.Errorf("%q: %q", origin, name)
		}
		seen[name] = true
	}
}

func TestNamed(t *testing.T) {
	for _, c := range []struct {
		arg  string
		want bool
	}{
		{"https://queue.example.com/r/sale", true},
		{"https://queue.example.com/r/sale/", true},
		{"https://queue.example.com/r/sale/checkpoint", true},
		{"https://queue.example.com/r/other", false},
		{"https://mirror.example.com/r/sale", false},
		{"./sale", true},
	} {
		if got := named(c.arg, "queue.example.com/r/sale"); got != c.want {
			t.Errorf("%s: %v", c.arg, got)
		}
	}
}

func TestWrapped(t *testing.T) {
	text := strings.Repeat("word ", 40) + strings.Repeat("x", 100) + " end"
	for _, line := range wrapped(text, 7) {
		if len(line)+7 > width && strings.Contains(line, " ") {
			t.Errorf("%q", line)
		}
	}
	if got := strings.Join(wrapped(text, 7), " "); got != text {
		t.Errorf("%q", got)
	}
}

// Usage texts show the arguments of flags in capitals.
func TestFlagValues(t *testing.T) {
	term, _, _ := on(false, nil)
	values := 0
	for _, c := range []*cobra.Command{
		auditCommand(term), fetchCommand(term), watchCommand(term), evidenceCommand(term), compareCommand(term),
		archiveCommand(term), ticketCommand(term), witnessCommand(term), statsCommand(term), versionCommand(term),
	} {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			value, _ := pflag.UnquoteUsage(f)
			if f.Value.Type() != "bool" {
				values++
			}
			if value != strings.ToUpper(value) || (value == "") != (f.Value.Type() == "bool") {
				t.Errorf("%s --%s %q", c.Name(), f.Name, value)
			}
		})
	}
	if values < 20 {
		t.Errorf("only %d flags take a value", values)
	}
}
