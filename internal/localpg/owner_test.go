//go:build unix

package localpg

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// needsRoot skips a test that must run as root.
func needsRoot(t *testing.T) owner {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	o, err := findOwner()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRunsAsUserPostgres(t *testing.T) {
	t.Parallel()
	o := needsRoot(t)
	s := start(t, Config{Dir: dataDir(t)})
	for _, path := range []string{s.cluster.dir, s.socket.dir, filepath.Join(s.cluster.dir, "proofline.conf")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != o.credential.Uid {
			t.Errorf("%s belongs to user %d, want %d", path, uid, o.credential.Uid)
		}
	}
}

// TestRunsAsOrdinaryUser runs a server as an ordinary user, in another process.
func TestRunsAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	needsRoot(t) // otherwise all other tests already run as an ordinary user
	dir := tempDir(t)
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	if err := os.Chown(dir, int(nobody.Uid), int(nobody.Gid)); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"create table t as select 'kept' as v", "select v from t"} {
		cmd, stdin, url := product(t, dir, nobody)
		mustQuery(t, url, statement)
		if err := stdin.Close(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	closed := filepath.Join(tempDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: filepath.Join(closed, "inner", "data")})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "through "+closed+":") {
		t.Errorf("got %v, want ErrUnreachable naming %s", err, closed)
	}
}

func TestClosedOn(t *testing.T) {
	t.Parallel()
	const uid, gid = 4000, 4001
	dir := tempDir(t)
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	self := &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	sameGroup := &syscall.Credential{Uid: uid, Gid: self.Gid}
	stranger := &syscall.Credential{Uid: uid, Gid: gid}
	for _, test := range []struct {
		mode os.FileMode
		user *syscall.Credential
		want string
	}{
		{0o700, self, ""},
		{0o600, self, inner},
		{0o700, sameGroup, inner},
		{0o710, sameGroup, ""},
		{0o701, sameGroup, inner},
		{0o711, stranger, ""},
		{0o710, stranger, inner},
	} {
		if err := os.Chmod(inner, test.mode); err != nil {
			t.Fatal(err)
		}
		if got := (owner{test.user}).closedOn(inner); got != test.want {
			t.Errorf("mode %o for user %d:%d: closedOn = %q, want %q", test.mode, test.user.Uid, test.user.Gid, got,
				test.want)
		}
	}
	if got := (owner{stranger}).closedOn(filepath.Join(dir, "missing")); got != filepath.Join(dir, "missing") {
		t.Errorf("a missing directory: closedOn = %q", got)
	}
}
