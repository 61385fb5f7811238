package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// node is a Proofline server with a data directory of its own.
type node struct {
	name    string
	program string
	address string
	dir     string
	relays  []*relay // to the database
	process *process
}

func (n *node) url() string { return "http://" + n.address }

// database returns the URL of the database for a login, through the node's relays.
func (n *node) database(login, name string) string {
	var hosts []string
	for _, r := range n.relays {
		hosts = append(hosts, r.address())
	}
	return databaseURL(login, strings.Join(hosts, ","), name)
}

// storage returns the flags of serve and recover.
func (s *stage) storage(n *node) []string {
	return []string{"--data", n.dir, "--database-url", n.database(server, "proofline"),
		"--owner-database-url", n.database(owner, "proofline"), "--master-key", filepath.Join(s.dir, "master-key")}
}

// openNodes starts HAProxy and the nodes.
func (s *stage) openNodes() error {
	primary, front := s.port(), s.port()
	s.front = "http://" + front
	pairs := []string{"127.0.0.1:5000", primary, ":8080", front}
	for i := range 2 {
		n := &node{name: fmt.Sprintf("node%d", i+1), address: s.port(), program: filepath.Join(s.bin, "proofline")}
		n.dir = filepath.Join(s.dir, n.name)
		pairs = append(pairs, n.name+".example.com:8081", n.address)
		s.nodes = append(s.nodes, n)
	}
	for _, m := range s.cluster.members {
		_, rest, _ := strings.Cut(m.rest, ":")
		pairs = append(pairs, m.name+".example.com:5432 check port 8008", m.address+" check port "+rest)
	}
	file := filepath.Join(s.dir, "haproxy.cfg")
	if err := configure(file, "haproxy.cfg", pairs...); err != nil {
		return err
	}
	var err error
	if s.haproxy, err = s.start("haproxy", nil, "haproxy", "-db", "-f", file); err != nil {
		return err
	}
	if s.targets = []string{primary}; s.route == "hosts" {
		s.targets = nil
		for _, m := range s.cluster.members {
			s.targets = append(s.targets, m.address)
		}
	}
	key := filepath.Join(s.dir, "master-key")
	if _, err := s.command(nil, filepath.Join(s.bin, "proofline"), "master-key", key); err != nil {
		return err
	}
	if err := s.until("HAProxy has found the primary", time.Minute, func() bool {
		return strings.Count(output(s.dir, "haproxy"), "Server primary/db") == len(s.cluster.members)-1
	}); err != nil {
		return err
	}
	for _, n := range s.nodes {
		for _, target := range s.targets {
			r, err := newRelay(target)
			if err != nil {
				return err
			}
			n.relays = append(n.relays, r)
		}
		if err := s.startNode(n); err != nil {
			return err
		}
	}
	return s.until("HAProxy reaches a node", time.Minute, func() bool { return s.answers(s.front + "/readyz") })
}

// startNode starts a node, and waits until it is ready.
func (s *stage) startNode(n *node) (err error) {
	n.process, err = s.start(n.name, nil, n.program, append([]string{"serve", "--addr", n.address,
		"--public-url", s.front, "--admin-token-file", filepath.Join(s.dir, "admin-token"), "--beacon-relays", "none",
		"--trusted-proxies", "127.0.0.0/8", "--limit-exempt", "127.0.0.0/8"}, s.storage(n)...)...)
	if err != nil {
		return err
	}
	return s.untilReady(n)
}

func (s *stage) untilReady(n *node) error {
	return s.until(n.name+" is ready", time.Minute, func() bool { return s.answers(n.url() + "/readyz") })
}
