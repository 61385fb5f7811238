package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Limits of the program under test.
const (
	buildLimit = 5 * time.Minute
	startLimit = time.Minute
	stopLimit  = 15 * time.Second
)

// server is the real program in its own process, with a PostgreSQL that it started itself.
type server struct {
	url   string
	token string // of the management API
}

// startServer builds the program as its users do and runs it until the test ends. It must then exit with code
// 0.
func startServer(t *testing.T) *server {
	t.Helper()
	dir := passable(t)
	binary := filepath.Join(dir, "proofline")
	build(t, binary)
	data := filepath.Join(dir, "data")
	program := exec.Command(binary, "serve", "--addr", "127.0.0.1:0", "--data", data, "--beacon-relays", "none", "--limit-exempt", "127.0.0.0/8")
	program.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PROOFLINE_") || strings.HasPrefix(v, "DATABASE_URL=")
	})
	out, stdout := io.Pipe()
	program.Stdout, program.Stderr = stdout, t.Output()
	program.WaitDelay = stopLimit // for a PostgreSQL that outlives a killed server
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	t.Cleanup(func() { stop(t, program, ended) })
	go func() {
		err := program.Wait()
		_ = stdout.Close()
		ended <- err
	}()
	return &server{url: listening(t, firstLine(out)), token: readToken(t, data)}
}

// passable makes a directory that PostgreSQL's user can pass through. It cannot pass through those of
// testing.T.
func passable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "proofline-interop-")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// build builds the program with the product's dependencies, not with this module's.
func build(t *testing.T, binary string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/proofline")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build proofline: %v\n%s", err, out)
	}
}

// firstLine returns the first line, or "" if there is none, and discards the rest.
func firstLine(r io.Reader) <-chan string {
	line := make(chan string, 1)
	go func() {
		buffered := bufio.NewReader(r)
		text, _ := buffered.ReadString('\n')
		line <- text
		_, _ = io.Copy(io.Discard, buffered)
	}()
	return line
}

// listening waits for the line with the server's address.
func listening(t *testing.T, lines <-chan string) (url string) {
	t.Helper()
	select {
	case line := <-lines:
		url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
		if !ok {
			t.Fatalf("proofline serve says %q, not where it listens", line)
		}
		return url
	case <-time.After(startLimit):
		t.Fatal("proofline serve does not start")
	}
	return url
}

func readToken(t *testing.T, data string) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(data, "admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

// stop asks the program to stop, and kills it if it does not.
func stop(t *testing.T, program *exec.Cmd, ended <-chan error) {
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("proofline serve: %v", err)
		}
	case <-time.After(stopLimit):
		t.Errorf("proofline serve does not stop: killed, %v", program.Process.Kill())
		<-ended
	}
}

// do sends a request with a JSON body, decodes the JSON response into answer, and returns the status. The
// token is sent only to the management API.
func (s *server) do(ctx context.Context, method, url string, body, answer any) (int, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(url, s.url+"/v1/") {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	return resp.StatusCode, err
}
