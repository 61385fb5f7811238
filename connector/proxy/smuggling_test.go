package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/conformance"
)

// witness is a site that records every byte it gets.
type witness struct {
	addr string

	mu       sync.Mutex
	got      bytes.Buffer
	requests []*http.Request
}

// newWitness responds to each request with the result of reply. It also records what follows a 101 response.
func newWitness(t *testing.T, reply func(*http.Request) string) *witness {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &witness{addr: l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(conn, reply)
		}
	}()
	return w
}

func (w *witness) serve(conn net.Conn, reply func(*http.Request) string) {
	defer conn.Close()
	in := bufio.NewReader(io.TeeReader(conn, w))
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		answer := reply(r)
		if !strings.HasPrefix(answer, "HTTP/1.1 101") {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
		}
		w.mu.Lock()
		w.requests = append(w.requests, r)
		w.mu.Unlock()
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
		if strings.HasPrefix(answer, "HTTP/1.1 101") {
			_, _ = io.Copy(io.Discard, in)
			return
		}
	}
}

// Write implements [io.Writer].
func (w *witness) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got.Write(p)
}

func (w *witness) seen() (text string, requests []*http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got.String(), w.requests
}

const wellAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Site: site\r\n\r\nok"

func well(*http.Request) string { return wellAnswer }

// talk sends data, and returns the response once it is complete and the other side is silent.
func talk(t *testing.T, addr string, enough func(got string) bool, parts ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var got bytes.Buffer
	for _, part := range parts {
		_, _ = io.WriteString(conn, part) // fails if the connection is closed already
		for isSilent, block := false, make([]byte, 1<<16); !isSilent; {
			wait := 150 * time.Millisecond
			if !enough(got.String()) {
				wait = time.Minute
			}
			_ = conn.SetReadDeadline(time.Now().Add(wait))
			n, err := conn.Read(block)
			got.Write(block[:n])
			if isSilent = os.IsTimeout(err); err != nil && !isSilent {
				return got.String()
			}
		}
	}
	return got.String()
}

// answered reports whether there is another response after a number of responses.
func answered(got string) bool { return final.MatchString(got) }

var final = regexp.MustCompile(`HTTP/1\.[01] ([2-5]|101)`)

// hidden is a request for a protected page in another request's body.
const hidden = "GET /tickets HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"

// TestSmuggling sends requests that parsers read differently. The site must not get any
// ambiguous request, or one for a protected page.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	const head = "POST /about HTTP/1.1\r\nHost: shop.example.com\r\n"
	get := func(lines string) string { return "GET /about HTTP/1.1\r\nHost: shop.example.com\r\n" + lines + "\r\n" }
	for name, text := range map[string]string{
		"length and chunks":              head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 5+len(hidden), hidden),
		"chunks and length":              head + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden),
		"unknown coding":                 head + "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
		"two codings":                    head + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden,
		"two lines of coding":            head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
		"coding with a tab":              head + "Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
		"coding with a vertical tab":     head + "Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
		"coding with space before colon": head + "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
		"coding in HTTP/1.0":             "POST /about HTTP/1.0\r\nHost: shop.example.com\r\nConnection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"two lengths":                    head + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + hidden,
		"lengths in a list":              head + "Content-Length: 0, 0\r\n\r\n" + hidden,
		"length with a sign":             head + "Content-Length: +0\r\n\r\n" + hidden,
		"length in hex":                  head + "Content-Length: 0x0\r\n\r\n" + hidden,
		"negative length":                head + "Content-Length: -1\r\n\r\n" + hidden,
		"long length":                    head + "Content-Length: 18446744073709551616\r\n\r\n" + hidden,
		"bare LF":                        "GET /about HTTP/1.1\nHost: shop.example.com\nX-A: b\n\n",
		"bare LF before a header":        head + "X-A: b\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"bare CR":                        get("X-A: b\rX-B: c\r\n"),
		"bare CR in the request line":    "GET /about\rHTTP/1.1 HTTP/1.1\r\nHost: shop.example.com\r\n\r\n",
		"NUL":                            get("X-A: b\x00c\r\n"),
		"folded line":                    get("X-A: b\r\n Transfer-Encoding: chunked\r\n"),
		"folded with a tab":              get("X-A: b\r\n\tContent-Length: 44\r\n"),
		"folded first line":              "GET /about HTTP/1.1\r\n X-A: b\r\nHost: shop.example.com\r\n\r\n",
		"two hosts":                      "GET /about HTTP/1.1\r\nHost: shop.example.com\r\nHost: other.example.com\r\n\r\n",
		"no host":                        "GET /about HTTP/1.1\r\n\r\n",
		"host with a path":               "GET /about HTTP/1.1\r\nHost: shop.example.com/tickets\r\n\r\n",
		"host of the target":             "GET http://shop.example.com/tickets HTTP/1.1\r\nHost: about.example.com\r\n\r\n",
		"space in the target":            "GET /about HTTP/1.1\r\nX: HTTP/1.1\r\nHost: shop.example.com\r\n\r\n",
		"two spaces in the target":       "GET /about /tickets HTTP/1.1\r\nHost: shop.example.com\r\n\r\n",
		"chunk size with a sign":         head + "Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n" + hidden,
		"chunk size beyond 64 bits":      head + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n" + hidden,
		"chunk extension with LF":        head + "Transfer-Encoding: chunked\r\n\r\n2;\nxx\r\n0\r\n\r\n" + hidden,
		"chunk without its end":          head + "Transfer-Encoding: chunked\r\n\r\n2\r\nxxyy0\r\n\r\n" + hidden,
		"chunks ended by LF":             head + "Transfer-Encoding: chunked\r\n\r\n2\nxx\n0\n\n" + hidden,
		"body of a GET":                  get(fmt.Sprintf("Content-Length: %d\r\n", len(hidden))) + hidden,
		"one after the other":            get("") + hidden,
		"old protocol":                   "GET /tickets\r\n\r\n",
		"CONNECT":                        "CONNECT shop.example.com:80 HTTP/1.1\r\nHost: shop.example.com:80\r\n\r\n" + hidden,
		"awaited body":                   head + fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(hidden)) + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := newWitness(t, well)
			addr := start(t, New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, site.addr)}))
			answer := talk(t, addr, func(got string) bool {
				_, requests := site.seen()
				return answered(got) && strings.Count(got, "X-Site: site") == len(requests)
			}, text)
			site.isPlain(t, answer)
		})
	}
}

// isPlain fails unless the site got only unambiguous requests for unprotected pages.
func (w *witness) isPlain(t *testing.T, answer string) {
	t.Helper()
	text, requests := w.seen()
	for _, r := range requests {
		if r.URL.Path != "/about" || r.Host != "shop.example.com" {
			t.Errorf("the site was asked for %s of %s:\n%q\n%q", r.URL, r.Host, text, answer)
		}
		if r.Header.Get("X-A") != "" && strings.ContainsAny(r.Header.Get("X-A"), "\r\n\x00") {
			t.Errorf("header %q", r.Header.Get("X-A"))
		}
	}
	if n := strings.Count(answer, "X-Site: site"); n != len(requests) {
		t.Errorf("%d answers to %d requests: %q", n, len(requests), answer)
	}
	for rest, ok := text, true; rest != "" && ok; {
		var head string
		if head, rest, ok = strings.Cut(rest, "\r\n\r\n"); !ok {
			t.Errorf("a header without end: %q", head)
		}
		body := strings.HasPrefix(head, "POST ")
		lower := strings.ToLower(head)
		if strings.Count(lower, "\r\nhost:") != 1 || strings.Count(lower, "\r\ncontent-length:")+strings.Count(lower,
			"\r\ntransfer-encoding:") > 1 ||
			strings.Contains(head, "\r\n ") || strings.Contains(head, "\r\n\t") || strings.Count(head, "\n") != strings.Count(head, "\r\n") {
			t.Errorf("the site got %q", head)
		}
		if body || strings.Contains(lower, "content-length") {
			return // the framing of the rest is ambiguous
		}
	}
}

// TestSmugglingIsSeen tests that the witness detects smuggled requests.
func TestSmugglingIsSeen(t *testing.T) {
	t.Parallel()
	site := newWitness(t, well)
	answer := talk(t, site.addr, func(got string) bool { return strings.Count(got, "X-Site") == 2 }, "POST /about HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 0\r\n\r\n"+hidden)
	text, requests := site.seen()
	if len(requests) != 2 || requests[1].URL.Path != "/tickets" || !strings.Contains(text, hidden) ||
		strings.Count(answer, "X-Site") != 2 {
		t.Errorf("%d requests, %q", len(requests), text)
	}
}

// TestUpgrade tests that connections cannot be upgraded to protocols that would carry
// unchecked requests.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	switching := func(to string) func(*http.Request) string {
		return func(r *http.Request) string {
			if r.Header.Get("Upgrade") == "" {
				return wellAnswer
			}
			return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + to + "\r\n\r\n"
		}
	}
	ask := func(lines string) string { return "GET /about HTTP/1.1\r\nHost: shop.example.com\r\n" + lines + "\r\n" }
	for name, c := range map[string]struct {
		lines  string // of the request
		reply  func(*http.Request) string
		want   string // beginning of the response
		tunnel bool   // what follows is passed on unchanged
	}{
		"websocket":                 {"Connection: Upgrade\r\nUpgrade: websocket\r\n", switching("websocket"), "HTTP/1.1 101", true},
		"WebSocket":                 {"Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n", switching("websocket"), "HTTP/1.1 101", true},
		"h2c":                       {"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n", switching("h2c"), "HTTP/1.1 200", false},
		"h2c, settings not named":   {"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n", switching("h2c"), "HTTP/1.1 200", false},
		"H2C":                       {"Connection: upgrade\r\nUpgrade: H2C\r\n", switching("h2c"), "HTTP/1.1 200", false},
		"a list":                    {"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", switching("h2c"), "HTTP/1.1 200", false},
		"two lines":                 {"Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n", switching("h2c"), "HTTP/1.1 200", false},
		"two lines, in other order": {"Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n", switching("h2c"), "HTTP/1.1 502", false},
		"TLS":                       {"Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", switching("TLS/1.2"), "HTTP/1.1 200", false},
		"not asked for":             {"Upgrade: h2c\r\n", switching("h2c"), "HTTP/1.1 200", false},
		"answered with another":     {"Connection: Upgrade\r\nUpgrade: websocket\r\n", switching("h2c"), "HTTP/1.1 502", false},
		"answered without":          {"Connection: Upgrade\r\nUpgrade: websocket\r\n", well, "HTTP/1.1 200", false},
		"answered with 426":         {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 777\r\n", func(*http.Request) string { return "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n" }, "HTTP/1.1 426", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := newWitness(t, c.reply)
			addr := start(t, New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, site.addr)}))
			answer := talk(t, addr, answered, ask(c.lines), preface+hidden)
			if c.tunnel {
				eventually(t, "the site gets what follows", func() bool { text, _ := site.seen(); return strings.Contains(text, hidden) })
			}
			text, _ := site.seen()
			if !strings.HasPrefix(answer, c.want) {
				t.Errorf("answer %q, want %q", answer, c.want)
			}
			if isThrough := strings.Contains(text, preface) || strings.Contains(text, "/tickets"); isThrough != c.tunnel {
				t.Errorf("the site got %q", text)
			}
			if !c.tunnel && c.want != "HTTP/1.1 502" && c.want != "HTTP/1.1 426" &&
				strings.Contains(strings.ToLower(text), "h2c") {
				t.Errorf("the site was asked to switch: %q", text)
			}
			if strings.Contains(text, "Settings") {
				t.Errorf("the site got settings: %q", text)
			}
		})
	}
}

// TestPriorKnowledge tests HTTP/2 without TLS and without an upgrade.
func TestPriorKnowledge(t *testing.T) {
	t.Parallel()
	site := newWitness(t, well)
	addr := start(t, New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, site.addr)}))
	answer := talk(t, addr, answered, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	if text, _ := site.seen(); text != "" || !strings.HasPrefix(answer, "HTTP/1.1 4") &&
		!strings.HasPrefix(answer, "HTTP/1.1 5") {
		t.Errorf("answer %q, the site got %q", answer, text)
	}
}

// TestTrailers tests that a trailer cannot forge the connector's headers.
func TestTrailers(t *testing.T) {
	t.Parallel()
	site := newWitness(t, well)
	addr := start(t, New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, site.addr)}))
	talk(t, addr, answered, "POST /about HTTP/1.1\r\nHost: shop.example.com\r\nTransfer-Encoding: chunked\r\nTrailer: X-Proofline-Ticket, X-Sum\r\n\r\n2\r\nhi\r\n0\r\nX-Proofline-Ticket: forged\r\nX-Sum: 7\r\n\r\n")
	if text, requests := site.seen(); len(requests) != 1 || strings.Contains(strings.ToLower(text), "proofline") {
		t.Errorf("the site got %q", text)
	}
}

// TestOddOverHTTP2 tests requests that HTTP/1.1 cannot carry: the site must not count as down
// because of them.
func TestOddOverHTTP2(t *testing.T) {
	t.Parallel()
	site := newServer(t, "a")
	p := New(Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, site.addr()), Log: quiet})
	p.site.check(t.Context(), p.site.addresses[0])
	asked := site.asked.Load()
	for name, change := range map[string]func(*http.Request){
		"method of two words":  func(r *http.Request) { r.Method = "GET /tickets" },
		"method of many bytes": func(r *http.Request) { r.Method = "G\u00c9T" },
		"space in the query":   func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1" },
		"upgrade to no word":   func(r *http.Request) { r.Header.Set("Connection", "upgrade"); r.Header.Set("Upgrade", "\xffwebsocket") },
	} {
		for range failuresToDown {
			r, out := httptest.NewRequest(http.MethodGet, "/about", http.NoBody), httptest.NewRecorder()
			r.Host = "shop.example.com"
			change(r)
			if p.ServeHTTP(out, r); out.Code != http.StatusBadRequest {
				t.Errorf("%s: status %d, want 400", name, out.Code)
			}
		}
	}
	if !p.site.isUp() || site.asked.Load() != asked {
		t.Error("such requests reach the site, or make it count as away")
	}
}
