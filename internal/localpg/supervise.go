//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	readyPoll  = 10 * time.Millisecond  // how often a starting postgres is asked whether it is ready
	logPoll    = time.Minute            // how often the log file is measured
	firstDelay = 100 * time.Millisecond // before the first restart; doubled for each further one
	maxDelay   = 5 * time.Second        // between restarts
	abortWait  = 10 * time.Second       // for an immediate shutdown
)

// supervise keeps postgres running until Stop, or until it cannot be started for
// the first time. After that it tries again and again: a disk that is full may
// have room later, and until then the product answers that it is not ready.
//
// The goroutine keeps its thread: on Linux the death signal of a child is sent
// when the thread that started it ends, not the process.
// https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html
func (s *Server) supervise() {
	runtime.LockOSThread()
	defer close(s.done)
	defer s.release()
	delay, failures := firstDelay, 0
	for {
		wasReady, err := s.run()
		if s.isStopping() {
			return
		}
		if wasReady {
			delay, failures = firstDelay, 0
		}
		failures++
		if s.cfg.NoRestart || s.firstRun() || failures > s.restarts {
			s.err = err
			return
		}
		s.cfg.Log.Warn("postgres ended unexpectedly, starting it again", "error", err, "delay", delay)
		select {
		case <-s.stopping:
			return
		case <-time.After(delay):
		}
		delay = min(2*delay, maxDelay)
	}
}

// run starts postgres once and returns when it has ended, and whether it took
// connections in between.
func (s *Server) run() (wasReady bool, err error) {
	if err := s.cluster.clear(s.cfg.Log); err != nil {
		return false, err
	}
	if err := s.socket.clear(); err != nil {
		return false, err
	}
	s.log.begin()
	cmd := s.command()
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("%w: %w", ErrDied, err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	stopping, aborting := s.stopping, s.aborting
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case err := <-exited:
			return wasReady, s.exitError(err)
		case <-stopping:
			stopping = nil
			_ = cmd.Process.Signal(syscall.SIGINT)
		case <-aborting:
			aborting = nil
			_ = cmd.Process.Signal(syscall.SIGQUIT)
		case <-tick.C:
			if wasReady {
				s.log.rotate()
			} else if s.cluster.isReady(cmd.Process.Pid) {
				wasReady = true
				tick.Reset(logPoll)
				s.announce()
			}
		}
	}
}

// command is the postgres process: the socket is given here, not in the
// configuration, because no setting may open another way in.
func (s *Server) command() *exec.Cmd {
	cmd := s.cluster.command(context.Background(), "postgres",
		"-D", s.cluster.dir,
		"-c", "listen_addresses=",
		"-c", "unix_socket_directories="+s.socket.dir,
		"-c", "port="+socketPort)
	cmd.Stdout, cmd.Stderr = s.log.File, s.log.File
	dieWithParent(cmd.SysProcAttr)
	return cmd
}

func (s *Server) announce() {
	if s.firstRun() {
		close(s.ready)
		return
	}
	s.cfg.Log.Info("postgres runs again")
}

// firstRun reports whether postgres has never been ready.
func (s *Server) firstRun() bool {
	select {
	case <-s.ready:
		return false
	default:
		return true
	}
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// exitError says how postgres ended and, if it said so, why.
func (s *Server) exitError(err error) error {
	if err == nil {
		err = errors.New("shut down by somebody else")
	}
	if reason := s.log.reason(); reason != "" {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	return fmt.Errorf("%w: %w (its log is %s)", ErrDied, err, s.log.Name())
}
