package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// fleet is the servers of one measurement.
type fleet struct {
	ctx     context.Context
	dir     string // holds the data directories
	running []*server
}

// start starts a program that prints its address, http://host:port, to standard output. It runs
// until the end of the measurement at the latest.
func (f *fleet) start(dir, program string, args ...string) (*server, error) {
	cmd := exec.CommandContext(f.ctx, program, args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{ctx: f.ctx, cmd: cmd, dir: dir, metrics: make(chan string, 1)}
	f.running = append(f.running, s)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, addr, ok := strings.Cut(lines.Text(), "http://"); ok {
			s.addr = strings.TrimSpace(addr)
			go s.read(lines)
			return s, nil
		}
	}
	f.running = f.running[:len(f.running)-1]
	return nil, errors.Join(fmt.Errorf("%s exited before it was listening", program), cmd.Wait())
}

// stop stops a server before the end of the measurement.
func (f *fleet) stop(s *server) error {
	f.running = slices.DeleteFunc(f.running, func(other *server) bool { return other == s })
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := s.cmd.Wait(); s.dir != "" { // the signal ends a helper process, which is no error
		return err
	}
	return nil
}

// discard stops a server and removes its data.
func (f *fleet) discard(s *server) error {
	return errors.Join(f.stop(s), os.RemoveAll(s.dir))
}

// stopAll stops all servers, the latest first.
func (f *fleet) stopAll() {
	for len(f.running) > 0 {
		s := f.running[len(f.running)-1]
		if err := f.stop(s); err != nil {
			say("stop %s: %v", s.cmd.Path, err)
		}
	}
}

// product starts a version's server on a data directory, with its private PostgreSQL.
func (f *fleet) product(v version, name string, args ...string) (*server, error) {
	dir := filepath.Join(f.dir, v.name+"-"+name)
	return f.start(dir, filepath.Join(v.bin, "proofline"), append([]string{"serve", "--addr", "127.0.0.1:0",
		"--data", dir, "--log-level", "error", "--beacon-relays", "none", "--limit-exempt", "127.0.0.0/8"}, args...)...)
}

// bareOf starts the baseline, which sends one response to every request: as long as Proofline's
// response to the given one, and with the same header.
func (f *fleet) bareOf(method string, s *server, path, body string) (*server, error) {
	a, err := s.probe(method, path, body)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return f.self("bare", string(text))
}

// self starts this program as one of its helper servers.
func (f *fleet) self(args ...string) (*server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return f.start("", program, args...)
}

// productWith starts a version's server with one room that stays open, and visitors in it.
func (f *fleet) productWith(v version, slug string, n batch, people int) (*server, error) {
	s, err := f.product(v, slug)
	if err != nil {
		return nil, err
	}
	if err := s.create(dayRoom(slug)); err != nil {
		return nil, err
	}
	return s, s.fill(slug, n, people)
}
