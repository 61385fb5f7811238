package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/internal/certtest"
	"github.com/proofline/proofline/internal/doctest"
	"github.com/proofline/proofline/internal/freeport"
)

// nginx is Debian's nginx with the configuration of the README.
type nginx struct {
	site, auth string   // addresses
	changes    []string // pairs of a text in the README and its replacement
	also       string   // another address to listen on
	isOpen     bool     // the variant that fails open
}

// start starts nginx and returns its addresses for plain HTTP and TLS.
func (n nginx) start(t *testing.T) (plain, secure string) {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed: apt-get install nginx, or make conformance")
	}
	blocks := doctest.Blocks(t, "../nginx/README.md", "nginx")
	if len(blocks) != 3 {
		t.Fatalf("%d configurations in the README", len(blocks))
	}
	outer, server, open := blocks[0], blocks[1], blocks[2]
	if n.isOpen {
		at := strings.Index(server, "    location @proofline_down {")
		server = server[:at] + open + "}\n"
	}
	dir := t.TempDir()
	plain, secure = freeport.Addr(t), freeport.Addr(t)
	cert, key, _ := certtest.New(t).Write(dir, "shop.example.com")
	pairs := append([]string{
		"127.0.0.1:8099", n.auth, "127.0.0.1:3000", n.site, "listen 443 ssl http2;", "listen " + plain + "; listen " + secure + " ssl http2;" + n.also,
		"/etc/ssl/shop.pem", cert, "/etc/ssl/shop.key", key,
	}, n.changes...)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(outer+server, pairs[i]) {
			t.Fatalf("the README has no %q", pairs[i])
		}
	}
	config := fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/pid;
error_log %[1]s/error.log;
events { worker_connections 2048; }
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	%[2]s
	%[3]s
}`, dir, strings.NewReplacer(pairs...).Replace(outer), strings.NewReplacer(pairs...).Replace(server))
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), program, "-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log"))
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Logf("nginx: %s%.3000s", said.String(), log)
		}
	})
	eventually(t, "nginx listens", func() bool {
		conn, err := net.Dial("tcp", plain)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return plain, secure
}

// behindNginx starts a site and a connector behind nginx, and returns nginx's address.
func behindNginx(t *testing.T, site http.Handler, changes ...string) (plain, secure string) {
	t.Helper()
	room := conformance.NewRoom(t)
	return nginx{site: start(t, site), auth: start(t, forNginx(newConnector(t, room, loopback...))),
		changes: changes}.start(t)
}

func TestConformanceOfNginx(t *testing.T) {
	t.Parallel()
	room := conformance.NewRoom(t)
	auth := start(t, forNginx(newConnector(t, room, loopback...)))
	manyCases := []string{"burst=300", "burst=3000", // TestNginxFlood tests the limit
		"client_header_timeout 10s", "client_header_timeout 5s", "client_body_timeout   30s", "client_body_timeout 5s"}
	addr, _ := nginx{site: start(t, conformance.Site()), auth: auth, changes: manyCases}.start(t)
	// Behind nginx the connector does not see the site's responses.
	conformance.RunOn(t, conformance.Nginx, room, addr, conformance.Unseen(cases(t)))
}

// TestNginxAlone tests nginx while the connector does not run.
func TestNginxAlone(t *testing.T) {
	t.Parallel()
	closed := nginx{site: start(t, conformance.Site()), auth: freeport.Addr(t)}
	addr, _ := closed.start(t)
	if r := get(t, "http://"+addr+"/tickets"); r.StatusCode != http.StatusServiceUnavailable ||
		r.Header.Get(conformance.SiteHeader) != "" || r.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, %v", r.StatusCode, r.Header)
	}
	open := closed
	open.isOpen, open.site = true, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %q", r.Method, body, r.Header["X-Proofline-Ticket"])
	}))
	addr, _ = open.start(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/tickets", strings.NewReader("two of them"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "shop.example.com"
	r.Header.Set("X-Proofline-Ticket", "forged")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body := bodyOf(t, answer); body != "POST two of them []" {
		t.Errorf("the site says %q", body)
	}
}

// TestNginxAttacks tests that a request refused by the connector does not look as if
// the connector were away, in either variant.
func TestNginxAttacks(t *testing.T) {
	t.Parallel()
	for _, isOpen := range []bool{false, true} {
		n := nginx{
			site: start(t, conformance.Site()), auth: start(t, forNginx(newConnector(t, conformance.NewRoom(t), loopback...))),
			changes: []string{"burst=300", "burst=3000", "client_header_timeout 10s", "client_header_timeout 1s", "client_body_timeout   30s", "client_body_timeout 1s"}, isOpen: isOpen,
		}
		addr, _ := n.start(t)
		conformance.RunAttacks(t, addr)
		conformance.RunClimbs(t, addr, "")
		if status := get(t, "http://"+addr+"/about").StatusCode; status != http.StatusOK {
			t.Errorf("a page without a line: status %d", status)
		}
	}
}

// TestNginxOpensOnlyWhenAway tests that the open variant admits requests if the connector
// is out of reach or too slow, but not after any other response.
func TestNginxOpensOnlyWhenAway(t *testing.T) {
	t.Parallel()
	var answer atomic.Int32
	auth := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch status := int(answer.Load()); status {
		case http.StatusGatewayTimeout:
			<-r.Context().Done() // until nginx gives up
		case http.StatusBadGateway:
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(status)
		}
	}))
	addr, _ := nginx{site: start(t, conformance.Site()), auth: auth, isOpen: true}.start(t)
	for status, want := range map[int]int{400: 400, 404: 400, 413: 400, 421: 400, 429: 400, 431: 400, 500: 503, 501: 503,
		503: 503, 302: 503, 502: 200, 504: 200, 204: 200} {
		answer.Store(int32(status))
		if r := get(t, "http://"+addr+"/tickets"); r.StatusCode != want {
			t.Errorf("the connector answers %d: status %d, want %d", status, r.StatusCode, want)
		}
	}
}

// TestNginxCaches tests that responses that caches may share have no session cookie.
func TestNginxCaches(t *testing.T) {
	t.Parallel()
	site := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Cache-Control"] = r.URL.Query()["says"]
	}))
	auth := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "session=1")
		w.WriteHeader(http.StatusNoContent)
	}))
	addr, _ := nginx{site: site, auth: auth}.start(t)
	for query, want := range map[string]string{
		"": "session=1", "?says=private,max-age=60": "session=1", "?says=no-store": "session=1",
		"?says=public,max-age=60": "", "?says=max-age=1,S-MaxAge=60": "", "?says=max-age=60&says=Public": "",
	} {
		r, err := ask(t.Context(), http.DefaultClient, addr, "/tickets"+query)
		if err != nil || r.StatusCode != http.StatusOK || r.Header.Get("Set-Cookie") != want {
			t.Errorf("%q: %+v, %v", query, r, err)
		}
	}
}

// from returns a client with its own address.
func from(t *testing.T, ip string) *http.Client {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	transport := &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 200}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask requests an unprotected page.
func ask(ctx context.Context, client *http.Client, addr, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return nil, err
	}
	r.Host = "shop.example.com"
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer, answer.Body.Close()
}

// TestNginxFlood tests that an address with too many requests is slowed down, and others
// are not.
func TestNginxFlood(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	addr, _ := behindNginx(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	flooding, began := from(t, "127.0.0.2"), time.Now()
	slowed := 0
	for range 600 {
		r, err := ask(t.Context(), flooding, addr, "/about")
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode == http.StatusTooManyRequests {
			if slowed++; r.Header.Get("Retry-After") != "10" || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") ||
				r.Header.Get("Cache-Control") != "no-store" {
				t.Fatalf("slowed down with %v", r.Header)
			}
		} else if r.StatusCode != http.StatusOK {
			t.Fatalf("status %d", r.StatusCode)
		}
	}
	took := time.Since(began)
	if most := 302 + int64(took.Seconds()*30); asked.Load() > most || asked.Load() < 300 ||
		slowed != 600-int(asked.Load()) {
		t.Errorf("in %v the site was asked %d times, at most %d were to be; %d were slowed down", took, asked.Load(), most,
			slowed)
	}
	if r, err := ask(t.Context(), from(t, "127.0.0.3"), addr, "/about"); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("another address: %+v, %v", r, err)
	}
}

// TestNginxFloodIPv6 tests the same for IPv6.
func TestNginxFloodIPv6(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6")
	}
	addr := l.Addr().String()
	l.Close()
	auth := start(t, forNginx(newConnector(t, conformance.NewRoom(t), loopback...)))
	nginx{site: start(t, conformance.Site()), auth: auth, also: "listen " + addr + ";", changes: []string{"burst=300", "burst=3", "rate=30r/s", "rate=1r/s"}}.start(t)
	var last int
	for range 30 {
		r, err := ask(t.Context(), http.DefaultClient, addr, "/about")
		if err != nil {
			t.Fatal(err)
		}
		if last = r.StatusCode; last == http.StatusTooManyRequests {
			return
		}
	}
	t.Errorf("the last of 30 requests at once: status %d", last)
}

// TestNginxFull tests the limits of concurrent requests, for one address and for all.
func TestNginxFull(t *testing.T) {
	t.Parallel()
	var held sync.WaitGroup
	var inside atomic.Int64
	leave := make(chan bool)
	addr, _ := behindNginx(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			inside.Add(1)
			<-leave
		}
	}), "limit_conn proofline_all 4000", "limit_conn proofline_all 120", "limit_conn proofline_open 100", "limit_conn proofline_open 100")
	hold := func(ip string, n int64) {
		client, before := from(t, ip), inside.Load()
		for range n {
			held.Go(func() { _, _ = ask(t.Context(), client, addr, "/hold") })
		}
		eventually(t, "all are inside", func() bool { return inside.Load() == before+n })
	}
	status := func(ip string) int {
		r, err := ask(t.Context(), from(t, ip), addr, "/about")
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "20" {
			t.Errorf("%s: full with %v", ip, r.Header)
		}
		return r.StatusCode
	}
	hold("127.0.0.2", 100)
	if one, other := status("127.0.0.2"), status("127.0.0.3"); one != http.StatusServiceUnavailable ||
		other != http.StatusOK {
		t.Errorf("the address with 100 requests: %d, another: %d", one, other)
	}
	hold("127.0.0.3", 20)
	if got := status("127.0.0.4"); got != http.StatusServiceUnavailable {
		t.Errorf("when the site is full: %d", got)
	}
	close(leave)
	held.Wait()
	if got := status("127.0.0.4"); got != http.StatusOK {
		t.Errorf("when there is room again: %d", got)
	}
}

// TestNginxUpgrade tests that only WebSockets are passed on.
func TestNginxUpgrade(t *testing.T) {
	t.Parallel()
	plain, _ := behindNginx(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "no upgrade")
			return
		}
		echo(w)
	}))
	socket, reader := openSocket(t, plain)
	_, _ = io.WriteString(socket, "hello\n")
	if line, err := reader.ReadString('\n'); line != "you said hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	conn, err := net.Dial("tcp", plain)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, "GET /about HTTP/1.1\r\nHost: shop.example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || r.StatusCode != http.StatusOK || bodyOf(t, r) != "no upgrade" {
		t.Errorf("h2c: %+v, %v", r, err)
	}
}

// TestNginxRelease tests that sessions can be ended by the site's backend, and by a page
// over TLS.
func TestNginxRelease(t *testing.T) {
	t.Parallel()
	room := conformance.NewRoom(t)
	var asked atomic.Int64
	site := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/tickets" {
			asked.Add(1)
		}
	}))
	plain, secure := nginx{site: site, auth: start(t, forNginx(newConnector(t, room, loopback...)))}.start(t)
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	send := func(method, address, cookie string, headers ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader("order=7"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "shop.example.com"
		r.Header.Set("Cookie", cookie)
		r.Header.Set("User-Agent", "") // as in the visitor's other requests
		r.Header.Set("Accept", "text/html")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	for name, c := range map[string]struct {
		base    string
		headers []string
		want    int
	}{
		"the site":               {"http://" + plain, nil, http.StatusNoContent},
		"a page":                 {"https://" + secure, []string{"Origin", "https://shop.example.com", "Sec-Fetch-Site", "same-origin"}, http.StatusNoContent},
		"a page of another site": {"https://" + secure, []string{"Origin", "https://evil.example.org", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"a page without TLS":     {"https://" + secure, []string{"Origin", "http://shop.example.com"}, http.StatusForbidden},
	} {
		cookie := room.Enter(t, plain)
		r := send(http.MethodPost, c.base+"/.proofline/release", cookie, c.headers...)
		if isOver := c.want == http.StatusNoContent; r.StatusCode != c.want ||
			isOver != (len(r.Cookies()) == 1 && r.Cookies()[0].MaxAge < 0) {
			t.Errorf("%s: status %d, %v", name, r.StatusCode, r.Header)
		}
		want := map[int]int{http.StatusNoContent: http.StatusFound, http.StatusForbidden: http.StatusOK}[c.want]
		if r := send(http.MethodGet, c.base+"/tickets", cookie); r.StatusCode != want {
			t.Errorf("%s: then %d, want %d", name, r.StatusCode, want)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("the site was asked %d times", asked.Load())
	}
}

// TestNginxHTTP2 tests the check over HTTP/2.
func TestNginxHTTP2(t *testing.T) {
	t.Parallel()
	_, secure := behindNginx(t, conformance.Site())
	client := &http.Client{
		Transport:     &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/about": http.StatusOK, "/tickets": http.StatusFound} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+secure+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "shop.example.com"
		r.Header.Set("Accept", "text/html")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.ProtoMajor != 2 || answer.StatusCode != want {
			t.Errorf("%s: %s, status %d", path, answer.Proto, answer.StatusCode)
		}
	}
}

// TestNginxKeepsConnections tests that nginx reuses connections to the connector.
func TestNginxKeepsConnections(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	auth := newCounting(t, forNginx(newConnector(t, conformance.NewRoom(t), loopback...)), &opened)
	addr, _ := nginx{site: start(t, conformance.Site()), auth: auth}.start(t)
	for range 50 {
		get(t, "http://"+addr+"/about").Body.Close()
	}
	if n := opened.Load(); n > 5 {
		t.Errorf("%d connections for 50 requests", n)
	}
}

// newCounting serves a handler and counts connections.
func newCounting(t *testing.T, h http.Handler, opened *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}
