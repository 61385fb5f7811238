package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// overlay mounts a copy of this machine's file system, whose changes are thrown away.
func overlay(t *testing.T) (root string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "proofline-deb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	root = filepath.Join(dir, "root")
	for _, name := range []string{"root", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options := "lowerdir=/,upperdir=" + dir + "/upper,workdir=" + dir + "/work"
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "overlay", "overlay", "-o", options, root).CombinedOutput(); err != nil {
		t.Skipf("this machine cannot mount an overlay: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", root).Run() })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-t", "proc", "proc", root + "/proc"}, {"--rbind", "/dev", root + "/dev"}, {"-t", "tmpfs", "tmpfs", root + "/tmp"}} {
		run(t, nil, "mount", args...)
		target := args[len(args)-1]
		t.Cleanup(func() { _ = exec.Command("umount", "-l", target).Run() })
	}
	return root
}

// background runs work while a command runs, and then ends it with SIGTERM.
func background(t *testing.T, c *exec.Cmd, work func(stopped func() string)) {
	t.Helper()
	var said bytes.Buffer
	var mu sync.Mutex
	c.Stdout = writer(func(b []byte) { mu.Lock(); defer mu.Unlock(); said.Write(b) })
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var failure error
	go func() { failure = c.Wait(); close(ended) }()
	defer func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-ended
		mu.Lock()
		defer mu.Unlock()
		if failure != nil || t.Failed() {
			t.Errorf("%v\n%s", failure, said.String())
		}
	}()
	work(func() string {
		select {
		case <-ended:
			mu.Lock()
			defer mu.Unlock()
			return "ended: " + said.String()
		default:
			return ""
		}
	})
}

type writer func([]byte)

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
