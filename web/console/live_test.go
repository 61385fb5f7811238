package console

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// event is one server-sent event and when it came.
type event struct {
	name, data string
	at         time.Time
}

// listen opens a stream as somebody; events come until it ends.
func (s *site) listen(who, slug string) (*http.Response, <-chan event) {
	s.Helper()
	q, err := http.NewRequestWithContext(s.Context(), GET, s.url+Path+"/rooms/"+slug+"/live", http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	q.Header.Set("Accept", "text/event-stream")
	q.AddCookie(&http.Cookie{Name: SessionCookie, Value: who})
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = response.Body.Close() })
	events := make(chan event, 100)
	go func() {
		defer close(events)
		e := event{}
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			line := lines.Text()
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = name
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = data
			}
			if line == "" {
				e.at = time.Now()
				events <- e
				e = event{}
			}
		}
	}()
	return response, events
}

// runLive takes samples until the end of the test.
func (s *site) runLive() {
	ctx, cancel := context.WithCancel(s.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.Live.Run(ctx) }()
	s.Cleanup(func() { cancel(); <-stopped })
}

// next waits for an event, and ends the test when none comes.
func next(t testing.TB, events <-chan event) event {
	t.Helper()
	select {
	case e, ok := <-events:
		if !ok {
			t.Fatal("the stream has ended")
		}
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event comes")
	}
	return event{}
}

func TestLivePage(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale", Title: "Sale <b>of</b> the year", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}})
	s.join(r, 3)
	page := s.get(viewer, "/console/rooms/sale").want(http.StatusOK)
	page.has("Sale &lt;b&gt;of&lt;/b&gt; the year", `data-live="/console/rooms/sale/live"`, `data-figure="waiting" data-as="number">3</span>`, "no limit", `id="room-address" href="https://example.com/r/sale"`, `aria-label="QR code of the address"`, `data-island="copy" data-from="room-address"`, "No witnesses sign this room.")
	page.lacks("<b>of</b>", "controls-title", "No visitor has joined yet.")
	s.get(owner, "/console/rooms/sale").want(http.StatusOK).has("controls-title")
	s.create(owner, room.Config{Slug: "empty"})
	s.get(owner, "/console/rooms/empty").want(http.StatusOK).has("No visitor has joined yet.")
	for _, path := range []string{"", "/live", "/history", "/history/minutes", "/history.csv", "/history.json"} {
		s.get(stranger, "/console/rooms/sale"+path).want(http.StatusNotFound).lacks("Sale")
		s.get(owner, "/console/rooms/none"+path).want(http.StatusNotFound)
	}
}

// TestLiveStream has two people of one organization watch, and one of another,
// who sees nothing. Events come at most once a second.
func TestLiveStream(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}})
	s.create(stranger, room.Config{Slug: "elsewhere"})
	s.runLive()
	if answer, _ := s.listen(stranger, "sale"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("another's room: status %d", answer.StatusCode)
	}
	if answer, _ := s.listen(owner, "elsewhere"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("the room of another: status %d", answer.StatusCode)
	}
	if answer, _ := s.listen("stale", "sale"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a session: status %d", answer.StatusCode)
	}
	answer, events := s.listen(viewer, "sale")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" || answer.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("status %d, header %v", answer.StatusCode, answer.Header)
	}
	_, others := s.listen(owner, "sale")
	var past live.Series
	if e := next(t, events); e.name != "past" || json.Unmarshal([]byte(e.data), &past) != nil || past.At == nil {
		t.Errorf("first event %+v", e)
	}
	if e := next(t, events); e.name != "" || !strings.Contains(e.data, `"arrivals":0`) {
		t.Errorf("second event %+v", e)
	}
	s.join(r, 2)
	var came []event
	for len(came) < 4 {
		came = append(came, next(t, events))
	}
	if took := came[3].at.Sub(came[0].at); took < 2*time.Second { // the first may have been late
		t.Errorf("four events within %v", took)
	}
	if !strings.Contains(came[3].data, `"arrivals":2`) {
		t.Errorf("after two joins %s", came[3].data)
	}
	for e := next(t, others); e.data != came[3].data; {
		e = next(t, others) // somebody else gets the very same
	}
	s.do(viewer, http.MethodHead, "/console/rooms/sale/live", "").want(http.StatusNoContent)
	s.do(stranger, http.MethodHead, "/console/rooms/sale/live", "").want(http.StatusNotFound)
}

// TestLiveStreamEnds: streams end with the session, and with the server.
func TestLiveStreamEnds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	moved, isOut := time.Duration(0), false
	closing := make(chan struct{})
	s := newConsole(t, func(o *Options) {
		identify := o.Identify
		o.Identify = func(ctx context.Context, token string) (Identity, error) {
			mu.Lock()
			defer mu.Unlock()
			if isOut && token == viewer {
				return Identity{}, ErrSignIn
			}
			return identify(ctx, token)
		}
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(moved)
		}
		o.Closing = closing
	})
	s.create(owner, room.Config{Slug: "sale"})
	s.runLive()
	_, events := s.listen(viewer, "sale")
	_, others := s.listen(owner, "sale")
	next(t, events)
	next(t, others)
	mu.Lock()
	isOut = true
	mu.Unlock()
	for range 3 {
		next(t, events) // not looked at yet
	}
	mu.Lock()
	moved = recheckEvery
	mu.Unlock()
	ended := time.After(time.Minute)
	for open := true; open; {
		select {
		case _, open = <-events:
		case <-ended:
			t.Fatal("the stream outlives its session")
		}
	}
	next(t, others)
	next(t, others)
	close(closing)
	for open := true; open; {
		select {
		case _, open = <-others:
		case <-ended:
			t.Fatal("the stream outlives the server")
		}
	}
}

// TestHistory looks at a room before and after its end, in all forms.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale", Title: "=1+1", Windows: []room.WindowRule{{Length: room.Duration(100 * time.Millisecond)}}, Outflow: room.Outflow{PerMinute: 60_000}})
	s.get(viewer, "/console/rooms/sale/history").want(http.StatusOK).has("The room goes on")
	s.get(viewer, "/console/rooms/sale/history.csv?table=windows").want(http.StatusConflict)
	s.get(viewer, "/console/rooms/sale/history.csv?table=all").want(http.StatusBadRequest)
	s.runLive()
	s.join(r, 3)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if past, err := s.Live.Recent(t.Context(), "sale"); err == nil && len(past.At) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no samples are taken")
		}
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list struct{ Minutes []live.Minute }
	for end := time.Now().Add(time.Minute); len(list.Minutes) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no minute is stored")
		}
		if err := json.Unmarshal([]byte(s.get(viewer, "/console/rooms/sale/history/minutes").want(http.StatusOK).body), &list); err != nil {
			t.Fatal(err)
		}
	}
	s.get(viewer, "/console/rooms/sale/history").want(http.StatusOK).has("What became of it", "<td class=\"number\">3</td>", "history.csv?table=summary", "=1&#43;1")
	for table, rows := range map[string]int{"": len(list.Minutes), "minutes": len(list.Minutes), "windows": 1, "summary": 28} {
		a := s.get(viewer, "/console/rooms/sale/history.csv?table="+table).want(http.StatusOK)
		got, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
		if err != nil || len(got) < rows+1 || a.header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.HasPrefix(a.header.Get("Content-Disposition"), `attachment; filename="sale-`) {
			t.Errorf("table %q: %d rows, %v, header %v", table, len(got), err, a.header)
		}
		if table == "summary" {
			a.has("title,'=1+1\r\n")
		}
	}
	var e live.Export
	if err := json.Unmarshal([]byte(s.get(viewer, "/console/rooms/sale/history.json").want(http.StatusOK).body), &e); err != nil || e.Title != "=1+1" || e.Summary == nil || e.Summary.Arrivals != 3 || len(e.Minutes) == 0 {
		t.Errorf("document %+v, %v", e, err)
	}
}

// TestFigureWords are the words for figures. The script has the same cases.
func TestFigureWords(t *testing.T) {
	t.Parallel()
	f := func(f float64) *float64 { return &f }
	ms := int64(90_000)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	joining := func(from, to time.Duration) live.Figures {
		return live.Figures{At: at, Joining: &live.Span{Earliest: at.Add(from), Latest: at.Add(to)}}
	}
	for i, test := range []struct{ got, want string }{
		{decimal(nil), dash}, {decimal(f(0)), "0.0"}, {decimal(f(12.34)), "12.3"}, {decimal(f(99.94)), "99.9"}, {decimal(f(1234.5)), "1,235"},
		{percent(nil), dash}, {percent(f(0.1234)), "12.3 %"}, {percent(f(1)), "100.0 %"},
		{bytesize(0), "0 MiB"}, {bytesize(5<<30 + 1), "5,120 MiB"},
		{span(int64(0)), "0.0 s"}, {span(&ms), "90 s"}, {span((*int64)(nil)), dash}, {span(f(0.44)), "0.4 s"}, {span((*float64)(nil)), dash}, {span(120.0), "2 min"}, {span(7200.0), "2.0 h"}, {span(100_000.0), "27.8 h"},
		{until(at, at.Add(-1)), "now"}, {until(at, at.Add(42*time.Second)), "0:42"}, {until(at, at.Add(41001*time.Millisecond)), "0:42"}, {until(at, at.Add(725*time.Second)), "12:05"}, {until(at, at.Add(11525*time.Second)), "3:12:05"}, {until(at, at.Add(51*time.Hour)), "2 d 03:00"}, {until(at, (*time.Time)(nil)), dash},
		{emptied(live.Figures{At: at}), "no line"}, {emptied(live.Figures{At: at, Phase: room.PhaseClaimsFrozen, Waiting: 3}), "not while stopped"},
		{emptied(live.Figures{At: at, Phase: room.PhaseServing, Waiting: 3, Next: live.Next{Called: &live.Span{Earliest: at.Add(time.Minute), Latest: at.Add(150 * time.Second)}}}), "in 1 to 3 min"}, {emptied(live.Figures{At: at, Waiting: 3}), dash},
		{turn(live.Figures{}), dash}, {turn(joining(0, 59*time.Second)), "within a minute"}, {turn(joining(0, time.Minute)), "in 0 to 1 min"},
		{turn(joining(150*time.Second, 301*time.Second)), "in 2 to 6 min"}, {turn(joining(59*time.Minute, 61*time.Minute)), "in 55 to 65 min"},
		{turn(joining(359*time.Minute, 361*time.Minute)), "in 345 to 375 min"}, {turn(joining(50*time.Hour, 61*time.Hour)), "in 50 to 61 h"},
	} {
		if test.got != test.want {
			t.Errorf("case %s: %q, want %q", fmt.Sprint(i), test.got, test.want)
		}
	}
}

// TestGatePages: dashboard and history say how the gate does, and when a site was
// fail-open.
func TestGatePages(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}, Outflow: room.Outflow{PerMinute: 5, MaxActive: 9}})
	s.get(viewer, "/console/rooms/sale").want(http.StatusOK).has(`data-has="gate" hidden`, `data-has="fail-open" hidden`)
	s.get(viewer, "/console/rooms/sale/history").want(http.StatusOK).lacks("h-switches", "h-fail-open")
	report := func(in room.Report) {
		t.Helper()
		in.Node, in.Shares = uuid.New(), true
		if _, err := r.Report(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); r.Snapshot().Gate != room.GateOpen; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the gate does not open")
		}
		report(room.Report{})
	}
	from := time.Now().Add(-time.Hour)
	report(room.Report{Started: []uuid.UUID{uuid.New(), uuid.New()}, FailOpen: []pgroom.FailOpen{{ID: uuid.New(), From: from.UnixMilli(), Until: from.Add(time.Minute).UnixMilli(), Requests: 1234}}})
	s.get(viewer, "/console/rooms/sale").want(http.StatusOK).
		has(`data-has="gate">`, `data-figure="gate.state">open<`, `data-figure="gate.started" data-as="number">2<`, `data-figure="gate.active" data-as="number">2<`, "at most 9", `data-has="fail-open">`, "1,234")
	s.get(viewer, "/console/rooms/sale/history").want(http.StatusOK).has("h-switches", ">opened<", "h-fail-open", "1,234")
}
