package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// member is a machine with PostgreSQL and Patroni.
type member struct {
	name    string
	address string // of PostgreSQL
	rest    string // address of Patroni
	dir     string
	config  string // Patroni's configuration
	patroni *process
}

func (m *member) data() string { return filepath.Join(m.dir, "data") }

// backrest is the configuration of pgBackRest on the member.
func (m *member) backrest() string { return filepath.Join(m.dir, "pgbackrest.conf") }

// cluster is etcd and the members.
type cluster struct {
	etcds   []*process
	etcd    string // address of the first member
	members []*member
	as      *syscall.Credential // user of PostgreSQL
}

// Passwords in deploy/patroni/patroni.yml, and of the roles that the README names.
const (
	superuser = "postgres:CHANGE-ME-superuser"
	owner     = "proofline_owner:drill"
	server    = "proofline_server:drill"
)

func databaseURL(login, hosts, name string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", login, hosts, name)
}

// configure writes a file of deploy/patroni with other addresses and paths, and returns where.
func configure(to, name string, replace ...string) error {
	text, err := os.ReadFile(filepath.Join("deploy", "patroni", name))
	if err != nil {
		return fmt.Errorf("read configuration (run this from the top of the repository): %w", err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(text), replace[i]) {
			return fmt.Errorf("deploy/patroni/%s has no %s", name, replace[i])
		}
	}
	// PostgreSQL's user reads it; the passwords are the examples of the file.
	return os.WriteFile(to, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o644) //nolint:gosec
}

// openCluster starts etcd and the members, and creates the roles and the database.
func (s *stage) openCluster() (err error) {
	c := &s.cluster
	if c.as, err = databaseUser(); err != nil {
		return err
	}
	if err := s.startEtcd(); err != nil {
		return err
	}
	for i := range 3 {
		m := &member{name: fmt.Sprintf("db%d", i+1), address: s.port(), rest: s.port()}
		m.dir = filepath.Join(s.dir, m.name)
		if err := mkdir(m.dir, c.as); err != nil {
			return err
		}
		if err := s.configureMember(m); err != nil {
			return err
		}
		c.members = append(c.members, m)
		if err := s.startPatroni(m); err != nil {
			return err
		}
	}
	say("waiting for a primary and a synchronous standby")
	if err := s.untilHealthy(90 * time.Second); err != nil {
		return err
	}
	return s.createDatabase()
}

func (s *stage) startEtcd() error {
	c := &s.cluster
	peers, addresses, cluster := []string{}, []string{}, []string{}
	for i := range s.etcds {
		addresses, peers = append(addresses, s.port()), append(peers, s.port())
		cluster = append(cluster, fmt.Sprintf("etcd%d=http://%s", i+1, peers[i]))
	}
	c.etcd = strings.Join(addresses, ",")
	for i := range s.etcds {
		name := fmt.Sprintf("etcd%d", i+1)
		file := filepath.Join(s.dir, name+".yml")
		if err := configure(file, "etcd.yml",
			"name: etcd1", "name: "+name,
			"etcd1=http://etcd1.example.com:2380,etcd2=http://etcd2.example.com:2380,etcd3=http://etcd3.example.com:2380",
			strings.Join(cluster, ","),
			"etcd1.example.com:2379", addresses[i], "etcd1.example.com:2380", peers[i],
			"/var/lib/etcd/proofline", filepath.Join(s.dir, name)); err != nil {
			return err
		}
		p, err := s.start(name, nil, "etcd", "--config-file", file)
		if err != nil {
			return err
		}
		c.etcds = append(c.etcds, p)
	}
	return s.until("etcd answers", time.Minute, func() bool { return s.answers("http://" + addresses[0] + "/health") })
}

func (s *stage) configureMember(m *member) error {
	c := &s.cluster
	m.config = filepath.Join(s.dir, m.name+".yml")
	run := filepath.Join(m.dir, "run")
	for _, dir := range []string{run, filepath.Join(s.dir, "backups"), filepath.Join(m.dir, "lock")} {
		if err := mkdir(dir, c.as); err != nil {
			return err
		}
	}
	if err := configure(m.config, "patroni.yml",
		"name: db1", "name: "+m.name,
		"db1.example.com:5432", m.address, "db1.example.com:8008", m.rest,
		"etcd1.example.com:2379,etcd2.example.com:2379,etcd3.example.com:2379", c.etcd,
		"/usr/lib/postgresql/15/bin", s.postgres,
		"/var/lib/postgresql/15/proofline.pgpass", filepath.Join(m.dir, "pgpass"),
		"/var/lib/postgresql/15/proofline", m.data(),
		"/var/run/postgresql", run,
		"/etc/pgbackrest.conf", m.backrest()); err != nil {
		return err
	}
	_, port, _ := strings.Cut(m.address, ":")
	return configure(m.backrest(), "pgbackrest.conf",
		"/var/lib/pgbackrest", filepath.Join(s.dir, "backups"),
		"/var/log/pgbackrest", filepath.Join(m.dir, "lock"), "/tmp/pgbackrest", filepath.Join(m.dir, "lock"),
		"/var/lib/postgresql/15/proofline", m.data(), "/var/run/postgresql", run, "pg1-port=5432", "pg1-port="+port)
}

func (s *stage) startPatroni(m *member) (err error) {
	m.patroni, err = s.start(m.name, s.cluster.as, "patroni", m.config)
	return err
}

// status returns the status of a response; 0: none within a second.
func (s *stage) status(url string) int {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// answers reports whether a URL answers with 200.
func (s *stage) answers(url string) bool { return s.status(url) == http.StatusOK }

// find returns the member of a role, such as primary or synchronous; nil: none.
func (s *stage) find(role string) *member {
	for _, m := range s.cluster.members {
		if s.answers("http://" + m.rest + "/" + role) {
			return m
		}
	}
	return nil
}

// query runs a statement as superuser on a member, and reads the first row.
func (s *stage) query(m *member, sql string, into ...any) error {
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL(superuser, m.address, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if len(into) == 0 {
		_, err = conn.Exec(ctx, sql)
		return err
	}
	return conn.QueryRow(ctx, sql).Scan(into...)
}

// isHealthy reports whether there is a primary, and all others follow it, one synchronously.
func (s *stage) isHealthy() bool {
	m := s.find("primary")
	if m == nil {
		return false
	}
	var others, synchronous int
	err := s.query(m, `select count(*), count(*) filter (where sync_state = 'sync') from pg_stat_replication
		where state = 'streaming' and application_name like 'db%'`, &others, &synchronous)
	return err == nil && others == len(s.cluster.members)-1 && synchronous == 1 && s.find("synchronous") != nil
}

func (s *stage) untilHealthy(limit time.Duration) error {
	return s.until("there is a primary, which all other servers follow", limit, s.isHealthy)
}

// createDatabase creates the roles and the database as the README says, and the writer's table.
func (s *stage) createDatabase() error {
	m := s.find("primary")
	for _, sql := range []string{
		"create role proofline_owner login password 'drill'",
		"create role proofline_server login password 'drill'",
		"create database proofline owner proofline_owner",
		"grant proofline_server to proofline_owner",
		"create table drill_writes (id bigint generated always as identity primary key, wrote text)",
	} {
		if err := s.query(m, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// freeze stops or continues all processes of a member's PostgreSQL.
func (m *member) freeze(sig syscall.Signal) {
	if pid := postmaster(m.data()); pid > 0 {
		for _, p := range family(pid) {
			_ = syscall.Kill(p, sig)
		}
	}
}

// stop ends Patroni and its PostgreSQL.
func (m *member) stop() {
	m.freeze(syscall.SIGCONT)
	if m.patroni != nil {
		m.patroni.stop(20 * time.Second)
	}
	quit(m.data())
}

// kill ends Patroni and its PostgreSQL at once, at the end of the drills.
func (m *member) kill() {
	if m.patroni != nil {
		m.patroni.kill()
	}
	m.freeze(syscall.SIGCONT)
	quit(m.data())
}

// quit ends the PostgreSQL in a data directory, if it still runs, and waits for its end.
func quit(data string) {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		pid := postmaster(data)
		switch {
		case pid == 0:
			return
		case time.Now().After(end):
			for _, p := range family(pid) {
				_ = syscall.Kill(p, syscall.SIGKILL)
			}
			return
		default:
			_ = syscall.Kill(pid, syscall.SIGQUIT)
		}
	}
}
