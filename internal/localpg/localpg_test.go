//go:build unix

package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// helperDir, in the environment, makes the test binary a product that runs a
// server there until it is killed.
const helperDir = "LOCALPG_TEST_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		os.Exit(helper(dir))
	}
	code := m.Run()
	if prototypeDir != "" {
		_ = os.RemoveAll(prototypeDir)
	}
	os.Exit(code)
}

// helper prints the URL when the server is ready, and stops it when stdin ends.
func helper(dir string) int {
	s, err := Start(context.Background(), Config{Dir: dir})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println(s.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Stop(context.Background()); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// product runs the helper, as another user if credential is not nil, and
// returns it with its standard input when its server is ready.
func product(t *testing.T, dir string, credential *syscall.Credential) (*exec.Cmd, io.Closer, string) {
	t.Helper()
	binary := filepath.Join(tempDir(t), "helper")
	if out, err := exec.Command("cp", os.Args[0], binary).CombinedOutput(); err != nil {
		t.Fatalf("copy test binary: %v: %s", err, out)
	}
	cmd := exec.Command(binary)
	cmd.Dir = filepath.Dir(binary)
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var line string
	if _, err := fmt.Fscanln(stdout, &line); err != nil || !strings.HasPrefix(line, "postgres://") {
		rest, _ := io.ReadAll(stdout)
		t.Fatalf("helper says %q %s (%v)", line, rest, err)
	}
	return cmd, stdin, line
}

// tempDir makes a directory that any user can pass through.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "localpg-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// prototypeDir is a data directory with a cluster that is down, made once by
// makePrototype and copied by dataDir.
var prototypeDir string

var makePrototype = sync.OnceValue(func() (err error) {
	if prototypeDir, err = os.MkdirTemp("/tmp", "localpg-test-"); err != nil {
		return err
	}
	if err := os.Chmod(prototypeDir, 0o755); err != nil {
		return err
	}
	s, err := Start(context.Background(), Config{Dir: prototypeDir})
	if err != nil {
		return err
	}
	return s.Stop(context.Background())
})

// dataDir returns a data directory with a cluster that is down.
func dataDir(t *testing.T) string {
	t.Helper()
	if err := makePrototype(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(tempDir(t), "data")
	if out, err := exec.Command("cp", "-a", prototypeDir, dir).CombinedOutput(); err != nil {
		t.Fatalf("copy data directory: %v: %s", err, out)
	}
	return dir
}

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// query runs a statement on a connection of its own and returns the first value as text.
func query(ctx context.Context, url, statement string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var value string
	err = conn.QueryRow(ctx, statement, pgx.QueryExecModeSimpleProtocol).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return value, err
}

func mustQuery(t *testing.T, url, statement string) string {
	t.Helper()
	value, err := query(t.Context(), url, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// eventually waits until ok, for as long as anything here may take.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 seconds: %s", what)
		}
	}
}

// record collects a log.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

func (r *record) count(s string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.text.String(), s)
}

func TestStart(t *testing.T) {

	dir := filepath.Join(tempDir(t), "new", "data")
	if err := os.Mkdir(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPORT", "1") // neither postgres nor its clients may listen to these
	t.Setenv("PGUSER", "nobody")
	t.Setenv("PGDATA", "/nowhere")
	s := start(t, Config{Dir: dir, Settings: []string{"shared_buffers = 64MB", "work_mem = 5MB"}})

	for setting, want := range map[string]string{
		"listen_addresses":    "",
		"data_checksums":      "on",
		"fsync":               "on",
		"synchronous_commit":  "on",
		"server_encoding":     "UTF8",
		"lc_collate":          "C",
		"max_connections":     "100",
		"shared_buffers":      "64MB",
		"work_mem":            "5MB",
		"data_directory":      filepath.Join(dir, "postgres"),
		"data_directory_mode": "0700",
	} {
		if got := mustQuery(t, s.URL(), "show "+setting); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	if got := mustQuery(t, s.URL(), "select string_agg(distinct type || ' ' || auth_method, ', ' order by type || ' ' || auth_method) from pg_hba_file_rules"); got != "host reject, local trust" {
		t.Errorf("pg_hba.conf has %q", got)
	}
	info, err := os.Stat(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("socket directory has mode %v", info.Mode())
	}

	pid, _ := s.cluster.postmaster()
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("process group of postgres %d is %d (%v): Ctrl-C would reach it", pid, group, err)
	}

	mustQuery(t, s.URL(), "create table t as select 'kept' as v")
	stop(t, s)
	stop(t, s) // a second Stop is harmless
	if err := s.Err(); err != nil {
		t.Errorf("after Stop Err = %v", err)
	}
	if pids := s.cluster.processes(); len(pids) > 0 {
		t.Errorf("Stop left processes %v", pids)
	}
	if got := mustQuery(t, start(t, Config{Dir: dir}).URL(), "select v from t"); got != "kept" {
		t.Errorf("after a restart v = %q", got)
	}
}

func TestStopEndsSessions(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: dataDir(t)})
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "begin; create table t ()"); err != nil {
		t.Fatal(err)
	}
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(expired); err != nil {
		t.Errorf("Stop with an expired context: %v", err)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a session outlived Stop")
	}
	if pids := s.cluster.processes(); len(pids) > 0 {
		t.Errorf("Stop left processes %v", pids)
	}
}

func TestStartCancelled(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if s, err := Start(ctx, Config{Dir: dir}); err == nil {
		stop(t, s)
		t.Fatal("initdb took less than 150 ms")
	}
	if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
		t.Error("a cluster was made in 150 ms")
	}
	s := start(t, Config{Dir: dir})
	mustQuery(t, s.URL(), "select 'ok'")
}

func TestHalfMadeCluster(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	half := filepath.Join(dir, "postgres.init-123")
	if err := os.MkdirAll(filepath.Join(half, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "postgres"), 0o700); err != nil { // empty: to be used
		t.Fatal(err)
	}
	s := start(t, Config{Dir: dir})
	mustQuery(t, s.URL(), "select 'ok'")
	if left, _ := filepath.Glob(filepath.Join(dir, "postgres.init-*")); len(left) > 0 {
		t.Errorf("half-made clusters are still there: %v", left)
	}
}

func TestInUse(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := start(t, Config{Dir: dir})
	_, err := Start(t.Context(), Config{Dir: dir})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second Start: %v, want ErrInUse naming %s", err, dir)
	}
	mustQuery(t, s.URL(), "select 'the first is unharmed'")
	stop(t, s)
	start(t, Config{Dir: dir})
}

func TestAwkwardPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, path string
		temp       bool // the socket goes elsewhere
	}{
		{"long", strings.Repeat("long/", 25), true},
		{"comma", "a,b", true},
		{"marks", `it's "50%" & more \ é`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			parent := filepath.Dir(dataDir(t))
			dir := filepath.Join(parent, test.path, "data")
			if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(parent, "data"), dir); err != nil {
				t.Fatal(err)
			}
			s := start(t, Config{Dir: dir})
			mustQuery(t, s.URL(), "select 'ok'")
			info, err := os.Stat(s.socket.dir)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(s.socket.dir, dir) == test.temp || info.Mode().Perm() != 0o700 {
				t.Errorf("socket is in %s with mode %v", s.socket.dir, info.Mode())
			}
			stop(t, s)
			if _, err := os.Stat(s.socket.dir); test.temp && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("Stop left %s (%v)", s.socket.dir, err)
			}
		})
	}
}

func TestSymlinkedDir(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	link := filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Dir: link})
	if len(s.cluster.processes()) == 0 {
		t.Error("the processes of a cluster behind a symbolic link are not recognised")
	}
	if _, err := Start(t.Context(), Config{Dir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("Start by the real path: %v, want ErrInUse", err)
	}
}

func TestBadSettingIsNamed(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{Dir: dataDir(t), Settings: []string{"no_such_setting = 1"}})
	if !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "proofline.conf") {
		t.Errorf("got %v, want ErrDied with the words of postgres", err)
	}
}

func TestCrashIsRepaired(t *testing.T) {
	t.Parallel()
	var log record
	s := start(t, Config{Dir: dataDir(t), Log: log.logger()})
	mustQuery(t, s.URL(), "create table t as select 'kept' as v")
	for crash := range 3 {
		before, _ := s.cluster.postmaster()
		if crash == 0 {
			if err := syscall.Kill(before, syscall.SIGKILL); err != nil { // its children live on for a moment
				t.Fatal(err)
			}
		} else if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "postgres runs again", func() bool { return log.count("runs again") == crash+1 })
		if got := mustQuery(t, s.URL(), "select v from t"); got != "kept" {
			t.Errorf("after crash %d v = %q", crash, got)
		}
	}
	if got := log.count("ended unexpectedly"); got != 3 {
		t.Errorf("%d log lines for three crashes", got)
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err = %v", err)
	}
}

func TestHopelessRestart(t *testing.T) {
	t.Parallel()
	s := newServer(Config{Dir: dataDir(t)})
	s.restarts = 2
	if _, err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.cluster.dir, "proofline.conf"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the supervisor gives up", func() bool {
		select {
		case <-s.Done():
			return true
		default:
			return false
		}
	})
	if err := s.Err(); !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "configuration file") {
		t.Errorf("Err = %v, want ErrDied with the words of postgres", err)
	}
	if err := s.Stop(t.Context()); !errors.Is(err, ErrDied) {
		t.Errorf("Stop = %v, want ErrDied", err)
	}
}

func TestNoRestart(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: dataDir(t), NoRestart: true}
	s := start(t, cfg)
	url := s.URL()
	mustQuery(t, url, "create table t as select 'kept' as v")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if !errors.Is(s.Err(), ErrDied) {
		t.Errorf("Err = %v, want ErrDied", s.Err())
	}
	if pids := s.cluster.processes(); len(pids) > 0 {
		t.Errorf("Kill left processes %v", pids)
	}
	s = start(t, cfg)
	if s.URL() != url {
		t.Errorf("URL changed from %s to %s", url, s.URL())
	}
	if got := mustQuery(t, url, "select v from t"); got != "kept" {
		t.Errorf("after a crash v = %q", got)
	}
}

// A pid file whose number now belongs to another program of the same user
// makes postgres itself refuse to start.
func TestStalePidFile(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: dataDir(t), NoRestart: true}
	s := start(t, cfg)
	pidFile := filepath.Join(s.cluster.dir, "postmaster.pid")
	pid, _ := s.cluster.postmaster()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()

	bystander := exec.Command("sleep", "600")
	bystander.Dir = "/"
	bystander.SysProcAttr = &syscall.SysProcAttr{Credential: s.cluster.owner.credential}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- bystander.Wait() }()
	t.Cleanup(func() { _ = bystander.Process.Kill() })
	for _, name := range []string{pidFile, filepath.Join(s.socket.dir, socketFile+".lock")} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, fmt.Append(nil, pid), fmt.Append(nil, bystander.Process.Pid), 1)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	s = start(t, cfg)
	mustQuery(t, s.URL(), "select 'ok'")
	select {
	case err := <-ended:
		t.Errorf("the bystander ended: %v", err)
	default:
	}
}

// An orphan is a postgres that nobody supervises any more.
func TestOrphanIsStopped(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: dataDir(t)}
	s := start(t, cfg)
	mustQuery(t, s.URL(), "create table t as select 'kept' as v")
	stop(t, s)

	orphan := s.cluster.command(context.Background(), "postgres", "-D", s.cluster.dir,
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+s.socket.dir)
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the orphan is ready", func() bool { return s.cluster.isReady(orphan.Process.Pid) })
	ended := make(chan error, 1)
	go func() { ended <- orphan.Wait() }()

	var log record
	cfg.Log = log.logger()
	s = start(t, cfg)
	if err := <-ended; err != nil {
		t.Errorf("the orphan did not shut down in order: %v", err)
	}
	if log.count("stopping the postgres of an earlier run") != 1 {
		t.Error("nothing about the orphan in the log")
	}
	if got := mustQuery(t, s.URL(), "select v from t"); got != "kept" {
		t.Errorf("after the orphan v = %q", got)
	}
}

func TestKilledProduct(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	for round := range 3 {
		cmd, _, url := product(t, dir, nil)
		mustQuery(t, url, fmt.Sprintf("create table t%d as select 'kept' as v", round))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
	}
	s := start(t, Config{Dir: dir})
	for round := range 3 {
		if got := mustQuery(t, s.URL(), fmt.Sprintf("select v from t%d", round)); got != "kept" {
			t.Errorf("after kill %d v = %q", round, got)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"99", "12", "9.6"} {
		dir := dataDir(t)
		if err := os.WriteFile(filepath.Join(dir, "postgres", "PG_VERSION"), []byte(version+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := ErrVersion
		if version == "9.6" {
			want = ErrNotCluster
		}
		_, err := Start(t.Context(), Config{Dir: dir})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), version) {
			t.Errorf("cluster of version %s: %v, want %v", version, err, want)
		}
	}
}

func TestNotCluster(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	precious := filepath.Join(dir, "postgres", "precious.txt")
	if err := os.Mkdir(filepath.Dir(precious), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: dir})
	if !errors.Is(err, ErrNotCluster) || !strings.Contains(err.Error(), "precious.txt") {
		t.Errorf("got %v, want ErrNotCluster", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	found := func(majors ...int) (all []installation) {
		for _, m := range majors {
			all = append(all, installation{fmt.Sprintf("/pg/%d", m), m})
		}
		return all
	}
	for _, test := range []struct {
		found   []installation
		cluster int
		want    int
		err     error
		text    string
	}{
		{found(17, 16, 15), 0, 17, nil, ""},
		{found(17, 16, 15), 16, 16, nil, ""},
		{found(17, 15, 13), 15, 15, nil, ""},
		{found(14, 13), 0, 0, ErrNoBinaries, "PostgreSQL 14 in /pg/14 and PostgreSQL 13 in /pg/13, needed is version 15"},
		{found(), 0, 0, ErrNoBinaries, "apt install postgresql"},
		{found(16), 17, 0, ErrVersion, "made by the newer PostgreSQL 17, found is PostgreSQL 16 in /pg/16"},
		{found(17), 16, 0, ErrVersion, "made by PostgreSQL 16, found is PostgreSQL 17 in /pg/17"},
	} {
		given := slices.Clone(test.found)
		got, err := pick(test.found, test.cluster)
		if got.major != test.want || !errors.Is(err, test.err) {
			t.Errorf("pick(%v, %d) = %v, %v, want %d, %v", test.found, test.cluster, got, err, test.want, test.err)
		}
		if err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("pick(%v, %d): %v, want it to say %q", test.found, test.cluster, err, test.text)
		}
		if !slices.Equal(given, test.found) {
			t.Errorf("pick changed %v to %v", given, test.found)
		}
	}
}

// fakePostgres makes a directory of programs that only know their version.
func fakePostgres(t *testing.T, versionLine string) string {
	t.Helper()
	dir := tempDir(t)
	for _, name := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho '" + versionLine + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBinaries(t *testing.T) {
	real, err := installations("")
	if err != nil || len(real) == 0 {
		t.Fatalf("installations = %v, %v", real, err)
	}
	old := fakePostgres(t, "postgres (PostgreSQL) 14.9 (Debian 14.9-1)")
	next := fakePostgres(t, "postgres (PostgreSQL) 99beta1")
	other := fakePostgres(t, "mysqld 8.0")
	for _, test := range []struct {
		name, path, env, config string
		want                    string // directory, or words of ErrNoBinaries
	}{
		{"installed", os.Getenv("PATH"), "", "", real[0].dir},
		{"PATH", next + ":/usr/bin:/bin", "", "", next},
		{"environment", next, real[0].dir, "", real[0].dir},
		{"configuration", next, old, real[0].dir, real[0].dir},
		{"old", "", old, "", "PostgreSQL 14"},
		{"other", "", other, "", "mysqld"},
		{"empty", "", tempDir(t), "", "initdb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PATH", test.path)
			t.Setenv("PROOFLINE_PG_BIN", test.env)
			c := cluster{dir: filepath.Join(tempDir(t), "postgres")}
			err := c.choose(test.config)
			if c.bin.dir == test.want && err == nil {
				return
			}
			if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("choose = %v, %v, want %s", c.bin, err, test.want)
			}
		})
	}
}

func TestLogIsLimited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(tempDir(t), "postgres.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.begin()
	line := "2026-01-01 LOG:  " + strings.Repeat("x", 1<<20) + "\n"
	for range 40 {
		if _, err := l.WriteString(line); err != nil {
			t.Fatal(err)
		}
		l.rotate()
	}
	for _, name := range []string{path, path + ".1"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() == 0 || info.Size() > maxLog+int64(len(line)) {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	l, err := openLog(filepath.Join(tempDir(t), "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write := func(text string) {
		t.Helper()
		if _, err := l.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("[1] FATAL:  of an earlier run\n")
	l.begin()
	if got := l.reason(); got != "" {
		t.Errorf("reason = %q before the run said anything", got)
	}
	write("[2] LOG:  starting\n[2] FATAL:  disk on fire\n[2] LOG:  shut down\n")
	if got := l.reason(); got != "disk on fire" {
		t.Errorf("reason = %q", got)
	}
}
