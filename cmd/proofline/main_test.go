package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/serve"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/internal/freeport"
	"github.com/proofline/proofline/internal/wire"
)

// TestMain builds both programs and puts them first in PATH, so that all tests here
// run the real binaries.
func TestMain(m *testing.M) { os.Exit(withBinaries(m)) }

func withBinaries(m *testing.M) int {
	dir, err := os.MkdirTemp("", "proofline-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-buildvcs=false", raceFlag, "-o", dir, ".", "../proofline-verify")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s\n", err, out)
		return 1
	}
	for _, e := range os.Environ() { // the environment must not influence tests
		if name, _, _ := strings.Cut(e, "="); name == "DATABASE_URL" || strings.HasPrefix(name, "PROOFLINE_") &&
			!strings.HasPrefix(name, "PROOFLINE_TEST_") && name != "PROOFLINE_PG_BIN" {
			_ = os.Unsetenv(name)
		}
	}
	_ = os.Setenv("PROOFLINE_BEACON_RELAYS", serve.NoRelays)       // so that no test sends requests to other machines
	_ = os.Setenv("PROOFLINE_LIMIT_EXEMPT", "127.0.0.0/8,::1/128") // the tests' crowds come from this machine
	_ = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return m.Run()
}

// startTime bounds the start of a server: on a busy machine initdb and recovery are
// slow.
const startTime = time.Minute

// stopTime bounds the stop of a server: ten seconds are documented, and a busy machine
// takes longer.
const stopTime = 30 * time.Second

// tempDir makes a data directory. Unlike those of testing.T the user postgres can
// enter it when the tests run as root.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "proofline-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// removeAll removes a directory. The PostgreSQL of a killed server may still be
// shutting down in it.
func removeAll(t *testing.T, dir string) {
	waitFor(t, "PostgreSQL is gone from "+dir, func() bool {
		for _, below := range []string{"", "data"} {
			if _, err := os.Stat(filepath.Join(dir, below, "postgres", "postmaster.pid")); err == nil {
				return false
			}
		}
		return os.RemoveAll(dir) == nil
	})
}

// process is a running proofline.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	url    string // of the server or proxy
	exited chan error

	mu     sync.Mutex // guards output
	output bytes.Buffer
}

// launch starts a command in the background. The environment is a list of NAME=VALUE.
func launch(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	return launchProgram(t, "proofline", env, args...)
}

func launchProgram(t testing.TB, program string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, exited: make(chan error, 1)}
	p.cmd = exec.Command(program, args...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	t.Cleanup(p.kill)
	return p
}

// until waits until the process prints a line that matches, and returns its first
// group.
func (p *process) until(line string, limit time.Duration) string {
	p.t.Helper()
	want := regexp.MustCompile("(?m)^" + line + "$")
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if found := want.FindStringSubmatch(p.said()); found != nil {
			return found[1]
		}
		select {
		case err := <-p.exited:
			p.exited <- err
			p.t.Fatalf("%q exits with %v\n%s", p.cmd.Args, err, p.said())
		default:
		}
	}
	p.t.Fatalf("%q does not print %q within %s\n%s", p.cmd.Args, line, limit, p.said())
	return ""
}

// startServer starts a server and waits until it prints that it listens.
func startServer(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	p := launch(t, env, append([]string{"serve"}, args...)...)
	p.listens()
	return p
}

// listens waits until a server prints its address.
func (p *process) listens() {
	p.t.Helper()
	p.url = p.until(`listening on (http://\S+)`, startTime)
}

// Write collects the process's output.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(b)
}

// said returns the process's output so far.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// kill kills the process with SIGKILL and waits for it. It may have ended already.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	err := <-p.exited
	p.exited <- err
}

// stop ends the process with SIGTERM, and checks that it exits with 0 in time.
func (p *process) stop() {
	p.t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case err := <-p.exited:
		p.exited <- err
		if err != nil {
			p.t.Fatalf("after SIGTERM: %v\n%s", err, p.said())
		}
	case <-time.After(stopTime):
		p.t.Fatalf("still running %s after SIGTERM\n%s", time.Since(began), p.said())
	}
}

// proofline runs a command to its end and returns its output.
func proofline(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return command(t, stdin, "proofline", args...)
}

func command(t testing.TB, stdin, name string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &complaint
	err := cmd.Run()
	if exited := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exited) || !exited.Exited()) {
		t.Fatalf("%s %q: %v\n%s", name, args, err, complaint.String())
	}
	return out.String(), complaint.String(), cmd.ProcessState.ExitCode()
}

// manager returns a client that manages the rooms of a server.
func manager(t testing.TB, p *process, dir string) *api.Client {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(dir, server.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	return &api.Client{Base: p.url, Token: strings.TrimSpace(string(token))}
}

// createRoom creates a room with windows, claim time and outflow that suit tests.
func createRoom(t testing.TB, c *api.Client, slug string) wire.Room {
	t.Helper()
	var room wire.Room
	body := fmt.Sprintf(`{"slug": %q, "windows": [{"length": "500ms"}], "outflow": {"per_minute": 60000}, "claim": "1m"}`, slug)
	if _, err := c.Call(t.Context(), http.MethodPost, "/v1/rooms", []byte(body), &room); err != nil {
		t.Fatal(err)
	}
	return room
}

// freePort returns a free port.
func freePort(t testing.TB) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(freeport.Addr(t))
	return port
}

func lookPath(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
