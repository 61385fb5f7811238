package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/wire"
)

// stage is the machines, and the drill that runs on them.
type stage struct {
	options

	ctx      context.Context
	dir      string
	postgres string // directory of PostgreSQL's programs
	ports    []string
	cluster  cluster
	haproxy  *process
	front    string   // URL at which visitors reach the nodes
	targets  []string // addresses at which nodes reach the database
	nodes    []*node

	room   wire.Room
	crowd  *crowd
	writer *writer
	watch  *watcher
	// What the present drill adds to its row.
	repair time.Duration // time that a person's commands took after the database was back
	notes  []string
	faults []string // broken promises
	isOld  bool     // the database is to lose rows
}

func (s *stage) open() (err error) {
	if err := os.Mkdir(filepath.Join(s.dir, "logs"), 0o755); err != nil { //nolint:gosec // no secrets
		return err
	}
	if s.bin, err = filepath.Abs(s.bin); err != nil {
		return err
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is well formed
	if len(found) == 0 {
		return fmt.Errorf("there is no PostgreSQL in /usr/lib/postgresql: apt-get install -y postgresql")
	}
	s.postgres = found[len(found)-1]
	say("starting etcd and three PostgreSQL servers under Patroni")
	if err := s.openCluster(); err != nil {
		return err
	}
	say("starting HAProxy and two nodes")
	return s.openNodes()
}

// close ends everything that the drill has started.
func (s *stage) close() {
	if s.crowd != nil {
		s.crowd.cancel()
	}
	if s.writer != nil {
		s.writer.stop()
	}
	if s.watch != nil {
		s.watch.stop()
	}
	for _, n := range s.nodes {
		if n.process != nil {
			n.process.kill()
		}
		for _, r := range n.relays {
			r.close()
		}
	}
	if s.haproxy != nil {
		s.haproxy.kill()
	}
	for _, m := range s.cluster.members {
		m.kill()
	}
	for _, p := range s.cluster.etcds {
		p.kill()
	}
}

// port returns an address on which nothing listens, below the ports that the system assigns.
func (s *stage) port() string {
	for {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(15_000+rand.IntN(17_000))) //nolint:gosec // no secret
		l, err := net.Listen("tcp", address)                                             //nolint:noctx // closed at once
		if err != nil || slices.Contains(s.ports, address) {
			continue
		}
		_ = l.Close()
		s.ports = append(s.ports, address)
		return address
	}
}

// call sends a request to the management API.
func (s *stage) call(method, path string, body, result any) error {
	token, err := os.ReadFile(filepath.Join(s.dir, "admin-token"))
	if err != nil {
		return err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(s.ctx, method, s.front+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, result)
}

// perform runs a drill with a room of its own, and returns what became of the promises.
func (s *stage) perform(d drill) (row, error) {
	s.repair, s.notes, s.faults, s.isOld = 0, nil, nil, false
	if err := s.untilWell(); err != nil {
		return row{}, err
	}
	if err := s.call(http.MethodPost, "/v1/rooms", map[string]any{
		"slug": d.name, "windows": []any{map[string]any{"length": "2s"}},
		"outflow": map[string]any{"per_minute": 600_000}, "claim": "10m",
	}, &s.room); err != nil {
		return row{}, err
	}
	key, err := audit.ParseKey(s.room.VKey)
	if err != nil {
		return row{}, err
	}
	path := "/r/" + d.name
	var urls []string
	for _, n := range s.nodes {
		urls = append(urls, n.url()+path+"/checkpoint")
	}
	s.watch = startWatcher(s.ctx, key, urls)
	s.writer = startWriter(s.ctx, databaseURL(superuser, strings.Join(s.targets, ","), "postgres"))
	s.crowd = startCrowd(s.ctx, s.room, s.front+path, s.rate)
	if err := s.more(3 * time.Second); err != nil {
		return row{}, err
	}
	s.crowd.restart()
	s.writer.restart()
	if err := d.run(s); err != nil {
		return row{}, err
	}
	if err := s.untilWell(); err != nil {
		return row{}, err
	}
	if err := s.more(3 * time.Second); err != nil {
		return row{}, err
	}
	return s.judge(d, path)
}

// untilWell waits until the cluster is complete and the nodes are ready.
func (s *stage) untilWell() error {
	if err := s.untilHealthy(2 * time.Minute); err != nil {
		return err
	}
	for _, n := range s.nodes {
		if err := s.untilReady(n); err != nil {
			return err
		}
	}
	return nil
}

// more waits until as many visitors have joined as arrive in a time.
func (s *stage) more(arrive time.Duration) error {
	goal := s.crowd.count() + int(s.rate*arrive.Seconds())
	return s.until("visitors join", 2*time.Minute, func() bool { return s.crowd.count() >= goal })
}

// judge ends the room, and compares everything that was answered with what is published.
func (s *stage) judge(d drill, path string) (r row, err error) {
	s.crowd.stop()
	wrote, paused := s.writer.stop()
	var ended wire.Room
	if err := s.call(http.MethodPost, "/v1/rooms/"+d.name+"/end", nil, &ended); err != nil {
		return r, err
	}
	key, err := audit.ParseKey(s.room.VKey)
	if err != nil {
		return r, err
	}
	time.Sleep(2 * watchInterval) // the watcher reads the end, too
	seen := s.watch.stop()
	entries, err := readEntries(s.ctx, s.front+path, key)
	if err != nil {
		return r, err
	}
	lost := lostReceipts(s.crowd.receipts, entries, key, seen)
	unadmitted := lostPasses(s.crowd.passes, entries)
	r = row{
		drill: d, receipts: len(s.crowd.receipts), lost: len(lost), paused: s.crowd.pauses.longest, database: paused,
		repair: s.repair, claims: len(s.crowd.passes), lostClaims: len(unadmitted), failed: s.crowd.failed,
		checkpoints: len(seen), notes: s.notes, faults: s.faults,
	}
	for _, refused := range s.crowd.refused {
		r.faults = append(r.faults, refused.Error())
	}
	for _, text := range slices.Concat(lost, unadmitted) {
		say("  lost: %s", text)
	}
	if r.histories, err = seen.others(entries); err != nil {
		return r, err
	}
	if !s.isOld {
		var kept int
		if err := s.query(s.find("primary"), fmt.Sprintf("select count(*) from drill_writes where id in (%s)",
			numbers(wrote)), &kept); err != nil {
			return r, err
		}
		if lost := len(wrote) - kept; lost > 0 {
			r.faults = append(r.faults, fmt.Sprintf("the database lost %d rows that it had confirmed", lost))
		}
	}
	r.audit, err = s.audit(s.front + path)
	return r, err
}

func numbers(list []int64) string {
	texts := []string{"0"}
	for _, n := range list {
		texts = append(texts, strconv.FormatInt(n, 10))
	}
	return strings.Join(texts, ",")
}
