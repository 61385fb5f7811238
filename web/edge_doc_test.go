package web

import (
	"bufio"
	"context"
	"crypto/tls"
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

// tile is the path of the room's first complete tile.
const tile = "/r/sale/tile/0/000"

// edge is a proxy of the document in front of a site.
type edge struct {
	*site

	dir, addr string
	secure    bool         // the proxy speaks TLS at addr
	origin    string       // the server behind the proxy
	states    atomic.Int64 // requests for the state that it got
	tiles     atomic.Int64 // requests for the first tile
}

// newEdge starts a site whose networks may join twice.
func newEdge(t *testing.T) *edge {
	t.Helper()
	s := newLimited(t, limit.Options{Joins: 1}, func(o *Options) { o.MaxStreams = 2 })
	s.create(`{"slug":"sale","windows":[{"length":"24h"}],"min_score":30}`)
	e := &edge{site: s, dir: t.TempDir(), addr: freeport.Addr(t)}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/state") {
			e.states.Add(1)
		}
		if strings.HasSuffix(r.URL.Path, tile) {
			e.tiles.Add(1)
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
	cmd.Env = append(os.Environ(), "HOME="+e.dir, "XDG_DATA_HOME="+e.dir, "XDG_CONFIG_HOME="+e.dir)
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

// open sends a request from an address of this machine to the proxy.
func (e *edge) open(from, method, path string, headers ...string) *http.Response {
	e.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IP(netip.MustParseAddr(from).AsSlice())}}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", e.addr)
	}, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	scheme := "http"
	if e.secure {
		scheme = "https"
	}
	r, err := http.NewRequestWithContext(e.Context(), method, scheme+"://queue.example.com"+path, http.NoBody)
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
	e.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// ask sends a request, and reads the answer.
func (e *edge) ask(from, method, path string, headers ...string) (status int, body string, header http.Header) {
	e.Helper()
	answer := e.open(from, method, path, headers...)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		e.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header
}

const person, bot = "127.0.7.1", "127.0.9.1"

// check checks what the document promises of a proxy with a cache and a limit.
func (e *edge) check() {
	e.Helper()
	e.checkAll()
	began := time.Now()
	for range 100 {
		if status, state, _ := e.ask(person, http.MethodGet, "/r/sale/state"); status != http.StatusOK || !strings.Contains(state, `"waiting"`) {
			e.Fatalf("the state: %d %s", status, state)
		}
	}
	if got, most := e.states.Load(), 3+2*int64(time.Since(began)/time.Second); got < 1 || got > most {
		e.Errorf("the server got %d of 100 requests for the state, want at most %d", got, most)
	}
	if got := e.tiles.Load(); got != 1 {
		e.Errorf("the server got %d requests for a tile, want 1", got)
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

// checkAll checks what the document promises of every proxy.
func (e *edge) checkAll() {
	e.Helper()
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
		got := join(person, fmt.Sprintf("X-Forwarded-For: 198.51.%d.7", i), "X-Proofline-Verdict: refuse", "x-proofline-verdict: score=1")
		if got != want {
			e.Errorf("join %d of a visitor gets %d, want %d", i, got, want)
		}
	}
	if status, page, _ := e.ask(person, http.MethodGet, "/r/sale"); status != http.StatusOK || !strings.Contains(page, `id="line"`) {
		e.Errorf("the page: %d %.300s", status, page)
	}
	e.checkStream()
	for i := range 256 { // fill a tile
		e.post("/r/sale/join", "", from(fmt.Sprintf("10.1.%d.7", i))).want(http.StatusCreated)
	}
	for range 10 {
		status, body, header := e.ask(person, http.MethodGet, tile)
		if status != http.StatusOK || len(body) != 256*32 || !strings.Contains(header.Get("Cache-Control"), "immutable") {
			e.Fatalf("a tile: %d, %d bytes, %v", status, len(body), header)
		}
	}
}

// checkStream checks that the proxy passes on events at once, not when there are many.
func (e *edge) checkStream() {
	e.Helper()
	answer := e.open(person, http.MethodGet, "/r/sale/events")
	events := bufio.NewScanner(answer.Body)
	next := func(want string) {
		e.Helper()
		late := time.AfterFunc(2*time.Minute, func() { _ = answer.Body.Close() })
		defer late.Stop()
		for events.Scan() {
			if text, ok := strings.CutPrefix(events.Text(), "data: "); ok {
				if !strings.Contains(text, want) {
					e.Errorf("event %s, want %s", text, want)
				}
				return
			}
		}
		e.Fatalf("the stream ends before %s: %v", want, events.Err())
	}
	next(`"arrivals":2`)
	e.post("/r/sale/join", "", from("10.2.0.1")).want(http.StatusCreated)
	next(`"arrivals":3`)
	_ = answer.Body.Close()
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

// TestBehindCaddy runs Caddy with the configuration in the document, over TLS with a certificate of its own authority.
func TestBehindCaddy(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.secure = true
	blocks := doctest.Blocks(t, edgeDoc, "caddyfile")
	removes := "\t\trequest_header -X-Proofline-Verdict\n"
	plain := freeport.Addr(t)
	config := e.write("Caddyfile", strings.Replace(blocks[0], removes, removes+blocks[1], 1), "{\n\tservers", fmt.Sprintf(
		"{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n\thttp_port %s\n\thttps_port %s\n\tservers",
		portOf(plain), portOf(e.addr)), "203.0.113.0/24", "127.0.9.0/24", "127.0.0.1:8080", e.origin)
	e.run("caddy", "run", "--config", config, "--adapter", "caddyfile")
	eventually(t, "Caddy has a certificate", func() bool {
		conn, err := tls.Dial("tcp", e.addr, &tls.Config{ServerName: "queue.example.com", InsecureSkipVerify: true})
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	e.checkAll()
	for range 10 {
		if status, state, _ := e.ask(person, http.MethodGet, "/r/sale/state"); status != http.StatusOK || !strings.Contains(state, `"waiting"`) {
			t.Fatalf("the state: %d %s", status, state)
		}
	}
	e.addr, e.secure = plain, false
	status, _, header := e.ask(person, http.MethodGet, "/r/sale")
	if to := header.Get("Location"); status != http.StatusPermanentRedirect || !strings.HasPrefix(to, "https://queue.example.com") {
		t.Errorf("plain HTTP: %d to %q", status, to)
	}
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
