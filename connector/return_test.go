package connector

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/proofline/proofline/connector/rules"

	"github.com/proofline/proofline/connector/internal/report"
)

// signing is a server that sends a return key.
type signing struct {
	*shop
	key report.ReturnKey
}

// newSigning protects a site with two rooms: /tickets waits for sale, /other for the other
// room; other pages pass. members set the room's part of the reply.
func newSigning(t testing.TB, members, hosts string) *signing {
	t.Helper()
	q := newQueue(t, newClock())
	s := &signing{key: report.ReturnKey(testKey)}
	q.reply = func(said *report.Report) (int, *report.Reply) {
		re := &report.Reply{}
		for _, r := range said.Rooms {
			answer := report.RoomReply{Room: r.Room, Gate: GateShut, PerMinute: 60, Nodes: 1, SessionMS: 60_000}
			if err := json.Unmarshal([]byte(members), &answer); err != nil {
				t.Fatal(err)
			}
			re.Rooms = append(re.Rooms, answer)
		}
		return http.StatusOK, re
	}
	site := mustSite(t, fmt.Sprintf(`{"version":1,"hosts":%s,"rooms":{"sale":{"url":%q},"again":{"url":%q},"other":{"url":%q},"over":{"url":%q,"mode":"closed"}},"rules":[
		{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"},
		{"name":"again","when":{"path":{"prefix":"/again"}},"action":"queue again"},
		{"name":"posts","when":{"path":{"prefix":"/posts"},"method":{"equals":"POST"}},"action":"queue sale"},
		{"name":"other","when":{"path":{"prefix":"/other"}},"action":"queue other"},
		{"name":"over","when":{"path":{"prefix":"/over"}},"action":"queue over"},
		{"name":"secret","when":{"path":{"prefix":"/secret"}},"action":"block"}]}`, hosts, q.url(), q.url(), q.url()+"2", q.url()+"3"))
	s.shop = newShopAt(t, q, "", func(o *Options) { o.Site, o.Server, o.Token = site, q.URL, testToken })
	s.report()
	return s
}

const ownHosts = `["shop.example.com", "www.shop.example.com"]`

var withKey = `{"return_key":"` + base64.RawURLEncoding.EncodeToString(testKey) + `"`

// way is the return URL in a link to a room.
type way struct{ to, by string } // by: "signed", "" or a signature that is wrong

func (s *signing) wayOf(link string) way {
	s.Helper()
	u, err := url.Parse(link)
	if err != nil {
		s.Fatal(err)
	}
	query := u.Query()
	w := way{query.Get("to"), query.Get("to_sig")}
	if u.RawQuery = ""; w.by != "" && w.by == s.key.Sign(u.String(), w.to) {
		w.by = "signed"
	}
	return w
}

// TestReturnTarget tests that only URLs that wait for the room are signed, whatever the
// request contains.
func TestReturnTarget(t *testing.T) {
	t.Parallel()
	const site = "http://shop.example.com"
	byEnter := func(page string) string { return site + EnterPath + "?to=" + url.QueryEscape(page) }
	for _, c := range []struct {
		name            string
		method, target  string
		header          []string
		want            way
		needed          way    // if the room requires signatures
		script, scriptN string // header Proofline-Return: "signed", "enter" or ""
	}{
		{"a page", "GET", "/tickets/7?a=%20b&c=+d", nil, way{site + "/tickets/7?a=%20b&c=+d", "signed"}, way{site + "/tickets/7?a=%20b&c=+d", "signed"}, "", ""},
		{"a page, head", "HEAD", "/tickets", nil, way{site + "/tickets", "signed"}, way{site + "/tickets", "signed"}, "", ""},
		{"a page with an invalid pass", "GET", "/tickets?a=1&proofline_pass=x", nil, way{site + "/tickets?a=1", "signed"}, way{site + "/tickets?a=1", "signed"}, "", ""},
		{"by another name of the room", "GET", "/again", nil, way{site + "/again", "signed"}, way{site + "/again", "signed"}, "", ""},
		{"a form on a page that waits", "POST", "/tickets", []string{"Referer: " + site + "/tickets/form?a=1"}, way{site + "/tickets/form?a=1", "signed"}, way{site + "/tickets/form?a=1", "signed"}, "", ""},
		{"a form on a page that waits for it by another name", "POST", "/tickets", []string{"Referer: " + site + "/again"}, way{site + "/again", "signed"}, way{site + "/again", "signed"}, "", ""},
		{"a form on a free page", "POST", "/tickets", []string{"Referer: " + site + "/out?url=http://evil.example.net"}, way{site + "/out?url=http://evil.example.net", ""}, way{byEnter(site + "/out?url=http://evil.example.net"), "signed"}, "", ""},
		{"a form on a page of the other room", "POST", "/tickets", []string{"Referer: " + site + "/other"}, way{site + "/other", ""}, way{byEnter(site + "/other"), "signed"}, "", ""},
		{"a form on a blocked page", "POST", "/tickets", []string{"Referer: " + site + "/secret"}, way{site + "/secret", ""}, way{byEnter(site + "/secret"), "signed"}, "", ""},
		{"a form on a page that waits when it is posted to", "POST", "/posts", []string{"Referer: " + site + "/posts"}, way{site + "/posts", ""}, way{byEnter(site + "/posts"), "signed"}, "", ""},
		{"a form elsewhere", "POST", "/tickets", []string{"Referer: https://evil.example.net/tickets"}, way{}, way{}, "", ""},
		{"a form at another scheme", "POST", "/tickets", []string{"Referer: https://shop.example.com/tickets"}, way{}, way{}, "", ""},
		{"a form at another port", "POST", "/tickets", []string{"Referer: http://shop.example.com:8080/tickets"}, way{}, way{}, "", ""},
		{"a form with a user", "POST", "/tickets", []string{"Referer: http://evil@shop.example.com/tickets"}, way{site + "/tickets", "signed"}, way{site + "/tickets", "signed"}, "", ""},
		{"a form without a page before", "POST", "/tickets", nil, way{}, way{}, "", ""},
		{"a script on a page that waits", "GET", "/tickets/left", []string{"Sec-Fetch-Mode: cors", "Referer: " + site + "/tickets"}, way{site + "/tickets", "signed"}, way{site + "/tickets", "signed"}, "signed", "signed"},
		{"a script on a free page", "GET", "/tickets/left", []string{"Sec-Fetch-Mode: cors", "Referer: " + site + "/"}, way{site + "/", ""}, way{byEnter(site + "/"), "signed"}, "", "enter"},
		{"a script on a page unknown", "GET", "/tickets/left", []string{"Sec-Fetch-Mode: cors"}, way{}, way{}, "", "enter"},
		{"a script at another host", "GET", "/tickets/left", []string{"Sec-Fetch-Mode: cors", "Origin: http://www.shop.example.com", "Referer: http://www.shop.example.com/"}, way{}, way{}, "", "enter"},
	} {
		for needed, want := range map[bool]way{false: c.want, true: c.needed} {
			s, script := newSigning(t, withKey+fmt.Sprintf(`,"signed_return":%t}`, needed), ownHosts), map[bool]string{false: c.script, true: c.scriptN}[needed]
			headers := append([]string{"Sec-Fetch-Mode: navigate"}, c.header...)
			if len(c.header) > 0 && strings.HasPrefix(c.header[0], "Sec-Fetch-Mode") {
				headers = c.header
			}
			r := s.send(c.method, c.target, headers...)
			link := r.Header.Get("Location")
			if r.StatusCode == http.StatusForbidden {
				var said struct{ Join string }
				if err := json.Unmarshal([]byte(bodyOf(t, r)), &said); err != nil {
					t.Fatal(err)
				}
				link = said.Join
			}
			if got := s.wayOf(link); got != want {
				t.Errorf("%s, needed %t: %+v, want %+v", c.name, needed, got, want)
			}
			how := r.Header.Get(ReturnHeader)
			if how != "" && how == s.key.Sign(s.queue.url(), want.to) {
				how = "signed"
			}
			if how != script {
				t.Errorf("%s, needed %t: header %q, want %q", c.name, needed, how, script)
			}
		}
	}
}

// TestReturnTargetWithoutKey tests that nothing is signed without a key, and that the
// latest key is used.
func TestReturnTargetWithoutKey(t *testing.T) {
	t.Parallel()
	for _, members := range []string{`{}`, `{"return_key":""}`, `{"return_key":"AAAA"}`, withKey[:len(withKey)-1] + `="}`,
		`{"signed_return":true}`, withKey + `,"error":"unknown"}`} {
		s := newSigning(t, members, ownHosts)
		if got := s.wayOf(s.get("/tickets?a=1").Header.Get("Location")); got != (way{"http://shop.example.com/tickets?a=1",
			""}) {
			t.Errorf("%s: %+v", members, got)
		}
		if r := s.send("GET", "/tickets", "Sec-Fetch-Mode: cors"); r.Header.Get(ReturnHeader) != "" {
			t.Errorf("%s: header %q", members, r.Header.Get(ReturnHeader))
		}
	}
	s := newSigning(t, withKey+`}`, ownHosts)
	next := report.ReturnKey([]byte(strings.Repeat("n", 32)))
	for _, c := range []struct {
		said string
		key  report.ReturnKey
	}{{"", s.key}, {"AAAA", s.key}, {base64.RawURLEncoding.EncodeToString(next[:]), next}, {"", next}} {
		s.queue.mu.Lock()
		s.queue.reply = func(said *report.Report) (int, *report.Reply) {
			re := &report.Reply{}
			for _, r := range said.Rooms {
				re.Rooms = append(re.Rooms, report.RoomReply{Room: r.Room, ReturnKey: c.said})
			}
			return http.StatusOK, re
		}
		s.queue.mu.Unlock()
		s.report()
		s.key = c.key
		if got := s.wayOf(s.get("/tickets").Header.Get("Location")); got.by != "signed" {
			t.Errorf("after %q: %+v", c.said, got)
		}
	}
}

// TestWaitAndEnter tests that scripts of other hosts are sent to a room of the rules, and
// back via this host.
func TestWaitAndEnter(t *testing.T) {
	t.Parallel()
	s := newSigning(t, withKey+`}`, ownHosts)
	room, page := s.queue.url(), "http://www.shop.example.com/cart?a=1&b=%2F"
	link := func(room, page string) string {
		return EnterPath + "?" + url.Values{"room": {room}, "to": {page}}.Encode()
	}
	r := s.get(link(room, page))
	want := way{"http://shop.example.com" + EnterPath + "?to=" + url.QueryEscape(page), "signed"}
	if base, _, _ := strings.Cut(r.Header.Get("Location"), "?"); r.StatusCode != http.StatusSeeOther || base != room ||
		s.wayOf(r.Header.Get("Location")) != want || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d to %q, %v", r.StatusCode, r.Header.Get("Location"), r.Header)
	}
	back := s.get(strings.TrimPrefix(want.to, "http://shop.example.com") + "&proofline_pass=" + s.queue.pass())
	if len(back.Cookies()) != 1 {
		t.Errorf("back with a pass: status %d, %v", back.StatusCode, back.Cookies())
	}
	if next := s.get(back.Header.Get("Location")); next.StatusCode != http.StatusSeeOther ||
		next.Header.Get("Location") != page {
		t.Errorf("and on: status %d to %q", next.StatusCode, next.Header.Get("Location"))
	}
	for _, bad := range []string{link("", page), link(room+"x", page), link("https://evil.example.net/r/sale", page),
		link("sale", page), link(room, "http://evil.example.net/"), link(room, "")} {
		if got := s.get(bad); got.StatusCode != http.StatusNotFound || got.Header.Get("Location") != "" {
			t.Errorf("%s: status %d to %q", bad, got.StatusCode, got.Header.Get("Location"))
		}
	}
	if got := s.get(link(room+"3", page)); got.StatusCode != http.StatusForbidden || got.Header.Get("Location") != "" ||
		!strings.Contains(bodyOf(t, got), "Closed") {
		t.Errorf("a closed room: status %d", got.StatusCode)
	}
	if got := s.get(link(room, page), "Host: evil.example.net"); s.wayOf(got.Header.Get("Location")).by != "" {
		t.Errorf("at a host outside of the site's: %q", got.Header.Get("Location"))
	}
	if len(s.got) > 0 {
		t.Errorf("the site got %d requests", len(s.got))
	}
}

// TestReturnTargetOfUnknownHost tests that visitors do not return via a host that the rules
// do not name.
func TestReturnTargetOfUnknownHost(t *testing.T) {
	t.Parallel()
	s := newSigning(t, withKey+`,"signed_return":true}`, `["*.example.com"]`)
	r := s.send("POST", "/tickets", "Sec-Fetch-Mode: navigate", "Referer: http://shop.example.com/cart")
	if got := s.wayOf(r.Header.Get("Location")); got != (way{"http://shop.example.com/cart", ""}) {
		t.Errorf("%+v", got)
	}
	if r := s.send("GET", "/tickets", "Sec-Fetch-Mode: cors"); r.Header.Get(ReturnHeader) != "" {
		t.Errorf("header %q", r.Header.Get(ReturnHeader))
	}
}

// TestReturnTargetWithoutHosts tests that nothing is signed if the rules name no hosts,
// because clients can send any host.
func TestReturnTargetWithoutHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hosts string
		isIn  bool // the host is one of the site's
	}{{`[]`, false}, {`["*"]`, true}, {`["*.example.com"]`, true}, {ownHosts, true}} {
		s := newSigning(t, withKey+`,"signed_return":true}`, c.hosts)
		want := way{"http://shop.example.com/tickets", ""}
		if c.isIn {
			want.by = "signed"
		}
		if got := s.wayOf(s.get("/tickets").Header.Get("Location")); got != want {
			t.Errorf("hosts %s: %+v", c.hosts, got)
		}
		if r := s.send("GET", "/tickets", "Sec-Fetch-Mode: cors",
			"Referer: http://shop.example.com/tickets"); (r.Header.Get(ReturnHeader) != "") != c.isIn {
			t.Errorf("hosts %s: header %q", c.hosts, r.Header.Get(ReturnHeader))
		}
	}
}

// FuzzReturnTarget tests that no URL is signed that does not wait for the room.
func FuzzReturnTarget(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET", "/tickets", "", "shop.example.com"}, {"POST", "/tickets", "http://shop.example.com/out?url=x", "shop.example.com"}, {"POST", "/tickets", "http://shop.example.com/tickets/../out", "shop.example.com"},
		{"POST", "/tickets", "http://shop.example.com/tickets%2f..%2fout", "shop.example.com"}, {"POST", "/tickets", "http://shop.example.com\\@evil.example.net/tickets", "shop.example.com"},
		{"GET", "/tickets#/out", "", "shop.example.com"}, {"GET", "/tickets", "", "evil.example.net"}, {"POST", "/tickets", "http://evil.example.net?/tickets", "evil.example.net?"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	s := newSigning(f, withKey+`,"signed_return":true}`, `["shop.example.com"]`)
	f.Add("GET", "/.proofline/enter?room="+url.QueryEscape(s.queue.url())+"&to=http%3A%2F%2Fshop.example.com%2F", "", "shop.example.com")
	site := s.current.Load().Site
	f.Fuzz(func(t *testing.T, method, target, referer, host string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		r := &http.Request{Method: method, URL: u, Host: host, Header: http.Header{"Referer": {referer}, "Sec-Fetch-Mode": {"navigate"}}, RemoteAddr: "198.51.100.7:1234"}
		s.guard(&requestCheck{c: s.Connector, counts: new(counts), response: response{w, r.WithContext(t.Context())}})
		next, err := url.Parse(w.Header().Get("Location"))
		if err != nil || next.Query().Get("to_sig") == "" {
			return
		}
		to := next.Query().Get("to")
		room, _, _ := strings.Cut(w.Header().Get("Location"), "?")
		if next.Query().Get("to_sig") != s.key.Sign(room, to) {
			t.Fatalf("the signature of %q is invalid", to)
		}
		back, err := url.Parse(to)
		if err != nil || back.Scheme != "http" || back.Hostname() != "shop.example.com" &&
			!strings.EqualFold(strings.TrimSuffix(back.Hostname(), "."), "shop.example.com") || back.User != nil {
			t.Fatalf("signed %q", to)
		}
		got := site.Decide(&rules.Request{Method: "GET", Host: back.Host, Target: back.RequestURI()}, s.options.Now())
		if got.Outcome != rules.Queue && !strings.HasPrefix(back.RequestURI(), EnterPath+"?to=") {
			t.Errorf("signed %q, which is %v", to, got)
		}
	})
}
