package connector

import (
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// holdJSON is the page that visitors see while a room cannot be reached, in
// all languages. Connectors of every kind show this one. Its texts need no
// escaping.
//
//go:embed hold.json
var holdJSON []byte

// holdText is the page in one language.
type holdText struct {
	Lang  string `json:"lang"`
	Dir   string `json:"dir"`
	Title string `json:"title"`
	Lead  string `json:"lead"`
	Again string `json:"again"`
}

// holdPages are the pages by language, with {wait} where the seconds go, the
// fallback first; and the policy for all of them.
var holdPages, holdPolicy = func() (pages []holdPage, policy string) {
	var page struct {
		Style string     `json:"style"`
		HTML  []string   `json:"html"`
		Texts []holdText `json:"texts"`
	}
	if err := json.Unmarshal(holdJSON, &page); err != nil {
		panic(err) // it is part of the program
	}
	for _, t := range page.Texts {
		fill := strings.NewReplacer("{lang}", t.Lang, "{dir}", t.Dir, "{style}", page.Style, "{title}", t.Title, "{lead}", t.Lead, "{again}", t.Again)
		pages = append(pages, holdPage{t.Lang, fill.Replace(strings.Join(page.HTML, "\n"))})
	}
	sum := sha256.Sum256([]byte(page.Style))
	return pages, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

type holdPage struct{ lang, html string }

// holdFor returns the page in the language that a visitor likes best, of those
// there are: of equally liked ones the first.
func holdFor(acceptLanguage []string) holdPage {
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
		i := slices.IndexFunc(holdPages, func(p holdPage) bool { return p.lang == lang })
		if i >= 0 && weight > liked && weight <= 1 {
			best, liked = i, weight
		}
	}
	return holdPages[best]
}

// hold asks to come back, not everybody at once.
func (q *inquiry) hold() *visit {
	q.counts.held.Add(1)
	wait := strconv.Itoa(10 + rand.IntN(10))
	h := q.answer()
	h.Set("Retry-After", wait)
	if !isNavigation(q.r) {
		return q.sendJSON(http.StatusServiceUnavailable, map[string]string{"error": "unavailable"})
	}
	page := holdFor(q.r.Header["Accept-Language"])
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", page.lang)
	h.Set("Content-Security-Policy", holdPolicy)
	q.w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = q.w.Write([]byte(strings.Replace(page.html, "{wait}", wait, 1)))
	return nil
}

// ownPage shows the page of the site's owner.
func (q *inquiry) ownPage() *visit {
	q.counts.held.Add(1)
	h := q.answer()
	h.Set("Retry-After", "30")
	h.Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = q.w.Write(q.options.Page)
	return nil
}
