package connector

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// restarted returns a node that starts while the server is away, some time after a node
// with a gate has ended.
func restarted(t *testing.T, gate string, after time.Duration) (*netted, *shop) {
	t.Helper()
	n := newNetted(t)
	n.says(gate, 100)
	file := filepath.Join(t.TempDir(), "state")
	state := func(o *Options) { o.State = file }
	n.shop("", state).Close()
	n.fails()
	n.clock.pass(after)
	return n, n.shop("", state)
}

// TestRestoreGate tests that a restarted node admits visitors within its part of the
// limits if the gate was open.
func TestRestoreGate(t *testing.T) {
	t.Parallel()
	for what, after := range map[string]time.Duration{"at once": 0, "after a while": 50 * time.Minute} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			n, s := restarted(t, GateOpen, after)
			for i := range 50 { // half of 100: there are two nodes
				s.isThrough("within our part", s.get("/tickets", someone(i)))
			}
			s.isQueued("beyond", s.get("/tickets", someone(50)))
			if room := s.Stats().Rooms["sale"]; room.Started != 50 || room.TurnedAway != 0 || room.Gate != GateOpen {
				t.Errorf("counts %+v", room)
			}
			n.says(GateOpen, 1)
			s.report()
			s.isThrough("the server is there", s.get("/tickets", someone(51)))
			s.isQueued("its share is used up", s.get("/tickets", someone(52)))
			n.says(GateShut, 0)
			s.report()
			if list := s.gatesToSave(); len(list) != 0 {
				t.Errorf("a gate that is shut is kept: %+v", list)
			}
		})
	}
}

// TestRestoreNothing tests that a gate that was shut, or a reply too old or in the
// future, is not restored.
func TestRestoreNothing(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		gate  string
		after time.Duration
	}{"too old": {GateOpen, time.Hour}, "shut": {GateShut, 0}, "of tomorrow": {GateOpen, -time.Hour}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, s := restarted(t, c.gate, c.after)
			s.isQueued(what, s.get("/tickets"))
			if room := s.Stats().Rooms["sale"]; room.Gate != "" {
				t.Errorf("known %+v", room)
			}
		})
	}
}

// TestRestoreWrites tests that reports do not rewrite the file while the gate stays the
// same, except once a minute.
func TestRestoreWrites(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 100)
	s := n.shop("")
	first := s.gatesToSave()
	for range 59 {
		s.clock.pass(time.Second)
		s.report()
	}
	if diff := cmp.Diff(first, s.gatesToSave()); diff != "" {
		t.Errorf("a moment later (-before +after)\n%s", diff)
	}
	s.clock.pass(time.Second)
	s.report()
	if list := s.gatesToSave(); len(list) != 1 || !list[0].At.Equal(s.clock.now().Truncate(time.Minute)) ||
		list[0].At.Equal(first[0].At) {
		t.Errorf("a minute later %+v", list)
	}
}

// TestRestoreEarly tests that saved gates are kept while there are no rules.
func TestRestoreEarly(t *testing.T) {
	t.Parallel()
	n, server := newNetted(t), newHost(t)
	n.says(GateOpen, 100)
	file := filepath.Join(t.TempDir(), "state")
	n.shop("", func(o *Options) { o.State = file }).Close()
	n.fails()
	server.has("", http.StatusBadGateway)
	start := func() (*Connector, http.Handler) {
		t.Helper()
		c, shop, err := earlyShop(t, Options{Source: &Source{URL: server.url()}, Server: n.URL, Token: testToken, Now: n.clock.now, reportInterval: time.Hour, State: file})
		if err != nil {
			t.Fatal(err)
		}
		return c, shop
	}
	first, _ := start()
	first.Close()
	c, shop := start()
	server.has(`{"version":1,"rooms":{"sale":{"url":"` + n.queue.url() + `","mode":"safety-net"}},"rules":[{"name":"all","action":"queue sale"}]}`)
	eventually(t, "there are rules", c.HasRules)
	if w := ask(shop, "GET", "/tickets"); w.Code != http.StatusOK {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
}
