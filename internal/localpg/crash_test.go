//go:build unix

package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestCrashIsRepaired(t *testing.T) {
	t.Parallel()
	var log record
	s := start(t, Config{Dir: dataDir(t), Log: log.logger()})
	mustQuery(t, s.URL(), "create table t as select 'kept' as v")
	for crash := range 3 {
		before, _ := s.cluster.postmaster()
		if crash == 0 {
			if err := syscall.Kill(before, syscall.SIGKILL); err != nil { // its children survive for a moment
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
		t.Errorf("Err = %v, want ErrDied with the message of postgres", err)
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

// TestStalePidFile has a pid file whose number now belongs to another program of the same user,
// with which postgres itself refuses to start.
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

// TestOrphanIsStopped starts on a cluster whose postgres has lost its supervisor.
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
