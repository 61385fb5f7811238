// Package deploy_test checks what installs Proofline: units and packages, the image, the compose file
// and the chart. Tests that build packages or need root run with PROOFLINE_TEST_SLOW=1: "make e2e" sets it
// and installs what they need.
package deploy_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// built is where programs are, and remove its content when the tests end.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "proofline-deploy-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "../cmd/proofline", "../cmd/proofline-verify")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if isBuilt {
		if dir, _ := built(); dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

var isBuilt bool

// program returns the path of one of the programs.
func program(t *testing.T, name string) string {
	t.Helper()
	isBuilt = true
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// helps holds the help of commands, by their words.
var helps sync.Map

// help returns what a command prints with --help.
func help(t *testing.T, words ...string) string {
	t.Helper()
	command := strings.Join(words, " ")
	if text, ok := helps.Load(command); ok {
		return text.(string)
	}
	c := exec.CommandContext(t.Context(), program(t, filepath.Base(words[0])), slices.Concat(words[1:], []string{"--help"})...)
	c.Env = []string{"HOME=/"}
	out, err := c.CombinedOutput()
	if err != nil || strings.Contains(string(out), "Available Commands") {
		t.Fatalf("%s is not a command: %v\n%s", command, err, out)
	}
	helps.Store(command, string(out))
	return string(out)
}

// commandOf returns the words of a command line before its flags.
func commandOf(line []string) []string {
	for i, word := range line {
		if strings.HasPrefix(word, "-") {
			return line[:i]
		}
	}
	return line
}

// checkFlags checks that the command of a line has the line's flags.
func checkFlags(t *testing.T, where string, line []string) {
	t.Helper()
	text := help(t, commandOf(line)...)
	for _, word := range line {
		name, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(word, "--") && !regexp.MustCompile(`(?m)^ +`+name+`\b`).MatchString(text) {
			t.Errorf("%s: %s has no flag %s", where, strings.Join(commandOf(line), " "), name)
		}
	}
}

// others are variables that no flag has.
var others = regexp.MustCompile(`^(PROOFLINE_TOKEN|PGPASSFILE)$`)

// checkVariable checks that a command reads a variable.
func checkVariable(t *testing.T, where, variable string, command ...string) {
	t.Helper()
	if !others.MatchString(variable) && !regexp.MustCompile(`\$`+variable+`\b`).MatchString(help(t, command...)) {
		t.Errorf("%s: %s has no variable %s", where, strings.Join(command, " "), variable)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tool returns the path of a program that not every machine has.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(name + " is not installed")
	}
	return path
}

// slow skips a test that takes long unless the environment asks for it.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("PROOFLINE_TEST_SLOW") == "" {
		t.Skip("builds packages: set PROOFLINE_TEST_SLOW=1, or run make e2e")
	}
}

// run runs a command to its end and returns its output.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...) // without the test's context: cleanups run commands, too
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// patience bounds waits for a condition.
const patience = 2 * time.Minute

// awaitReady waits until a server is ready. stopped reports why it no longer runs; "": it does.
func awaitReady(t *testing.T, server string, stopped func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ; ; time.Sleep(50 * time.Millisecond) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if why := stopped(); why != "" || ctx.Err() != nil {
			t.Fatalf("%s is not ready after %s: %s", server, patience, why)
		}
	}
}

// firstJoin makes a room and has visitors join it, who check their receipts.
func firstJoin(t *testing.T, server, tokenFile string) {
	t.Helper()
	sale := filepath.Join(t.TempDir(), "sale.json")
	text := `{"slug": "sale", "windows": [{"length": "1s"}], "outflow": {"per_minute": 6000}}`
	if err := os.WriteFile(sale, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"room", "create", sale, "--token-file", tokenFile}, {"load", "sale", "--visitors", "3", "--rate", "3"}} {
		t.Log(run(t, nil, program(t, "proofline"), append(args, "--server", server)...))
	}
}

// freePort returns a free port of this machine.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
