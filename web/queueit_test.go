package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
)

const queueItKey = "4e1db821-a825-49da-acd0-5d376f2068db4e1db821"

// knownUser validates a token like KnownUser V3 (src/QueueITHelpers.ts,
// extractQueueParams, and src/UserInQueueService.ts, validateToken, of
// https://github.com/queueit/KnownUser.V3.Javascript): fields with exactly one
// _, all but the hash are signed, and event and time must be right.
func knownUser(t *testing.T, token, event string, now time.Time) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for field := range strings.SplitSeq(token, "~") {
		if parts := strings.Split(field, "_"); len(parts) == 2 {
			fields[parts[0]] = parts[1]
		}
	}
	mac := hmac.New(sha256.New, []byte(queueItKey))
	mac.Write([]byte(strings.Replace(token, "~h_"+fields["h"], "", 1)))
	if fields["h"] != hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("token %q: wrong hash", token)
	}
	if until, err := strconv.ParseInt(fields["ts"], 10, 64); err != nil || until < now.Unix() || until > now.Add(301*time.Second).Unix() {
		t.Errorf("token %q: until %d, %v", token, until, err)
	}
	if fields["e"] != event || fields["rt"] != "queue" {
		t.Errorf("token %q, want one of %s", token, event)
	}
	return fields
}

// TestQueueItVisit follows a link of an unmodified site, waits, and returns with a token that its connector
// accepts.
func TestQueueItVisit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"arena","windows":[{"length":"300ms"}],"outflow":{"per_minute":6000},"session":"10m","targets":["https://shop.example.com/"]}`)
	a := s.do("PUT", "/v1/rooms/arena/queue-it", `{"customer_id":"cust","secret_key":"`+queueItKey+`"}`).want(http.StatusOK)
	if strings.Contains(a.body, queueItKey) || strings.Contains(s.get("/v1/rooms/arena/queue-it").want(http.StatusOK).body, queueItKey) ||
		strings.Contains(s.get("/v1/activity").want(http.StatusOK).body, queueItKey) || strings.Contains(s.get("/v1/rooms/arena").body, queueItKey) {
		t.Error("the key is shown")
	}
	b := s.browser()
	target := "https://shop.example.com/sale?size=L"
	link := "/?c=cust&e=arena&ver=v3-javascript-3.7.10&cver=11&man=Tickets&cid=de-AT&l=Layout&t=" + url.QueryEscape(target)
	location := b.get(link).follows()
	if want := "/r/arena?lang=de&to=" + url.QueryEscape(target); location != want {
		t.Fatalf("to %q, want %q", location, want)
	}
	if page := b.get(location); page.state() != "joinable" || !strings.Contains(page.body, `lang="de"`) {
		t.Errorf("page %s", page.body)
	}
	b.post("/r/arena/line", "").redirected()
	eventually(t, "it is the visitor's turn", func() bool { return b.get("/r/arena").state() == "called" })
	before, token, ok := strings.Cut(b.post("/r/arena/claim", "").redirected(), "&queueittoken=")
	if !ok || before != target || strings.Contains(token, "&") {
		t.Fatalf("to %q with %q", before, token)
	}
	fields := knownUser(t, token, "arena", time.Now())
	if fields["ce"] != "false" || fields["cv"] != "10" || fields["q"] == "" {
		t.Errorf("token %q", token)
	}
	s.do("PUT", "/v1/rooms/arena/queue-it", `{"customer_id":"cust","extend":true,"with_pass":true}`).want(http.StatusOK)
	again, err := url.Parse(b.post("/r/arena/claim", "").redirected())
	if err != nil {
		t.Fatal(err)
	}
	extended := knownUser(t, again.Query().Get("queueittoken"), "arena", time.Now())
	if _, fixed := extended["cv"]; fixed || extended["ce"] != "true" || extended["q"] != fields["q"] || again.Query().Get("size") != "L" {
		t.Errorf("again to %v", again)
	}
	claims := jwt.MapClaims{}
	if _, err := jwt.ParseWithClaims(again.Query().Get("proofline_pass"), claims, s.keyOf("arena")); err != nil || claims["sub"] != fields["q"] {
		t.Errorf("pass %v, %v", claims, err)
	}
	s.do("DELETE", "/v1/rooms/arena/queue-it", "").want(http.StatusNoContent)
	if last := b.post("/r/arena/claim", "").redirected(); strings.Contains(last, "queueittoken") || !strings.Contains(last, "proofline_pass=ey") {
		t.Errorf("afterwards to %q", last)
	}
}

// follows returns the target of a link's redirect, which must be uncacheable and private.
func (a answer) follows() string {
	a.Helper()
	a.want(http.StatusSeeOther)
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Referrer-Policy") != "no-referrer" || a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Set-Cookie") != "" {
		a.Errorf("redirect with headers %v", a.header)
	}
	return a.header.Get("Location")
}

// TestQueueItLinks follows links of all forms, and some with foreign targets.
func TestQueueItLinks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"sale","windows":[{"length":"1h"}],"targets":["https://shop.example.com/shop"],"brand":{"languages":["de","fr"]}}`)
	s.create(`{"slug":"own","windows":[{"length":"1h"}]}`)
	s.do("PUT", "/v1/rooms/own/queue-it", `{"customer_id":"Cust","secret_key":"`+queueItKey+`"}`).want(http.StatusOK)
	const good, bad = "https%3A%2F%2Fshop.example.com%2Fshop%2Fa%3Fb%3D1", "https%3A%2F%2Fevil.example%2Fshop"
	for path, want := range map[string]string{
		"/?c=x&e=sale":                                                   "/r/sale",
		"/?e=sale&c=x&t=" + good:                                         "/r/sale?to=" + good,
		"/?c=x&e=sale&t=" + bad:                                          "/r/sale",
		"/?c=x&e=sale&t=%2F%2Fevil.example":                              "/r/sale",
		"/?c=x&e=sale&t=https://shop.example.com%40e":                    "/r/sale",
		"/?c=x&e=sale&t=javascript:alert(1)":                             "/r/sale",
		"/?c=x&e=sale&cid=fr-CH&l=Some%20layout":                         "/r/sale?lang=fr",
		"/?c=x&e=sale&cid=FR":                                            "/r/sale?lang=fr",
		"/?c=x&e=sale&cid=en-US":                                         "/r/sale", // not offered
		"/?c=x&e=sale&cid=fr%26to=x":                                     "/r/sale",
		"/?c=cUST&e=own&cid=ja-JP":                                       "/r/own?lang=ja",
		"/inqueue?c=x&e=sale&q=old":                                      "/r/sale",
		"/inqueue.aspx?c=x&e=sale":                                       "/r/sale",
		"/error/hash/?c=x&e=sale&queueittoken=e_sale~h_1&ts=1&t=" + good: "/r/sale?to=" + good,
		"/error/connector/sessionstate/?c=x&e=sale":                      "/r/sale",
		"/cancel/x/sale?c=x&e=sale&r=" + good:                            "https://shop.example.com/shop/a?b=1",
		"/cancel/x/sale/00000000-0000-0000-0000-000000000000?r=" + good:  "https://shop.example.com/shop/a?b=1",
		"/cancel/x/sale/?r=" + bad:                                       "/r/sale",
		"/cancel/x/sale":                                                 "/r/sale",
		"/cancel/x/sale?r=https://shop.example.com%2Fshop%0d%0aX-Y:%20z": "/r/sale",
		"/cancel/multiple/x?wrl=sale~00000000-0000_other~1&r=" + good:    "https://shop.example.com/shop/a?b=1",
		"/cancel/multiple/x?wrl=own~1&r=" + good:                         "404 not-found",
		"/cancel/multiple/cust?wrl=own":                                  "/r/own",
		"/?c=other&e=own":                                                "404 not-found",
		"/?c=x&e=nothing":                                                "404 not-found",
		"/error/hash/?c=x&e=nothing":                                     "404 not-found",
		"/error/hash/?e=sale":                                            "404 ",
		"/inqueue":                                                       "404 ",
		"/cancel/":                                                       "404 ",
		"/cancel/x":                                                      "404 ",
		"/cancel/x/sale/1/2":                                             "404 ",
		"/cancel/x/%2e%2e%2fsale":                                        "404 ",
		"/cancel/x/SALE":                                                 "404 ",
	} {
		a := s.get(path)
		if status, name, isError := strings.Cut(want, " "); isError {
			n, _ := strconv.Atoi(status)
			a.problem(n, name)
			if html := s.get(path, "Accept: text/html"); name != "" && !strings.Contains(html.want(n).body, "<!doctype html>") {
				t.Errorf("%s: people see %s", path, html.body)
			}
		} else if got := a.follows(); got != want {
			t.Errorf("%s: to %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{"/", "/?c=x", "/?e=sale", "/?c=&e=sale", "/?c=x&e=Sale", "/?c=x&e=../v1"} { // not links
		if a := s.get(path).want(http.StatusOK); !strings.Contains(a.body, "virtual waiting room") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	s.post("/cancel/x/sale", "").want(http.StatusMethodNotAllowed)
	if size := s.entries("sale"); size != 1 {
		t.Errorf("links made %d entries", size-1)
	}
}

// TestQueueItTenants checks that links on an organization's host open only its rooms, and that its Queue-it
// settings are not accessible to others.
func TestQueueItTenants(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	s.make("slug", s.main)
	if _, err := s.control.Create(t.Context(), s.main, room.Config{Slug: "ours", Beacon: "none"}, control.Place{}); err != nil {
		t.Fatal(err)
	}
	theirs, _ := s.token(s.other, account.Admin, time.Hour)
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		body := ""
		if method == "PUT" {
			body = `{"customer_id":"cust","secret_key":"` + queueItKey + `"}`
		}
		s.do(method, "/v1/rooms/ours/queue-it", body, "Authorization: Bearer "+theirs).problem(http.StatusNotFound, "not-found")
	}
	reader, _ := s.token(s.main, account.Read, time.Hour)
	s.do("PUT", "/v1/rooms/ours/queue-it", `{"customer_id":"cust"}`, "Authorization: Bearer "+reader).problem(http.StatusForbidden, "forbidden")
	p := s.do("PUT", "/v1/rooms/ours/queue-it", `{"customer_id":"_"}`).problem(http.StatusBadRequest, "invalid")
	if len(p.Errors) != 2 {
		t.Errorf("problems %+v", p.Errors)
	}
	host := s.make("host", s.other)
	if err := s.accounts.Hosts.Verify(t.Context(), s.other, host); err != nil {
		t.Fatal(err)
	}
	s.get("/?c=x&e=ours").follows()
	q := httptest.NewRequest(http.MethodGet, "https://"+host+"/?c=x&e=ours", http.NoBody)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, q)
	if w.Code != http.StatusNotFound {
		t.Errorf("under another's host: %d to %q", w.Code, w.Header().Get("Location"))
	}
}

// TestQueueItRefusals checks that a site's refusals are logged, at a limited rate.
func TestQueueItRefusals(t *testing.T) {
	t.Parallel()
	var written safeBuffer
	s := newSite(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&written, nil)) })
	s.create(`{"slug":"sale","windows":[{"length":"1h"}]}`)
	for _, path := range []string{"/error/nonsense/?c=x&e=sale", "/error/hash/?c=x&e=sale", "/error/hash/?c=x&e=sale", "/error/eventid/?c=x&e=sale"} {
		s.get(path).follows()
	}
	if got := written.String(); strings.Count(got, "refuses") != 1 || !strings.Contains(got, "room=sale code=hash") {
		t.Errorf("log %s", got)
	}
}

// TestQueueItBoth: a site with our connector in front of the old one removes the pass from the address, and
// leaves the token to the old one.
func TestQueueItBoth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	shop, certificate := newShop(t, s, "both")
	s.create(`{"slug":"both","windows":[{"length":"200ms"}],"outflow":{"per_minute":6000},"targets":["` + shop + `/"]}`)
	s.do("PUT", "/v1/rooms/both/queue-it", `{"customer_id":"cust","secret_key":"`+queueItKey+`","with_pass":true}`).want(http.StatusOK)
	v := newVisitor("both")
	s.post("/r/both/join", v.joinBody()).want(http.StatusCreated)
	var p wire.Pass
	eventually(t, "the visitor is in", func() bool {
		a := s.post("/r/both/tickets/"+v.ticket+"/claim", `{"secret":"`+v.secret+`","to":"`+shop+`/api/cart?n=1"}`)
		if a.status == http.StatusOK {
			p = decode[wire.Pass](a)
		}
		return a.status == http.StatusOK
	})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(readDoc(t, certificate)))
	visitor := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}, CheckRedirect: plain.CheckRedirect}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, *p.Location, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r, err := visitor.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	to, err := r.Location()
	if err != nil || len(r.Cookies()) != 1 || to.Path != "/api/cart" || to.Query().Has("proofline_pass") || to.Query().Get("n") != "1" {
		t.Fatalf("redirected to %v with %v, %v", to, r.Cookies(), err)
	}
	knownUser(t, to.Query().Get("queueittoken"), "both", time.Now())
}

// TestQueueItExamples runs the commands of QUEUE-IT.md, which use those at the beginning of API.md.
func TestQueueItExamples(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program, "is not on this machine")
		}
	}
	s := newSite(t)
	s.create(`{"slug":"sale","windows":[{"length":"1h"}]}`)
	r, err := s.rooms.Get(t.Context(), "sale")
	if err != nil {
		t.Fatal(err)
	}
	shell := func(commands string) (printed string) {
		t.Helper()
		run := exec.CommandContext(t.Context(), "sh", "-euc", `ask() { curl -sS --fail-with-body -H "Authorization: Bearer $PROOFLINE_TOKEN" "$@"; }; `+commands)
		run.Env = append(os.Environ(), "PROOFLINE_SERVER="+s.url, "PROOFLINE_TOKEN="+token)
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", commands, err, out)
		}
		return string(out)
	}
	examples := regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```json\n(.*?)```\n)?").FindAllStringSubmatch(readDoc(t, "QUEUE-IT.md"), -1)
	if len(examples) != 3 {
		t.Fatalf("%d examples", len(examples))
	}
	contains(t, examples[1][1], shell(examples[0][1]+examples[1][1]), examples[1][2])
	if q, ok := r.QueueIt.Config(); !ok || q.CustomerID != "arena" {
		t.Errorf("set to %+v, %t", q, ok)
	}
	shell(examples[2][1])
	if _, ok := r.QueueIt.Config(); ok {
		t.Error("not cleared")
	}
}
