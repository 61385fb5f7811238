package web

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// listen opens an event stream of a room, and returns its response and a channel of its data.
func listen(t *testing.T, base, slug string) (*http.Response, <-chan string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/r/"+slug+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // an idle connection would delay the server's shutdown
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	data := make(chan string, 100)
	go func() {
		defer close(data)
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				data <- text
			}
		}
	}()
	return answer, data
}

// serve runs the site on a port until stop is called.
func serve(t *testing.T, s *site) (base string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stop = func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("streams hold up the server's end")
		}
	}
	return "http://" + l.Addr().String(), stop
}

// TestEvents reads streams while a room changes, opens one stream too many, and stops the server.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *Options) { o.MaxStreams = 2 })
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	base, stop := serve(t, s)
	answer, data := listen(t, base, "sale")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, header %v", answer.StatusCode, answer.Header)
	}
	if first := <-data; !strings.Contains(first, `"arrivals":0`) || !strings.Contains(first, `"listen_ahead":100`) {
		t.Errorf("first event %s", first)
	}
	s.post("/r/sale/join", "").want(http.StatusCreated)
	if next := <-data; !strings.Contains(next, `"arrivals":1`) {
		t.Errorf("after a join: %s", next)
	}
	_, others := listen(t, base, "sale")
	<-others
	if answer, _ := listen(t, base, "sale"); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a stream too many: status %d", answer.StatusCode)
	}
	if answer, _ := listen(t, base, "none"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("no room: status %d", answer.StatusCode)
	}
	stop()
	for range data { //nolint:revive // until the stream ends
	}
	if n := s.feed.open.Load(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

// TestEventsBody checks that a request that announces a body is refused, since waiting for the body
// would block the stream.
func TestEventsBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *Options) { o.MaxStreams = 2 })
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	base, stop := serve(t, s)
	for _, announced := range []string{"Content-Length: 1", "Transfer-Encoding: chunked"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprintf(c, "GET /r/sale/events HTTP/1.1\r\nHost: example.com\r\n%s\r\n\r\n", announced); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		line, err := bufio.NewReader(c).ReadString('\n')
		if !strings.HasPrefix(line, "HTTP/1.1 400") {
			t.Errorf("%s: answered %q, error %v", announced, line, err)
		}
	}
	if n := s.feed.open.Load(); n != 0 {
		t.Errorf("%d streams are taken", n)
	}
	stop()
}

// TestNoEvents checks that a server without streams refers clients to the state.
func TestNoEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	s.get("/r/sale/events").problem(http.StatusServiceUnavailable, "too-many-streams")
	if a := s.get("/r/sale/state"); !strings.Contains(a.body, `"listen_ahead":0`) {
		t.Errorf("state %s", a.body)
	}
}
