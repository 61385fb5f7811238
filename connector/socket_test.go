package connector

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/session"
)

// answering is a site that answers every line on an upgraded connection, with or without
// the buffers.
func answering(w http.ResponseWriter, _ *http.Request) {
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = buffer.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n")
	_ = buffer.Flush()
	for {
		line, err := buffer.ReadString('\n')
		if err != nil {
			_, _ = io.WriteString(conn, "goodbye\n")
			return
		}
		_, _ = io.WriteString(conn, "you said "+line)
	}
}

// plug is a visitor's upgraded connection.
type plug struct {
	testing.TB
	net.Conn
	read *bufio.Reader
}

// plugIn upgrades a connection, and sends the first line at once.
func plugIn(t testing.TB, addr, cookie, first string) *plug {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = fmt.Fprintf(conn, "GET /tickets HTTP/1.1\r\nHost: shop.example.com\r\nConnection: Upgrade\r\nUpgrade: lines\r\n%s\r\n\r\n%s", cookie, first)
	p := &plug{t, conn, bufio.NewReader(conn)}
	r, err := http.ReadResponse(p.read, nil)
	if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", r, err)
	}
	return p
}

// says sends a line, and fails unless it is answered.
func (p *plug) says(line string) {
	p.Helper()
	_, _ = io.WriteString(p.Conn, line+"\n")
	p.hears("you said " + line)
}

func (p *plug) hears(want string) {
	p.Helper()
	if got, err := p.read.ReadString('\n'); got != want+"\n" {
		p.Errorf("received %q, %v, want %q", got, err, want)
	}
}

// ends fails unless the connection is closed without further data.
func (p *plug) ends(what string) {
	p.Helper()
	if b, err := p.read.ReadByte(); err == nil || os.IsTimeout(err) {
		p.Errorf("%s: received %q, %v", what, b, err)
	}
}

// isCut fails unless the connection is closed.
func (p *plug) isCut(what string) {
	p.Helper()
	if text, err := io.ReadAll(p.read); os.IsTimeout(err) {
		p.Errorf("%s: received %q, %v", what, text, err)
	}
}

// fronts returns sites behind the connector that upgrade connections themselves, or by a
// reverse proxy.
func fronts(t *testing.T, s *shop) map[string]string {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(answering))
	t.Cleanup(site.Close)
	to, err := url.Parse(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	addrs := map[string]string{}
	for name, h := range map[string]http.Handler{"the site itself": http.HandlerFunc(answering),
		"a reverse proxy": httputil.NewSingleHostReverseProxy(to)} {
		front := httptest.NewServer(s.Middleware(h))
		t.Cleanup(front.Close)
		addrs[name] = front.Listener.Addr().String()
	}
	return addrs
}

// atFronts runs a test for each front.
func atFronts(t *testing.T, test func(t *testing.T, s *shop, addr, cookie string)) {
	t.Helper()
	names := fronts(t, newShop(t, ""))
	for name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "")
			test(t, s, fronts(t, s)[name], s.enter(s.queue.pass()))
		})
	}
}

// TestSocketEnds tests that connections are closed at the latest possible end of their session.
func TestSocketEnds(t *testing.T) {
	t.Parallel()
	atFronts(t, func(t *testing.T, s *shop, addr, cookie string) {
		p, idle := plugIn(t, addr, cookie, ""), plugIn(t, addr, cookie, "")
		for minute := range 59 {
			s.clock.pass(time.Minute)
			p.says(fmt.Sprint(minute))
			eventually(t, "the room receives it", func() bool { return len(s.queue.said()) >= 2+minute }) // and of the redemption
		}
		idle.says("I am here, too")
		s.clock.pass(time.Minute)
		p.ends("an hour, four times a quarter")
		idle.ends("the other one of the session")
		eventually(t, "both are counted", func() bool { return s.Stats().Cut == 2 })
		eventually(t, "nothing is kept", func() bool { return s.sessions.sockets.size() == 0 })
		if n := len(s.queue.said()); n != 60 {
			t.Errorf("the room received %d updates of one visitor in an hour", n)
		}
	})
}

// size returns the number of sessions with connections.
func (s *sockets) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// TestSocketIdle tests that an idle connection is closed when its session ends, unless the
// visitor is active elsewhere.
func TestSocketIdle(t *testing.T) {
	t.Parallel()
	atFronts(t, func(t *testing.T, s *shop, addr, cookie string) {
		p := plugIn(t, addr, cookie, "")
		p.says("hello")
		eventually(t, "the room receives it", func() bool { return len(s.queue.said()) == 2 })
		s.clock.pass(10 * time.Minute)
		r := s.get("/tickets", cookie)
		s.isThrough("another request", r)
		if len(r.Cookies()) != 1 {
			t.Fatalf("cookies %v", r.Cookies())
		}
		eventually(t, "the room receives that, too", func() bool { return len(s.queue.said()) == 3 }) // two at once are one update
		s.clock.pass(14*time.Minute + 59*time.Second)
		p.says("still there")
		eventually(t, "the room receives it", func() bool { return len(s.queue.said()) == 4 })
		s.clock.pass(15 * time.Minute)
		p.ends("nothing happened for a quarter of an hour")
	})
}

// TestSocketReleased tests that connections are closed when their session is ended by the
// visitor, the room, or at another node.
func TestSocketReleased(t *testing.T) {
	t.Parallel()
	atFronts(t, func(t *testing.T, s *shop, addr, cookie string) {
		p := plugIn(t, addr, cookie, "")
		p.says("hello")
		s.send(http.MethodPost, ReleasePath, cookie)
		p.ends("the visitor is done")

		other := s.enter(s.queue.pass())
		p = plugIn(t, addr, other, "")
		p.says("hello")
		s.queue.answers(http.StatusGone)
		s.clock.pass(time.Minute)
		_, _ = io.WriteString(p.Conn, "still there\n") // may fail, if the connection is closed already
		p.isCut("the room says that it is over")
	})
	n := newNetted(t)
	n.says(GateOpen, 5)
	s := n.shop("")
	free, stays := s.free("an unqueued session"), s.free("another")
	addr := fronts(t, s)["a reverse proxy"]
	p, q := plugIn(t, addr, free, ""), plugIn(t, addr, stays, "")
	p.says("hello")
	s.report()
	n.said.Ended = n.latest().Started[:1]
	s.report()
	p.ends("it ended at another node")
	q.says("hello")
	before := n.active()
	eventually(t, "the server hears of it", func() bool {
		s.clock.pass(time.Minute) // hello may count as late as this
		q.says("still there")
		s.report()
		return n.active() > before
	})
}

// TestSocketsAlone tests that the cookie of a visitor who is active only on a connection is
// renewed after its end.
func TestSocketsAlone(t *testing.T) {
	t.Parallel()
	atFronts(t, func(t *testing.T, s *shop, addr, cookie string) {
		p := plugIn(t, addr, cookie, "")
		p.says("hello")
		for minute := range 20 {
			s.clock.pass(time.Minute)
			p.says("still there")
			eventually(t, "the room receives it", func() bool { return len(s.queue.said()) >= 2+minute })
		}
		r := s.get("/tickets", cookie)
		if s.isThrough("with the connection", r); len(r.Cookies()) != 1 {
			t.Fatalf("cookies %v", r.Cookies())
		}
		s.isThrough("once more", s.get("/tickets", cookie))
		fresh := "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
		p.Close()
		eventually(t, "the connection is closed", func() bool { return s.sessions.sockets.size() == 0 })
		s.isQueued("with the old cookie alone", s.get("/tickets", cookie))
		s.isThrough("with the new one", s.get("/tickets", fresh))
		s.clock.pass(15*time.Minute + time.Second)
		s.isQueued("when that is over", s.get("/tickets", fresh))
	})
}

// clientTTL is the time for which a client of a session counts.
const clientTTL = 10 * time.Minute

// TestSocketsShared tests that clients with open connections count, however old these are.
func TestSocketsShared(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	guarded := s.Middleware(http.HandlerFunc(answering))
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = r.Header.Get("Client") + ":1"
		guarded.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	var open []*plug
	for i := range session.MaxClients {
		open = append(open, plugIn(t, front.Listener.Addr().String(), cookie+"\r\n"+someone(i), ""))
	}
	for range 2 * clientTTL / time.Minute {
		s.clock.pass(time.Minute)
		for _, p := range open {
			p.says("still there")
		}
		time.Sleep(50 * time.Millisecond) // a few checks
	}
	s.isQueued("one more", s.get("/tickets", cookie, someone(100)))
	s.isThrough("one of them", s.get("/tickets", cookie, someone(3)))
	open[0].Close()
	eventually(t, "its connection is closed", func() bool {
		s.sessions.sockets.mu.Lock()
		defer s.sessions.sockets.mu.Unlock()
		for _, all := range s.sessions.sockets.sessions {
			return len(all.sockets) == session.MaxClients-1
		}
		return false
	})
	for range clientTTL / time.Minute {
		s.clock.pass(time.Minute)
		for _, p := range open[1:] {
			p.says("still there")
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.isThrough("another in place of one that is gone", s.get("/tickets", cookie, someone(101)))
}

// TestSocketEarly tests that data sent with the request reaches the site.
func TestSocketEarly(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	p := plugIn(t, fronts(t, s)["the site itself"], s.enter(s.queue.pass()), "one\ntwo\n")
	p.hears("you said one")
	p.hears("you said two")
	p.says("three")
}

// TestSocketHalves tests that closing one direction is passed on.
func TestSocketHalves(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	cookie := s.enter(s.queue.pass())
	for name, addr := range fronts(t, s) {
		p := plugIn(t, addr, cookie, "")
		p.says("hello")
		half, ok := p.Conn.(*net.TCPConn)
		if !ok {
			t.Fatal("no TCP")
		}
		_ = half.CloseWrite()
		if p.hears("goodbye"); t.Failed() {
			t.Fatal(name)
		}
		p.ends("then")
	}
}

// TestSocketBypass tests that connections of requests without a session are left alone.
func TestSocketBypass(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	front := httptest.NewServer(s.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, isOurs := conn.(*socket)
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%t", isOurs)
			conn.Close()
		}
	})))
	defer front.Close()
	for path, want := range map[string]string{"/about": "false", "/tickets": "true"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", strings.TrimPrefix(s.enter(s.queue.pass()), "Cookie: "))
		r.Header.Set("User-Agent", "") // as in the visitor's other requests
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := bodyOf(t, answer); got != want {
			t.Errorf("%s: the connection is watched: %s", path, got)
		}
		answer.Body.Close()
	}
}
