//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// superuser is the only role of a new cluster, independent of the system user.
const superuser = "postgres"

// settings suit a log that is appended to in large transactions: commits are durable and
// checkpoints rare. Services may be forbidden to make memory executable, as JIT does. Details of errors
// would have values of rows, such as mail addresses, so the log has none. Settings made by operators
// with ALTER SYSTEM take precedence.
const settings = `# Written by proofline at every start; use ALTER SYSTEM for changes.
max_connections = 100
shared_buffers = 128MB
min_wal_size = 256MB
max_wal_size = 2GB
checkpoint_timeout = 15min
wal_compression = on
wal_buffers = 16MB
jit = off
fsync = on
synchronous_commit = on
logging_collector = off
log_destination = stderr
log_checkpoints = off
log_line_prefix = '%m [%p] '
log_error_verbosity = terse
`

// cluster is a PostgreSQL data directory with the user and binaries to run it.
type cluster struct {
	dir   string
	owner owner
	bin   installation
	major int // 0: no cluster yet
}

// choose reads the version of the cluster, if there is one, and finds matching binaries.
func (c *cluster) choose(ctx context.Context, binDir string) error {
	major, err := readVersion(c.dir)
	if errors.Is(err, errNoVersion) {
		err = c.checkEmpty()
	}
	if err != nil {
		return err
	}
	c.major = major
	found, err := installations(ctx, binDir)
	if err != nil {
		return err
	}
	if c.bin, err = pick(found, major); err != nil {
		if major != 0 {
			return fmt.Errorf("cluster %s: %w", c.dir, err)
		}
		return err
	}
	return c.owner.checkReach(ctx, filepath.Dir(c.dir), c.bin)
}

// checkEmpty returns an error if the directory contains files but no cluster.
func (c *cluster) checkEmpty() error {
	names, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read cluster directory: %w", err)
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: %s has no PG_VERSION but has %s: move it away", ErrNotCluster, c.dir, names[0].Name())
	}
	return nil
}

// ensure makes the cluster if there is none. It is made under a temporary name, so that an
// interrupted initdb never looks like a cluster.
func (c *cluster) ensure(ctx context.Context, prototypes string, log *slog.Logger) error {
	if c.major != 0 {
		return nil
	}
	begin := time.Now()
	half, err := filepath.Glob(c.dir + ".init-*")
	if err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	for _, dir := range half {
		// an initdb that outlived its parent may still be writing there; the next start tries again
		_ = os.RemoveAll(dir)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(c.dir), filepath.Base(c.dir)+".init-*")
	if err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	defer os.RemoveAll(tmp)
	if prototypes == "" {
		err = c.initdb(ctx, tmp)
	} else {
		err = c.copyPrototype(ctx, prototypes, tmp)
	}
	if err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	if err := os.Remove(c.dir); err != nil && !errors.Is(err, os.ErrNotExist) { // an empty directory may exist
		return fmt.Errorf("make cluster: %w", err)
	}
	if err := os.Rename(tmp, c.dir); err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	if err := syncDir(filepath.Dir(c.dir)); err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	c.major = c.bin.major
	log.Info("made a PostgreSQL cluster", "dir", c.dir, "version", c.major, "took",
		time.Since(begin).Round(time.Millisecond))
	return nil
}

func (c *cluster) initdb(ctx context.Context, dir string) error {
	if err := c.owner.give(dir); err != nil {
		return err
	}
	cmd := c.command(ctx, "initdb", "--pgdata="+dir, "--username="+superuser,
		"--encoding=UTF8", "--locale=C", "--data-checksums",
		"--auth-local=trust", "--auth-host=reject")
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = abortWait
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	conf, err := os.OpenFile(filepath.Join(dir, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = conf.WriteString("\ninclude_if_exists 'proofline.conf'\n")
	return errors.Join(err, conf.Sync(), conf.Close())
}

// configure writes proofline.conf. It replaces the file instead of overwriting it, because the
// directory belongs to a user that root must not trust.
func (c *cluster) configure(extra []string) error {
	f, err := os.CreateTemp(c.dir, "proofline.conf.*")
	if err != nil {
		return fmt.Errorf("configure cluster: %w", err)
	}
	_, err = f.WriteString(settings + strings.Join(extra, "\n") + "\n")
	if err := errors.Join(err, c.owner.giveFile(f), f.Close()); err != nil {
		return fmt.Errorf("configure cluster: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(c.dir, "proofline.conf")); err != nil {
		return fmt.Errorf("configure cluster: %w", err)
	}
	return nil
}

// command prepares a program of the installation to run as the owner of the cluster, in its own
// process group, with an environment without Proofline's secrets and PG* variables.
func (c *cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin.dir, name), args...)
	cmd.Dir = filepath.Dir(c.dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.owner.credential}
	return cmd
}
