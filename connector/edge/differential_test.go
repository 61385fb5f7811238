package edge_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/conformance"
	"github.com/proofline/proofline/connector/rules"
)

// Numbers of sites and requests compared.
const (
	sites    = 4000
	requests = 25 // per site
)

// question is a document and requests, in the form that test/decide.mjs reads.
type question struct {
	Document []byte  `json:"document"`
	Requests []asked `json:"requests"`
}

// asked is a request whose texts are bytes.
type asked struct {
	Method       string
	Host, Target []byte
	Header       map[string][][]byte
	Client       string
	Now          int64 // milliseconds since 1970
}

func (a asked) request() *rules.Request {
	header := map[string][]string{}
	for name, lines := range a.Header {
		for _, line := range lines {
			header[name] = append(header[name], string(line))
		}
	}
	client, _ := netip.ParseAddr(a.Client) // an invalid one is in no network
	return &rules.Request{Method: a.Method, Host: string(a.Host), Target: string(a.Target), Header: header, Client: client}
}

// TestDecisions compares both implementations on random sites and requests, made of parts
// that either might read differently.
func TestDecisions(t *testing.T) {
	t.Parallel()
	in, out := conformance.Start(t, ".", "node", "test/decide.mjs")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := writer{rand.New(rand.NewPCG(seed, 1))}
	count, refused := map[string]int{}, 0
	for range sites {
		q := question{Document: w.document()}
		for range requests {
			q.Requests = append(q.Requests, w.request())
		}
		if err := json.NewEncoder(in).Encode(q); err != nil {
			t.Fatal(err)
		}
		line, err := out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%v after %s", err, q.Document)
		}
		var got []struct{ Outcome, Room, Rule string }
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatal(err)
		}
		site, err := rules.Parse(q.Document)
		if (err != nil) != (got == nil) {
			t.Fatalf("%s\nis refused here: %v; there: %t", q.Document, err, got == nil)
		}
		if err != nil {
			refused++
			continue
		}
		for i, r := range q.Requests {
			want := site.Decide(r.request(), time.UnixMilli(r.Now))
			count[want.Outcome.String()+" "+want.Rule]++
			if g := got[i]; g.Outcome != want.Outcome.String() || g.Room != want.Room || g.Rule != want.Rule {
				t.Fatalf("%s\n%+v (%q at %q)\nis %+v here, there %+v", q.Document, r, r.Target, r.Host, want, g)
			}
		}
	}
	t.Logf("refused documents %d, decisions %v", refused, count)
	if refused > sites*9/10 || refused == 0 || len(count) < 10 {
		t.Error("the comparison says little")
	}
}

// writer writes random documents and requests.
type writer struct{ *rand.Rand }

func pick[T any](w writer, list ...T) T { return list[w.IntN(len(list))] }

// text returns a few random parts.
func (w writer) text(most int, parts ...string) string {
	var b strings.Builder
	for range w.IntN(most + 1) {
		b.WriteString(pick(w, parts...))
	}
	return b.String()
}

var (
	cleanParts = []string{"/", "/", "/", "t", "T", "a", "b", ".css", "/..", "/./", "//", ";x=1", `\\`, "%2f", "%5c", "%2e", "%25", "%41", "%c3%a9", "%c4%b1", "%2574", "%252e", "%252f", "%20", ".", "\uff54", "\u017f", "e\u0301", "*", "health"}
	pathParts  = []string{"/", "/", "/", "t", "T", "a", "b", ".css", ".", "..", "/..", "/./", "//", ";", ";x=1", `\`, "%2f", "%2F", "%5c", "%2e", "%3b", "%25", "%41", "%c3%a9", "%2561", "%2500", "%252F", "%20", ". ", "\uff0f", "\uff0e", "\u212a", "\u0301", "\ufb01", "%C3", "%00", "%7f", "%", "%g1", "*", " ", "#", "+", "\u00e9", "\xff", "\x7f", "health"}
	goodPaths  = []string{"/", "/t", "/T/", "/t/a", "/a", "/a.css", "/\u00e9", "/a b", "/100%", "/*", "/t*", "/a+b"}
	patterns   = []string{"/t;x", "/t//a", "/t/../a", `/t\a`, "t", "", "/a?b", "*", "*a*", "/*/b", ".css", "/t/*.css"}
	words      = []string{"", "a", "A", "b", "ab", "a*", "*b", "*", "\u00e9", "\u0130", "get", "POST", "shop.example.com", "*.example.com", "1"}
	addresses  = []string{"192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "2001:db8:0:0:0:0:0:1", "::", "10.255.0.1", "", "x", "1:2:3:4:5:6:7::", "::1.2.3.4", "1.2.3", "01.2.3.4"}
	networks   = []string{"192.0.2.0/24", "2001:db8::/32", "::/0", "0.0.0.0/0", "10.0.0.0/9", "10.128.0.0/9", "192.0.2.7/32", "10.0.0.1/8", "10.0.0.0/08", "::ffff:192.0.2.0/120", "1::/129", "x", "10.0.0.0", "1:2:3:4:5:6:7:8/128", "::1.2.3.4/128"}
	times      = []string{"2027-01-01T10:00:00Z", "2027-01-01T11:00:00.0005+01:00", "2027-01-02T10:00:00.25Z", "2027-02-29T10:00:00Z", "2027-01-01", "2027-01-01t10:00:00z"}
)

// document returns a random document, often with one error.
func (w writer) document() []byte {
	rooms := map[string]any{"sale": map[string]any{"url": "https://queue.example.com/r/sale"}}
	if w.IntN(3) == 0 {
		room := map[string]any{"url": pick(w, "https://q.example.com/r/b", "http://localhost/r/b", "http://[::1]:80/r/b")}
		for _, member := range [][2]string{
			{"mode", pick(w, "always", "off", "closed", "scheduled", "scheduled", "safety-net")}, {"from", pick(w, times[:3]...)}, {"until", pick(w, times...)},
			{"failure", pick(w, "retry-page", "page", "fail-open-after 24h", "fail-open-after 1441m", "fail-open-after 1d")}, {"origin", pick(w, "a/b", "a", "")}, {"bind", pick(w, "none", "network", "")},
		} {
			if w.IntN(2) == 0 {
				room[member[0]] = member[1]
			}
		}
		rooms["b"] = room
	}
	list := []any{}
	for i := range w.IntN(5) {
		rule := map[string]any{"name": fmt.Sprint("rule ", i), "action": pick(w, "queue sale", "queue sale", "bypass", "block")}
		if rooms["b"] != nil && w.IntN(3) == 0 {
			rule["action"] = "queue b"
		}
		if w.IntN(6) > 0 {
			rule["when"] = w.when()
		}
		list = append(list, rule)
	}
	if w.IntN(20) == 0 {
		list = append(list, pick[any](w, map[string]any{"name": "rule 0", "action": "bypass"}, map[string]any{"name": "x", "action": "queue c"}, nil, "x"))
	}
	site := map[string]any{"version": 1, "rooms": rooms, "rules": list}
	if w.IntN(2) == 0 {
		site["hosts"] = []string{"*example.com", pick(w, "a", "*", "a.b", "[::1]", "::1")}
	}
	if w.IntN(3) == 0 {
		site["defaults"] = pick(w, "on", "off", "")
	}
	text, err := json.Marshal(site)
	if err != nil {
		panic(err)
	}
	if w.IntN(6) == 0 {
		text = w.doubled(text)
	}
	return text
}

// names are names of members, valid and invalid.
var names = regexp.MustCompile(`"([a-z_]+)":`)

// doubled inserts a member before another, often with the same name, which may be escaped.
func (w writer) doubled(text []byte) []byte {
	all := names.FindAllSubmatchIndex(text, -1)
	at := pick(w, all...)
	name := string(text[at[2]:at[3]])
	if w.IntN(3) == 0 {
		name = fmt.Sprintf(`\u%04x%s`, name[0], name[1:])
	}
	if w.IntN(8) == 0 {
		name = pick(w, "name", "Name", "url", "x")
	}
	return slices.Insert(text, at[0],
		[]byte(`"`+name+`"`+pick(w, ":", " :", "\n:\t")+pick(w, `""`, "null", "1", "{}", "[]")+",")...)
}

func (w writer) when() map[string]any {
	when := map[string]any{}
	if w.IntN(4) > 0 {
		when["path"] = w.test(goodPaths, 0)
		if w.IntN(5) == 0 {
			when["path"] = w.test(patterns, 0)
		}
	}
	for _, name := range []string{"method", "user_agent", "host"} {
		if w.IntN(8) == 0 {
			when[name] = w.test(words, 0)
		}
	}
	for _, name := range []string{"query", "header", "cookie"} {
		if w.IntN(6) == 0 {
			when[name] = map[string]any{pick(w, "a", "A", "x-b", "a", "a:b"): w.test(words, 0)}
		}
	}
	if w.IntN(5) == 0 {
		when["network"] = w.test(nil, 0)
	}
	return when
}

// test returns a random test of a text, or of networks if there are no texts.
func (w writer) test(texts []string, depth int) any {
	switch n := w.IntN(8); {
	case n == 0 && depth < 4:
		return map[string]any{"not": w.test(texts, depth+1)}
	case n == 1 && depth < 4:
		return map[string]any{"any": []any{w.test(texts, depth+1), w.test(texts, depth+1)}}
	case texts == nil:
		return map[string]any{"in": []string{pick(w, networks[:7]...), pick(w, networks[:8+7*max(0, w.IntN(8)-6)]...)}}
	}
	return map[string]any{pick(w, "equals", "prefix", "suffix", "glob"): pick(w, texts...)}
}

func (w writer) request() asked {
	parts := cleanParts
	if w.IntN(4) == 0 {
		parts = pathParts
	}
	target := pick(w, "", "", "", "", "", "", "", "", "", "", "http://shop.example.com", "HTTPS://a:80", "http://a@b", "ftp://a", "x", "http://[::1]:8", "http://") + pick(w, "/", "/", "/t", "/T", "/a", "/t/", "/", "/", `\`, "") + w.text(6, parts...)
	if w.IntN(2) == 0 {
		target += "?" + w.text(4, "a", "A", "=", "&", "+", "%41", "%", "%zz", "b", "%c3%a9", "?", "/")
	}
	r := asked{
		Method: pick(w, "GET", "GET", "GET", "GET", "GET", "GET", "GET", "POST", "POST", "OPTIONS", "CONNECT", "get"), Target: []byte(pick(w, target, target, target, target, target, target, target, target, target, target, "*", w.text(4, pathParts...))),
		Host:   []byte(pick(w, "shop.example.com", "a.example.com", "SHOP.example.com:80", "shop.example.com.", "a", "[::1]:80")),
		Client: pick(w, addresses...),
		Now:    pick(w, int64(1798797600000), 1798797600001, 1798797599999, 1798884000250, 1798884000249, 0, 1900000000000),
		Header: map[string][][]byte{},
	}
	if w.IntN(8) == 0 {
		r.Host = []byte(pick(w, "a.", "[::1]", "[", "a:b", "a:123456", "\u00e9", "", "x.example.com..", "a[b", "[a]b", "a:"))
	}
	for range w.IntN(3) {
		name := pick(w, "A", "X-B", "User-Agent", "Cookie", "Cookie")
		r.Header[name] = append(r.Header[name], []byte(pick(w, w.text(3, words...), w.text(6, "a", "A", "=", ";", " ", `"`, "b", "\t", "\u00e9", "\xff"))))
	}
	return r
}
