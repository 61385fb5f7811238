package connector

import (
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// holdJSON has the pages that visitors see who do not get through, in all
// languages, by what scripts are told instead; and, as "bind", the page of
// [BindPath]. Connectors of every kind show
// these. A line of the page stays out where there is no text for it. The
// texts need no escaping.
//
//go:embed pages.json
var holdJSON []byte

// page is a page in one language, with {wait} where the seconds go.
type translatedPage struct{ lang, html string }

// pages are what visitors see, by what scripts are told, the fallback first;
// and the policy for all of them.
var pages, pagePolicy = func() (pages map[string][]translatedPage, policy string) {
	var shared struct {
		Style string                         `json:"style"`
		HTML  []string                       `json:"html"`
		Texts map[string][]map[string]string `json:"texts"`
	}
	if err := json.Unmarshal(holdJSON, &shared); err != nil {
		panic(err) // it is part of the program
	}
	pages = map[string][]translatedPage{}
	for why, texts := range shared.Texts {
		for _, t := range texts {
			t["style"] = shared.Style
			if _, triesAgain := t["again"]; triesAgain {
				t["wait"] = "{wait}"
			}
			if _, isBind := t["elsewhere"]; isBind {
				t["go"], t["data"] = "{go}", "{data}"
			}
			pages[why] = append(pages[why], translatedPage{t["lang"], fill(shared.HTML, t)})
		}
	}
	sum := sha256.Sum256([]byte(shared.Style))
	return pages, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

// fill puts texts into the lines of a page, without the lines that lack one.
func fill(lines []string, texts map[string]string) string {
	var out []string
	for _, line := range lines {
		isWhole := true
		filled := placeholder.ReplaceAllStringFunc(line, func(name string) string {
			text, ok := texts[name[1:len(name)-1]]
			isWhole = isWhole && ok
			return text
		})
		if isWhole {
			out = append(out, filled)
		}
	}
	return strings.Join(out, "\n")
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// pageFor returns the page in the language that a visitor likes best, of those
// there are: of equally liked ones the first.
func pageFor(why string, acceptLanguage []string) translatedPage {
	known := pages[why]
	best, liked := 0, 0.0
	for part := range strings.SplitSeq(strings.Join(acceptLanguage, ","), ",") {
		tag, weight := part, 1.0
		if name, q, ok := strings.Cut(part, ";"); ok {
			tag = name
			text, isWeight := strings.CutPrefix(strings.ToLower(strings.TrimSpace(q)), "q=")
			if n, err := strconv.ParseFloat(text, 64); isWeight && err == nil {
				weight = n
			}
		}
		lang, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		i := slices.IndexFunc(known, func(p translatedPage) bool { return p.lang == lang })
		if i >= 0 && weight > liked && weight <= 1 {
			best, liked = i, weight
		}
	}
	return known[best]
}

// tell says why a request does not get through: on a page to visitors, and to
// scripts as it is. {wait} is what the answer's Retry-After says.
func (q *requestCheck) refuse(status int, said map[string]string) *admittedRequest {
	if !isNavigation(q.r) {
		return q.sendJSON(status, said)
	}
	p, h := pageFor(said["error"], q.r.Header["Accept-Language"]), q.prepare()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", p.lang)
	h.Set("Content-Security-Policy", pagePolicy)
	q.w.WriteHeader(status)
	_, _ = q.w.Write([]byte(strings.Replace(p.html, "{wait}", h.Get("Retry-After"), 1)))
	return nil
}

// hold asks to come back, not everybody at once.
func (q *requestCheck) retryLater() *admittedRequest {
	q.counts.held.Add(1)
	q.prepare().Set("Retry-After", strconv.Itoa(10+rand.IntN(10)))
	return q.refuse(http.StatusServiceUnavailable, map[string]string{"error": "unavailable"})
}

// ownPage shows the page of the site's owner.
func (q *requestCheck) sendOwnerPage() *admittedRequest {
	q.counts.held.Add(1)
	h := q.prepare()
	h.Set("Retry-After", "30")
	h.Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = q.w.Write(q.options.Page)
	return nil
}
