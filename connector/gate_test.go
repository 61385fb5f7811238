package connector

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/connector/rules"

	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/report"
	"github.com/proofline/proofline/connector/internal/source"
)

// netted is a room in mode safety-net with replies set by the test.
type netted struct {
	*queue
	said *report.RoomReply // to reports; nil: 500
}

func newNetted(t testing.TB) *netted {
	t.Helper()
	n := &netted{queue: newQueue(t, newClock())}
	n.reply = func(said *report.Report) (int, *report.Reply) {
		if n.said == nil {
			return http.StatusInternalServerError, nil
		}
		re := &report.Reply{}
		for _, r := range said.Rooms {
			answer := *n.said
			answer.Room = r.Room
			for _, o := range r.FailOpen {
				answer.Recorded = append(answer.Recorded, o.ID)
			}
			re.Rooms = append(re.Rooms, answer)
		}
		return http.StatusOK, re
	}
	return n
}

// says sets the room's reply to reports.
func (n *netted) says(gate string, share int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = &report.RoomReply{Gate: gate, Share: share, PerMinute: 600, MaxActive: 100, Nodes: 2, SessionMS: 600_000}
}

func (n *netted) fails() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = nil
}

// latest returns the room in the latest report.
func (n *netted) latest() report.RoomReport {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reports[len(n.reports)-1].Rooms[0]
}

// active returns how many active sessions all reports have named: the node may send one by itself at any time.
func (n *netted) active() (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, said := range n.reports {
		for _, r := range said.Rooms {
			count += len(r.Active)
		}
	}
	return count
}

// shop returns a node in front of the site.
func (n *netted) shop(members string, change ...func(*Options)) *shop {
	n.Helper()
	reports := func(o *Options) { o.Server, o.Token = n.URL, testToken }
	return newShopAt(n.TB, n.queue, `,"mode":"safety-net"`+members, append([]func(*Options){reports}, change...)...)
}

// report sends a report now.
func (s *shop) report() {
	s.Helper()
	if _, err := s.reporter.Send(s.Context(), 1); err != nil {
		s.Fatal(err)
	}
}

// free requests a page, fails unless an unqueued session begins, and returns its cookie
// as a header.
func (s *shop) free(what string, headers ...string) string {
	s.Helper()
	r := s.get("/tickets", headers...)
	s.isThrough(what, r)
	if len(r.Cookies()) != 1 {
		s.Fatalf("%s: cookies %v", what, r.Cookies())
	}
	return "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
}

func TestOpenGate(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 3)
	s := n.shop("")
	r := s.get("/tickets?a=1", "X-Proofline-Ticket: forged", "X-Proofline-Room: forged")
	got := s.isThrough("first request", r)
	if v, ok := VisitorOf(got.Context()); !ok || v != (Visitor{Room: "sale"}) || got.Header[TicketHeader] != nil ||
		got.Header.Get(RoomHeader) != "sale" || got.URL.RawQuery != "a=1" {
		t.Errorf("the site got %+v, %v", v, got.Header)
	}
	raw := r.Header.Get("Set-Cookie")
	if !strings.HasPrefix(raw, "__Host-proofline-pass.sale=") ||
		!strings.HasSuffix(raw, "; Path=/; HttpOnly; Secure; SameSite=Lax") {
		t.Errorf("cookie %q", raw)
	}
	cookie := "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
	for range 10 {
		r := s.get("/tickets", cookie)
		if v, _ := VisitorOf(s.isThrough("with the cookie", r).Context()); v.Room != "sale" || len(r.Cookies()) != 0 {
			t.Errorf("visitor %+v, cookies %v", v, r.Cookies())
		}
	}
	r = s.send("POST", "/tickets", "Sec-Fetch-Mode: cors")
	if s.isThrough("a script", r); len(r.Cookies()) != 1 {
		t.Errorf("a script: cookies %v", r.Cookies())
	}
	s.free("third")
	s.isQueued("fourth", s.get("/tickets"))
	s.isQueued("fifth", s.send("POST", "/tickets"))
	s.isThrough("with the cookie still", s.get("/tickets", cookie))
	s.report()
	if said := n.latest(); len(said.Started) != 3 || said.TurnedAway != 2 || said.Mode != rules.SafetyNet ||
		len(said.Active)+len(said.Ended) != 0 || said.Room != s.queue.url() {
		t.Errorf("reported %+v", said)
	}
	s.free("with the new share")
	n.says(GateShut, 0)
	s.report()
	if said := n.latest(); len(said.Started) != 1 || said.TurnedAway != 0 {
		t.Errorf("reported %+v", said)
	}
	s.isQueued("shut", s.get("/tickets"))
	s.isThrough("shut, with the cookie", s.get("/tickets", cookie))
	pass := s.enter(s.queue.pass())
	if v, _ := VisitorOf(s.isThrough("with a pass", s.get("/tickets", pass)).Context()); len(v.Ticket) != 36 {
		t.Errorf("visitor %+v", v)
	}
	if n := s.Stats(); n.Started != 4 || n.TurnedAway != 2 || n.Queued != 3 || n.Passed != 13 || n.Redeemed != 1 {
		t.Errorf("counts %+v", n)
	}
	want := RoomStats{Gate: GateShut, HeardAt: s.clock.now(), Unqueued: 4, Started: 4, TurnedAway: 2}
	if diff := cmp.Diff(want, s.Stats().Rooms["sale"]); diff != "" {
		t.Error(diff)
	}
}

// TestPassAtOpenGate tests that passes are redeemed while the gate is open.
func TestPassAtOpenGate(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 1)
	s := n.shop("")
	cookie := s.enter(s.queue.pass())
	if v, _ := VisitorOf(s.isThrough("with a pass", s.get("/tickets", cookie)).Context()); len(v.Ticket) != 36 {
		t.Errorf("visitor %+v", v)
	}
	s.free("and a free one")
	s.isQueued("no more", s.get("/tickets?proofline_pass=forged"))
	n.says(GateOpen, 5)
	s.report()
	r := s.get("/tickets?proofline_pass=forged")
	if got := s.isThrough("a forged pass, but an open gate", r); got.URL.RawQuery != "" || len(r.Cookies()) != 1 {
		t.Errorf("site got %v", got.URL)
	}
}

// TestPassForUnqueued tests that a pass ends the visitor's unqueued session, so that the
// room counts the visitor once.
func TestPassForUnqueued(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 2)
	s := n.shop("")
	free, other := s.free("begins"), s.free("begins, too")
	r := s.get("/tickets?proofline_pass="+s.queue.pass(), free)
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
		t.Fatalf("status %d, %v", r.StatusCode, r.Header)
	}
	cookie := "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
	if v, _ := VisitorOf(s.isThrough("then", s.get("/tickets", cookie)).Context()); len(v.Ticket) != 36 {
		t.Errorf("visitor %+v", v)
	}
	s.report()
	if said := n.latest(); !slices.Equal(said.Started[:1], said.Ended) || len(said.Started) != 2 {
		t.Errorf("reported %+v", said)
	}
	n.says(GateShut, 0)
	s.report()
	s.isQueued("with the session that ended", s.get("/tickets", free))
	if r := s.get("/tickets?proofline_pass=forged", other); s.isThrough("a forged pass with an unqueued session",
		r) == nil || s.Stats().Refused != 1 {
		t.Errorf("counts %+v", s.Stats())
	}
}

// TestFormerRoom tests reports about a room that the rules change, or no longer name.
func TestFormerRoom(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 9)
	s := n.shop("")
	s.free("begins")
	if err := s.use(&source.Rules{Site: s.queue.site("")}); err != nil {
		t.Fatal(err)
	}
	s.report()
	if err := s.use(&source.Rules{Site: s.queue.site(`,"mode":"safety-net"`)}); err != nil {
		t.Fatal(err)
	}
	s.report()
	s.free("begins again")
	n.fails()
	if err := s.use(&source.Rules{Site: mustSite(t, `{"version":1}`)}); err != nil {
		t.Fatal(err)
	}
	n.says(GateOpen, 9)
	s.report()
	s.report()
	n.mu.Lock()
	defer n.mu.Unlock()
	reported := map[string]rules.Mode{}
	var modes []rules.Mode
	for _, r := range n.reports {
		for _, room := range r.Rooms {
			for _, id := range room.Started {
				if _, isKnown := reported[id]; isKnown {
					t.Errorf("%s is reported twice", id)
				}
				reported[id] = room.Mode
				modes = append(modes, room.Mode)
			}
		}
	}
	if !slices.Equal(modes, []rules.Mode{rules.Always, rules.Off}) {
		t.Errorf("sessions are reported in modes %v: %v", modes, n.reports)
	}
}

// TestUnqueuedSliding follows an unqueued session to its end.
func TestUnqueuedSliding(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 9)
	s := n.shop("")
	cookie := s.free("begins")
	n.says(GateShut, 0)
	s.report()
	id := ""
	for i := range 5 { // 40 minutes altogether, 10 at a time
		s.clock.pass(9 * time.Minute)
		r := s.get("/tickets", cookie)
		if i == 4 {
			s.isQueued("after 45 minutes", r)
			break
		}
		if s.isThrough("sliding", r); len(r.Cookies()) != 1 {
			t.Fatalf("after %d times 9 minutes: no new cookie", i+1)
		}
		cookie = "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
		s.isThrough("again", s.get("/tickets", cookie))
		s.report()
		said := n.latest()
		if len(said.Active) != 1 || id != "" && said.Active[0] != id || len(said.Started)+len(said.Ended) != 0 {
			t.Errorf("reported %+v", said)
		}
		id = said.Active[0]
	}
	if n := s.Stats(); n.Touches != 0 || len(s.queue.said()) != 0 {
		t.Errorf("the room received %q", s.queue.said())
	}
	s.report()
	s.clock.pass(gate.SweepInterval)
	s.report()
	if n := s.Stats().Rooms["sale"].Unqueued; n != 0 {
		t.Errorf("%d go on", n)
	}
}

// TestUnqueuedRelease tests the release of an unqueued session, at once or later.
func TestUnqueuedRelease(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 9)
	s := n.shop("")
	cookie := s.free("begins")
	n.says(GateShut, 9)
	s.report()
	s.answer = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Proofline-Command", "release") }
	r := s.get("/tickets", cookie)
	if s.isThrough("release", r); len(r.Cookies()) != 1 || r.Cookies()[0].MaxAge != -1 ||
		r.Header.Get("Proofline-Command") != "" {
		t.Errorf("header %v", r.Header)
	}
	s.isQueued("after that", s.get("/tickets", cookie))
	s.report()
	if said := n.latest(); len(said.Ended) != 1 {
		t.Errorf("reported %+v", said)
	}
	n.says(GateOpen, 9)
	s.report()
	if r := s.get("/tickets"); s.isThrough("released at once", r) == nil || len(r.Cookies()) != 1 ||
		r.Cookies()[0].Value != "" {
		t.Errorf("cookies %v", r.Cookies())
	}
	s.answer = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "public, max-age=60") }
	if r := s.get("/tickets"); s.isThrough("an answer for caches", r) == nil || len(r.Cookies()) != 0 {
		t.Errorf("cookies %v", r.Cookies())
	}
	s.report()
	if said := n.latest(); len(said.Started) != 2 || !slices.Equal(said.Ended, said.Started) ||
		s.Stats().Rooms["sale"].Unqueued != 0 {
		t.Errorf("reported %+v", said)
	}
	s.answer = func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	func() {
		defer func() { _ = recover() }()
		s.get("/tickets")
	}()
	s.got = nil
	if n := s.Stats(); n.Panics != 0 {
		t.Errorf("the site's faults are ours: %+v", n)
	}
}

// TestUnqueuedElsewhere tests that unqueued sessions are ignored in other rooms and modes.
func TestUnqueuedElsewhere(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 9)
	s := n.shop("")
	cookie := s.free("begins")
	other := n.shop("", func(o *Options) { o.Key = []byte(strings.Repeat("k", 32)) })
	second := n.shop("")
	n.says(GateShut, 0)
	other.report()
	second.report()
	other.isQueued("at a site with another key", other.get("/tickets", cookie))
	s.clock.pass(2 * time.Minute)
	second.isThrough("at another node", second.get("/tickets", cookie))
	if n := second.Stats().Rooms["sale"]; n.Unqueued != 1 || n.Started != 0 {
		t.Errorf("there %+v", n)
	}
	_, value, _ := strings.Cut(cookie, "=")
	for i := range len(value) {
		changed := []byte(value)
		if changed[i] = 'A'; value[i] == 'A' {
			changed[i] = 'B'
		}
		second.isQueued("changed", second.get("/tickets", "Cookie: __Host-proofline-pass.sale="+string(changed)))
	}
	alone := newShopAt(t, n.queue, "")
	alone.isQueued("in mode always", alone.get("/tickets", cookie))
	room := newNetted(t)
	room.says(GateShut, 0)
	foreign := room.shop("")
	foreign.isQueued("at another room", foreign.get("/tickets", cookie))
}

// TestUnqueuedSocket tests an unqueued session that begins with a socket behind a reverse
// proxy, and ends with it.
func TestUnqueuedSocket(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 1)
	s := n.shop("")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: line\r\nProofline-Command: release\r\n\r\nhello")
		_ = conn.Close()
	}))
	defer site.Close()
	to, err := url.Parse(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s.Middleware(httputil.NewSingleHostReverseProxy(to)))
	defer front.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/tickets", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "line")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got := bodyOf(t, answer); answer.StatusCode != http.StatusSwitchingProtocols || len(answer.Cookies()) != 1 ||
		got != "hello" {
		t.Errorf("status %d, %v, %q", answer.StatusCode, answer.Header, got)
	}
	answer.Body.Close()
	eventually(t, "the session ends with the socket", func() bool { return s.Stats().Released == 1 })
	s.report()
	if said := n.latest(); len(said.Started) != 1 || !slices.Equal(said.Started, said.Ended) {
		t.Errorf("reported %+v", said)
	}
}

// TestUnqueuedBind tests unqueued sessions bound to a network.
func TestUnqueuedBind(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 1)
	s := n.shop(`,"bind":"network"`)
	cookie := s.free("begins")
	s.isThrough("same network", s.get("/tickets", cookie))
	r := httptest.NewRequest(http.MethodGet, "/tickets", nil)
	r.RemoteAddr = "203.0.113.5:1"
	r.Header.Set("Cookie", strings.TrimPrefix(cookie, "Cookie: "))
	w := httptest.NewRecorder()
	if s.handler.ServeHTTP(w, r); w.Code != http.StatusForbidden || len(s.got) > 0 {
		t.Errorf("another network: %d", w.Code)
	}
}

// TestNodePart tests a node's part of the limits, without replies to reports.
func TestNodePart(t *testing.T) {
	t.Parallel()
	begin := func(s *shop) (begun int) {
		for i := range 1000 {
			if r := s.get("/tickets", someone(i)); r.StatusCode == http.StatusOK {
				begun++
			}
		}
		s.got = nil
		return begun
	}
	for name, c := range map[string]struct {
		said   report.RoomReply
		before int // begun with the share
		want   int // that may begin then
		later  int // after a minute
	}{
		"a part of the rate":     {report.RoomReply{Gate: GateOpen, Share: 10, PerMinute: 61, Nodes: 3, SessionMS: 600_000}, 10, 11, 21},
		"a part of the places":   {report.RoomReply{Gate: GateOpen, Share: 4, PerMinute: 6000, MaxActive: 19, Nodes: 2, SessionMS: 600_000}, 4, 6, 0},
		"places that come free":  {report.RoomReply{Gate: GateOpen, Share: 4, PerMinute: 6000, MaxActive: 19, Nodes: 2, SessionMS: 60_000}, 4, 6, 10},
		"less than one":          {report.RoomReply{Gate: GateOpen, Share: 0, PerMinute: 1, MaxActive: 1, Nodes: 9, SessionMS: 60_000}, 0, 1, 1},
		"the share is not taken": {report.RoomReply{Gate: GateOpen, Share: 900, PerMinute: 600, Nodes: 1, SessionMS: 60_000}, 900, 0, 600},
		"shut":                   {report.RoomReply{Gate: GateShut, Share: 50, PerMinute: 600, Nodes: 1, SessionMS: 60_000}, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetted(t)
			n.said = &c.said
			s := n.shop("")
			n.fails()
			if got := begin(s); got != c.before {
				t.Errorf("%d begin with the share, want %d", got, c.before)
			}
			s.clock.pass(gate.ReplyTTL)
			if got := begin(s); got != 0 {
				t.Errorf("%d begin although the answer is fresh", got)
			}
			s.clock.pass(time.Second)
			if got := begin(s); got != c.want {
				t.Errorf("%d begin by the node's part, want %d", got, c.want)
			}
			s.clock.pass(61 * time.Second)
			if got := begin(s); got != c.later {
				t.Errorf("%d begin a minute later, want %d", got, c.later)
			}
			if s.Stats().Rooms["sale"].TurnedAway != s.Stats().TurnedAway {
				t.Errorf("counts %+v", s.Stats())
			}
		})
	}
}

// TestNoReply tests that the gate is shut until the first reply.
func TestNoReply(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	s := n.shop(`,"failure":"fail-open-after 30s"`)
	s.isQueued("never answered", s.get("/tickets"))
	if st := s.Stats().Rooms["sale"]; st.Gate != "" || !st.HeardAt.IsZero() {
		t.Errorf("stats %+v", st)
	}
	s.failed()
	if r := s.get("/tickets"); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("out of reach: %d", r.StatusCode)
	}
	s.clock.pass(31 * time.Second)
	s.isThrough("open at last", s.failed())
	s.queue.isDown.Store(false)
	for what, re := range map[string]*report.RoomReply{
		"another gate": {Gate: "ajar", Share: 5, PerMinute: 60, Nodes: 1, SessionMS: 60_000}, "no gate": {Share: 5, PerMinute: 60, Nodes: 1, SessionMS: 60_000},
		"no length": {Gate: GateOpen, Share: 5, PerMinute: 60, Nodes: 1}, "no rate": {Gate: GateOpen, Share: 5, Nodes: 1, SessionMS: 60_000}, "negative": {Gate: GateOpen, Share: -5, PerMinute: 60, Nodes: 1, SessionMS: 60_000},
		"unknown": {Error: "unknown"}, "long": {Gate: GateOpen, Share: 5, PerMinute: 60, Nodes: 1, SessionMS: 1 << 60},
	} {
		n.mu.Lock()
		n.said = re
		n.mu.Unlock()
		s.report()
		s.enter(s.queue.pass()) // the room is up
		s.isQueued(what, s.get("/tickets"))
	}
	n.says(GateOpen, 1)
	s.report()
	s.free("answered at last")
}

// TestShareUnderWay tests that sessions begun during a report reduce the next share.
func TestShareUnderWay(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 5)
	s := n.shop("")
	before := n.reply
	n.reply = func(said *report.Report) (int, *report.Reply) {
		s.free("under way")
		s.free("under way, too")
		return before(said)
	}
	n.says(GateOpen, 3)
	s.report()
	n.reply = before
	s.free("one is left")
	s.isQueued("none is left", s.get("/tickets"))
	n.says(GateOpen, 9)
	s.report()
	if said := n.latest(); len(said.Started) != 3 {
		t.Errorf("reported %+v", said)
	}
}

// TestLostReport tests that a report without a reply is repeated.
func TestLostReport(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 1)
	s := n.shop("")
	s.free("begins")
	s.isQueued("turned", s.get("/tickets"))
	n.fails()
	for range 3 {
		if _, err := s.reporter.Send(t.Context(), 1); err == nil {
			t.Fatal("answered")
		}
	}
	first := n.latest()
	n.says(GateOpen, 1)
	s.report()
	if diff := cmp.Diff(first.Started, n.latest().Started); diff != "" || len(first.Started) != 1 ||
		n.latest().TurnedAway != 1 {
		t.Errorf("reported %+v", n.latest())
	}
	s.report()
	if said := n.latest(); len(said.Started) != 0 || said.TurnedAway != 0 {
		t.Errorf("reported again %+v", said)
	}
}

// TestManyUnqueued tests more sessions than fit into a report, or into memory.
func TestManyUnqueued(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 1<<30)
	s := n.shop("")
	rm := s.current.Load().rooms["sale"]
	for range gate.MaxIDs*2 + 5 {
		if f, why := rm.state.gate.Begin(rm.Room, netip.Addr{}, "", s.clock.now(), false); f == nil { // of no network
			t.Fatalf("does not begin: %d", why)
		}
	}
	seen := map[string]bool{}
	for i, want := range []int{gate.MaxIDs, gate.MaxIDs, 5} {
		more, err := s.reporter.Send(t.Context(), i)
		said := n.latest()
		if err != nil || len(said.Started) != want || more != (i == 0) && want != gate.MaxIDs {
			t.Errorf("report %d says %d, more: %t, %v", i, len(said.Started), more, err)
		}
		for _, id := range said.Started {
			seen[id] = true
		}
	}
	if len(seen) != gate.MaxIDs*2+5 {
		t.Errorf("%d are reported", len(seen))
	}
}

// TestConcurrentStarts tests that concurrent visitors begin no more sessions than allowed.
func TestConcurrentStarts(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 500)
	s := n.shop("")
	h := s.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 200 {
				r := httptest.NewRequest(http.MethodGet, "/tickets", nil)
				r.RemoteAddr = netip.AddrPortFrom(addressOf(200*i+k), 1).String()
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
	all.Go(func() {
		for range 20 {
			s.Stats()
			time.Sleep(time.Millisecond)
		}
	})
	all.Wait()
	if st := s.Stats(); st.Started != 500 || st.TurnedAway != 1100 || st.Rooms["sale"].Unqueued != 500 {
		t.Errorf("counts %+v", st)
	}
}

// TestAllowsUnqueued tests Allows for nginx, which sends a refused request again.
func TestAllowsUnqueued(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateOpen, 1)
	s := n.shop("")
	h := http.Header{}
	if !s.Allows(h, httptest.NewRequest(http.MethodGet, "/tickets", nil)) ||
		!strings.HasPrefix(h.Get("Set-Cookie"), "__Host-proofline-pass.sale=") || h.Get(RoomHeader) != "sale" ||
		h[TicketHeader] != nil {
		t.Errorf("header %v", h)
	}
	if s.Allows(http.Header{}, httptest.NewRequest(http.MethodGet, "/tickets", nil)) {
		t.Error("two are admitted")
	}
	s.isQueued("then", s.get("/tickets"))
	s.report()
	if said := n.latest(); said.TurnedAway != 1 || len(said.Started) != 1 || s.Stats().TurnedAway != 1 || s.Stats().Started != 1 {
		t.Errorf("reported %+v, counts %+v", said, s.Stats())
	}
}

// BenchmarkStarted measures a visitor's request at an open gate.
func BenchmarkStarted(b *testing.B) {
	n := newNetted(b)
	n.said = &report.RoomReply{Gate: GateOpen, Share: 1 << 30, PerMinute: 1 << 30, Nodes: 1, SessionMS: 600_000}
	s := n.shop("")
	h := s.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest(http.MethodGet, "/tickets", nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.RemoteAddr = netip.AddrPortFrom(addressOf(i), 1).String()
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}
