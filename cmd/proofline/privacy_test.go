package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"io/fs"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudflare/circl/blindsign/blindrsa"
	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/freeport"
	"github.com/proofline/proofline/internal/oidctest"
	"github.com/proofline/proofline/internal/otlptest"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// recorder is a proxy in front of a program, which keeps what browsers send to it.
type recorder struct {
	url string

	mu      sync.Mutex
	urls    bytes.Buffer // addresses and Referer headers
	content bytes.Buffer // all other headers, and bodies
}

// record starts a proxy in front of an address.
func record(t *testing.T, addr string) *recorder {
	t.Helper()
	rec := &recorder{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", addr }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		rec.mu.Lock()
		fmt.Fprintf(&rec.urls, "%s %s\nReferer: %s\n", r.Method, r.URL, r.Referer())
		_ = r.Header.Write(&rec.content)
		rec.content.Write(append(body, '\n'))
		rec.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	rec.url = s.URL
	return rec
}

func (r *recorder) read(b *bytes.Buffer) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(b.Bytes())
}

// browser follows links and sends forms. Its Referer and Origin headers are those of browsers, by the policy of the page.
type browser struct {
	t      *testing.T
	client *http.Client
	at     *url.URL // of the page
	policy string   // Referrer-Policy of the page
	page   string
}

func newBrowser(t *testing.T) *browser {
	jar, _ := cookiejar.New(nil) // fails for no options
	return &browser{t: t, client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// request requests an address, and what it redirects to. It returns the last address, with its fragment.
func (b *browser) request(method, to string, form url.Values) *url.URL {
	b.t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, to, body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Accept-Language", "en")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	b.refer(r)
	response, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	at, _ := url.Parse(to)
	if next := response.Header.Get("Location"); next != "" {
		target, err := at.Parse(next)
		if err != nil {
			b.t.Fatal(err)
		}
		if target.Host != at.Host && !strings.HasPrefix(target.Host, "127.0.0.1") { // another site
			return target
		}
		return b.request(http.MethodGet, target.String(), nil)
	}
	if response.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: status %d\n%s", method, to, response.StatusCode, text)
	}
	b.at, b.policy, b.page = at, response.Header.Get("Referrer-Policy"), string(text)
	return at
}

// refer sets Referer and Origin as https://w3c.github.io/webappsec-referrer-policy/ says.
func (b *browser) refer(r *http.Request) {
	if b.at == nil {
		return
	}
	isSame := r.URL.Host == b.at.Host
	whole := *b.at
	whole.Fragment, whole.RawFragment = "", ""
	root := b.at.Scheme + "://" + b.at.Host
	referer, origin := root+"/", root
	switch b.policy {
	case "no-referrer":
		referer, origin = "", "null"
	case "same-origin":
		if referer = whole.String(); !isSame {
			referer, origin = "", "null"
		}
	case "origin", "strict-origin":
	case "unsafe-url", "no-referrer-when-downgrade":
		referer = whole.String()
	default: // strict-origin-when-cross-origin
		if isSame {
			referer = whole.String()
		}
	}
	if referer != "" {
		r.Header.Set("Referer", referer)
	}
	if r.Method == http.MethodPost {
		r.Header.Set("Origin", origin)
	}
}

var (
	formStart  = regexp.MustCompile(`<form [^>]*action="([^"]*)"[^>]*>`)
	inputField = regexp.MustCompile(`<input [^>]*>`)
	attribute  = regexp.MustCompile(`([a-z-]+)="([^"]*)"`)
)

func attributes(tag string) map[string]string {
	all := map[string]string{}
	for _, a := range attribute.FindAllStringSubmatch(tag, -1) {
		all[a[1]] = html.UnescapeString(a[2])
	}
	return all
}

// form returns the tag, address and fields of the page's first form whose address and text have some parts.
func (b *browser) form(action, part string) (tag map[string]string, to string, fields url.Values) {
	b.t.Helper()
	for _, at := range formStart.FindAllStringIndex(b.page, -1) {
		text, _, _ := strings.Cut(b.page[at[0]:], "</form>")
		tag = attributes(b.page[at[0]:at[1]])
		if !strings.Contains(tag["action"], action) || !strings.Contains(text, part) {
			continue
		}
		fields = url.Values{}
		for _, input := range inputField.FindAllString(text, -1) {
			fields.Set(attributes(input)["name"], attributes(input)["value"])
		}
		u, err := b.at.Parse(tag["action"])
		if err != nil {
			b.t.Fatal(err)
		}
		return tag, u.String(), fields
	}
	b.t.Fatalf("no form %q with %q at %s:\n%s", action, part, b.at, b.page)
	return nil, "", nil
}

// send fills in a form of the page, and sends it.
func (b *browser) send(action, part string, values map[string]string) *url.URL {
	b.t.Helper()
	_, to, fields := b.form(action, part)
	for name, value := range values {
		fields.Set(name, value)
	}
	return b.request(http.MethodPost, to, fields)
}

// private is a sale in which visitors prove who they are to an issuer in every way that it knows.
type private struct {
	t                 *testing.T
	dir, data, config string
	server, issuer    *process
	room, club        *recorder
	database          *pgtest.Server
	provider          *oidctest.Issuer
	mail              <-chan string
	traces            *otlptest.Collector // of the server
	entry             string
	blind             credential.Method
	slugs             []string            // of the rooms whose transcripts are searched
	secrets           []string            // what visitors are known by, and what they typed in
	values            map[string][]string // what is typed in, for each lane
}

// offers are the issuer's, each of which is the only need of a lane of its name.
var offers = []struct{ name, kind, more string }{
	{"mail", "signed", "proof: mail, domains: [example.org]"}, {"account", "signed", "proof: oidc, domains: [example.org]"},
	{"code", "signed", "proof: list, list: code"}, {"member", "signed", "proof: list, list: member"}, {"quiet", "blind", "proof: list, list: quiet"},
}

func newPrivate(t *testing.T) *private {
	t.Helper()
	p := &private{t: t, dir: t.TempDir(), data: tempDir(t), traces: otlptest.Start(t), values: map[string][]string{}, slugs: []string{"sale"}}
	p.config = filepath.Join(p.dir, "issuer.yaml")
	p.provider = oidctest.Start(t)
	var smtp string
	smtp, p.mail = receiveMail(t)
	roomAddr, clubAddr := "127.0.0.1:"+freePort(t), freeport.Addr(t)
	p.room, p.club = record(t, roomAddr), record(t, clubAddr)
	p.database = pgtest.Start(t)
	p.server = startServer(t, p.traces.Env(), "--data", p.data, "--addr", roomAddr, "--public-url", p.room.url, "--log-level", "debug",
		"--database-url", p.database.URL(), "--master-key", newKeyFile(t, p.data))
	p.makeLists()
	p.configure()
	p.createRoom()
	p.configure()
	p.issuer = launch(t, []string{"PROOFLINE_SMTP=smtp://" + smtp + "?from=club@example.org"}, "issuer", "serve", "--config", p.config,
		"--addr", clubAddr, "--data", filepath.Join(p.dir, "data"), "--limit-attempts", "0")
	p.issuer.until(`listening on (http://\S+)`, startTime)
	return p
}

// run runs a command of the issuer.
func (p *private) run(args ...string) string {
	p.t.Helper()
	stdout, stderr, code := proofline(p.t, "", append(append([]string{"issuer"}, args...), "--data", filepath.Join(p.dir, "data"))...)
	if code != 0 {
		p.t.Fatalf("%q: %s", args, stderr)
	}
	return stdout
}

func (p *private) makeLists() {
	p.t.Helper()
	members := filepath.Join(p.t.TempDir(), "members.csv")
	if err := os.WriteFile(members, []byte("number,birthday\nFC-4711-0815,1990-11-27\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.run("members", "--list", "member", "--from", members)
	p.values["member"] = []string{"FC-4711-0815", "1990-11-27"}
	for _, list := range []string{"code", "quiet"} {
		out := filepath.Join(p.t.TempDir(), "codes.csv")
		p.run("codes", "--list", list, "--count", "1", "--out", out)
		text, err := os.ReadFile(out)
		rows, err2 := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil || err2 != nil {
			p.t.Fatal(err, err2)
		}
		p.values[list] = []string{rows[1][0]}
	}
	p.values["mail"], p.values["account"] = []string{"anna.berger@example.org"}, []string{"subject-of-anna-4711", "anna.oidc@example.org"}
	for _, values := range p.values {
		p.secrets = append(p.secrets, values...)
	}
	p.secrets = append(p.secrets, "FC-4711-0815\x1f1990-11-27", "fc47110815\x1f19901127", "FC-4711-0815,1990-11-27",
		"mail\x1fanna.berger@example.org", p.provider.URL+"\x1fsubject-of-anna-4711")
}

func (p *private) configure() {
	p.t.Helper()
	secret := filepath.Join(p.dir, "oidc-secret")
	text := fmt.Sprintf("url: %s\nname: Example Club\noidc: {issuer: %q, client_id: %s, client_secret: %s}\noffers:\n", p.club.url,
		p.provider.URL, oidctest.ClientID, secret)
	for _, o := range offers {
		text += fmt.Sprintf("- {name: %s, kind: %s, lanes: [%s], room: %q, entry: %q, %s}\n", o.name, o.kind, o.name,
			p.room.url+"/r/sale", p.entry, o.more)
	}
	for path, text := range map[string]string{p.config: text, secret: oidctest.ClientSecret} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *private) createRoom() {
	p.t.Helper()
	var methods []credential.Method
	var lanes []map[string]any
	var pages []string
	for line := range strings.Lines(p.run("methods", "--config", p.config)) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "method ")
		if !ok {
			continue
		}
		m, err := credential.ParseMethod(text)
		if err != nil {
			p.t.Fatal(err)
		}
		if methods = append(methods, m); m.Kind == credential.Blind {
			p.blind = m
		}
		lanes = append(lanes, map[string]any{"name": m.Name, "weight": 1, "needs": []string{m.Name}})
		pages = append(pages, m.Name+" "+p.club.url+"/"+m.Name+" Example Club")
	}
	body := mustJSON(p.t, map[string]any{"slug": "sale", "beacon": "none", "methods": methods, "lanes": lanes, "issuers": pages,
		"windows": []any{map[string]string{"length": "500ms"}}, "outflow": map[string]int{"per_minute": 60000}, "claim": "1m",
		"targets": []string{"https://shop.example.com/"}})
	if _, err := manager(p.t, p.server, p.data).Call(p.t.Context(), http.MethodPost, "/v1/rooms", body, &struct{}{}); err != nil {
		p.t.Fatal(err)
	}
	out, stderr, _ := proofline(p.t, "", "issuer", "room", p.room.url+"/r/sale")
	found := regexp.MustCompile(`(?m)^entry ([0-9a-f]{64})$`).FindStringSubmatch(out)
	if found == nil {
		p.t.Fatal(stderr)
	}
	p.entry = found[1]
}

// visit has a visitor choose a lane, prove an account, and come back with a place.
func (p *private) visit(lane string) *browser {
	p.t.Helper()
	b := newBrowser(p.t)
	b.request(http.MethodGet, p.room.url+"/r/sale", nil)
	b.send("/line", `value="`+lane+`"`, nil)
	tag, to, fields := b.form(p.club.url+"/"+lane, "")
	if lane == "quiet" {
		p.prove(b, tag, to, fields)
		return b
	}
	b.request(http.MethodPost, to, fields)
	typed := map[string]string{}
	switch lane {
	case "mail":
		b.send("/mail/prove", "", map[string]string{"address": p.values["mail"][0]})
		code := regexp.MustCompile(`[0-9A-Z]{4}(-[0-9A-Z]{4}){3}`).FindString(<-p.mail)
		p.secrets = append(p.secrets, code)
		b.send("/mail/code", "", map[string]string{"code": code})
	case "account":
		link := regexp.MustCompile(`href="(http://[^"]+/authorize[^"]*)"`).FindStringSubmatch(b.page)
		back := p.provider.Authorize(html.UnescapeString(link[1]), map[string]any{"sub": p.values["account"][0],
			"email": p.values["account"][1], "email_verified": true})
		b.at = nil // the provider's page, of which the link says rel=noreferrer
		b.request(http.MethodGet, p.club.url+"/callback?"+back.Encode(), nil)
	default:
		for n, value := range p.values[lane] {
			typed[fmt.Sprint("field", n)] = value
		}
		b.send("/prove", "", typed)
	}
	b.send("/r/sale/credential", "", nil)
	return b
}

// prove does what the script of the room's page does to get a blind signature.
func (p *private) prove(b *browser, tag map[string]string, to string, fields url.Values) {
	p.t.Helper()
	n, _ := new(big.Int).SetString(p.blind.Key, 16)
	client, err := blindrsa.NewClient(blindrsa.SHA384PSSZeroDeterministic, &rsa.PublicKey{N: n, E: credential.Exponent})
	if err != nil {
		p.t.Fatal(err)
	}
	ticket, err := fairness.ParseTicket(tag["data-ticket"])
	if err != nil {
		p.t.Fatal(err)
	}
	subject := credential.Subject{Lane: "quiet", Ticket: ticket}
	_, _ = hex.Decode(subject.Room[:], []byte(p.entry))
	blinded, state, err := client.Blind(rand.Reader, subject.AppendMessage(nil, p.blind.Name, nil))
	if err != nil {
		p.t.Fatal(err)
	}
	fields.Set("blinded", hex.EncodeToString(blinded))
	b.request(http.MethodPost, to, fields)
	back := b.send("/quiet/prove", "", map[string]string{"field0": p.values["quiet"][0]})
	fragment, err := url.ParseQuery(back.Fragment)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := hex.DecodeString(strings.TrimPrefix(fragment.Get("blind_signature"), p.blind.Name+" "))
	if err != nil {
		p.t.Fatal(err)
	}
	signature, err := client.Finalize(state, response)
	if err != nil {
		p.t.Fatal(err)
	}
	body := mustJSON(p.t, map[string]any{"ticket": ticket.String(), "lane": "quiet",
		"credentials": []door.Written{door.Write(credential.Credential{Method: p.blind.Name, Evidence: signature})}})
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.room.url+"/r/sale/join", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	b.refer(r)
	answer, err := b.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		p.t.Fatalf("a join with a blind credential: status %d", answer.StatusCode)
	}
}

// enter waits until it is a visitor's turn, and goes in.
func (p *private) enter(b *browser) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		b.request(http.MethodGet, p.room.url+"/r/sale", nil)
		if strings.Contains(b.page, `/r/sale/claim"`) {
			break
		}
		if time.Now().After(end) {
			p.t.Fatalf("it is not the visitor's turn:\n%s", b.page)
		}
	}
	if to := b.send("/r/sale/claim", "", nil); to.Host != "shop.example.com" {
		p.t.Errorf("the visitor is sent to %s", to)
	}
}

// transcript returns the published checkpoint, tiles and entries of a room.
func (p *private) transcript(slug string) []byte {
	p.t.Helper()
	src, err := source.HTTP(p.room.url+"/r/"+slug, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	all, err := src.Checkpoint(p.t.Context())
	head, err2 := verifier.Unverified(all)
	if err != nil || err2 != nil {
		p.t.Fatal(err, err2)
	}
	for tile := range audit.Tiles(head.Size) {
		text, err := src.Tile(p.t.Context(), tile)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(append(all, text...), '\n')
	}
	return all
}

// tables returns every value of every table of the database: bytes as they are, everything else as text.
func (p *private) tables() [][]byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	db, err := pgx.Connect(ctx, p.database.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = db.Close(ctx) }()
	rows, err := db.Query(ctx, `select array[format('%I.%I', nspname, relname), quote_ident(attname), typname::text]
		from pg_class join pg_namespace n on n.oid = relnamespace join pg_attribute on attrelid = pg_class.oid join pg_type t on t.oid = atttypid
		where relkind = 'r' and attnum > 0 and not attisdropped and nspname not in ('pg_catalog', 'information_schema')`)
	if err != nil {
		p.t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil || len(columns) == 0 {
		p.t.Fatal(columns, err)
	}
	var all [][]byte
	for _, c := range columns {
		value := "convert_to(" + c[1] + "::text, 'UTF8')"
		switch c[2] {
		case "bytea":
			value = c[1]
		case "_bytea":
			value = "unnest(" + c[1] + ")"
		}
		rows, err := db.Query(ctx, "select v from (select "+value+" as v from "+c[0]+") t where v is not null")
		if err != nil {
			p.t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			p.t.Fatalf("%v: %v", c, err)
		}
		all = append(all, list...)
	}
	return all
}

// files returns the content of all files of the issuer's directory.
func (p *private) files() (all [][]byte) {
	p.t.Helper()
	err := filepath.WalkDir(filepath.Join(p.dir, "data"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all = append(all, text)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// places are where nobody may learn who a visitor is.
func (p *private) places() map[string][][]byte {
	p.t.Helper()
	var transcripts [][]byte
	for _, slug := range p.slugs {
		transcripts = append(transcripts, p.transcript(slug))
	}
	return map[string][][]byte{
		"the transcript":                   transcripts,
		"the room's database":              p.tables(),
		"the server's log":                 {[]byte(p.server.said())},
		"the server's traces":              {p.traces.Received()},
		"the issuer's log":                 {[]byte(p.issuer.said())},
		"URLs and referrers of the room":   {p.room.read(&p.room.urls)},
		"URLs and referrers of the issuer": {p.club.read(&p.club.urls)},
		"what visitors send to the room":   {p.room.read(&p.room.content)},
		"the issuer's files":               p.files(),
	}
}

// search lists what the places have of some values.
func (p *private) search(values ...string) map[string][]string {
	p.t.Helper()
	var needles []needle
	for _, value := range values {
		needles = append(needles, needlesOf(value)...)
	}
	hits := map[string][]string{}
	for place, texts := range p.places() {
		if len(texts) == 0 || len(bytes.Join(texts, nil)) == 0 {
			p.t.Errorf("nothing is searched in %s", place)
		}
		for _, text := range texts {
			if list := found(text, needles); len(list) > 0 {
				hits[place] = append(hits[place], fmt.Sprintf("%s in %.300q", list, text))
			}
		}
	}
	return hits
}

// TestE2EPrivacy runs a sale in which visitors prove to an issuer who they are: with a mailed code, an account, a code, a
// membership, and blindly. Then it looks for them wherever something is published, stored, logged or sent, and finds none.
func TestE2EPrivacy(t *testing.T) {
	slow(t)
	t.Parallel()
	p := newPrivate(t)
	var visitors []*browser
	for _, o := range offers {
		visitors = append(visitors, p.visit(o.name))
	}
	for _, b := range visitors {
		p.enter(b)
	}
	if _, err := manager(t, p.server, p.data).Call(t.Context(), http.MethodPost, "/v1/rooms/sale/end", nil, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end is published", func() bool { return bytes.Contains(p.transcript("sale"), []byte("end ")) })
	if n := bytes.Count(p.transcript("sale"), []byte("admit ")); n != len(offers) {
		t.Errorf("%d visitors went in, want %d", n, len(offers))
	}
	for place, hits := range p.search(p.secrets...) {
		t.Errorf("%s: %s", place, hits)
	}

	// What visitors send to the issuer has all that they type in, and browsers name the room's origin there.
	for _, lane := range []string{"mail", "code", "member", "quiet"} {
		for _, value := range p.values[lane] {
			if len(found(p.club.read(&p.club.content), needlesOf(value))) == 0 {
				t.Errorf("%s was not sent to the issuer, or is not found", value)
			}
		}
	}
	if !bytes.Contains(p.club.read(&p.club.urls), []byte("Referer: "+p.room.url+"/\n")) {
		t.Error("no browser names the room's origin at the issuer")
	}

	// The search finds what is there: one value in each place, each written in another way.
	plant := func(place, value string, do func(value string)) {
		t.Run(place, func(t *testing.T) {
			do(value)
			if hits := p.search(value)[place]; len(hits) == 0 {
				t.Errorf("%s is planted, and not found", value)
			}
		})
	}
	get := func(at *recorder, path, referer string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Referer", referer)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	plant("the transcript", "planted-0a8c", func(value string) {
		body := `{"slug": "other", "beacon": "none", "windows": [{"length": "24h"}], "lanes": [{"name": "` + value + `", "weight": 1}]}`
		if _, err := manager(t, p.server, p.data).Call(t.Context(), http.MethodPost, "/v1/rooms", []byte(body), &struct{}{}); err != nil {
			t.Fatal(err)
		}
		p.slugs = append(p.slugs, "other")
	})
	plant("the room's database", "planted@example.org", func(value string) {
		body := mustJSON(t, map[string]any{"slug": "third", "beacon": "none", "title": hex.EncodeToString([]byte(value))})
		if _, err := manager(t, p.server, p.data).Call(t.Context(), http.MethodPost, "/v1/rooms", body, &struct{}{}); err != nil {
			t.Fatal(err)
		}
	})
	plant("the server's log", "planted-log-1", func(value string) { _, _ = p.server.Write([]byte("level=INFO account=" + value)) })
	plant("the server's traces", "planted-span", func(value string) { p.traces.Plant(value) })
	plant("the issuer's log", "planted-log-2", func(value string) { _, _ = p.issuer.Write(fmt.Appendf(nil, "account=%x", value)) })
	plant("URLs and referrers of the room", "planted/url&1", func(value string) { get(p.room, "/r/sale?q="+url.QueryEscape(value), "") })
	plant("URLs and referrers of the issuer", "planted-url-2", func(value string) { get(p.club, "/derby", "https://login.example.org/"+value) })
	plant("what visitors send to the room", "planted-body", func(value string) {
		if response, err := http.PostForm(p.room.url+"/r/sale/join", url.Values{"account": {value}}); err == nil {
			_ = response.Body.Close()
		}
	})
	plant("the issuer's files", "planted-file", func(value string) {
		if err := os.WriteFile(filepath.Join(p.dir, "data", "accounts"), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	p.issuer.stop()
	p.server.stop()
}
