package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/certtest"
	"github.com/proofline/proofline/internal/doctest"
	"github.com/proofline/proofline/internal/freeport"
	"github.com/proofline/proofline/web/limit"
)

const edgeDoc = "../docs/EDGE.md"

// edge is a proxy of the document in front of a site.
type edge struct {
	*site

	dir, addr string
	origin    string       // the server behind the proxy
	states    atomic.Int64 // requests for the state that it got
}

// newEdge starts a site whose networks may join twice.
func newEdge(t *testing.T) *edge {
	t.Helper()
	s := newLimited(t, limit.Options{Joins: 1})
	s.create(`{"slug":"sale","windows":[{"length":"24h"}],"min_score":30}`)
	e := &edge{site: s, dir: t.TempDir(), addr: freeport.Addr(t)}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/state") {
			e.states.Add(1)
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(origin.Close)
	e.origin = strings.TrimPrefix(origin.URL, "http://")
	return e
}

// write writes a configuration with other addresses than the document's.
func (e *edge) write(name, text string, changes ...string) string {
	e.Helper()
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			e.Fatalf("the document has no %q", changes[i])
		}
	}
	file := filepath.Join(e.dir, name)
	if err := os.WriteFile(file, []byte(strings.NewReplacer(changes...).Replace(text)), 0o600); err != nil {
		e.Fatal(err)
	}
	return file
}

// certificate writes a certificate and its key into one file.
func (e *edge) certificate() string {
	e.Helper()
	certFile, keyFile, _ := certtest.New(e).Write(e.dir, "queue.example.com")
	return e.write("queue.pem", doctest.Read(e, certFile)+doctest.Read(e, keyFile))
}

// run runs the proxy until the test ends.
func (e *edge) run(program string, args ...string) {
	e.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		e.Skipf("%s is not installed: apt-get install %s", program, program)
	}
	cmd := exec.CommandContext(e.Context(), path, args...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if e.Failed() {
			e.Logf("%s: %.3000s", program, said.String())
		}
	})
	eventually(e, program+" listens", func() bool {
		conn, err := net.Dial("tcp", e.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// ask sends a request from an address of this machine to the proxy.
func (e *edge) ask(from, method, path string, headers ...string) (status int, body string, header http.Header) {
	e.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IP(netip.MustParseAddr(from).AsSlice())}}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", e.addr)
	}}
	r, err := http.NewRequestWithContext(e.Context(), method, "http://queue.example.com"+path, http.NoBody)
	if err != nil {
		e.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		e.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		e.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header
}

// check checks what the document promises of a proxy.
func (e *edge) check() {
	e.Helper()
	const visitor, bot = "127.0.7.1", "127.0.9.1"
	join := func(from string, headers ...string) int {
		status, _, _ := e.ask(from, http.MethodPost, "/r/sale/join", headers...)
		return status
	}
	if got := join(bot); got != http.StatusForbidden {
		e.Errorf("a refused visitor gets %d", got)
	}
	if got := join(bot, "X-Proofline-Verdict: score=100"); got != http.StatusForbidden {
		e.Errorf("a refused visitor with a verdict of its own gets %d", got)
	}
	for i := range 3 { // the visitor's network counts, not what the visitor claims; a verdict of the visitor is removed
		want := http.StatusCreated
		if i == 2 {
			want = http.StatusTooManyRequests
		}
		got := join(visitor, fmt.Sprintf("X-Forwarded-For: 198.51.%d.7", i), "X-Proofline-Verdict: refuse", "x-proofline-verdict: score=1")
		if got != want {
			e.Errorf("join %d of a visitor gets %d, want %d", i, got, want)
		}
	}
	began := time.Now()
	for range 100 {
		if status, state, _ := e.ask(visitor, http.MethodGet, "/r/sale/state"); status != http.StatusOK || !strings.Contains(state, `"waiting"`) {
			e.Fatalf("the state: %d %s", status, state)
		}
	}
	if got, most := e.states.Load(), 3+2*int64(time.Since(began)/time.Second); got < 1 || got > most {
		e.Errorf("the server got %d of 100 requests for the state, want at most %d", got, most)
	}
	if status, page, _ := e.ask(visitor, http.MethodGet, "/r/sale"); status != http.StatusOK || !strings.Contains(page, `id="line"`) {
		e.Errorf("the page: %d %.300s", status, page)
	}
	flooded := false
	for range 5_000 {
		status, page, header := e.ask("127.0.8.1", http.MethodGet, "/favicon.ico")
		if flooded = status == http.StatusTooManyRequests; flooded {
			if header.Get("Retry-After") != "10" || !strings.Contains(page, "tries again by itself") {
				e.Errorf("a flood gets %v %s", header, page)
			}
			break
		}
	}
	if !flooded {
		e.Error("a flood is not limited")
	}
}

// TestBehindNginx runs nginx with the configuration in the document.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	blocks := doctest.Blocks(t, edgeDoc, "nginx")
	cert := e.certificate()
	config := e.write("nginx.conf", `daemon off;
master_process off;
pid DIR/pid;
error_log DIR/error.log;
events { worker_connections 2048; }
http {
	access_log off;
	client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
`+strings.Join(blocks, "\n")+"}\n", "DIR", e.dir, "/var/cache/nginx", e.dir, "203.0.113.0/24", "127.0.9.0/24",
		"127.0.0.1:8080", e.origin, "listen 443 ssl", "listen "+e.addr+"; listen "+freeport.Addr(t)+" ssl",
		"/etc/ssl/queue.pem", cert, "/etc/ssl/queue.key", cert,
		"rate=400r/s", "rate=40r/s", "burst=4000", "burst=400") // a smaller flood
	e.run("nginx", "-p", e.dir, "-c", config, "-e", filepath.Join(e.dir, "error.log"))
	e.check()
}

// TestBehindHAProxy runs HAProxy with the configuration in the document.
func TestBehindHAProxy(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	bots := e.write("bots.lst", "127.0.9.0/24\n")
	config := e.write("haproxy.cfg", doctest.Blocks(t, edgeDoc, "haproxy")[0],
		"127.0.0.1:8080", e.origin, "bind :443", "bind "+e.addr+"\n    bind "+freeport.Addr(t),
		"/etc/ssl/queue.pem", e.certificate(), "/etc/haproxy/bots.lst", bots,
		"maxconn 20000", "maxconn 2000", "gt 4000", "gt 400") // few file descriptors, a smaller flood
	e.run("haproxy", "-f", config)
	e.check()
}
