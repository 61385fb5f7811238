package live_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/safetynet"
	"github.com/proofline/proofline/web/console"
	pages "github.com/proofline/proofline/web/console/live"
	"github.com/proofline/proofline/web/console/shell"
)

// event is a server-sent event and the time of its arrival.
type event struct {
	name, data string
	at         time.Time
}

// listen opens a stream with a role; events arrive until it ends.
func listen(s *consoletest.Site, who, slug string) (*http.Response, <-chan event) {
	s.Helper()
	q, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.URL+shell.Path+"/rooms/"+slug+"/live", http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	q.Header.Set("Accept", "text/event-stream")
	q.AddCookie(&http.Cookie{Name: shell.SessionCookie, Value: who})
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
func runLive(s *consoletest.Site) {
	ctx, cancel := context.WithCancel(s.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.Live.Run(ctx) }()
	s.Cleanup(func() { cancel(); <-stopped })
}

// next waits for an event, and fails the test if none arrives.
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
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "Sale <b>of</b> the year", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}})
	s.Join(r, 3)
	page := s.Get(consoletest.Viewer, "/console/rooms/sale").Want(http.StatusOK)
	page.Has("Sale &lt;b&gt;of&lt;/b&gt; the year", `data-live="/console/rooms/sale/live"`, `data-figure="waiting" data-as="number">3</span>`, "no limit", `id="room-address" href="https://example.com/r/sale"`, `aria-label="QR code of the address"`, `data-island="copy" data-from="room-address"`, "This room has no witnesses.")
	page.Lacks("<b>of</b>", "controls-title", "No visitor has joined yet.")
	s.Get(consoletest.Owner, "/console/rooms/sale").Want(http.StatusOK).Has("controls-title")
	s.Create(consoletest.Owner, room.Config{Slug: "empty"})
	s.Get(consoletest.Owner, "/console/rooms/empty").Want(http.StatusOK).Has("No visitor has joined yet.")
	for _, path := range []string{"", "/live", "/history", "/history/minutes", "/history.csv", "/history.json"} {
		s.Get(consoletest.Stranger, "/console/rooms/sale"+path).Want(http.StatusNotFound).Lacks("Sale")
		s.Get(consoletest.Owner, "/console/rooms/none"+path).Want(http.StatusNotFound)
	}
}

// TestLiveStream has two members of one organization watch, and one of another, who sees nothing. Events
// arrive at most once a second.
func TestLiveStream(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}})
	s.Create(consoletest.Stranger, room.Config{Slug: "elsewhere"})
	runLive(s)
	if answer, _ := listen(s, consoletest.Stranger, "sale"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("another's room: status %d", answer.StatusCode)
	}
	if answer, _ := listen(s, consoletest.Owner, "elsewhere"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("the room of another: status %d", answer.StatusCode)
	}
	if answer, _ := listen(s, "stale", "sale"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a session: status %d", answer.StatusCode)
	}
	answer, events := listen(s, consoletest.Viewer, "sale")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" || answer.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("status %d, header %v", answer.StatusCode, answer.Header)
	}
	_, others := listen(s, consoletest.Owner, "sale")
	var past live.Series
	if e := next(t, events); e.name != "past" || json.Unmarshal([]byte(e.data), &past) != nil || past.At == nil {
		t.Errorf("first event %+v", e)
	}
	if e := next(t, events); e.name != "" || !strings.Contains(e.data, `"arrivals":0`) {
		t.Errorf("second event %+v", e)
	}
	s.Join(r, 2)
	var came []event
	for len(came) < 4 {
		came = append(came, next(t, events))
	}
	if took := came[3].at.Sub(came[0].at); took < 2*time.Second { // the first one may have been late
		t.Errorf("four events within %v", took)
	}
	if !strings.Contains(came[3].data, `"arrivals":2`) {
		t.Errorf("after two joins %s", came[3].data)
	}
	for e := next(t, others); e.data != came[3].data; {
		e = next(t, others) // another member gets exactly the same
	}
	s.Do(consoletest.Viewer, http.MethodHead, "/console/rooms/sale/live", "").Want(http.StatusNoContent)
	s.Do(consoletest.Stranger, http.MethodHead, "/console/rooms/sale/live", "").Want(http.StatusNotFound)
}

// TestLiveStreamEnds: streams end with the session, and with the server.
func TestLiveStreamEnds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	moved, isOut := time.Duration(0), false
	closing := make(chan struct{})
	s := consoletest.New(t, func(o *console.Options) {
		identify := o.Identify
		o.Identify = func(ctx context.Context, token string) (shell.Identity, error) {
			mu.Lock()
			defer mu.Unlock()
			if isOut && token == consoletest.Viewer {
				return shell.Identity{}, shell.ErrSignIn
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
	s.Create(consoletest.Owner, room.Config{Slug: "sale"})
	runLive(s)
	_, events := listen(s, consoletest.Viewer, "sale")
	_, others := listen(s, consoletest.Owner, "sale")
	next(t, events)
	next(t, others)
	mu.Lock()
	isOut = true
	mu.Unlock()
	for range 3 {
		next(t, events) // not checked yet
	}
	mu.Lock()
	moved = pages.RecheckEvery
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

// TestHistory reads the history of a room before and after its end, in all formats.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "=1+1", Windows: []room.WindowRule{{Length: room.Duration(100 * time.Millisecond)}}, Outflow: room.Outflow{PerMinute: 60_000}})
	s.Get(consoletest.Viewer, "/console/rooms/sale/history").Want(http.StatusOK).Has("The room is still running")
	s.Get(consoletest.Viewer, "/console/rooms/sale/history.csv?table=windows").Want(http.StatusConflict)
	s.Get(consoletest.Viewer, "/console/rooms/sale/history.csv?table=all").Want(http.StatusBadRequest)
	runLive(s)
	s.Join(r, 3)
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
		if err := json.Unmarshal([]byte(s.Get(consoletest.Viewer, "/console/rooms/sale/history/minutes").Want(http.StatusOK).Body), &list); err != nil {
			t.Fatal(err)
		}
	}
	s.Get(consoletest.Viewer, "/console/rooms/sale/history").Want(http.StatusOK).Has("Summary", "<td class=\"number\">3</td>", "history.csv?table=summary", "=1&#43;1")
	for table, rows := range map[string]int{"": len(list.Minutes), "minutes": len(list.Minutes), "windows": 1, "summary": 28} {
		a := s.Get(consoletest.Viewer, "/console/rooms/sale/history.csv?table="+table).Want(http.StatusOK)
		got, err := csv.NewReader(strings.NewReader(a.Body)).ReadAll()
		if err != nil || len(got) < rows+1 || a.Header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.HasPrefix(a.Header.Get("Content-Disposition"), `attachment; filename="sale-`) {
			t.Errorf("table %q: %d rows, %v, header %v", table, len(got), err, a.Header)
		}
		if table == "summary" {
			a.Has("title,'=1+1\r\n")
		}
	}
	var e live.Export
	if err := json.Unmarshal([]byte(s.Get(consoletest.Viewer, "/console/rooms/sale/history.json").Want(http.StatusOK).Body), &e); err != nil || e.Title != "=1+1" || e.Summary == nil || e.Summary.Arrivals != 3 || len(e.Minutes) == 0 {
		t.Errorf("document %+v, %v", e, err)
	}
}

// TestGatePages: the dashboard and the history show the state of the gate, and the fail-open intervals of the
// site.
func TestGatePages(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}, Outflow: room.Outflow{PerMinute: 5, MaxActive: 9}})
	s.Get(consoletest.Viewer, "/console/rooms/sale").Want(http.StatusOK).Has(`data-has="gate" hidden`, `data-has="fail-open" hidden`)
	s.Get(consoletest.Viewer, "/console/rooms/sale/history").Want(http.StatusOK).Lacks("h-switches", "h-fail-open")
	report := func(in safetynet.Report) {
		t.Helper()
		in.Node, in.Shares = uuid.New(), true
		if _, err := r.SafetyNet.Report(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); r.Snapshot().Gate != room.GateOpen; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the gate does not open")
		}
		report(safetynet.Report{})
	}
	from := time.Now().Add(-time.Hour)
	report(safetynet.Report{Started: []uuid.UUID{uuid.New(), uuid.New()}, FailOpen: []pgroom.FailOpen{{ID: uuid.New(), From: from.UnixMilli(), Until: from.Add(time.Minute).UnixMilli(), Requests: 1234}}})
	s.Get(consoletest.Viewer, "/console/rooms/sale").Want(http.StatusOK).
		Has(`data-has="gate">`, `data-figure="gate.state">open<`, `data-figure="gate.started" data-as="number">2<`, `data-figure="gate.active" data-as="number">2<`, "at most 9", `data-has="fail-open">`, "1,234")
	s.Get(consoletest.Viewer, "/console/rooms/sale/history").Want(http.StatusOK).Has("h-switches", ">opened<", "h-fail-open", "1,234")
}

// TestReportLink checks that the page of a room links to its published audit report.
func TestReportLink(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale"})
	if _, err := s.Control.End(t.Context(), consoletest.Actor(consoletest.Owner), "sale"); err != nil {
		t.Fatal(err)
	}
	s.Get(consoletest.Viewer, "/console/rooms/sale").Want(http.StatusOK).Lacks(r.URL + "/report")
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		done, err := s.Control.Reports.Publish(t.Context(), consoletest.Actor(consoletest.Owner), "sale")
		if err == nil {
			err = <-done
		}
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	s.Get(consoletest.Viewer, "/console/rooms/sale").Want(http.StatusOK).Has(`href="` + r.URL + `/report"`)
}
