package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/internal/certtest"
)

// running is a proxy that serves its own listener.
type running struct {
	*Proxy
	addr string
	stop context.CancelFunc
	done chan error // result of Serve
}

// run serves a proxy in front of a site until the test ends.
func run(t *testing.T, site http.Handler, change func(*Options)) *running {
	t.Helper()
	return runOn(t, func(l net.Listener) net.Listener { return l }, site, change)
}

func runOn(t *testing.T, wrap func(net.Listener) net.Listener, site http.Handler, change func(*Options)) *running {
	t.Helper()
	o := Options{Connector: newConnector(t, conformance.NewRoom(t)), To: to(t, start(t, site)), Log: quiet}
	if change != nil {
		change(&o)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{New(o), l.Addr().String(), stop, make(chan error, 1)}
	go func() { r.done <- r.Serve(ctx, wrap(l)); close(r.done) }()
	t.Cleanup(func() {
		stop()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// runTLS serves a proxy as run does, over TLS.
func runTLS(t *testing.T, site http.Handler, change func(*Options)) *running {
	t.Helper()
	return runOn(t, func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			Certificates: []tls.Certificate{certtest.New(t).Pair("shop.example.com")}})
	}, site, change)
}

// TestTLS tests HTTP/2 and HTTP/1.1 over TLS 1.2 and newer.
func TestTLS(t *testing.T) {
	t.Parallel()
	p := runTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.Header.Get("X-Forwarded-Proto"))
	}), nil)
	for _, try := range []struct {
		h2   bool
		most uint16
		want string
	}{{true, 0, "HTTP/2.0"}, {false, tls.VersionTLS12, "HTTP/1.1"}, {false, tls.VersionTLS11, ""}} {
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: try.h2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MaxVersion: try.most, MinVersion: tls.VersionTLS10}}}
		q, err := http.NewRequest(http.MethodGet, "https://"+p.addr+"/about", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = "shop.example.com"
		r, err := client.Do(q)
		if (err == nil) != (try.want != "") {
			t.Errorf("%v: %v", try, err)
		}
		if err != nil {
			continue
		}
		if body := bodyOf(t, r); r.Proto != try.want || body != "HTTP/1.1 https" {
			t.Errorf("%s, want %s; the site: %s", r.Proto, try.want, body)
		}
		r.Body.Close()
		client.CloseIdleConnections()
	}
}

// TestHSTS tests that all responses have the header of the option, once: those of the site, which may have another or
// send hints first, of the connector and of the proxy itself.
func TestHSTS(t *testing.T) {
	t.Parallel()
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=1")
		if r.URL.Path == "/hints" {
			w.WriteHeader(http.StatusEarlyHints)
		}
		_, _ = io.WriteString(w, "page")
	})
	const want = "max-age=3600"
	p := run(t, site, func(o *Options) { o.HSTS = want })
	for _, path := range []string{"/about", "/hints", "/tickets", HealthPath} {
		r := get(t, "http://"+p.addr+path, "Accept: text/html")
		if got := r.Header.Values("Strict-Transport-Security"); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %d with %q", path, r.StatusCode, got)
		}
	}
	plain := run(t, site, nil)
	r := get(t, "http://"+plain.addr+"/about", "Accept: text/html")
	if got := r.Header.Values("Strict-Transport-Security"); len(got) != 1 || got[0] != "max-age=1" {
		t.Errorf("without the option the site's header is %q", got)
	}
}

// TestStop tests that running requests and WebSockets may end.
func TestStop(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan bool), make(chan bool)
	p := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/socket" {
			echo(w)
			return
		}
		entered <- true
		<-finish
		_, _ = io.WriteString(w, "done")
	}), nil)
	socket, reader := openSocket(t, p.addr)
	answers := make(chan string, 1)
	go func() { answers <- fetch("http://" + p.addr + "/about") }()
	select {
	case <-entered:
	case got := <-answers:
		t.Fatalf("the site was not asked: %s", got)
	}
	p.stop()
	eventually(t, "no connection is taken", func() bool {
		conn, err := net.Dial("tcp", p.addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	finish <- true
	if got := <-answers; got != "done" {
		t.Errorf("the request under way: %q", got)
	}
	_, _ = io.WriteString(socket, "still there\n")
	if line, err := reader.ReadString('\n'); line != "you said still there\n" {
		t.Errorf("the socket: %q, %v", line, err)
	}
	select {
	case err := <-p.done:
		t.Fatalf("ended while a socket is open: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	socket.Close()
	if err := <-p.done; err != nil {
		t.Error(err)
	}
}

// fetch returns the status and body of a response, or the error.
func fetch(address string) string {
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return err.Error()
	}
	r.Host = "shop.example.com"
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

// TestGrace tests that requests are closed after the grace period.
func TestGrace(t *testing.T) {
	t.Parallel()
	entered := make(chan bool)
	p := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/socket" {
			echo(w)
			return
		}
		entered <- true
		<-r.Context().Done()
	}), func(o *Options) { o.Grace = 30 * time.Millisecond })
	socket, reader := openSocket(t, p.addr)
	pending := make(chan string, 1)
	go func() { pending <- fetch("http://" + p.addr + "/about") }()
	select {
	case <-entered:
	case got := <-pending:
		t.Fatalf("the site was not asked: %s", got)
	}
	p.stop()
	if err := <-p.done; err != nil {
		t.Error(err)
	}
	_ = socket.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := reader.ReadByte(); err == nil || os.IsTimeout(err) {
		t.Errorf("the socket is open: %v", err)
	}
	<-pending
}

// TestDrain tests that the proxy serves while draining, but is not ready.
func TestDrain(t *testing.T) {
	t.Parallel()
	p := run(t, conformance.Site(), func(o *Options) { o.Drain = 4 * time.Second })
	ready := func() int { return get(t, "http://"+p.addr+ReadyPath).StatusCode }
	eventually(t, "it is ready", func() bool { return ready() == http.StatusOK })
	p.stop()
	eventually(t, "it is not ready", func() bool { return ready() == http.StatusServiceUnavailable })
	if r := get(t, "http://"+p.addr+"/about"); r.Header.Get(conformance.SiteHeader) == "" {
		t.Errorf("status %d while it drains", r.StatusCode)
	}
	if r := get(t, "http://"+p.addr+HealthPath); r.StatusCode != http.StatusOK {
		t.Errorf("health: %d while it drains", r.StatusCode)
	}
}

// echo is the site's end of a WebSocket.
func echo(w http.ResponseWriter) {
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	for {
		line, err := buffer.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "you said "+line)
	}
}

func openSocket(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: shop.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(conn)
	r, err := http.ReadResponse(reader, nil)
	if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", r, err)
	}
	return conn, reader
}

// TestLimits tests limits for headers, bodies and slow clients.
func TestLimits(t *testing.T) {
	t.Parallel()
	const stall = 2 * time.Second // so that a busy machine does not look like a slow client
	big := bytes.Repeat([]byte("x"), 1<<20)
	p := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil && r.URL.Path == "/big" {
			for range 64 {
				_, _ = w.Write(big)
			}
		}
	}), func(o *Options) {
		o.Limits = Limits{HeaderSize: 4 << 10, HeaderTime: stall, Idle: stall, Stall: stall, Body: 10}
	})
	const head = "POST /about HTTP/1.1\r\nHost: shop.example.com\r\n"
	for what, c := range map[string]struct{ sent, want string }{
		"a large header":          {"GET /about HTTP/1.1\r\nHost: shop.example.com\r\nX-A: " + strings.Repeat("a", 16<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		"half a header":           {head, ""},
		"a body that fits":        {head + "Content-Length: 10\r\n\r\n0123456789", "HTTP/1.1 200 "},
		"a large body":            {head + "Content-Length: 11\r\n\r\n0123456789a", "HTTP/1.1 413 "},
		"a large body in chunks":  {head + "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n", "HTTP/1.1 413 "},
		"half a body":             {head + "Content-Length: 10\r\n\r\n01234", "HTTP/1.1 408 "},
		"half a body in chunks":   {head + "Transfer-Encoding: chunked\r\n\r\n5\r\n01", "HTTP/1.1 408 "},
		"nothing":                 {"", ""},
		"a request, then nothing": {"GET /about HTTP/1.1\r\nHost: shop.example.com\r\n\r\n", "HTTP/1.1 200 "},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, c.sent)
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			got, err := io.ReadAll(conn) // until the proxy closes it
			if os.IsTimeout(err) || !strings.HasPrefix(string(got), c.want) || c.want == "" && len(got) > 0 &&
				!strings.HasPrefix(string(got), "HTTP/1.1 408") {
				t.Errorf("%.200q, %v; want %q", got, err, c.want)
			}
		})
	}
	t.Run("an answer that is not taken", func(t *testing.T) {
		t.Parallel()
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /big HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
		time.Sleep(3 * stall)
		got, err := io.Copy(io.Discard, conn)
		if got >= 64<<20 {
			t.Errorf("%d bytes came after all, %v", got, err)
		}
	})
}

// TestAccessLog tests that each request is logged, without secrets.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	room := conformance.NewRoom(t)
	p := New(Options{
		Connector: newConnector(t, room, loopback...), To: to(t, start(t, conformance.Site())), TrustedProxies: loopback,
		AccessLog: slog.New(slog.NewTextHandler(&text, nil)), Log: quiet,
	})
	addr := start(t, p)
	get(t, "http://"+addr+"/tickets?proofline_pass=secret&card=secret", "X-Forwarded-For: 192.0.2.66, 198.51.100.7", "Accept: text/html", "Cookie: a=secret")
	get(t, "http://"+addr+HealthPath)
	want := `msg=request client=198.51.100.7 method=GET host=shop.example.com path=/tickets protocol=HTTP/1.1 status=302 bytes=0 took=`
	eventually(t, "the request is logged", func() bool { return text.Len() > 0 })
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) ||
		strings.Contains(got, "secret") {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestStream tests that partial responses are passed on.
func TestStream(t *testing.T) {
	t.Parallel()
	for what, header := range map[string][2]string{
		"of any length":   {"Content-Type", "text/event-stream"},
		"of known length": {"Content-Length", "4"},
	} {
		heard := make(chan bool)
		p := run(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header[0], header[1])
			_, _ = io.WriteString(w, "ab")
			_ = http.NewResponseController(w).Flush()
			<-heard
			_, _ = io.WriteString(w, "cd")
		}), nil)
		r := get(t, "http://"+p.addr+"/about")
		part := make([]byte, 2)
		if _, err := io.ReadFull(r.Body, part); err != nil || string(part) != "ab" {
			t.Errorf("%s: %q, %v", what, part, err)
		}
		heard <- true
		if rest := bodyOf(t, r); rest != "cd" {
			t.Errorf("%s: %q", what, rest)
		}
	}
}

// TestPause tests a site that pauses for longer than clients may.
func TestPause(t *testing.T) {
	t.Parallel()
	const stall = 1500 * time.Millisecond
	p := runTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		for range 2 {
			_, _ = io.WriteString(w, "word ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(3 * stall / 2)
		}
	}), func(o *Options) { o.Limits.Stall = stall })
	for _, h2 := range []bool{true, false} {
		t.Run(fmt.Sprintf("http2 %t", h2), func(t *testing.T) {
			t.Parallel()
			pause(t, p.addr, h2)
		})
	}
}

func pause(t *testing.T, addr string, h2 bool) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: h2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	send := func(body io.Reader) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+addr+"/about", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "shop.example.com"
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Errorf("%s: %v %d %q", answer.Proto, err, answer.StatusCode, text)
		}
		return answer, string(text)
	}
	if r, text := send(strings.NewReader("body")); text != "word word " || (r.ProtoMajor == 2) != h2 {
		t.Errorf("%s: %q", r.Proto, text)
	}
	body, writing := io.Pipe()
	go func() { _, _ = writing.Write([]byte("half")) }()
	if r, text := send(body); r.StatusCode != http.StatusRequestTimeout {
		t.Errorf("%s: half a body is answered with %d %q", r.Proto, r.StatusCode, text)
	}
	_ = writing.Close()
}

// TestReadOn tests a transport that reads on after the end of a body, late, as on a slow
// machine. It must not disturb the server, which by then waits for the client to
// disconnect.
func TestReadOn(t *testing.T) {
	t.Parallel()
	const stall = 100 * time.Millisecond
	p := &Proxy{options: Options{Limits: Limits{Stall: stall}}}
	addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := newExchange(p, w, r)
		for range 3 {
			_, _ = io.ReadAll(e.request.Body)
			time.Sleep(stall)
		}
		time.Sleep(stall)
		_, _ = fmt.Fprint(w, r.Context().Err())
	}))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "<nil>" {
		t.Errorf("%q, %v", text, err)
	}
}
