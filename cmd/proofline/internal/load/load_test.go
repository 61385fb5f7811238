package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scripted is a room with scripted responses: a ticket's n-th request of a kind gets the n-th response, and
// all later ones get the last.
type scripted struct {
	mu      sync.Mutex
	answers map[string][]string
	asked   map[string]int // requests by kind and ticket
	tickets map[string]bool
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/r/x/")
	kind, ticket := path, ""
	switch {
	case path == "checkpoint":
		fmt.Fprint(w, "host/r/x\n1\nroot\n\n— signature\n")
		return
	case path == "join":
		var body struct{ Ticket string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		ticket = body.Ticket
		s.tickets[ticket] = true
	case strings.HasSuffix(path, "/claim"):
		kind, ticket = "claim", strings.TrimSuffix(strings.TrimPrefix(path, "tickets/"), "/claim")
	case strings.HasPrefix(path, "tickets/"):
		kind, ticket = "ticket", strings.TrimPrefix(path, "tickets/")
	}
	list := s.answers[kind]
	n := s.asked[kind+ticket]
	s.asked[kind+ticket]++
	status, body, _ := strings.Cut(list[min(n, len(list)-1)], " ")
	if status == "409" {
		w.Header().Set("Retry-After", "1")
	}
	var code int
	_, _ = fmt.Sscan(status, &code)
	w.WriteHeader(code)
	fmt.Fprint(w, body)
}

// play runs a crowd against a scripted room.
func play(t *testing.T, o Options, answers map[string][]string) (*Report, *scripted) {
	t.Helper()
	s := &scripted{answers: answers, asked: map[string]int{}, tickets: map[string]bool{}}
	server := httptest.NewServer(s)
	defer server.Close()
	var err error
	if o.URL, err = url.Parse(server.URL + "/r/x"); err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report, s
}

// TestRun: visitors join too early, meet errors when they ask for their places, and
// claim too early; all are admitted in the end.
func TestRun(t *testing.T) {
	t.Parallel()
	report, s := play(t, Options{Visitors: 5, Concurrency: 2, Duration: 30 * time.Second}, map[string][]string{
		"join": {`409 {}`, `201 {}`},
		"ticket": {`503 {}`, `200 {"status":"waiting","position":null,"poll_after_ms":10}`,
			`200 {"status":"drawn","position":7,"poll_after_ms":10}`},
		"state": {`200 {"phase":"serving","called":6,"poll":{"after_ms":10}}`,
			`200 {"phase":"serving","called":7,"poll":{"after_ms":10}}`},
		"claim": {`202 {}`, `200 {}`},
	})
	if report.Joined != 5 || report.Admitted != 5 || report.Expired != 0 || report.Unfinished != 0 ||
		len(s.tickets) != 5 {
		t.Errorf("%+v with %d tickets", report, len(s.tickets))
	}
	want := map[string]map[string]uint64{"join": {"409": 5}, "ticket": {"503": 5}}
	if diff := cmp.Diff(want, report.Errors); diff != "" {
		t.Error(diff)
	}
	for kind, n := range map[string]uint64{"join": 10, "ticket": 15, "claim": 10} {
		if l := report.Latency[kind]; l.Count != n || l.P50 <= 0 || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.Max {
			t.Errorf("latency of %s: %+v", kind, l)
		}
	}
	if n := report.Latency["state"].Count; n < 6 { // 5 visitors share the script; the first one asks twice
		t.Errorf("%d states", n)
	}
}

// TestRunRefused: visitors are counted correctly when the room is full or has ended, and when it skips or
// refuses them.
func TestRunRefused(t *testing.T) {
	t.Parallel()
	drawn := []string{`200 {"status":"drawn","position":1,"poll_after_ms":10}`}
	called := []string{`200 {"phase":"serving","called":1,"poll":{"after_ms":10}}`}
	for name, tt := range map[string]struct {
		answers map[string][]string
		want    Report
	}{
		"full": {map[string][]string{"join": {`410 {}`}},
			Report{Unfinished: 3, Errors: map[string]map[string]uint64{"join": {"410": 3}}}},
		"skipped": {map[string][]string{"join": {`200 {}`}, "ticket": {`200 {"status":"skipped"}`}},
			Report{Joined: 3, Again: 3, Expired: 3}},
		"expired": {map[string][]string{"join": {`201 {}`}, "ticket": drawn, "state": called, "claim": {`410 {}`}},
			Report{Joined: 3, Expired: 3}},
		"ended": {map[string][]string{"join": {`201 {}`}, "ticket": drawn,
			"state": {`200 {"phase":"ended","called":0}`}}, Report{Joined: 3, Unfinished: 3}},
		"wrong": {map[string][]string{"join": {`201 {}`}, "ticket": drawn, "state": called, "claim": {`403 {}`}},
			Report{Joined: 3, Unfinished: 3, Errors: map[string]map[string]uint64{"claim": {"403": 3}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := play(t, Options{Visitors: 3, Concurrency: 3, Duration: 30 * time.Second}, tt.answers)
			same := got.Joined == tt.want.Joined && got.Again == tt.want.Again && got.Admitted == 0 &&
				got.Expired == tt.want.Expired && got.Unfinished == tt.want.Unfinished
			if !same || len(got.Errors)+len(tt.want.Errors) > 0 && !cmp.Equal(got.Errors, tt.want.Errors) {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestRunRate: a run keeps its rate and stops in time. A busy machine may make it
// slower, but never faster.
func TestRunRate(t *testing.T) {
	t.Parallel()
	waiting := map[string][]string{"join": {`201 {}`}, "ticket": {`200 {"status":"waiting","poll_after_ms":100}`}}
	var reported []Progress
	report, _ := play(t, Options{
		Visitors: 1000, Rate: 50, Concurrency: 4, Duration: 1500 * time.Millisecond,
		Progress: func(p Progress) { reported = append(reported, p) },
	}, waiting)
	if most := 1 + 50*report.Seconds; report.Joined < 25 || float64(report.Joined) > most ||
		report.Seconds < 1.5 || report.Seconds > 15 {
		t.Errorf("%d joined in %v s at 50 a second for 1.5 s", report.Joined, report.Seconds)
	}
	if len(reported) == 0 || reported[len(reported)-1].Joined == 0 {
		t.Errorf("progress: %+v", reported)
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	none := httptest.NewServer(http.NotFoundHandler())
	target, err := url.Parse(none.URL + "/r/x")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{URL: target, Visitors: 1, Concurrency: 1, Duration: time.Second}
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrNoRoom) {
		t.Errorf("no room: %v", err)
	}
	none.Close()
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrUnreachable) {
		t.Errorf("no server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, o); err == nil {
		t.Error("Run succeeds with a canceled context")
	}
}

func TestNumber(t *testing.T) {
	for body, want := range map[string]uint64{
		`{"called":12,"x":1}`: 12, `{"x":1,"called":0}`: 0, `{"called":18446744073709551615}`: 1<<64 - 1,
	} {
		if got, ok := number([]byte(body), "called"); !ok || got != want {
			t.Errorf("%s: %d, %t", body, got, ok)
		}
	}
	for _, body := range []string{``, `{}`, `{"called":null}`, `{"called":-1}`, `{"called":`, `{"called":5`,
		`{"recalled":5}`, `{"called":99999999999999999999}`} {
		if got, ok := number([]byte(body), "called"); ok {
			t.Errorf("%s: %d", body, got)
		}
	}
}
