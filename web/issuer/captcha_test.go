package issuer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/web/client"
	"github.com/proofline/proofline/web/limit"
)

const captchaSecret = "0xSECRET-of-the-operator"

// siteverify stands in for a CAPTCHA service. A good response is "good", a number, and what the widget was told:
// "good 1 HOST ACTION". It is good once.
type siteverify struct {
	t      *testing.T
	c      *Captcha
	server *httptest.Server

	mu   sync.Mutex
	used []string
	down bool
}

// startSiteverify starts the stand-in of a service, and returns the account with which to use it.
func startSiteverify(t *testing.T, service string) (*siteverify, *Captcha) {
	t.Helper()
	v := &siteverify{t: t}
	v.server = httptest.NewServer(v)
	t.Cleanup(v.server.Close)
	var err error
	if v.c, err = NewCaptcha(service, "site-key", captchaSecret, v.server.URL+"/siteverify"); err != nil {
		t.Fatal(err)
	}
	return v, v.c
}

func (v *siteverify) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	body, _ := io.ReadAll(r.Body)
	form, err := url.ParseQuery(string(body))
	if err != nil || r.Method != http.MethodPost || r.URL.String() != "/siteverify" || form.Has("remoteip") {
		v.t.Errorf("%s %s %q %v", r.Method, r.URL, body, err)
	}
	secret := form.Get("secret")
	if v.c.IsKeyHeader {
		secret = r.Header.Get("X-API-Key")
	}
	if secret != captchaSecret {
		v.refuse(w, http.StatusUnauthorized, "invalid-input-secret", "auth_invalid")
		return
	}
	if v.c.WantsKey && form.Get("sitekey") != "site-key" {
		v.refuse(w, http.StatusBadRequest, "sitekey-secret-mismatch", "sitekey_invalid")
		return
	}
	parts := strings.Split(form.Get("response"), " ")
	if parts[0] != "good" {
		v.refuse(w, http.StatusOK, "invalid-input-response", "response_invalid")
		return
	}
	if slices.Contains(v.used, parts[1]) {
		v.refuse(w, http.StatusOK, "timeout-or-duplicate", "response_duplicate")
		return
	}
	v.used = append(v.used, parts[1])
	answer := map[string]any{"success": true, "hostname": parts[2]}
	if v.c.HasAction {
		answer["action"] = parts[3]
	}
	if v.c.Name == "friendly" {
		answer = map[string]any{"success": true, "data": map[string]any{"challenge": map[string]any{"origin": "https://" + parts[2]}}}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// refuse answers in the way of the service.
func (v *siteverify) refuse(w http.ResponseWriter, status int, code, friendly string) {
	answer := map[string]any{"success": false, "error-codes": []string{code}}
	if v.c.Name == "friendly" {
		w.WriteHeader(status)
		answer = map[string]any{"success": false, "error": map[string]string{"error_code": friendly}}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (v *siteverify) setDown(down bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.down = down
}

// withCaptcha gives the bench's site an offer with a check of a service.
func (b *bench) withCaptcha(c *Captcha, limits *limit.Limits) {
	b.t.Helper()
	room, _ := url.Parse(roomURL)
	config := b.site.Config
	config.Captcha, config.Limits = c, limits
	config.Offers = append(slices.Clone(config.Offers), &Offer{RoomURL: room, Proof: ByCaptcha,
		Offer: &issuer.Offer{Name: "human", Method: "check", Room: roomHash, Lanes: []string{"general", "members"}}})
	site, err := New(config)
	if err != nil {
		b.t.Fatal(err)
	}
	b.site.Close()
	b.site = site
	b.t.Cleanup(func() {
		if text := b.log.String(); strings.Contains(text, captchaSecret) || strings.Contains(text, "good ") {
			b.t.Errorf("the log has a secret or a response:\n%s", text)
		}
	})
}

// post sends a form of this site. Pages with the widget are compared in full elsewhere; all others are checked.
func (v *visitor) post(path string, form url.Values) page {
	v.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.RemoteAddr = v.addr
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", ours)
	w := httptest.NewRecorder()
	v.site.ServeHTTP(w, r)
	p := page{status: w.Code, body: w.Body.String(), header: w.Header()}
	p.location, _ = w.Result().Location()
	if !strings.Contains(p.body, v.site.Captcha.Class) {
		v.check(p)
	}
	return p
}

// load opens the page with the widget.
func (v *visitor) load(asked page) page {
	v.t.Helper()
	return v.post("/human/captcha", asked.fields())
}

// solve sends the response of the widget.
func (v *visitor) solve(asked page, response string) page {
	v.t.Helper()
	form := asked.fields()
	form.Set(v.site.Captcha.Field, response)
	return v.post("/human/prove", form)
}

func free(log *slog.Logger) *limit.Limits {
	return limit.New(limit.Options{Pages: 1000, Log: log})
}

// TestCaptcha is confirmed by each service: whose response is wrong, used, made elsewhere or for another offer is not.
func TestCaptcha(t *testing.T) {
	for _, name := range CaptchaNames() {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			service, c := startSiteverify(t, name)
			b.withCaptcha(c, free(b.site.Log))
			v := b.visitor()
			asked := v.enter("human", "1", "")
			if strings.Contains(asked.body, c.Class) || strings.Contains(asked.body, c.SiteKey) {
				t.Errorf("the page before the check has the widget:\n%s", asked.body)
			}
			for _, host := range append(c.Hosts, c.Title) {
				if !strings.Contains(asked.body, host) {
					t.Errorf("the page does not say that %s gets something:\n%s", host, asked.body)
				}
			}
			shown := v.load(asked)
			for _, want := range []string{`<script src="` + c.Script + `"`, `<div class="` + c.Class + `" data-sitekey="site-key"`, "<noscript>"} {
				if !strings.Contains(shown.body, want) {
					t.Errorf("the page with the widget lacks %s:\n%s", want, shown.body)
				}
			}
			if strings.Contains(shown.body, captchaSecret) {
				t.Error("the page has the secret")
			}

			good := "good 1 club.example.org human"
			first := v.returned(v.solve(shown, good), "1")
			v.refused(v.solve(v.enter("human", "2", ""), good), http.StatusForbidden, "error.captcha") // the service has seen it
			second := v.returned(v.solve(v.enter("human", "2", "fragment"), "good 2 club.example.org human"), "2")
			if string(first.Nullifier) == string(second.Nullifier) {
				t.Error("two solutions have one nullifier")
			}
			// A service that forgets: the issuer does not.
			service.used = nil
			v.refused(v.solve(v.enter("human", "3", ""), good), http.StatusConflict, "error.used")

			for what, response := range map[string]string{"wrong": "bad", "none": "", "too long": "good 9 " + strings.Repeat("x", maxSolution),
				"of another site": "good 3 evil.example human", "of no site": "good 4  human"} {
				t.Log(what)
				p := v.solve(shown, response)
				v.refused(p, http.StatusForbidden, "error.captcha")
				if !strings.Contains(p.body, c.Class) || p.fields().Get("flow") != asked.fields().Get("flow") {
					t.Errorf("the widget does not come again:\n%s", p.body)
				}
			}
			if p := v.solve(shown, "good 5 club.example.org codes"); c.HasAction {
				v.refused(p, http.StatusForbidden, "error.captcha")
			}
			service.setDown(true)
			v.refused(v.solve(shown, "good 6 club.example.org human"), http.StatusServiceUnavailable, "error.captcha_away")
			service.setDown(false)
			v.returned(v.solve(shown, "good 6 club.example.org human"), "1")
			c.Secret = "another"
			v.refused(v.solve(shown, "good 7 club.example.org human"), http.StatusServiceUnavailable, "error.captcha_away")
			if !strings.Contains(b.log.String(), "check the site key and the secret") {
				t.Errorf("the log does not say what is wrong:\n%s", b.log.String())
			}
		})
	}
}

// TestOnlyTheWidgetLoadsScripts compares the policy of the page with the widget in full. That of all others is the
// same as without a CAPTCHA: [visitor.check] compares it on every page of every test, and this one on those of the
// offer.
func TestOnlyTheWidgetLoadsScripts(t *testing.T) {
	want := map[string]string{
		"turnstile": "style-src 'self'; script-src https://challenges.cloudflare.com; frame-src https://challenges.cloudflare.com",
		"hcaptcha": "style-src 'self' https://hcaptcha.com https://*.hcaptcha.com; script-src https://hcaptcha.com https://*.hcaptcha.com; " +
			"frame-src https://hcaptcha.com https://*.hcaptcha.com; connect-src https://hcaptcha.com https://*.hcaptcha.com",
		"friendly": "style-src 'self'; script-src https://cdn.jsdelivr.net/npm/@friendlycaptcha/; frame-src https://global.frcapi.com",
	}
	if len(want) != len(captchaServices) {
		t.Errorf("%d services, %d policies", len(captchaServices), len(want))
	}
	for name, sources := range want {
		b := newBench(t)
		_, c := startSiteverify(t, name)
		b.withCaptcha(c, free(b.site.Log))
		v := b.visitor()
		asked := v.enter("human", "1", "") // checks the strict policy, as all that follow but load
		shown := v.load(asked)
		policy := "default-src 'none'; " + sources + "; base-uri 'none'; frame-ancestors 'none'; " +
			"form-action https://club.example.org/human/prove https://queue.example.com/r/derby"
		if got := shown.header.Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s: policy\n%s, want\n%s", name, got, policy)
		}
		if got := shown.header.Get("Cross-Origin-Opener-Policy"); got != "unsafe-none" {
			t.Errorf("%s: Cross-Origin-Opener-Policy %q", name, got)
		}
		if asked.header.Get("Cross-Origin-Opener-Policy") != "same-origin" || shown.header.Get("Referrer-Policy") != "strict-origin" ||
			shown.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v, %v", name, asked.header, shown.header)
		}
		v.do(http.MethodGet, "/", "", nil)
		v.do(http.MethodGet, "/human", "", nil)
		v.refused(v.do(http.MethodPost, "/human/captcha", theirs, asked.fields()), http.StatusForbidden, "error.origin")
		v.refused(v.do(http.MethodPost, "/human/captcha", ours, url.Values{"flow": {"x"}}), http.StatusGone, "error.expired")
		v.refused(v.do(http.MethodPost, "/codes/captcha", ours, v.enter("codes", "1", "").fields()), http.StatusBadRequest, "error.form")
		v.submit(v.enter("codes", "1", ""), "/codes/prove", "field0", "0000")
		v.returned(v.solve(shown, "good 1 club.example.org human"), "1")
	}
}

// TestCaptchaLimits has one network solve more than its share, and fail more often than it may.
func TestCaptchaLimits(t *testing.T) {
	b := newBench(t)
	_, c := startSiteverify(t, "turnstile")
	b.withCaptcha(c, limit.New(limit.Options{Joins: 2, Passes: 1, Pages: 1000, Log: slog.New(slog.DiscardHandler)}))
	v, other := b.visitor(), b.visitor()
	other.addr = "198.51.100.1:1"
	shown := v.load(v.enter("human", "1", ""))
	for i := range 4 { // twice as many as a minute gives, at once
		v.returned(v.solve(shown, fmt.Sprintf("good %d club.example.org human", i)), "1")
	}
	p := v.solve(shown, "good 5 club.example.org human")
	v.refused(p, http.StatusTooManyRequests, "error.limited")
	if p.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	for range 10 {
		other.refused(other.solve(shown, "bad"), http.StatusForbidden, "error.captcha")
	}
	other.refused(other.solve(shown, "good 6 club.example.org human"), http.StatusTooManyRequests, "error.limited")
}

// TestCaptchaAsk asks every service whether it is there, without the operator's secret or an address in what it says.
func TestCaptchaAsk(t *testing.T) {
	var status int
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s %q", r.Method, r.URL, body))
		if sent := fmt.Sprint(r.URL, r.Header, string(body)); strings.Contains(sent, captchaSecret) {
			t.Errorf("it sends the secret: %s", sent)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer server.Close()
	var accounts []*Captcha
	for _, service := range CaptchaNames() {
		c, err := NewCaptcha(service, "site-key", captchaSecret, server.URL+"/siteverify")
		if err != nil {
			t.Fatal(err)
		}
		accounts = append(accounts, c)
		for _, step := range []struct {
			status int
			want   string
		}{
			{200, ""}, {302, ""}, {307, ""}, {400, ""}, {405, ""}, {429, ""},
			{500, "it responded with 500 Internal Server Error"}, {503, "it responded with 503 Service Unavailable"},
		} {
			status, got = step.status, nil
			said := ""
			if err := c.Ask(t.Context()); err != nil {
				said = err.Error()
			}
			if said != step.want || !slices.Equal(got, []string{`GET /siteverify ""`}) {
				t.Errorf("%s, status %d: %q, requests %q", service, status, said, got)
			}
		}
	}
	server.Close()
	for _, c := range accounts {
		if err := c.Ask(t.Context()); err == nil || err.Error() != "the connection failed" {
			t.Errorf("%s is away: %v", c.Name, err)
		}
	}
}

// TestCaptchaHangs does not wait for a service that accepts connections and says nothing, nor follow it elsewhere.
func TestCaptchaHangs(t *testing.T) {
	var asked []string
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/hangs":
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that the client has gone
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	timeout := captchaClient.Timeout
	captchaClient.Timeout = 50 * time.Millisecond
	defer func() { captchaClient.Timeout = timeout }()
	for _, path := range []string{"/moved", "/hangs", "/empty"} {
		c, err := NewCaptcha("turnstile", "k", captchaSecret, server.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.verify(t.Context(), "r", "h", "a"); !errors.Is(err, errCaptchaAway) || strings.Contains(err.Error(), captchaSecret) {
			t.Errorf("%s: %v", path, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(asked, "/elsewhere") {
		t.Error("the secret went elsewhere")
	}
}

func TestCaptchaSettings(t *testing.T) {
	for what, c := range map[string][3]string{"a service": {"recaptcha", "k", "s"}, "a site key": {"turnstile", "k\"", "s"},
		"no site key": {"turnstile", "", "s"}, "no secret": {"turnstile", "k", ""}, "a secret of two lines": {"friendly", "k", "a\nb"}} {
		if _, err := NewCaptcha(c[0], c[1], c[2], ""); err == nil {
			t.Error(what)
		}
	}
	b := newBench(t)
	room, _ := url.Parse(roomURL)
	for what, change := range map[string]func(*Config, *Offer){
		"no service":  func(c *Config, _ *Offer) { c.Captcha = nil },
		"a blind key": func(_ *Config, o *Offer) { o.Key = b.site.offers["blind"].Key },
		"a list":      func(_ *Config, o *Offer) { o.List = b.site.offers["mail"].List },
		"domains":     func(_ *Config, o *Offer) { o.Domains = []string{"example.org"} },
	} {
		c := Config{Issuer: b.issuer, URL: room, Captcha: &Captcha{}, Clients: client.New(nil, b.site.Log), Now: time.Now, Log: b.site.Log}
		o := &Offer{RoomURL: room, Proof: ByCaptcha, Offer: &issuer.Offer{Name: "human"}}
		change(&c, o)
		c.Offers = []*Offer{o}
		if s, err := New(c); err == nil || !strings.Contains(err.Error(), "CAPTCHA") {
			t.Errorf("%s: %v", what, err)
			if s != nil {
				s.Close()
			}
		}
	}
	if got := (&Offer{Offer: &issuer.Offer{Name: "a-long-name-of-a-room-in-the-console.captcha"}}).action(); got != "a-long-name-of-a-room-in-the-con" {
		t.Error(got)
	}
}

// FuzzVerdict reads what services say. Only a success for the host and the offer is one.
func FuzzVerdict(f *testing.F) {
	f.Add("turnstile", 200, `{"success": true, "hostname": "club.example.org", "action": "human"}`)
	f.Add("hcaptcha", 200, `{"success": true, "hostname": "club.example.org"}`)
	f.Add("friendly", 200, `{"success": true, "data": {"challenge": {"origin": "https://club.example.org"}}}`)
	f.Add("friendly", 401, `{"success": false, "error": {"error_code": "auth_invalid"}}`)
	f.Add("turnstile", 200, `{"success": false, "error-codes": ["timeout-or-duplicate"]}`)
	f.Fuzz(func(t *testing.T, service string, status int, text string) {
		c, err := NewCaptcha(service, "k", "s", "")
		if err != nil {
			return
		}
		err = c.judge(status, []byte(text), "club.example.org", "human")
		if err != nil {
			if !errors.Is(err, errCaptcha) && !errors.Is(err, errCaptchaAway) {
				t.Error(err)
			}
			return
		}
		var said map[string]any
		if json.Unmarshal([]byte(text), &said) != nil || !strings.Contains(strings.ToLower(text), "success") || status >= 500 {
			t.Errorf("%d %q is a success", status, text)
		}
	})
}
