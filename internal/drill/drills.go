package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const failover = 90 * time.Second // limit for the election of a primary

// note adds a line below the table.
func (s *stage) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// fault records a broken promise.
func (s *stage) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// another waits until another member has a role, and returns it.
func (s *stage) another(role string, than *member) (found *member, err error) {
	err = s.until("another server is "+role, failover, func() bool {
		found = s.find(role)
		return found != nil && found != than
	})
	return found, err
}

// switchover has Patroni hand the database to the synchronous standby.
func (s *stage) switchover() error {
	leader, standby := s.find("primary"), s.find("synchronous")
	if _, err := s.command(nil, "patronictl", "-c", leader.config, "switchover", "--leader", leader.name,
		"--candidate", standby.name, "--force"); err != nil {
		return err
	}
	_, err := s.another("primary", leader)
	return err
}

// crash kills the primary's postmaster, whose other processes then end themselves.
func (s *stage) crash() error {
	leader := s.find("primary")
	if err := syscall.Kill(postmaster(leader.data()), syscall.SIGKILL); err != nil {
		return err
	}
	_, err := s.another("primary", leader)
	return err
}

// pause stops all processes of the primary's machine until another server is the primary. When they
// continue, PostgreSQL runs for a while before its Patroni, and still takes itself for the primary.
func (s *stage) pause() error {
	leader := s.find("primary")
	before, err := pgx.Connect(s.ctx, databaseURL(superuser, leader.address, "postgres"))
	if err != nil {
		return err
	}
	defer drop(before)
	leader.patroni.signal(syscall.SIGSTOP)
	leader.freeze(syscall.SIGSTOP)
	defer func() { // also after an error
		leader.freeze(syscall.SIGCONT)
		leader.patroni.signal(syscall.SIGCONT)
	}()
	next, err := s.another("primary", leader)
	if err != nil {
		return err
	}
	if err := s.more(2 * time.Second); err != nil {
		return err
	}
	if err := s.awake(leader, before); err != nil {
		return err
	}
	if err := s.untilHealthy(failover); err != nil {
		return err
	}
	var late int
	if err := s.query(next, "select count(*) from drill_writes where wrote like 'late%'", &late); err != nil {
		return err
	}
	if late > 0 {
		s.fault("%d late commits of the old primary are in the new one", late)
	}
	return nil
}

// awake lets the paused primary continue, without its Patroni at first, and tries to write to it: on a
// connection from before, on a new one, and by way of a node.
func (s *stage) awake(leader *member, before *pgx.Conn) error {
	n := s.nodes[0]
	for _, r := range n.relays {
		r.lead(leader.address)
	}
	leader.freeze(syscall.SIGCONT)
	late := make(chan error, 2)
	go func() { late <- write(s.ctx, before, "late on a connection from before") }()
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, failover)
		defer cancel()
		conn, err := pgx.Connect(ctx, databaseURL(superuser, leader.address, "postgres"))
		if err == nil {
			defer drop(conn)
			err = write(ctx, conn, "late on a new connection")
		}
		late <- err
	}()
	if err := s.until("node1 notices the old primary", 30*time.Second, func() bool {
		return strings.Contains(output(s.dir, n.name), "database is an old primary")
	}); err != nil {
		s.fault("%v", err)
	} else {
		s.note("node1, which was led to the old primary while that still accepted connections, refused to write to it")
	}
	for i, r := range n.relays {
		r.lead(s.targets[i])
	}
	leader.patroni.signal(syscall.SIGCONT)
	for range cap(late) {
		if err := <-late; err == nil {
			s.fault("the old primary confirmed a late commit")
		} else {
			s.note("a late commit on the old primary ended with: %s", firstLine(err))
		}
	}
	return nil
}

func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

func write(ctx context.Context, conn *pgx.Conn, text string) error {
	ctx, cancel := context.WithTimeout(ctx, failover)
	defer cancel()
	_, err := conn.Exec(ctx, "insert into drill_writes (wrote) values ($1)", text)
	return err
}

// node kills a node, and starts it again after a while.
func (s *stage) node() error {
	n := s.nodes[1]
	n.process.kill()
	if err := s.more(3 * time.Second); err != nil {
		return err
	}
	return s.startNode(n)
}

// partition cuts a node off the database, without a word to either side.
func (s *stage) partition() error {
	n := s.nodes[1]
	for _, r := range n.relays {
		r.set(true)
		defer r.set(false)
	}
	began := time.Now()
	if err := s.until("the node that is cut off says so", 30*time.Second, func() bool {
		return s.status(n.url()+"/readyz") == http.StatusServiceUnavailable
	}); err != nil {
		return err
	}
	s.note("the node that was cut off answered /readyz with 503 after %s", short(time.Since(began)))
	return s.more(10 * time.Second)
}

// standby stops the machine of the synchronous standby until Patroni has chosen the other one.
func (s *stage) standby() error {
	standby := s.find("synchronous")
	standby.patroni.signal(syscall.SIGSTOP)
	standby.freeze(syscall.SIGSTOP)
	defer func() {
		standby.freeze(syscall.SIGCONT)
		standby.patroni.signal(syscall.SIGCONT)
	}()
	began := time.Now()
	if _, err := s.another("synchronous", standby); err != nil {
		return err
	}
	s.note("the other standby was synchronous after %s", short(time.Since(began)))
	return s.more(3 * time.Second)
}

// standbys stops both standbys. Nothing may be confirmed meanwhile.
func (s *stage) standbys() error {
	leader := s.find("primary")
	for _, m := range s.cluster.members {
		if m != leader {
			m.freeze(syscall.SIGSTOP)
			defer m.freeze(syscall.SIGCONT)
		}
	}
	if err := s.wait(time.Second); err != nil { // for answers that are under way
		return err
	}
	before := s.crowd.count()
	if err := s.wait(8 * time.Second); err != nil {
		return err
	}
	if n := s.crowd.count() - before; n > 0 {
		s.fault("%d receipts were given while no standby could have them", n)
	}
	return nil
}

// rolling replaces the nodes one after the other, as an upgrade does. With another program it starts
// with that.
func (s *stage) rolling() error {
	program := filepath.Join(s.bin, "proofline")
	if s.old != "" {
		for _, n := range s.nodes {
			if err := s.replace(n, s.old); err != nil {
				return err
			}
		}
		if err := s.more(3 * time.Second); err != nil {
			return err
		}
		s.crowd.restart()
		s.writer.restart()
	}
	for _, n := range s.nodes {
		if err := s.replace(n, program); err != nil {
			return err
		}
		if err := s.more(2 * time.Second); err != nil {
			return err
		}
	}
	return nil
}

// replace stops a node in order, and starts it with a program.
func (s *stage) replace(n *node, program string) error {
	if !n.process.stop(15 * time.Second) {
		s.fault("%s did not stop within 15 s", n.name)
	}
	n.program = program
	return s.startNode(n)
}
