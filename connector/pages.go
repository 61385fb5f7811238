package connector

import (
	"crypto/sha256"
	_ "embed" // embeds pages.json
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pagesJSON holds the connector's own pages in all languages, by the error that
// scripts get instead, and as "bind" the page at [BindPath]. All connectors use it.
// A line without a text is left out. The texts need no escaping.
//
//go:embed pages.json
var pagesJSON []byte

// translatedPage is a page in one language; {wait} stands for seconds.
type translatedPage struct{ lang, html string }

// pages are the pages by error, the fallback language first; pagePolicy is their
// Content-Security-Policy.
var pages, pagePolicy = func() (pages map[string][]translatedPage, policy string) {
	var shared struct {
		Style string                         `json:"style"`
		HTML  []string                       `json:"html"`
		Texts map[string][]map[string]string `json:"texts"`
	}
	if err := json.Unmarshal(pagesJSON, &shared); err != nil {
		panic(err) // pages.json is built into the program
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
	hash := base64.StdEncoding.EncodeToString(sum[:])
	return pages, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; " +
		"style-src 'sha256-" + hash + "'"
}()

// fill inserts texts into the lines of a page, and drops lines that lack a text.
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

// pageFor returns the page in the language that the visitor prefers; among equal preferences, the
// first.
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

// retryLater sends the retry page. The delay is random, to spread the retries.
func (q *requestCheck) retryLater() *admittedRequest {
	q.counts.unavailable.Add(1)
	q.prepare().Set("Retry-After", strconv.Itoa(10+rand.IntN(10)))
	q.refuse(http.StatusServiceUnavailable, map[string]string{"error": "unavailable"})
	return nil
}

// sendOwnerPage sends the site owner's page.
func (q *requestCheck) sendOwnerPage() *admittedRequest {
	q.counts.unavailable.Add(1)
	h := q.prepare()
	h.Set("Retry-After", "30")
	h.Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = q.w.Write(*q.c.page.Load())
	return nil
}
