package main

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/room/keys"
)

// TestServeTwice starts a server on a new directory, and then again on the same one.
func TestServeTwice(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "data") // does not exist yet
	p := startServer(t, []string{"PROOFLINE_DATA=" + dir, "PROOFLINE_LOG_FORMAT=json"}, "--addr", "127.0.0.1:0")
	secrets := readSecrets(t, dir)
	if _, err := keys.ParseMasterKey(secrets[server.MasterKeyFile]); err != nil {
		t.Errorf("%s: %v", server.MasterKeyFile, err)
	}
	visitor := joinOnce(t, createRoom(t, manager(t, p, dir), "kept").URL)
	p.stop()
	checkStopped(t, p, dir)

	again := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0")
	for name, secret := range readSecrets(t, dir) {
		if secrets[name] != secret {
			t.Errorf("%s changed", name)
		}
		if strings.Contains(p.said()+again.said(), secret) {
			t.Errorf("%s was printed", name)
		}
	}
	place, err := (&api.Client{Base: again.url + "/r/kept"}).Place(t.Context(), visitor.Ticket)
	if err != nil || place.Status == "" {
		t.Errorf("the visitor of the first run is %+v, %v", place, err)
	}
	again.stop()
}

// TestServeLimits: by default a server limits each network, and logs proxies that it
// does not trust.
func TestServeLimits(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	p := startServer(t, []string{"PROOFLINE_LIMIT_EXEMPT="}, "--data", dir, "--addr", "127.0.0.1:0", "--limit-tickets", "5")
	url := createRoom(t, manager(t, p, dir), "limited").URL
	var statuses []int
	for range 7 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/join", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Forwarded-For", rand.Text()) // must be ignored
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		statuses = append(statuses, answer.StatusCode)
		if answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if want := []int{201, 201, 201, 201, 201, 429, 429}; !slices.Equal(statuses, want) {
		t.Errorf("joins answered with %v, want %v", statuses, want)
	}
	for _, line := range []string{"network=127.0.0.0/24 limit=tickets",
		"ignoring X-Forwarded-For from an untrusted address"} {
		if !strings.Contains(p.said(), line) {
			t.Errorf("the log lacks %q: %s", line, p.said())
		}
	}
	p.stop()
}

// readSecrets reads the secret files of a data directory, and checks their mode.
func readSecrets(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range []string{server.MasterKeyFile, server.TokenFile} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found[name] = strings.TrimSpace(string(text)); len(found[name]) < 43 { // 32 bytes
			t.Errorf("%s is %d characters", name, len(found[name]))
		}
	}
	return found
}

func joinOnce(t *testing.T, roomURL string) api.Joined {
	t.Helper()
	j, err := (&api.Client{Base: roomURL}).Join(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// checkStopped checks a stopped server: it has printed its address and the file of
// the setup link, logged JSON, and left no PostgreSQL running.
func checkStopped(t *testing.T, p *process, dir string) {
	t.Helper()
	said := p.said()
	if strings.Count(said, "listening on ") != 1 {
		t.Errorf("the server said %q", said)
	}
	for line := range strings.Lines(said) {
		isGreeting := strings.HasPrefix(line, "listening on http://127.0.0.1:") ||
			strings.HasPrefix(line,
				"create the first account with the link in "+filepath.Join(dir, server.SetupFile)+", ")
		if !isGreeting && !json.Valid([]byte(line)) {
			t.Errorf("neither the address, the link nor JSON: %q", line)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "postgres", "postmaster.pid")); !os.IsNotExist(err) {
		t.Errorf("PostgreSQL is still running: %v", err)
	}
}

// TestServeLostKey: a server refuses to start without the rooms' master key, or with
// another one.
func TestServeLostKey(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	p := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0")
	createRoom(t, manager(t, p, dir), "locked")
	p.stop()

	key := filepath.Join(dir, server.MasterKeyFile)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, 1, "other users of this machine may read it")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, 1, "the master key's file is missing: 1 rooms need "+key)
	if _, err := os.Stat(key); !os.IsNotExist(err) {
		t.Errorf("the server created a new key: %v", err)
	}
	refused(t, dir, 1, "wrong master key", "PROOFLINE_MASTER_KEY="+keys.NewMasterKey())
	refused(t, dir, 1, "neither a key nor the name of a file", "PROOFLINE_MASTER_KEY=mistyped-"+keys.NewMasterKey())
}

// refused checks that a server does not start, prints why, and does not print its key.
func refused(t *testing.T, dir string, code int, why string, env ...string) {
	t.Helper()
	cmd := exec.Command("proofline", "serve", "--data", dir, "--addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), env...)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), why) {
		t.Errorf("serve exits with %d, want %d, and says %q, want %q", got, code, out, why)
	}
	for _, e := range env {
		if _, secret, _ := strings.Cut(e, "="); strings.Contains(string(out), secret) {
			t.Errorf("the key was printed: %q", out)
		}
	}
}

// TestServeAddressTaken: a taken address fails the start before PostgreSQL starts.
func TestServeAddressTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := filepath.Join(tempDir(t), "data")
	_, stderr, code := proofline(t, "", "serve", "--data", dir, "--addr", l.Addr().String())
	if code != 1 || !strings.Contains(stderr, "hint: another program listens there") {
		t.Errorf("serve exits with %d and says %q", code, stderr)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the server created the data directory: %v", err)
	}
}

// TestServeMetrics reads the metrics of a server with a room, and a profile. They
// have their own address: the visitors' address serves neither.
func TestServeMetrics(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	p := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0")
	metrics := p.until(`metrics on (http://\S+/metrics)`, time.Minute)
	joinOnce(t, createRoom(t, manager(t, p, dir), "measured").URL)
	read := func(url string) string {
		a, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.Status + "\n" + string(body)
	}
	got := read(metrics)
	for _, line := range []string{
		"200 OK", "proofline_ready 1", "proofline_database_up 1", "proofline_rooms_loaded 1", `proofline_room_arrivals_total{room="measured"} 1`,
		`proofline_room_queued{room="measured"} 0`, `proofline_refused_total{budget="joins"} 0`, "# TYPE go_goroutines gauge", "# TYPE process_cpu_seconds_total counter",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	if profile := read(strings.TrimSuffix(metrics, "metrics") +
		"debug/pprof/goroutine?debug=1"); !strings.Contains(profile, "goroutine profile: total") {
		t.Errorf("the profile is %.200s", profile)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if status := status(t, p.url+path); status != http.StatusNotFound {
			t.Errorf("visitors get %d for %s", status, path)
		}
	}
	_, stderr, code := proofline(t, "", "serve", "--data", filepath.Join(dir, "other"), "--addr", "127.0.0.1:0",
		"--metrics-addr", strings.TrimPrefix(p.url, "http://"))
	if code != 1 || !strings.Contains(stderr, "hint: choose another address with --metrics-addr") {
		t.Errorf("with a taken address serve exits with %d and prints %q", code, stderr)
	}
	p.stop()
}

// TestServeSecondSignal: a second signal ends the server at once, despite open
// requests.
func TestServeSecondSignal(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	p := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0")
	createRoom(t, manager(t, p, dir), "slow")
	waitFor(t, "the server is ready", func() bool { return status(t, p.url+"/readyz") == http.StatusOK })
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The first signal waits for half a request.
	if _, err := conn.Write([]byte("POST /r/slow/join HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the server takes the request", func() bool {
		resp, err := http.Get(p.url + "/readyz")
		return err == nil && resp.Body.Close() == nil
	})
	for range 2 {
		if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatalf("%v: %s", err, p.said())
		}
		time.Sleep(200 * time.Millisecond)
	}
	select {
	case err := <-p.exited:
		p.exited <- err
		if p.cmd.ProcessState.ExitCode() != cli.ExitFailed || !strings.Contains(p.said(), "second signal") {
			t.Errorf("the server exits with %v and says %q", err, p.said())
		}
	case <-time.After(time.Minute):
		t.Errorf("still running after two signals: %s", p.said())
	}
}

// waitFor waits until ok returns true.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within three minutes: %s", what)
}
