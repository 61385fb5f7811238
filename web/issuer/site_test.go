package issuer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudflare/circl/blindsign/blindrsa"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/oidctest"
	"github.com/proofline/proofline/web/client"
	"github.com/proofline/proofline/web/limit"
)

// mailbox keeps mail instead of sending it.
type mailbox struct {
	mu   sync.Mutex
	mail []letter
	fail error
}

func (m *mailbox) Send(_ context.Context, to, subject, text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mail = append(m.mail, letter{to, subject, text})
	return m.fail
}

// bench is a site with an offer for each proof.
type bench struct {
	t      *testing.T
	site   *Site
	issuer *issuer.Issuer
	store  *issuer.Store
	mail   *mailbox
	oidc   *oidctest.Issuer
	log    bytes.Buffer
	now    time.Time
	codes  []string
}

var roomHash = sha256.Sum256([]byte("a room entry"))

const roomURL = "https://queue.example.com/r/derby"

func ticketOf(name string) fairness.Ticket {
	return fairness.NewTicket("queue.example.com/r/derby", sha256.Sum256([]byte(name)))
}

func newBench(t *testing.T) *bench {
	t.Helper()
	store, err := issuer.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: store, mail: &mailbox{}, now: time.Unix(1_800_000_000, 0)}
	if b.issuer, err = issuer.New(bytes.Repeat([]byte{5}, issuer.SecretSize), store); err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, issuer.ModulusBits)
	if err != nil {
		t.Fatal(err)
	}
	codes, members := b.list("codes", true, "code"), b.list("members", false, "number", "birthday")
	for range 8 {
		b.codes = append(b.codes, issuer.NewCode())
		codes.Add(b.codes[len(b.codes)-1])
	}
	members.Add("FC-4711", "1990-01-02")
	friends := b.list("friends", false, "address")
	friends.Add("anna@example.org")
	room, _ := url.Parse(roomURL)
	offer := func(name string, proof Proof) *Offer {
		return &Offer{RoomURL: room, Proof: proof,
			Offer: &issuer.Offer{Name: name, Method: "club", Room: roomHash, Lanes: []string{"general", "members"}}}
	}
	byCode, byMember, byMail, byOIDC, blind := offer("codes", ByList), offer("members", ByList), offer("mail", ByMail),
		offer("account", ByOIDC), offer("blind", ByList)
	byCode.List, byMember.List, byMail.List, blind.List = codes, members, friends, codes
	byPuzzle, blindly := offer("puzzle", ByPuzzle), offer("blindly", ByPuzzle)
	byPuzzle.Method, byPuzzle.Limit, blindly.Key = "human", 3, key
	byCode.Limit, byMail.Domains, byOIDC.Domains, blind.Key = 5, []string{"example.org", "example.net"}, []string{"example.org"}, key
	b.oidc = oidctest.Start(t)
	own, _ := url.Parse("https://club.example.org")
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	b.site, err = New(Config{Issuer: b.issuer, URL: own, Name: "Example <Club>",
		Offers:   []*Offer{byCode, byMember, byMail, byOIDC, blind, byPuzzle, blindly},
		Provider: &Provider{Issuer: b.oidc.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Name: "Club ID"},
		Mailer:   b.mail, Clients: client.New(nil, log), Limits: limit.New(limit.Options{Passes: 1, Pages: 1000, Joins: 3, Log: log}),
		Now: func() time.Time { return b.now }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.site.Close()
		_ = store.Close()
		b.noPersonalData()
	})
	return b
}

func (b *bench) list(name string, isCodes bool, fields ...string) *issuer.List {
	b.t.Helper()
	l, err := b.issuer.NewList(name, isCodes, fields...)
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

// noPersonalData looks for what visitors typed in the log.
func (b *bench) noPersonalData() {
	text := strings.ToLower(b.log.String())
	for _, secret := range append([]string{"anna", "4711", "1990", "192.0.2.1", ticketOf("1").String()}, b.codes...) {
		if strings.Contains(text, strings.ToLower(secret)) {
			b.t.Errorf("the log has %q", secret)
		}
	}
}

// visitor is a browser.
type visitor struct {
	*bench
	cookies map[string]*http.Cookie
	addr    string
}

func (b *bench) visitor() *visitor {
	return &visitor{bench: b, cookies: map[string]*http.Cookie{}, addr: "192.0.2.1:1234"}
}

// page is a response.
type page struct {
	status   int
	body     string
	location *url.URL
	header   http.Header
}

func (v *visitor) do(method, path, from string, form url.Values) page {
	v.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.RemoteAddr = v.addr
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if from != "" {
		r.Header.Set("Origin", from)
	}
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	v.site.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || !strings.HasPrefix(c.Name, "__Host-") {
			v.t.Errorf("cookie %v", c)
		}
		if v.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	p := page{status: w.Code, body: w.Body.String(), header: w.Header()}
	p.location, _ = w.Result().Location()
	v.check(p)
	return p
}

// check checks what every page must have.
func (v *visitor) check(p page) {
	v.t.Helper()
	csp := p.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'") {
		v.t.Errorf("Content-Security-Policy %q", csp)
	}
	if p.header.Get("Referrer-Policy") != "strict-origin" || p.header.Get("Cache-Control") != "no-store" {
		v.t.Errorf("headers %v", p.header)
	}
	for _, bad := range []string{"<script", "style=", "<Club>", " onclick"} {
		if strings.Contains(p.body, bad) {
			v.t.Errorf("a page has %q:\n%s", bad, p.body)
		}
	}
	if p.status == http.StatusInternalServerError {
		v.t.Errorf("status 500:\n%s%s", p.body, v.log.String())
	}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// fields returns the hidden fields of a page.
func (p page) fields() url.Values {
	values := url.Values{}
	for _, f := range hiddenField.FindAllStringSubmatch(p.body, -1) {
		values.Set(f[1], html.UnescapeString(f[2]))
	}
	return values
}

const ours, theirs = "https://club.example.org", "https://queue.example.com"

// enter sends a visitor from the room's page.
func (v *visitor) enter(offer, ticket, response string) page {
	v.t.Helper()
	return v.do(http.MethodPost, "/"+offer, theirs,
		url.Values{"ticket": {ticketOf(ticket).String()}, "lane": {"members"}, "response": {response}})
}

// submit sends a page's form, with what the visitor types in.
func (v *visitor) submit(p page, path string, pairs ...string) page {
	v.t.Helper()
	form := p.fields()
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return v.do(http.MethodPost, path, ours, form)
}

// returned verifies the credential with which a visitor is sent to the room, and returns it.
func (v *visitor) returned(p page, ticket string) credential.Credential {
	v.t.Helper()
	var fields []string
	if p.location != nil {
		values, err := url.ParseQuery(p.location.Fragment)
		if err != nil || p.status != http.StatusSeeOther || !strings.HasPrefix(p.location.String(), roomURL+"#") || p.location.RawQuery != "" ||
			values.Get("ticket") != ticketOf(ticket).String() {
			v.t.Fatalf("status %d, location %v, %v", p.status, p.location, err)
		}
		fields = strings.Split(values.Get("credential"), " ")
	} else {
		form := p.fields()
		if p.status != http.StatusOK || !strings.Contains(p.body, `<form method="post" action="`+roomURL+`/credential">`) ||
			form.Get("ticket") != ticketOf(ticket).String() || !strings.Contains(p.header.Get("Content-Security-Policy"), "form-action 'self' "+theirs) {
			v.t.Fatalf("status %d:\n%s", p.status, p.body)
		}
		fields = []string{form.Get("method"), form.Get("nullifier"), form.Get("evidence")}
	}
	if len(fields) != 3 {
		v.t.Fatalf("credential %q", fields)
	}
	c, err := credential.Parse([]byte(fields[0]), []byte(fields[1]), []byte(fields[2]))
	if err != nil {
		v.t.Fatal(err)
	}
	offer := "codes" // its key is that of all accounts
	switch c.Method {
	case "human":
		offer = "puzzle"
	case "check":
		offer = "human"
	}
	if err := v.verify(c, offer, ticket); err != nil {
		v.t.Error(err)
	}
	return c
}

// verify verifies a credential with the key of an offer.
func (v *visitor) verify(c credential.Credential, offer, ticket string) error {
	v.t.Helper()
	verifier, err := credential.NewVerifier(v.issuer.Method(v.site.offers[offer].Offer))
	if err != nil {
		v.t.Fatal(err)
	}
	return verifier.Verify(credential.Subject{Room: roomHash, Lane: "members", Ticket: ticketOf(ticket)}, c)
}

// refused checks that a page explains an error.
func (v *visitor) refused(p page, status int, key string) {
	v.t.Helper()
	if text := html.EscapeString(v.site.words.catalogs[0][key]); p.status != status || text == "" || !strings.Contains(p.body, text) {
		v.t.Errorf("status %d, want %d with %q:\n%s", p.status, status, text, p.body)
	}
}

func TestCode(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	asked := v.enter("codes", "1", "")
	wrong := v.submit(asked, "/codes/prove", "field0", "0000-0000")
	v.refused(wrong, http.StatusForbidden, "error.not_known")
	if !strings.Contains(wrong.body, `value="0000-0000"`) || wrong.fields().Get("flow") != asked.fields().Get("flow") {
		t.Errorf("the form does not come again:\n%s", wrong.body)
	}
	first := v.returned(v.submit(asked, "/codes/prove", "field0", " "+strings.ToLower(b.codes[0])+" "), "1")
	again := v.returned(v.submit(asked, "/codes/prove", "field0", b.codes[0]), "1")
	if !bytes.Equal(first.Evidence, again.Evidence) {
		t.Error("reloading the page makes another credential")
	}
	inFragment := v.returned(v.submit(v.enter("codes", "2", "fragment"), "/codes/prove", "field0", b.codes[1]), "2")
	if bytes.Equal(first.Nullifier, inFragment.Nullifier) {
		t.Error("two codes have one nullifier")
	}
	v.refused(v.submit(v.enter("codes", "3", ""), "/codes/prove", "field0", b.codes[0]), http.StatusConflict, "error.used")
	for i := range 3 {
		v.returned(v.submit(v.enter("codes", "1", ""), "/codes/prove", "field0", b.codes[2+i]), "1")
	}
	v.refused(v.submit(v.enter("codes", "1", ""), "/codes/prove", "field0", b.codes[6]), http.StatusConflict, "error.limit")
}

// TestOneCodeTwice has two visitors use one code at once: one gets a credential.
func TestOneCodeTwice(t *testing.T) {
	b := newBench(t)
	forms := make([]page, 4)
	for i := range forms {
		forms[i] = b.visitor().enter("codes", fmt.Sprint(i), "")
	}
	statuses := make([]int, len(forms))
	var wg sync.WaitGroup
	for i, form := range forms {
		wg.Go(func() { statuses[i] = b.visitor().submit(form, "/codes/prove", "field0", b.codes[0]).status })
	}
	wg.Wait()
	won := 0
	for _, status := range statuses {
		if status == http.StatusOK {
			won++
		} else if status != http.StatusConflict {
			t.Errorf("status %d", status)
		}
	}
	if won != 1 {
		t.Errorf("%d visitors got a credential for one code", won)
	}
}

func TestMember(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	first := v.returned(v.submit(v.enter("members", "1", ""), "/members/prove", "field0", "fc 4711", "field1", "1990/01/02"), "1")
	second := v.returned(v.submit(v.enter("members", "2", ""), "/members/prove", "field0", "FC4711", "field1", "19900102"), "2")
	if !bytes.Equal(first.Nullifier, second.Nullifier) {
		t.Error("a member has two nullifiers")
	}
	v.refused(v.submit(v.enter("members", "1", ""), "/members/prove", "field0", "FC4711", "field1", "1991-01-02"), http.StatusForbidden, "error.not_known")
}

func TestBlind(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	o := b.site.offers["blind"]
	client, err := blindrsa.NewClient(blindrsa.SHA384PSSZeroDeterministic, &o.Key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	subject := credential.Subject{Room: roomHash, Lane: "members", Ticket: ticketOf("1")}
	blind := func() (string, blindrsa.State) {
		blinded, state, err := client.Blind(rand.Reader, subject.AppendMessage(nil, "club", nil))
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(blinded), state
	}
	enter := func(blinded, response string) page {
		return v.do(http.MethodPost, "/blind", theirs, url.Values{"blinded": {blinded}, "response": {response}})
	}
	blinded, state := blind()
	p := v.submit(enter(blinded, "fragment"), "/blind/prove", "field0", b.codes[0])
	if p.location == nil {
		t.Fatal(p)
	}
	values, _ := url.ParseQuery(p.location.Fragment)
	method, text, _ := strings.Cut(values.Get("blind_signature"), " ")
	response, err := hex.DecodeString(text)
	if err != nil || method != "club" {
		t.Fatal(method, err)
	}
	signature, err := client.Finalize(state, response)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := credential.NewVerifier(b.issuer.Method(o.Offer))
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(subject, credential.Credential{Method: "club", Evidence: signature}); err != nil {
		t.Error(err)
	}
	other, _ := blind()
	v.refused(v.submit(enter(other, "fragment"), "/blind/prove", "field0", b.codes[0]), http.StatusConflict, "error.used")
	v.refused(enter(blinded, ""), http.StatusBadRequest, "error.form")
	v.refused(enter(blinded[2:], "fragment"), http.StatusBadRequest, "error.form")
	v.refused(enter("zz"+blinded[2:], "fragment"), http.StatusBadRequest, "error.form")
	tooLarge := strings.Repeat("f", len(blinded))
	v.refused(v.submit(enter(tooLarge, "fragment"), "/blind/prove", "field0", b.codes[1]), http.StatusBadRequest, "error.form")
}

var mailedCode = regexp.MustCompile(`[0-9A-Z]{4}(-[0-9A-Z]{4}){3}`)

// codeTo waits for mail to an address and returns its code.
func (b *bench) codeTo(address string) string {
	b.t.Helper()
	for range 200 {
		b.mail.mu.Lock()
		for _, l := range b.mail.mail {
			if code := mailedCode.FindString(l.text); l.to == address && code != "" {
				b.mail.mail = nil
				b.mail.mu.Unlock()
				return code
			}
		}
		b.mail.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	b.t.Fatalf("no mail to %s", address)
	return ""
}

func TestMail(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	sent := v.submit(v.enter("mail", "1", "fragment"), "/mail/prove", "address", "Anna+tickets@Example.org")
	code := b.codeTo("anna@example.org")
	b.codes = append(b.codes, code)
	v.refused(v.submit(sent, "/mail/code", "code", "0000-0000-0000-0000"), http.StatusForbidden, "error.code")
	v.returned(v.submit(sent, "/mail/code", "code", strings.ToLower(strings.ReplaceAll(code, "-", " "))), "1")
	v.refused(v.submit(v.enter("mail", "1", ""), "/mail/prove", "address", "anna@example.com"), http.StatusForbidden, "error.address")
	v.refused(v.submit(v.enter("mail", "1", ""), "/mail/prove", "address", "anna"), http.StatusForbidden, "error.address")

	// A page does not show whether an address is on the list.
	known := v.submit(v.enter("mail", "1", ""), "/mail/prove", "address", "anna@example.org")
	unknown := v.submit(v.enter("mail", "1", ""), "/mail/prove", "address", "anno@example.net")
	hide := func(p page) string {
		text := hiddenField.ReplaceAllString(p.body, "")
		return strings.NewReplacer("anna@example.org", "X", "anno@example.net", "X").Replace(text)
	}
	if known.status != unknown.status || hide(known) != hide(unknown) {
		t.Errorf("the pages differ:\n%s\n%s", known.body, unknown.body)
	}
	b.codeTo("anna@example.org")
	if len(b.mail.mail) != 0 {
		t.Errorf("mail to a stranger: %v", b.mail.mail)
	}
	v.submit(v.enter("mail", "1", ""), "/mail/prove", "address", "an.na@example.org")
	v.submit(v.enter("mail", "1", ""), "/mail/prove", "address", "anna+1@example.org")
	v.refused(v.submit(v.enter("mail", "1", ""), "/mail/prove", "address", "anna+2@example.org"), http.StatusTooManyRequests, "error.often")
}

func TestFormsEnd(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	form := v.enter("codes", "1", "")
	v.refused(v.submit(form, "/members/prove", "field0", "FC4711", "field1", "1990-01-02"), http.StatusGone, "error.expired")
	v.refused(v.submit(form, "/codes/code", "code", b.codes[0]), http.StatusGone, "error.expired")
	v.refused(v.submit(form, "/codes/prove", "field0", b.codes[0], "flow", form.fields().Get("flow")+"A"), http.StatusGone, "error.expired")
	v.refused(v.submit(form, "/codes/prove", "field0", b.codes[0], "flow", ""), http.StatusGone, "error.expired")
	b.now = b.now.Add(flowLife + time.Second)
	v.refused(v.submit(form, "/codes/prove", "field0", b.codes[0]), http.StatusGone, "error.expired")
}

// TestForeignPages sends forms from other sites, which may want a visitor's account to vouch for their ticket.
func TestForeignPages(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	ask := url.Values{"ticket": {ticketOf("1").String()}, "lane": {"members"}}
	for _, from := range []string{"", "null", "https://evil.example", "http://queue.example.com", "https://queue.example.com.evil.example", ours} {
		v.refused(v.do(http.MethodPost, "/codes", from, ask), http.StatusForbidden, "error.origin")
		v.refused(v.do(http.MethodPost, "/account", from, ask), http.StatusForbidden, "error.origin")
	}
	form := v.enter("codes", "1", "").fields()
	form.Set("field0", b.codes[0])
	for _, from := range []string{"", "null", theirs, "https://evil.example"} {
		v.refused(v.do(http.MethodPost, "/codes/prove", from, form), http.StatusForbidden, "error.origin")
		v.refused(v.do(http.MethodPost, "/mail/code", from, form), http.StatusForbidden, "error.origin")
	}
	for name, ask := range map[string]url.Values{
		"no ticket": {"lane": {"members"}}, "upper case": {"ticket": {strings.ToUpper(ticketOf("1").String())}, "lane": {"members"}},
		"no lane": {"ticket": {ticketOf("1").String()}}, "another lane": {"ticket": {ticketOf("1").String()}, "lane": {"press"}},
	} {
		if p := v.do(http.MethodPost, "/codes", theirs, ask); p.status != http.StatusBadRequest {
			t.Errorf("%s: status %d", name, p.status)
		}
	}
	if p := v.do(http.MethodPost, "/codes", theirs, url.Values{"ticket": {strings.Repeat("x", maxBody)}}); p.status != http.StatusBadRequest {
		t.Errorf("a large form: status %d", p.status)
	}
	v.refused(v.do(http.MethodPost, "/nothing", theirs, ask), http.StatusNotFound, "error.unknown")
}

func TestAttemptsAreLimited(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	form := v.enter("codes", "1", "")
	for range 10 { // ten minutes' worth
		v.refused(v.submit(form, "/codes/prove", "field0", "0000"), http.StatusForbidden, "error.not_known")
	}
	p := v.submit(form, "/codes/prove", "field0", b.codes[0])
	v.refused(p, http.StatusTooManyRequests, "error.limited")
	if p.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	elsewhere := b.visitor()
	elsewhere.addr = "198.51.100.1:1"
	elsewhere.returned(elsewhere.submit(form, "/codes/prove", "field0", b.codes[0]), "1")
}

var providerLink = regexp.MustCompile(`href="(http://[^"]+/authorize[^"]*)"`)

// signIn returns the query with which the provider sends the visitor back.
func (v *visitor) signIn(p page, claims map[string]any) string {
	v.t.Helper()
	link := providerLink.FindStringSubmatch(p.body)
	if link == nil {
		v.t.Fatalf("no link to the provider:\n%s", p.body)
	}
	return "/callback?" + v.oidc.Authorize(html.UnescapeString(link[1]), claims).Encode()
}

func TestOIDC(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	anna := map[string]any{"sub": "anna", "email": "anna@example.org", "email_verified": true}
	first := v.returned(v.do(http.MethodGet, v.signIn(v.enter("account", "1", ""), anna), "", nil), "1")
	second := v.returned(v.do(http.MethodGet, v.signIn(v.enter("account", "2", "fragment"), anna), "", nil), "2")
	if !bytes.Equal(first.Nullifier, second.Nullifier) {
		t.Error("an account has two nullifiers")
	}
	back := v.signIn(v.enter("account", "1", ""), anna)
	b.visitor().refused(b.visitor().do(http.MethodGet, back, "", nil), http.StatusGone, "error.expired") // in another browser
	v.refused(v.do(http.MethodGet, back+"x", "", nil), http.StatusGone, "error.expired")                 // another state
	v.returned(v.do(http.MethodGet, back, "", nil), "1")
	v.refused(v.do(http.MethodGet, back, "", nil), http.StatusGone, "error.expired") // the cookie was good once

	wrong := strings.Replace(v.signIn(v.enter("account", "1", ""), anna), "code=", "code=x", 1)
	v.refused(v.do(http.MethodGet, wrong, "", nil), http.StatusForbidden, "error.provider")
	stale := v.signIn(v.enter("account", "1", ""), anna)
	v.enter("account", "1", "") // another sign-in begins in this browser
	v.refused(v.do(http.MethodGet, stale, "", nil), http.StatusGone, "error.expired")

	for name, claims := range map[string]map[string]any{
		"another domain": {"sub": "a", "email": "anna@example.com", "email_verified": true},
		"not verified":   {"sub": "a", "email": "anna@example.org"}, "no address": {"sub": "a"},
	} {
		t.Log(name)
		v.refused(v.do(http.MethodGet, v.signIn(v.enter("account", "1", ""), claims), "", nil), http.StatusForbidden, "error.address")
	}
	v.enter("account", "1", "")
	v.refused(v.do(http.MethodGet, "/callback?code=1", "", nil), http.StatusGone, "error.expired")
}

func TestProviderIsDown(t *testing.T) {
	b := newBench(t)
	if err := b.site.Provider.Ask(t.Context()); err != nil {
		t.Errorf("asked while it is up: %v", err)
	}
	b.oidc.SetDown(true)
	if err := b.site.Provider.Ask(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "it responded with 5") {
		t.Errorf("asked while it is down: %v", err)
	}
	v := b.visitor()
	v.refused(v.enter("account", "1", ""), http.StatusServiceUnavailable, "error.away")
	b.oidc.SetDown(false)
	v.refused(v.enter("account", "1", ""), http.StatusServiceUnavailable, "error.away") // not asked again at once
	b.now = b.now.Add(providerPause)
	if p := v.enter("account", "1", ""); p.status != http.StatusOK {
		t.Errorf("status %d", p.status)
	}
}

func TestIssued(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	v.returned(v.submit(v.enter("codes", "1", ""), "/codes/prove", "field0", b.codes[0]), "1")
	key, err := b.issuer.VerifierKey("club.example.org")
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open([]byte(v.do(http.MethodGet, "/issued", "", nil).body), note.VerifierList(verifier))
	if err != nil || !strings.Contains(n.Text, fmt.Sprintf("\ncodes club %x 1 5\n", roomHash)) {
		t.Error(n, err)
	}
	home := html.UnescapeString(v.do(http.MethodGet, "/", "", nil).body)
	line := "method " + string(b.issuer.Method(b.site.offers["codes"].Offer).AppendText(nil))
	if !strings.Contains(home, key) || !strings.Contains(home, line) {
		t.Errorf("the home page lacks %s or %s:\n%s", key, line, home)
	}
	if p := v.do(http.MethodGet, "/codes", "", nil); p.status != http.StatusOK || !strings.Contains(p.body, `href="`+roomURL+`"`) {
		t.Error(p)
	}
}

// TestUntil: an offer that has ended issues nothing, and is counted for as long as its records are kept.
func TestUntil(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	offer := b.site.offers["codes"]
	offer.Until, offer.Counted = b.now.Add(time.Minute), b.now.Add(time.Hour)
	asked := v.enter("codes", "1", "")
	for _, c := range []struct {
		after     time.Duration
		status    int
		isCounted bool
	}{{0, http.StatusOK, true}, {2 * time.Minute, http.StatusNotFound, true}, {time.Hour, http.StatusNotFound, false}} {
		before := b.now
		b.now = b.now.Add(c.after)
		if p := v.do(http.MethodGet, "/codes", "", nil); p.status != c.status {
			t.Errorf("after %v: status %d, want %d", c.after, p.status, c.status)
		}
		if got := strings.Contains(v.do(http.MethodGet, "/issued", "", nil).body, "\ncodes club "); got != c.isCounted {
			t.Errorf("after %v: counted: %t", c.after, got)
		}
		if c.after > 0 {
			if p := v.submit(asked, "/codes/prove", "field0", b.codes[0]); p.status != http.StatusNotFound {
				t.Errorf("after %v: a code: status %d", c.after, p.status)
			}
		}
		b.now = before
	}
}

// TestForgotten: an offer whose records were deleted is as one that does not exist, also for those who had a credential.
func TestForgotten(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	asked := v.enter("codes", "1", "")
	if p := v.submit(asked, "/codes/prove", "field0", b.codes[0]); p.status != http.StatusOK {
		t.Fatal(p)
	}
	if n, err := b.store.Forget(func(string) bool { return true }, false); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, code := range b.codes[:2] {
		v.refused(v.submit(v.enter("codes", "1", ""), "/codes/prove", "field0", code), http.StatusGone, "error.unknown")
	}
	if p := v.do(http.MethodGet, "/issued", "", nil); p.status != http.StatusOK {
		t.Error(p)
	}
}

func TestOffersThatCannotBe(t *testing.T) {
	b := newBench(t)
	room, _ := url.Parse(roomURL)
	offer := func(name string, proof Proof) *Offer {
		return &Offer{RoomURL: room, Proof: proof, Offer: &issuer.Offer{Name: name, Method: "club", Lanes: []string{"general"}}}
	}
	restricted := offer("restricted", ByPuzzle)
	restricted.Domains = []string{"example.org"}
	two := offer("two", ByMail)
	two.List = b.list("two", false, "a", "b")
	for name, offers := range map[string][]*Offer{
		"no list": {offer("a", ByList)}, "no mail server": {offer("a", ByMail)}, "no provider": {offer("a", ByOIDC)},
		"a taken address": {offer("issued", ByMail)}, "a puzzle with a domain": {restricted}, "a list with two fields": {two}, "twice": {b.site.Offers[0], b.site.Offers[0]},
	} {
		c := b.site.Config
		c.Offers = offers
		if strings.HasPrefix(name, "no ") {
			c.Mailer, c.Provider = nil, nil
		}
		if s, err := New(c); err == nil {
			t.Error(name)
			s.Close()
		}
	}
}

// TestPostOffice sends what waits before it closes, and outlives failures.
func TestPostOffice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mailbox{fail: errors.New("mailbox full")}
		p := newPostOffice(m, slog.New(slog.DiscardHandler), time.Now)
		for range 20 {
			if err := p.send("a@example.org", "s", "t"); err != nil {
				t.Error(err)
			}
		}
		p.close()
		if len(m.mail) != 20 {
			t.Errorf("%d mails", len(m.mail))
		}
		for range maxMails {
			if !p.mayWrite("a") {
				t.Error("too early")
			}
		}
		if p.mayWrite("a") || !p.mayWrite("b") {
			t.Error("not limited by address")
		}
		time.Sleep(mailInterval + time.Second)
		if !p.mayWrite("a") {
			t.Error("limited for ever")
		}
	})
}

// refusal is a mail server's response.
type refusal struct{ code int }

func (r refusal) Error() string  { return "550 5.1.1 <Anna@Example.org>: unknown" }
func (r refusal) ErrorCode() int { return r.code }

func TestFailuresWithoutAddress(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("send mail: %w", refusal{550}), "the mail server answers with 550"},
		{errors.New("dial tcp: refused"), "dial tcp: refused"},
		{errors.New("send to anna@example.org: EOF"), "send to ADDRESS: EOF"},
	} {
		if got := withoutAddress(test.err, "anna@example.org"); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

var (
	messageKey  = regexp.MustCompile(`"((?:direction|title|home|about|puzzle|prove|list|mail|code|oidc|captcha|passkey|keep|done|error)\.?[a-z_]*)"`)
	placeholder = regexp.MustCompile(`\{[a-z]+\}`)
)

// TestMessages compares the languages with English, and its keys with those that pages use.
func TestMessages(t *testing.T) {
	w, err := newWords()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	files, _ := filepath.Glob("templates/*.html")
	sources, _ := filepath.Glob("*.go")
	makers, _ := filepath.Glob("puzzle/*.go")
	for _, file := range slices.Concat(files, sources, makers) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messageKey.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], ".") || m[1] == "direction" {
				used[m[1]] = true
			}
		}
	}
	english := w.catalogs[0]
	for key := range used {
		if english[key] == "" {
			t.Errorf("a page uses %q, which is no message", key)
		}
	}
	for key := range english {
		if !used[key] {
			t.Errorf("no page uses %q", key)
		}
		for i, c := range w.catalogs {
			got, want := placeholder.FindAllString(c[key], -1), placeholder.FindAllString(english[key], -1)
			if c[key] == "" || len(c) != len(english) || len(got) != len(want) {
				t.Errorf("%s: message %q: %q", w.tags[i], key, c[key])
			}
		}
	}
}

// TestBrand: an offer's pages show the room's title and brand, and load nothing but that.
func TestBrand(t *testing.T) {
	b := newBench(t)
	o := b.site.offers["codes"]
	if page := b.visitor().do(http.MethodGet, "/codes", "", nil); strings.Contains(page.body, "<header>") {
		t.Errorf("without a title:\n%s", page.body)
	}
	o.Title, o.Organizer = "Derby <at> home", "Arena"
	o.Brand = Brand{CSS: "/r/derby/brand.css?v=3", Logo: "/r/derby/logo?v=3", Dark: "/r/derby/logo?scheme=dark&v=3"}
	page := b.visitor().do(http.MethodGet, "/codes", "", nil)
	for _, want := range []string{"<bdi>Derby &lt;at&gt; home</bdi> <small>Arena</small>", `<link rel="stylesheet" href="/r/derby/brand.css?v=3">`,
		`srcset="/r/derby/logo?scheme=dark&amp;v=3"`, `<img src="/r/derby/logo?v=3" alt="Arena">`, "Derby &lt;at&gt; home (queue.example.com)"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %s:\n%s", want, page.body)
		}
	}
	want := "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; " +
		"form-action 'self' https://queue.example.com; img-src 'self'"
	if got := page.header.Get("Content-Security-Policy"); got != want {
		t.Errorf("policy %s", got)
	}
}
