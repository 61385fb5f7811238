package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/internal/pgtest"
)

// TestE2EPooler starts a server behind PgBouncer. Transaction pooling is refused with
// a hint, and session pooling works.
func TestE2EPooler(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("pgbouncer"); err != nil {
		t.Skip("pgbouncer is not on this machine")
	}
	database, dir := pgtest.Start(t), tempDir(t)
	key := newKeyFile(t, dir)
	_, stderr, code := proofline(t, "", "serve", "--data", dir, "--addr", "127.0.0.1:0", "--master-key", key,
		"--database-url", poolerOf(t, database.URL(), "transaction"))
	if code != cli.ExitFailed || !strings.Contains(stderr, "connection pooler") ||
		!strings.Contains(stderr, "pool_mode = session") {
		t.Errorf("behind a transaction pooler serve exits with %d and says %q", code, stderr)
	}
	p := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0", "--master-key", key, "--database-url",
		poolerOf(t, database.URL(), "session"))
	joinOnce(t, createRoom(t, manager(t, p, dir), "pooled").URL)
	p.stop()
}

// poolerOf runs PgBouncer in front of a database and returns its URL.
func poolerOf(t *testing.T, conn, mode string) string {
	t.Helper()
	u, err := url.Parse(conn)
	if err != nil {
		t.Fatal(err)
	}
	q, port, dir := u.Query(), freePort(t), tempDir(t)
	file := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\npostgres = host=%s port=%s dbname=postgres user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\npool_mode = %s\ndefault_pool_size = 30\nmax_client_conn = 100\n",
		q.Get("host"), q.Get("port"), port, mode)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("pgbouncer", file)
	if os.Getuid() == 0 { // PgBouncer refuses to run as root, and only its owner can use PostgreSQL's socket
		owner, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.ParseUint(owner.Uid, 10, 32)
		gid, _ := strconv.ParseUint(owner.Gid, 10, 32)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	waitFor(t, "PgBouncer listens", func() bool { return listens(port) })
	q.Set("host", "127.0.0.1")
	q.Set("port", port)
	u.RawQuery = q.Encode()
	return u.String()
}

// TestE2EStartWithoutDatabase starts a server before its database. It waits, logs
// that, and answers requests meanwhile.
func TestE2EStartWithoutDatabase(t *testing.T) {
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	key, port := newKeyFile(t, dir), freePort(t)
	database.Stop()
	p := launch(t, nil, "serve", "--data", dir, "--addr", "127.0.0.1:"+port, "--master-key", key, "--database-url",
		database.URL())
	waitFor(t, "the server logs that it waits", func() bool {
		return strings.Contains(p.said(), "the server waits for it")
	})
	waitFor(t, "it is alive", func() bool { return status(t, "http://127.0.0.1:"+port+"/livez") == http.StatusOK })
	if s := status(t, "http://127.0.0.1:"+port+"/r/any/state"); s != http.StatusServiceUnavailable {
		t.Errorf("without a database a room's state is answered with %d", s)
	}
	database.Restart()
	p.listens()
	if s := status(t, p.url+"/readyz"); s != http.StatusOK {
		t.Errorf("with the database the server answers %d", s)
	}
	joinOnce(t, createRoom(t, manager(t, p, dir), "late").URL)
	p.stop()
}

// TestE2EStopWithoutDatabase stops a server while its database is frozen and visitors
// join. It ends within seconds, and answers every request, including the next one on
// a kept-alive connection.
func TestE2EStopWithoutDatabase(t *testing.T) {
	t.Parallel()
	database, dir := pgtest.Start(t), tempDir(t)
	p := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0", "--database-url", database.URL(), "--master-key",
		newKeyFile(t, dir))
	room := createRoom(t, manager(t, p, dir), "stopped")
	kept := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
	ask := func(client *http.Client, method, path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, bytes.NewReader(nil))
		if err != nil {
			return nil, err
		}
		a, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(io.Discard, a.Body)
		return a, err
	}
	if _, err := ask(kept, http.MethodGet, "/livez"); err != nil {
		t.Fatal(err)
	}
	frozen := processesOf(t, database.Dir())
	signal := func(s syscall.Signal) {
		for _, pid := range frozen {
			_ = syscall.Kill(pid, s)
		}
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	signal(syscall.SIGSTOP)
	var people sync.WaitGroup
	var sent atomic.Int32
	for range 60 {
		people.Go(func() {
			sent.Add(1)
			a, err := ask(http.DefaultClient, http.MethodPost, "/r/"+room.Slug+"/join")
			if err != nil {
				t.Errorf("a join is dropped: %v", err)
			} else if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
				t.Errorf("a join is answered with %d, Retry-After %q", a.StatusCode, a.Header.Get("Retry-After"))
			}
		})
	}
	waitFor(t, "the server is not ready", func() bool {
		return sent.Load() == 60 && status(t, p.url+"/readyz") == http.StatusServiceUnavailable
	})
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if a, err := ask(kept, http.MethodGet, "/livez"); err != nil || !a.Close {
		t.Errorf("a kept-alive connection is answered with %+v, %v, want a last answer", a, err)
	}
	select {
	case err := <-p.exited:
		p.exited <- err
		if err != nil {
			t.Errorf("the server exits with %v:\n%s", err, p.said())
		}
	case <-time.After(stopTime):
		t.Fatalf("still running %s after SIGTERM", stopTime)
	}
	people.Wait()
	t.Logf("the server stopped in %s", time.Since(began).Round(time.Millisecond))
}

// TestCrashDiskFull fills the disk of a private PostgreSQL for a while. The server
// reports that it is not ready, and continues once there is space.
func TestCrashDiskFull(t *testing.T) {
	if os.Getenv("PROOFLINE_TEST_SLOW") == "" {
		t.Skip("a minute with a full disk: make e2e")
	}
	t.Parallel()
	dir := tempDir(t)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o711); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=160m,mode=711", "tmpfs",
		data).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be made here: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", data).Run() })
	p := startServer(t, nil, "--data", data, "--addr", "127.0.0.1:0")
	organizer := manager(t, p, data)
	c := gather(t, createRoom(t, organizer, "full"), p.url)
	waitFor(t, "visitors join", func() bool { return c.count() > 50 })
	filler := filepath.Join(data, "filler")
	fill := exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=64k")
	_ = fill.Run() // it ends when the disk is full
	full := time.Now()
	pid := processesOf(t, data)[0]
	_ = syscall.Kill(pid, syscall.SIGKILL) // it cannot recover without disk space
	for time.Since(full) < 50*time.Second {
		if s := status(t, p.url+"/livez"); s != http.StatusOK {
			t.Fatalf("the server answers %d after %s\n%s", s, time.Since(full), p.said())
		}
		_ = exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=64k", "oflag=append", "conv=notrunc").Run()
		time.Sleep(500 * time.Millisecond)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	before := c.count()
	waitFor(t, "visitors join again", func() bool { return c.count() > before+50 })
	c.finish(t, organizer)
	p.stop()
}
