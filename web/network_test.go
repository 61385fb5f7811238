package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/limit"
	"github.com/proofline/proofline/web/page"
)

// newLimited starts a site with these limits, whose clients give their address in X-Forwarded-For.
func newLimited(t *testing.T, o limit.Options, change ...func(*Options)) *site {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	return newSite(t, append(change, func(site *Options) {
		site.Limits = limit.New(o)
		site.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	})...)
}

func from(address string) string { return "X-Forwarded-For: " + address }

// refusedFor checks the problem for a network that has used up a budget.
func (a answer) refusedFor(kind limit.Kind) {
	a.Helper()
	p := a.problem(http.StatusTooManyRequests, networkLimit)
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || seconds < 1 || seconds > 60*60*24 || !strings.Contains(p.Detail, kind.String()) {
		a.Errorf("Retry-After %q, %+v, want one for %s", a.header.Get("Retry-After"), p, kind)
	}
}

// TestJoinsOfOneNetwork checks that one address gets no more tickets than its network's budget, however it
// joins, and that other networks are not affected.
func TestJoinsOfOneNetwork(t *testing.T) {
	t.Parallel()
	s := newLimited(t, limit.Options{Joins: 1, Tickets: 1000}) // none comes back while the test runs
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	const attacker = "192.0.2.66"
	taken := 0
	for i := range 100 {
		var a answer
		if i%2 == 0 {
			a = s.post("/r/sale/join", "", from(fmt.Sprintf("192.0.2.%d", i)))
		} else {
			a = s.post("/r/sale/line", "{}", from(attacker))
		}
		if a.status == http.StatusCreated {
			taken++
			continue
		}
		a.refusedFor(limit.Joins)
	}
	if taken != 2 {
		t.Errorf("%d tickets at once, want 2", taken)
	}
	s.post("/r/sale/join", "", from("203.0.113.5, "+attacker)).refusedFor(limit.Joins) // forged header entries change nothing
	s.post("/r/sale/join", "", from("::ffff:"+attacker)).refusedFor(limit.Joins)
	for _, other := range []string{"192.0.3.66", "2001:db8::1"} {
		s.post("/r/sale/join", "", from(other)).want(http.StatusCreated)
	}
	if got, want := s.budgets.limits.Refused()["joins"], uint64(100-taken+2); got != want {
		t.Errorf("%d refusals are counted, want %d", got, want)
	}
	r, err := s.rooms.Get(t.Context(), "sale")
	if err == nil {
		err = r.End(t.Context())
	}
	s.post("/r/sale/join", "", from(attacker)).refusedFor(limit.Joins) // and the room has ended
	var stated []string
	err = errors.Join(err, r.Transcript.ReadEntries(t.Context(), func(e fairness.Entry) error {
		if told, ok := e.(*fairness.Tell); ok {
			stated = append(stated, fmt.Sprint(told.Subject, told.Name, told.Count))
		}
		return nil
	}))
	if want := fmt.Sprint(fairness.TellRefused, "network-limit", 100-taken+2); err != nil || !slices.Equal(stated, []string{want}) {
		t.Errorf("the transcript states %q, %v, want %q", stated, err, want)
	}
}

// TestCredentialsOfOneNetwork: credentials shown after the arrival count as joins, because they are verified.
func TestCredentialsOfOneNetwork(t *testing.T) {
	t.Parallel()
	s := newLimited(t, limit.Options{Joins: 1})
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	v := newVisitor("sale")
	show := func() answer {
		return s.post("/r/sale/tickets/"+v.ticket+"/credentials", `{"secret":"`+v.secret+`","method":"club","evidence":"00"}`, from("192.0.2.1"))
	}
	s.post("/r/sale/join", v.joinBody(), from("192.0.2.2")).want(http.StatusCreated)
	show().problem(http.StatusBadRequest, "credential-unknown-method")
	show().refusedFor(limit.Joins)
}

// TestTicketsOfOneNetwork checks that only recorded tickets count.
func TestTicketsOfOneNetwork(t *testing.T) {
	t.Parallel()
	s := newLimited(t, limit.Options{Tickets: 3})
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	s.create(`{"slug":"later","opens":"2100-01-01T00:00:00Z"}`)
	s.create(`{"slug":"other","windows":[{"length":"24h"}]}`)
	const network = "2001:db8:77:1::"
	known := newVisitor("sale").joinBody()
	s.post("/r/sale/join", known, from(network+"1")).want(http.StatusCreated)
	for i := range 10 {
		s.post("/r/sale/join", known, from(fmt.Sprint(network, i))).want(http.StatusOK)
		s.post("/r/later/join", "", from(network)).problem(http.StatusConflict, "too-early")
	}
	s.post("/r/sale/join", "", from("2001:db8:77:2::9")).want(http.StatusCreated)
	s.post("/r/sale/join", "", from(network)).want(http.StatusCreated)
	s.post("/r/sale/join", "", from(network)).refusedFor(limit.Tickets)
	s.post("/r/other/join", "", from(network)).want(http.StatusCreated)
	s.post("/r/sale/join", "", from("2001:db8:78::1")).want(http.StatusCreated)
}

// TestPagesOfOneNetwork checks that the refusal page exists in each language, and costs less than the
// refused page.
func TestPagesOfOneNetwork(t *testing.T) {
	t.Parallel()
	s := newLimited(t, limit.Options{Pages: 1, Joins: 1})
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	const html = "Accept: text/html"
	network := from("192.0.2.1")
	for range 2 {
		s.get("/r/sale", network, html).want(http.StatusOK)
		s.post("/r/sale/line", "", network, html).want(http.StatusSeeOther)
	}
	headings := map[string]bool{}
	for _, lang := range page.Languages() {
		for _, a := range []answer{
			s.get("/r/sale", network, html, "Accept-Language: "+string(lang)),
			s.get("/r/sale/check", network, html, "Accept-Language: "+string(lang)),
			s.post("/r/sale/line", "", network, html, "Accept-Language: "+string(lang)),
		} {
			a.want(http.StatusTooManyRequests)
			if !strings.Contains(a.body, `data-kind="crowded"`) || !strings.Contains(a.body, `href="/r/sale"`) || a.header.Get("Retry-After") == "" ||
				!strings.Contains(a.body, `lang="`+string(lang)) || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Content-Security-Policy") != contentPolicy {
				t.Errorf("%s: %v %s", lang, a.header, a.body)
			}
			_, heading, _ := strings.Cut(a.body, "<h1>")
			heading, _, _ = strings.Cut(heading, "</h1>")
			headings[heading] = true
		}
	}
	if len(headings) != len(page.Languages()) {
		t.Errorf("%d headings in %d languages", len(headings), len(page.Languages()))
	}
	for _, path := range []string{"/", "/r/sale", "/r/sale/check", "/r/sale/fair", "/r/sale/report"} { // every page is charged
		s.get(path, network, html).want(http.StatusTooManyRequests)
	}
	s.get("/r/sale?fragment=1", network, html).refusedFor(limit.Pages)
	s.get("/r/nothing", network, html).problem(http.StatusNotFound, "not-found") // no page is rendered for it
	s.get("/r/nothing", from("192.0.3.1"), html).want(http.StatusNotFound)
	s.get("/r/sale/state", network).want(http.StatusOK)
}

// TestForgedBatches checks that forged passes are verified only until the network's budget is used up, and
// that valid passes cost a connector nothing.
func TestForgedBatches(t *testing.T) {
	t.Parallel()
	s := newLimited(t, limit.Options{Passes: 100})
	s.create(`{"slug":"shop",` + quick + `}`)
	pass := s.enter("shop").Pass
	forged := make([]string, 500)
	for i := range forged {
		forged[i] = pass[:len(pass)-2] + string("AB"[i%2]) + string("ABCDEFGHIJ"[i%10])
	}
	honest := make([]string, 500)
	for i := range honest {
		honest[i] = pass
	}
	for range 10 {
		s.post("/r/shop/sessions/batch", batchBody(t, honest, nil), from("192.0.2.1")).want(http.StatusOK)
	}
	verified := 0
	for range 20 {
		a := s.post("/r/shop/sessions/batch", batchBody(t, forged, nil), from("198.51.100.1"))
		if a.status == http.StatusOK {
			verified += 500
			continue
		}
		a.refusedFor(limit.Passes)
	}
	if verified != 1000 {
		t.Errorf("%d forged passes are verified, want 1,000", verified)
	}
	s.post("/r/shop/sessions/batch", batchBody(t, honest, nil), from("192.0.2.1")).want(http.StatusOK)
}

// TestForgedAndGone checks that a client that sends forged passes and disconnects pays for them.
func TestForgedAndGone(t *testing.T) {
	t.Parallel()
	s := newLimited(t, limit.Options{Passes: 100})
	s.create(`{"slug":"shop",` + quick + `}`)
	valid := s.enter("shop").Pass
	passes := []string{valid}
	for i := range 499 {
		passes = append(passes, valid[:len(valid)-4]+fmt.Sprintf("%04d", i))
	}
	for range 2 {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(gone, http.MethodPost, "/r/shop/sessions/batch", strings.NewReader(batchBody(t, passes, nil)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		r.RemoteAddr = "127.0.0.1:1"
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	s.post("/r/shop/sessions/batch", batchBody(t, passes, nil), from("198.51.100.1")).refusedFor(limit.Passes)
}

// TestFloodOfOneNetwork checks that session requests wait only for others of the same network.
func TestFloodOfOneNetwork(t *testing.T) {
	t.Parallel()
	s := newLimited(t, limit.Options{})
	s.create(`{"slug":"shop",` + quick + `}`)
	pass := s.enter("shop").Pass
	var turns []func()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		done, err := s.budgets.limits.Turn(ctx, netip.MustParseAddr("198.51.100.1"))
		cancel()
		if err != nil {
			break
		}
		turns = append(turns, done)
	}
	var waiting sync.WaitGroup
	for _, path := range []string{"/r/shop/sessions/batch", "/r/shop/sessions/touch", "/r/shop/link", "/r/shop/take"} {
		body, answered := "{}", new(atomic.Bool)
		switch {
		case strings.HasSuffix(path, "batch"):
			body = batchBody(t, []string{pass}, nil)
		case strings.HasSuffix(path, "link"):
			body = `{"secret":"` + newVisitor("shop").secret + `"}`
		}
		s.post(path, body, authorized(pass), from("192.0.2.1")) // gets a response, whatever it is
		waiting.Go(func() {
			s.post(path, body, authorized(pass), from("198.51.100.2"))
			answered.Store(true)
		})
		if time.Sleep(100 * time.Millisecond); answered.Load() {
			t.Errorf("%s does not wait for its network", path)
		}
	}
	for _, done := range turns {
		done()
	}
	waiting.Wait()
}

// TestStreamsOfOneNetwork checks that one address cannot occupy all streams.
func TestStreamsOfOneNetwork(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *Options) {
		o.MaxStreams = 10
		o.Limits = limit.New(limit.Options{Streams: 2, Log: slog.New(slog.DiscardHandler)})
	})
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	base, stop := serve(t, s)
	defer stop()
	for range 2 {
		if answer, _ := listen(t, base, "sale"); answer.StatusCode != http.StatusOK {
			t.Fatalf("status %d", answer.StatusCode)
		}
	}
	s.get("/r/sale/events").refusedFor(limit.Streams)
	if got := s.feed.open.Load(); got != 2 {
		t.Errorf("%d streams are open", got)
	}
}

// stated returns what the transcript of a room that ends states about refused joins.
func (s *site) stated(slug string) (list []string) {
	s.Helper()
	r, err := s.rooms.Get(s.Context(), slug)
	if err == nil {
		err = r.End(s.Context())
	}
	if err == nil {
		err = r.Transcript.ReadEntries(s.Context(), func(e fairness.Entry) error {
			if told, ok := e.(*fairness.Tell); ok {
				list = append(list, fmt.Sprint(told.Subject, " ", told.Name, " ", told.Count))
			}
			return nil
		})
	}
	if err != nil {
		s.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// TestLimitOfRoom checks the limit of joins of a room: scripts get a problem, and browsers a page that goes back to the
// line by itself, at another time for each. A visitor with a place gets it all the same.
func TestLimitOfRoom(t *testing.T) {
	t.Parallel()
	s := newLimited(t, limit.Options{Tickets: 3})
	s.create(`{"slug":"sale","windows":[{"length":"24h"}],"joins_per_minute":2}`)
	known := newVisitor("sale").joinBody()
	s.post("/r/sale/join", known, from("192.0.2.1")).want(http.StatusCreated)
	for range 5 {
		s.post("/r/sale/join", known, from("192.0.2.1")).want(http.StatusOK)
	}
	s.post("/r/sale/line", "{}", from("192.0.2.1")).want(http.StatusCreated)
	waits := map[string]bool{}
	for i := range 20 {
		a := s.post("/r/sale/join", "", from(fmt.Sprintf("198.51.%d.1", i)))
		a.problem(http.StatusTooManyRequests, "room-limit")
		waits[a.header.Get("Retry-After")] = true
	}
	if len(waits) < 3 {
		t.Errorf("20 visitors retry after %v", waits)
	}
	s.post("/r/sale/join", known, from("192.0.2.1")).want(http.StatusOK)
	refreshes, headings := map[string]bool{}, map[string]bool{}
	for _, lang := range page.Languages() {
		a := s.post("/r/sale/line", "", from("192.0.2.1"), "Accept: text/html", "Accept-Language: "+string(lang)).want(http.StatusTooManyRequests)
		_, rest, ok := strings.Cut(a.body, `http-equiv="refresh" content="`)
		seconds, to, _ := strings.Cut(rest, "; url=")
		to, _, _ = strings.Cut(to, `"`)
		n, err := strconv.Atoi(seconds)
		asked, _ := strconv.Atoi(a.header.Get("Retry-After"))
		if !ok || err != nil || n < asked || n > asked+11 || asked < 3 || to != "/r/sale" || !strings.Contains(a.body, `data-kind="limited"`) {
			t.Errorf("%s: refresh %q to %q after %d: %s", lang, seconds, to, asked, a.body)
		}
		_, heading, _ := strings.Cut(a.body, "<h1>")
		heading, _, _ = strings.Cut(heading, "</h1>")
		refreshes[seconds], headings[heading] = true, true
	}
	if len(headings) != len(page.Languages()) || len(refreshes) < 3 {
		t.Errorf("headings %v, refreshes %v", headings, refreshes)
	}
	s.do("PATCH", "/v1/rooms/sale", `{"joins_per_minute":0}`).want(http.StatusOK)
	s.post("/r/sale/join", "", from("192.0.2.1")).want(http.StatusCreated) // the refused joins were no tickets of the network
	want := []string{fmt.Sprint("refused room-limit ", 20+len(page.Languages()))}
	if got := s.stated("sale"); !slices.Equal(got, want) {
		t.Errorf("the transcript states %q, want %q", got, want)
	}
}

// TestLimitOfServer checks that the limit of a server counts the joins of all rooms.
func TestLimitOfServer(t *testing.T) {
	t.Parallel()
	pool := servertest.Pool(t, pgtest.URL(t))
	rooms := servertest.Rooms(t, pool, func(o *room.Options) { o.PublicURL, o.JoinsPerMinute = publicURL, 3 })
	s := startSite(t, Options{Rooms: rooms, Control: newControl(t, rooms, pool), AdminToken: token})
	s.create(`{"slug":"one","windows":[{"length":"24h"}]}`)
	s.create(`{"slug":"two","windows":[{"length":"24h"}],"joins_per_minute":1}`)
	s.post("/r/two/join", "").want(http.StatusCreated)
	s.post("/r/two/join", "").problem(http.StatusTooManyRequests, "room-limit")
	s.post("/r/one/join", "").want(http.StatusCreated)
	s.post("/r/one/join", "").want(http.StatusCreated)
	s.post("/r/one/join", "").problem(http.StatusTooManyRequests, "server-limit")
	if got, want := s.stated("one"), []string{"refused server-limit 1"}; !slices.Equal(got, want) {
		t.Errorf("the transcript states %q, want %q", got, want)
	}
	if got, want := s.stated("two"), []string{"refused room-limit 1"}; !slices.Equal(got, want) {
		t.Errorf("the transcript states %q, want %q", got, want)
	}
}

// TestVerdicts checks that the verdict of a trusted proxy refuses joins and nothing else, and that a client's own counts
// for nothing.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	s := newLimited(t, limit.Options{Tickets: 3})
	s.create(`{"slug":"sale","windows":[{"length":"24h"}]}`)
	s.create(`{"slug":"strict","windows":[{"length":"24h"}],"min_score":30}`)
	const refuse, low, high = "X-Proofline-Verdict: refuse", "X-Proofline-Verdict: score=29", "X-Proofline-Verdict: score=30"
	known := newVisitor("sale").joinBody()
	s.post("/r/sale/join", known, low).want(http.StatusCreated)
	s.post("/r/sale/join", known, refuse).want(http.StatusOK) // the visitor has a place
	for range 5 {
		s.post("/r/sale/join", "", refuse).problem(http.StatusForbidden, "verdict")
	}
	s.post("/r/sale/line", "{}", refuse).problem(http.StatusForbidden, "verdict")
	s.post("/r/strict/join", "", low).problem(http.StatusForbidden, "verdict")
	s.post("/r/strict/join", "", high).want(http.StatusCreated)
	s.post("/r/strict/join", "").want(http.StatusCreated)
	s.post("/r/sale/join", "", "X-Proofline-Verdict: allow").want(http.StatusCreated)
	for _, lang := range page.Languages() {
		a := s.post("/r/sale/line", "", refuse, "Accept: text/html", "Accept-Language: "+string(lang)).want(http.StatusForbidden)
		if !strings.Contains(a.body, `data-kind="verdict"`) || !strings.Contains(a.body, `href="/r/sale"`) || !strings.Contains(a.body, `lang="`+string(lang)) {
			t.Errorf("%s: %s", lang, a.body)
		}
	}
	s.get("/r/sale", refuse, "Accept: text/html").want(http.StatusOK)
	s.post("/r/sale/join", "", refuse, from("192.0.2.1")).problem(http.StatusForbidden, "verdict")
	if got, want := s.stated("sale"), []string{fmt.Sprint("refused verdict ", 7+len(page.Languages()))}; !slices.Equal(got, want) {
		t.Errorf("the transcript states %q, want %q", got, want)
	}
	alone := newSite(t)
	alone.create(`{"slug":"sale","windows":[{"length":"24h"}],"min_score":100}`)
	alone.post("/r/sale/join", "", refuse).want(http.StatusCreated)
	alone.post("/r/sale/join", "", low).want(http.StatusCreated)
}
