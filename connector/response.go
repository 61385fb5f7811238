package connector

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/proofline/proofline/connector/internal/session"
)

// response writes the connector's own response to a request.
type response struct {
	w http.ResponseWriter
	r *http.Request
}

// prepare sets the headers of the connector's own responses.
func (q *response) prepare() http.Header {
	h := q.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	return h
}

func (q *response) sendJSON(status int, body map[string]string) {
	q.prepare().Set("Content-Type", "application/json")
	text, _ := json.Marshal(body) // cannot fail: strings only
	q.w.WriteHeader(status)
	_, _ = q.w.Write(append(text, '\n'))
}

// redirectWithoutPass redirects to the same URL without the pass. The location is
// relative, and cannot be read as another host's.
func (q *response) redirectWithoutPass(query string) {
	location := localPath(q.r.URL.EscapedPath())
	if query != "" {
		location += "?" + query
	}
	q.prepare().Set("Location", location)
	q.w.WriteHeader(http.StatusSeeOther)
}

// refuse answers with the error's page, or, for scripts, with JSON. It replaces {wait} with the
// response's Retry-After.
func (q *response) refuse(status int, said map[string]string) {
	if !session.IsNavigation(q.r) {
		q.sendJSON(status, said)
		return
	}
	p, h := pageFor(said["error"], q.r.Header["Accept-Language"]), q.prepare()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", p.lang)
	h.Set("Content-Security-Policy", pagePolicy)
	q.w.WriteHeader(status)
	_, _ = q.w.Write([]byte(strings.Replace(p.html, "{wait}", h.Get("Retry-After"), 1)))
}

// sendToBind redirects a browser to BindPath, and from there to the page requested.
func (q *response) sendToBind(query string) {
	to := localPath(q.r.URL.EscapedPath())
	if query != "" {
		to += "?" + query
	}
	q.prepare().Set("Location", BindPath+"?to="+url.QueryEscape(to))
	q.w.WriteHeader(http.StatusSeeOther)
}

// serveScript sends a script that caches may keep for an hour.
func (q *response) serveScript(text []byte, tag string) {
	h := q.w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=3600, stale-while-revalidate=86400")
	h.Set("ETag", tag)
	http.ServeContent(q.w, q.r, "", time.Time{}, bytes.NewReader(text))
}

// localPath returns a path that cannot be read as another host's address.
func localPath(path string) string { return "/" + strings.TrimLeft(path, `/\`) }
