package connector

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/internal/source"
)

// TestObserved tests the counts of a room that is off.
func TestObserved(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateShut, 0)
	s := newShopAt(t, n.queue, `,"mode":"off"`, func(o *Options) { o.Server, o.Token = n.URL, testToken })
	for range 2 {
		s.isThrough("a page", s.get("/tickets"))
	}
	s.isThrough("a script", s.send("POST", "/tickets"))
	s.isThrough("a free page", s.get("/free"))
	s.get("/secret")
	s.clock.pass(59 * time.Minute)
	s.isThrough("later", s.get("/tickets"))
	r := httptest.NewRequest(http.MethodGet, "/tickets", nil)
	if !s.Allows(http.Header{}, r) {
		t.Error("Allows refuses")
	}
	s.clock.pass(2 * time.Minute)
	if n := s.Stats(); n.Observed != 5 || n.Bypassed != 6 || n.Blocked != 1 || n.Rooms["sale"].Observed != 5 ||
		n.Rooms["sale"].ObservedHour != 2 {
		t.Errorf("counts %+v", n)
	}
	s.report()
	counts := n.reports[len(n.reports)-1].Counts
	maps.DeleteFunc(counts, func(name string, n uint64) bool { return n == 0 })
	if diff := cmp.Diff(map[string]uint64{"bypassed": 6, "observed": 5, "observed_hour_sale": 2, "blocked": 1},
		counts); diff != "" {
		t.Errorf("reported (-want +got)\n%s", diff)
	}
}

// TestObservedSession tests that a visitor with a session is not counted.
func TestObservedSession(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	if err := s.use(&source.Rules{Site: s.queue.site(`,"mode":"off"`)}); err != nil {
		t.Fatal(err)
	}
	s.isThrough("with a session", s.get("/tickets", cookie))
	s.isThrough("without", s.get("/tickets"))
	if n := s.Stats(); n.Observed != 1 || n.Bypassed != 2 {
		t.Errorf("counts %+v", n)
	}
}

// TestObservedNames tests names that are too long, and too many names.
func TestObservedNames(t *testing.T) {
	t.Parallel()
	now := newClock().now()
	long := "r1234567-10-234567-20-234567-30-234567"
	s := &config{rooms: map[string]*room{}}
	for _, name := range []string{"a-b", long, long[:36]} {
		s.rooms[name] = &room{session.NewRoom(name, mustSite(t,
			`{"version":1,"rooms":{"a":{"url":"https://queue.example.com/r/a","mode":"off"}}}`).Rooms["a"]), &roomState{}}
		s.rooms[name].state.observed.add(now)
	}
	got := map[string]uint64{}
	s.addObserved(got, now)
	if diff := cmp.Diff(map[string]uint64{"observed_hour_a_b": 1,
		"observed_hour_r1234567_10_234567_20_234567_30_2345": 1}, got); diff != "" {
		t.Errorf("counts (-want +got)\n%s", diff)
	}
	full := map[string]uint64{}
	for i := range maxCounts {
		full[id.Text(id.New())] = uint64(i)
	}
	if s.addObserved(full, now); len(full) != maxCounts {
		t.Errorf("%d counts", len(full))
	}
}
