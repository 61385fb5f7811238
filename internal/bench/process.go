package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const clockTicks = 100 // ticks per second: USER_HZ on Linux

// usage is the CPU time that processes have used.
type usage struct {
	server, postgres, generator time.Duration
}

// usage returns the CPU time of the server, its PostgreSQL and this process so far.
func (s *server) usage() (u usage, err error) {
	if u.server, err = s.cpu(); err != nil {
		return u, err
	}
	if u.generator, err = ownCPU(); err != nil || s.dir == "" {
		return u, err
	}
	u.postgres, err = s.postgresCPU()
	return u, err
}

// cpu returns the CPU time of the server's process.
func (s *server) cpu() (time.Duration, error) {
	p, err := readProcess(s.cmd.Process.Pid)
	return p.own, err
}

// postgresCPU returns the CPU time of the server's PostgreSQL, including its ended processes.
func (s *server) postgresCPU() (time.Duration, error) {
	c, err := s.cluster()
	if err != nil {
		return 0, err
	}
	main, err := readProcess(c.pid)
	if err != nil {
		return 0, err
	}
	sum := main.own + main.ended
	names, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, name := range names {
		pid, _ := strconv.Atoi(filepath.Base(name))
		// A process that has ended meanwhile is counted next time, in the total of main.
		if p, err := readProcess(pid); err == nil && p.parent == c.pid {
			sum += p.own
		}
	}
	return sum, nil
}

// process holds the fields of proc_pid_stat(5) that matter here.
type process struct {
	parent int
	own    time.Duration // CPU time
	ended  time.Duration // CPU time of its children that have ended
}

func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, fmt.Errorf("read CPU time (this is measured on Linux): %w", err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return process{}, fmt.Errorf("read CPU time: %q", text)
	}
	var n [5]int
	for i, field := range []int{1, 11, 12, 13, 14} {
		if n[i], err = strconv.Atoi(fields[field]); err != nil {
			return process{}, fmt.Errorf("read CPU time: %q", text)
		}
	}
	const tick = time.Second / clockTicks
	return process{n[0], time.Duration(n[1]+n[2]) * tick, time.Duration(n[3]+n[4]) * tick}, nil
}

// ownCPU returns the CPU time used by this process.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// rss returns the resident memory of the server's process in bytes.
func (s *server) rss() (float64, error) { return memoryOf(s.cmd.Process.Pid, "VmRSS") }

// memoryOf reads a field of proc_pid_status(5), and returns it in bytes.
func memoryOf(pid int, field string) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory (this is measured on Linux): %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kilobytes float64
		if n, _ := fmt.Sscanf(lines.Text(), field+": %f kB", &kilobytes); n == 1 {
			return kilobytes * 1024, nil
		}
	}
	return 0, fmt.Errorf("read memory: process %d has no %s", pid, field)
}

// cluster is the private PostgreSQL of a server.
type cluster struct {
	pid    int
	socket string // directory
}

// cluster reads postmaster.pid.
func (s *server) cluster() (cluster, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, "postgres", "postmaster.pid"))
	if err != nil {
		return cluster{}, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 5 {
		return cluster{}, fmt.Errorf("postmaster.pid has %d lines", len(lines))
	}
	pid, err := strconv.Atoi(lines[0])
	return cluster{pid, lines[4]}, err
}
