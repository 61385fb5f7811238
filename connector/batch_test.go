package connector

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/batch"
	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/reach"
	"github.com/proofline/proofline/connector/internal/report"
	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/internal/source"
)

// many returns new sessions.
func many(rm *room, n int) []*session.Session {
	list := make([]*session.Session, n)
	for i := range list {
		v := rm.New([16]byte{byte(i), byte(i >> 8), byte(i >> 16)}, netip.Addr{}, "", time.Time{})
		v.Ticket, v.MaxEnds, v.Length, v.Token = [16]byte{1}, 1<<60, 600_000, fmt.Sprintf("eyJ%d", i)
		list[i] = v
	}
	return list
}

// count returns the number of sessions in the room's updates.
func (q *queue) count(what string) int {
	return len(slices.DeleteFunc(q.said(), func(p string) bool { return p != "/sessions/"+what }))
}

func (q *queue) sent() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.batches
}

// TestBatches tests that updates of many sessions need few requests.
func TestBatches(t *testing.T) {
	t.Parallel()
	s := newShop(t, "", func(o *Options) { o.batchInterval = time.Hour })
	rm := s.current.Load().rooms["sale"]
	for _, v := range many(rm, batch.MaxBatch-1) {
		if !s.sessions.touch(rm, v, s.clock.now()) || s.sessions.touch(rm, v, s.clock.now()) {
			t.Fatal("not touched once")
		}
	}
	time.Sleep(20 * time.Millisecond)
	if n := s.queue.sent(); n != 0 {
		t.Errorf("%d requests although there may be more to say", n)
	}
	for _, v := range many(rm, batch.MaxBatch+100)[batch.MaxBatch-1:] {
		s.sessions.touch(rm, v, s.clock.now())
	}
	eventually(t, "a full batch is sent", func() bool { return s.queue.count("touch") >= batch.MaxBatch })
	s.sessions.release(rm, many(rm, batch.MaxBatch+101)[batch.MaxBatch+100])
	s.Close()
	if n := s.queue.count("touch"); n != batch.MaxBatch+100 || s.queue.count("release") != 1 || s.queue.sent() > 3 {
		t.Errorf("%d touches and %d releases in %d requests", n, s.queue.count("release"), s.queue.sent())
	}
	if n := s.Stats(); n.Touches != batch.MaxBatch+100 || n.Released != 1 || n.Dropped != 0 {
		t.Errorf("counts %+v", n)
	}
}

// TestBatchesLater tests that updates are kept while the room is out of reach.
func TestBatchesLater(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	rm := s.current.Load().rooms["sale"]
	s.queue.isDown.Store(true)
	list := many(rm, 2*batch.MaxBatch)
	for _, v := range list {
		s.sessions.touch(rm, v, s.clock.now())
	}
	s.sessions.release(rm, list[0])
	eventually(t, "the room is found to be out of reach", func() bool { return !rm.state.reach.DownSince().IsZero() })
	s.queue.answers(http.StatusTooManyRequests)
	s.queue.isDown.Store(false)
	eventually(t, "the room is busy", func() bool { return s.queue.sent() > 0 })
	s.queue.answers(0)
	eventually(t, "all updates are sent", func() bool { return s.queue.count("touch") >= len(list)-1 && s.queue.count("release") == 1 })
	if n := s.Stats(); n.Dropped != 0 {
		t.Errorf("counts %+v", n)
	}
}

// TestBatchesAtClose tests that Close sends the rest, and gives up a room that does
// not respond.
func TestBatchesAtClose(t *testing.T) {
	t.Parallel()
	for name, isDown := range map[string]bool{"there": false, "out of reach": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "", func(o *Options) { o.batchInterval = time.Hour })
			rm := s.current.Load().rooms["sale"]
			for _, v := range many(rm, 3*batch.MaxBatch/2) {
				s.sessions.touch(rm, v, s.clock.now())
			}
			s.queue.isDown.Store(isDown)
			s.Close()
			sent, lost := s.queue.count("touch"), int(s.Stats().Dropped)
			if sent+lost != 3*batch.MaxBatch/2 || !isDown && lost > 0 {
				t.Errorf("%d sent, %d lost", sent, lost)
			}
		})
	}
}

// TestRefusedBatch tests that a refused batch is dropped.
func TestRefusedBatch(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	rm := s.current.Load().rooms["sale"]
	s.queue.answers(http.StatusNotFound)
	s.sessions.touch(rm, many(rm, 1)[0], s.clock.now())
	eventually(t, "it is lost", func() bool { return s.Stats().Dropped == 1 })
	s.queue.answers(0)
	s.sessions.touch(rm, many(rm, 2)[1], s.clock.now())
	eventually(t, "the next update is sent", func() bool { return s.Stats().Touches == 1 })
	if s.sessions.store.HasEnded(many(rm, 1)[0].Pass) {
		t.Error("the visitor is thrown out")
	}
}

// TestBatchSize tests that the largest batch is within the room's limit.
func TestBatchSize(t *testing.T) {
	t.Parallel()
	if most := batch.MaxBatch*(2048+len(`"",`)) + len(`{"touch":[],"release":[]}`); most > 1<<20 {
		t.Errorf("%d bytes", most)
	}
}

// TestFailOpenReports tests that fail-open intervals are reported once they are over,
// until they are recorded.
func TestFailOpenReports(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateShut, 0)
	s := n.shop(`,"failure":"fail-open-after 30s"`)
	began := s.clock.now()
	open := func() {
		s.failed()
		s.clock.pass(31 * time.Second)
		s.isThrough("open", s.failed())
		s.isThrough("open", s.get("/tickets"))
	}
	open()
	s.queue.isDown.Store(false)
	s.report()
	if said := n.latest(); len(said.FailOpen) != 0 {
		t.Errorf("reported %+v before it ended", said.FailOpen)
	}
	s.clock.pass(time.Minute)
	s.enter(s.queue.pass())
	n.fails()
	for range 2 {
		if _, err := s.reporter.Send(t.Context(), 1); err == nil {
			t.Fatal("answered")
		}
	}
	first := n.latest().FailOpen
	if len(first) != 1 || first[0].From != began.Add(31*time.Second).UnixMilli() || first[0].Until < first[0].From ||
		first[0].Until > began.Add(91*time.Second).UnixMilli() || first[0].Requests != 2 || len(first[0].ID) != 22 {
		t.Fatalf("reported %+v", first)
	}
	n.says(GateShut, 0)
	s.report()
	if again := n.latest().FailOpen; len(again) != 1 || again[0] != first[0] {
		t.Errorf("reported %+v", again)
	}
	s.report()
	if again := n.latest().FailOpen; len(again) != 0 {
		t.Errorf("reported %+v although it is recorded", again)
	}
	open()
	if err := s.use(&source.Rules{Site: mustSite(t, `{"version":1}`)}); err != nil {
		t.Fatal(err)
	}
	s.queue.isDown.Store(false)
	s.report()
	if said := n.latest(); said.Room != s.queue.url() || len(said.FailOpen) != 1 ||
		said.FailOpen[0].ID == first[0].ID || said.FailOpen[0].Until <= said.FailOpen[0].From {
		t.Errorf("of a room that the rules do not name any more: %+v", said)
	}
	s.report()
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := n.reports[len(n.reports)-1]; len(last.Rooms) != 0 {
		t.Errorf("reported %+v", last)
	}
}

// TestReport tests the connector's data in a report.
func TestReport(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 5)
	s := n.shop("", func(o *Options) { o.Kind, o.Version = "proxy", "1.2.3" })
	s.free("one")
	s.get("/free")
	s.report()
	n.mu.Lock()
	defer n.mu.Unlock()
	last := n.reports[len(n.reports)-1]
	if _, ok := id.Parse(last.Node); !ok || last.Node != n.reports[0].Node || last.Kind != "proxy" ||
		last.Version != "1.2.3" || last.Site != "" || last.RulesVersion != 0 || last.Counts["started"] != 1 ||
		last.Counts["bypassed"] != 1 {
		t.Errorf("report %+v", last)
	}
	for name := range last.Counts {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("a count is named %q", name)
		}
	}
}

// TestLargestReport tests that the largest report is within the server's limit.
func TestLargestReport(t *testing.T) {
	if testing.Short() {
		t.Skip("takes longer than a connector waits, under the race detector")
	}
	t.Parallel()
	var rooms []string
	for i := range report.MaxRooms {
		rooms = append(rooms, fmt.Sprintf(`"r%d":{"url":"https://queue.example.com/r/%s%02d","mode":"safety-net"}`, i, strings.Repeat("r", 60), i))
	}
	n := newNetted(t)
	n.says(GateOpen, 1)
	s := n.shop("")
	s.free("of a room that the rules do not name any more")
	if err := s.use(&source.Rules{Site: mustSite(t, `{"version":1,"rooms":{`+strings.Join(rooms, ",")+`}}`),
		Name: strings.Repeat("s", 63), Version: 1 << 62}); err != nil {
		t.Fatal(err)
	}
	for _, rm := range s.current.Load().rooms {
		for _, v := range many(rm, gate.MaxIDs) {
			rm.state.gate.Touch(v, s.clock.now())
			rm.state.gate.End(v)
		}
	}
	for range 1_000 { // the most that are kept
		s.unrecorded.Add(reach.Past{Room: s.current.Load().states[0].server.URL(),
			Interval: reach.Interval{From: s.clock.now(), Until: s.clock.now(), Requests: 1 << 60}})
	}
	s.report() // the test server checks its size
	n.mu.Lock()
	defer n.mu.Unlock()
	last, ids := n.reports[len(n.reports)-1].Rooms, 0
	if len(last) != report.MaxRooms {
		t.Errorf("%d rooms, of which a server takes %d", len(last), report.MaxRooms)
	}
	for _, r := range last {
		ids += len(r.Active) + len(r.Ended)
	}
	if ids < report.MaxReported/2 || ids > report.MaxReported {
		t.Errorf("%d ids", ids)
	}
}
