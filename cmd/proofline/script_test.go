package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/proofline/proofline/cmd/proofline/internal/server"
)

// TestScripts runs command lines. The scripts share a server, which SERVER, DATA and
// TOKEN_FILE in their environment describe.
func TestScripts(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	p := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0")
	t.Run("all", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir:                 "testdata/scripts",
			RequireExplicitExec: true,
			Setup: func(e *testscript.Env) error {
				e.Setenv("SERVER", p.url)
				e.Setenv("DATA", dir)
				e.Setenv("TOKEN_FILE", filepath.Join(dir, server.TokenFile))
				e.Setenv("PATH", os.Getenv("PATH"))
				return nil
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "mode": mode},
		})
	})
	p.stop()
}

// exits implements "exits CODE PROGRAM ARGS...", which checks an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exited := (*exec.ExitError)(nil); errors.As(err, &exited) {
		got = exited.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// mode implements "mode 0600 FILE", which checks a file's mode.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode MODE FILE")
	}
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if info.Mode().Perm() != os.FileMode(want) {
		ts.Fatalf("%s has mode %04o, want %04o", args[1], info.Mode().Perm(), want)
	}
}
