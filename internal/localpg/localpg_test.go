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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// helperDir is an environment variable that makes the test binary run a server in that directory
// until it is killed.
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

// product starts the helper, as another user unless credential is nil, and returns it with its
// standard input when its server is ready.
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

// tempDir makes a directory that any user can traverse.
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

// prototypeDir is a data directory with a stopped cluster, made once by makePrototype and copied by
// dataDir.
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

// dataDir returns a data directory with a stopped cluster.
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

// eventually waits up to 30 seconds until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 seconds: %s", what)
		}
	}
}

// record collects log records.
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
	t.Setenv("PGPORT", "1") // must be ignored by postgres and its clients
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
		"jit":                 "off",
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
	stop(t, s) // a second Stop does nothing
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

// TestPrototypes checks that the first cluster becomes the prototype as initdb made it, of which further ones are
// copies, also if several start at once.
func TestPrototypes(t *testing.T) {
	t.Parallel()
	prototypes := filepath.Join(tempDir(t), "prototypes")
	identify := func(t *testing.T) (id string) {
		s := start(t, Config{Dir: tempDir(t), Prototypes: prototypes})
		id = mustQuery(t, s.URL(), "select system_identifier::text from pg_control_system()")
		mustQuery(t, s.URL(), "create table mine ()") // no copy has it
		stop(t, s)
		return id
	}
	var first [2]string
	t.Run("first", func(t *testing.T) {
		for i := range first {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				first[i] = identify(t)
			})
		}
	})
	if id := identify(t); !slices.Contains(first[:], id) {
		t.Errorf("the cluster is no copy of the first one: %s, not of %s", id, first)
	}
	if kept, err := os.ReadDir(prototypes); err != nil || len(kept) != 1 {
		t.Errorf("prototypes %v, %v", kept, err)
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
	if err := os.Mkdir(filepath.Join(dir, "postgres"), 0o700); err != nil { // empty directories are used
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
		temp       bool // the socket is in a temporary directory
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
		t.Errorf("got %v, want ErrDied with the message of postgres", err)
	}
}

// TestReserveWAL checks that a new cluster gets the segments that it keeps, once.
func TestReserveWAL(t *testing.T) {
	s := start(t, Config{Dir: tempDir(t)})
	const ahead = "select count(*) from pg_ls_waldir() where name > pg_walfile_name(pg_current_wal_lsn()) and name ~ '^[0-9A-F]{24}$'"
	before := mustQuery(t, s.URL(), ahead)
	for range 2 {
		if err := s.ReserveWAL(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, _ := strconv.Atoi(mustQuery(t, s.URL(), ahead)); n < 12 {
			t.Errorf("%d segments are ready, %s were before", n, before)
		}
		if size, _ := strconv.Atoi(mustQuery(t, s.URL(), "select pg_current_wal_lsn() - '0/0'")); size > 25*16<<20 {
			t.Errorf("it has written %d bytes", size)
		}
	}
}
