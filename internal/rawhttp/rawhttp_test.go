package rawhttp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestConn sends requests of all kinds to a net/http server. They share one
// connection until the server closes it.
func TestConn(t *testing.T) {
	clients := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clients[r.RemoteAddr] = true
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/chunked":
			for i := range 3 {
				fmt.Fprintf(w, "part %d ", i)
				w.(http.Flusher).Flush()
			}
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/last":
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, "bye")
		default:
			fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.Host, r.URL.Path, r.Header.Get("Content-Type"), body)
		}
	}))
	defer s.Close()
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &Conn{Target: target}
	defer c.Close()
	for range 2 {
		for _, tt := range []struct {
			method, path, body string
			status             int
			want               string
			retry              time.Duration
		}{
			{"GET", "/a", "", 200, "GET " + target.Host + " /a  ", 0},
			{"POST", "/b", "{}", 200, "POST " + target.Host + " /b application/json {}", 0},
			{"POST", "/b", "", 200, "POST " + target.Host + " /b application/json ", 0},
			{"GET", "/chunked", "", 200, "part 0 part 1 part 2 ", 0},
			{"GET", "/none", "", 204, "", 0},
			{"GET", "/busy", "", 503, "", 7 * time.Second},
			{"GET", "/last", "", 200, "bye", 0},
		} {
			a, err := c.Send(t.Context(),
				AppendRequest(nil, tt.method, target.Host, tt.path, "", tt.body))
			if err != nil || a.Status != tt.status || string(a.Body) != tt.want || a.Retry != tt.retry {
				t.Errorf("%s %s: %d %q, retry %v, %v", tt.method, tt.path, a.Status, a.Body, a.Retry, err)
			}
		}
	}
	if len(clients) != 2 {
		t.Errorf("%d connections, want 2: one until the server closed it, one after", len(clients))
	}
}

// TestAnswersRefused reads responses that are malformed or too large.
func TestAnswersRefused(t *testing.T) {
	for _, text := range []string{
		"SSH-2.0-OpenSSH\r\n",
		"HTTP/1.1 OK\r\n\r\n",
		"HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nuntil the end",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<15) + "\r\n\r\n",
	} {
		c := &Conn{in: bufio.NewReader(strings.NewReader(text))}
		if a, _, err := c.read(); !errors.Is(err, ErrAnswer) {
			t.Errorf("%.60q: %+v, %v, want ErrAnswer", text, a, err)
		}
	}
	short := &Conn{in: bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"))}
	if _, _, err := short.read(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a short body: %v", err)
	}
}

// FuzzAnswer parses arbitrary bytes as a response. If net/http can parse them too, both results must be the
// same.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	f.Add([]byte("HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nA: b\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &Conn{in: bufio.NewReaderSize(bytes.NewReader(text), 16<<10)}
		a, _, err := c.read()
		if len(a.Body) > maxBody {
			t.Fatalf("a body of %d bytes", len(a.Body))
		}
		if err != nil {
			return
		}
		theirs, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
		if err != nil {
			return
		}
		body, err := io.ReadAll(theirs.Body)
		if err != nil || len(theirs.TransferEncoding) == 0 && theirs.ContentLength < 0 {
			return
		}
		if theirs.StatusCode != a.Status || a.Status >= 200 && a.Status != 204 && a.Status != 304 &&
			!bytes.Equal(body, a.Body) {
			t.Errorf("%d %q, net/http reads %d %q", a.Status, a.Body, theirs.StatusCode, body)
		}
	})
}
