package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// restore takes a backup, lets visitors join, and replaces the cluster by one that is restored to a
// time before they did. The nodes must hold the room until the entries are recovered from the old cluster.
func (s *stage) restore() error {
	leader := s.find("primary")
	for _, do := range []string{"stanza-create", "backup"} {
		if _, err := s.command(s.cluster.as, "pgbackrest", "--config="+leader.backrest(), "--stanza=proofline",
			do); err != nil {
			return err
		}
	}
	if err := s.more(3 * time.Second); err != nil { // pgBackRest compares whole seconds
		return err
	}
	var at string
	if err := s.query(leader, "select now()::text", &at); err != nil {
		return err
	}
	if err := s.more(3 * time.Second); err != nil {
		return err
	}
	if err := s.query(leader, "select pg_switch_wal()"); err != nil { // the target is in the archive
		return err
	}
	s.isOld = true
	for _, m := range s.cluster.members {
		m.stop()
	}
	old := filepath.Join(leader.dir, "before")
	if err := s.replaceCluster(leader, old, at); err != nil {
		return err
	}
	if err := s.until("both nodes hold the room", time.Minute, func() bool {
		for _, n := range s.nodes {
			if s.status(n.url()+"/r/"+s.room.Slug+"/checkpoint") != http.StatusServiceUnavailable ||
				!strings.Contains(output(s.dir, n.name), "room is held") {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	if err := s.recoverFrom(leader, old); err != nil {
		return err
	}
	s.repair = time.Since(s.writer.back())
	s.note("joins may also pause for the %s from the database's first commit until proofline recover was done",
		short(s.repair))
	return nil
}

// replaceCluster keeps a member's data in another directory, removes that of all others, and starts a
// new cluster from the backup, as of a time.
func (s *stage) replaceCluster(leader *member, old, at string) error {
	if err := os.Rename(leader.data(), old); err != nil {
		return err
	}
	for _, m := range s.cluster.members {
		if err := os.RemoveAll(m.data()); err != nil {
			return err
		}
	}
	remove := exec.CommandContext(s.ctx, "patronictl", "-c", leader.config, "remove", "proofline") //nolint:gosec // our own
	remove.Stdin = strings.NewReader("proofline\nYes I am aware\n")
	if out, err := remove.CombinedOutput(); err != nil {
		return fmt.Errorf("patronictl remove: %w: %s", err, out)
	}
	both := filepath.Join(s.dir, leader.name+"-restored") // Patroni merges the files of a directory
	if err := os.Mkdir(both, 0o755); err != nil {         //nolint:gosec // PostgreSQL's user reads it
		return err
	}
	text, err := os.ReadFile(leader.config)
	if err == nil {
		err = os.WriteFile(filepath.Join(both, "patroni.yml"), text, 0o644) //nolint:gosec // see configure
	}
	if err == nil {
		err = configure(filepath.Join(both, "restore.yml"), "restore.yml",
			"/etc/pgbackrest.conf", leader.backrest(), "2026-01-31 20:15:00+00", at)
	}
	if err != nil {
		return err
	}
	leader.config = both
	if err := s.startPatroni(leader); err != nil {
		return err
	}
	if err := s.until("the restored server is the primary", failover, func() bool {
		return s.find("primary") == leader
	}); err != nil {
		return err
	}
	for _, m := range s.cluster.members {
		if m != leader {
			if err := s.startPatroni(m); err != nil {
				return err
			}
		}
	}
	return s.untilHealthy(failover)
}

// recoverFrom starts the old cluster elsewhere, and has its entries stored in the new one.
func (s *stage) recoverFrom(leader *member, old string) error {
	address := s.port()
	_, port, _ := strings.Cut(address, ":")
	if _, err := s.start("before", s.cluster.as, filepath.Join(s.postgres, "postgres"), "-D", old, "-p", port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+leader.dir, "-c", "archive_mode=off",
		"-c", "synchronous_standby_names="); err != nil {
		return err
	}
	defer quit(old)
	from := &member{address: address}
	if err := s.until("the old cluster answers", time.Minute, func() bool {
		return s.query(from, "select") == nil
	}); err != nil {
		return err
	}
	n := s.nodes[0]
	args := append(s.storage(n), "recover", s.room.Slug, "--from", databaseURL(server, address, "proofline"))
	shown, err := s.command(nil, n.program, args...)
	if err != nil {
		return err
	}
	s.note("proofline recover: %s", firstLine(errors.New(shown)))
	_, err = s.command(nil, n.program, append(args, "--yes")...)
	return err
}
