package conformance

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// targetCount is the number of random targets tried.
const targetCount = 2000

// pieces are the parts of random targets.
var pieces = []string{
	"/", "/", "/", "//", "tickets", "tickets", "Tickets", "%74ickets", "staff", "x", "x:1", "u@x", ".", "..", "%2e",
	"%2E%2e", "%2f", "%2F", `\`, "%5c", ";", ";a=b", "%3b",
	"#", "?", "%3f", "%23", "%25", "%252e", `"`, "|", "<", "^", "`", "{", "~", "+", "*", ":", "@", "&", "=", "'", "(", "$", ",",
	"!", "[", "]", "%c3%a4", "\u00e4", "%7c", "app.css",
}

// randomTarget returns a random target with a protected page somewhere in it.
func randomTarget(r *rand.Rand) string {
	page := []string{"/tickets", "/tickets", "/Tickets", "tickets", `\tickets`, "%2ftickets", "/%74ickets"}[r.IntN(7)]
	text := randomPiece(r) + page + randomPiece(r)
	switch {
	case r.IntN(30) == 0:
		return "http://shop.example.com" + text
	case text[0] != '/' && r.IntN(10) > 0:
		return "/" + text
	}
	return text
}

func randomPiece(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

var (
	parameters = regexp.MustCompile(`;[^/]*`)
	authority  = regexp.MustCompile(`^[/\\]{2,}[^/\\]*`)
	absolute   = regexp.MustCompile(`^(?i:https?)://[^/\\]*`)
)

// Origins returns the paths that different servers may resolve a request target to. It shares no
// code with connectors.
func Origins(target string) []string {
	target, _, _ = strings.Cut(target, "?")
	target = absolute.ReplaceAllString(target, "")
	if target == "" {
		target = "/"
	}
	whole, _, _ := strings.Cut(target, "#")
	var found []string
	for _, raw := range []string{target, whole} {
		for _, p := range []string{raw, authority.ReplaceAllString(raw, "")} {
			found = append(found,
				decode(p),
				rooted(decode(p)),
				decode(rooted(p)),
				rooted(strings.ReplaceAll(decode(p), `\`, "/")),
				rooted(parameters.ReplaceAllString(decode(p), "")),
				rooted(parameters.ReplaceAllString(strings.ReplaceAll(decode(p), `\`, "/"), "")),
				rooted(decode(parameters.ReplaceAllString(p, ""))),
			)
		}
	}
	return found
}

// decode decodes valid percent-escapes, and leaves others alone.
func decode(p string) string {
	if text, err := url.PathUnescape(p); err == nil {
		return text
	}
	return p
}

func rooted(p string) string { return path.Clean("/" + p) }

// isProtected reports whether some server would respond with a protected or blocked
// page.
func isProtected(target string) bool {
	return slices.ContainsFunc(Origins(target), func(p string) bool {
		first, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(p), "/"), "/")
		return first == "tickets" || first == "staff"
	})
}

// randomTargets tests that no random target that some server resolves to a protected page reaches
// the site.
func (s *suite) randomTargets(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 11))
	seen := map[string]int{}
	for range targetCount {
		target := randomTarget(r)
		got := exchange(t, s.addr, Case{Method: http.MethodGet, Target: target, Header: []string{"Accept: text/html"}})
		kind := s.kind(got)
		seen[kind]++
		if kind != "site" {
			continue
		}
		for _, name := range []string{seenTarget, seenPath} {
			if at := got.header.Get(name); isProtected(at) {
				t.Errorf("%q reaches the site as %q, which some server resolves to one of %q", target, at, Origins(at))
			}
		}
	}
	if seen["site"] < targetCount/20 || seen["room"] < targetCount/10 {
		t.Errorf("random addresses say nothing: %v", seen)
	}
	t.Logf("%v", seen)
}
