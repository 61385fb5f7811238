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
	readyPoll  = 10 * time.Millisecond  // interval of checks whether postgres is ready
	logPoll    = time.Minute            // interval of checks of the log's size
	firstDelay = 100 * time.Millisecond // pause before the first restart; doubled for each further one
	maxDelay   = 5 * time.Second        // longest pause between restarts
	abortWait  = 10 * time.Second       // time for an immediate shutdown
)

// supervise runs postgres until Stop, or until the first start fails. After a successful start it
// keeps trying, because the cause, such as a full disk, may go away; meanwhile Proofline reports
// that it is not ready.
//
// The goroutine is locked to its thread: on Linux, the death signal of a child is sent when the
// thread that started it ends, not the process.
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

// run starts postgres once and waits for its end. It reports whether postgres accepted connections.
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

// command returns the postgres process. The socket is given here rather than in the configuration,
// so that no setting can open another one.
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

// exitError returns how postgres ended and, if its log has one, the reason.
func (s *Server) exitError(err error) error {
	if err == nil {
		err = errors.New("shut down by another process")
	}
	if reason := s.log.reason(); reason != "" {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	return fmt.Errorf("%w: %w (its log is %s)", ErrDied, err, s.log.Name())
}
