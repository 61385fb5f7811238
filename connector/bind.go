package connector

import (
	"encoding/json"
	escape "html"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/proofline/proofline/connector/rules"
)

// BindPath is where a browser ties its session to a key, and proves that it has
// the key. It is a page with a script, which then goes on to ?to=.
const BindPath = OwnPath + "bind"

const bindScriptPath = OwnPath + "bind.js"

// bindPolicy is that of the page.
var bindPolicy = pagePolicy + "; script-src 'self'; connect-src 'self'"

// canProve reports whether the request opens a page and has a session of the room
// that goes on, and whose key the browser may prove to have.
func (q *requestCheck) canProve(rm *room) bool {
	can := false
	if rm.Bind == rules.BindBrowser && q.opensPage() {
		q.eachSession(rm, new(session), func(v *session) bool {
			can = v.key != [16]byte{}
			return can
		})
	}
	return can
}

// sendToBind sends a browser to the page that proves a key, and from there to
// the page that it asked for.
func (q *requestCheck) sendToBind(query string) {
	to := localPath(q.r.URL.EscapedPath())
	if query != "" {
		to += "?" + query
	}
	q.prepare().Set("Location", BindPath+"?to="+url.QueryEscape(to))
	q.w.WriteHeader(http.StatusSeeOther)
}

// localPath returns a path that cannot be read as the address of another host.
func localPath(path string) string { return "/" + strings.TrimLeft(path, `/\`) }

// entered goes on to the page that was asked for, after a pass was used up:
// browsers with scripts by way of a key.
func (q *requestCheck) redirectAfterPass(rm *room, query string) {
	h := q.r.Header
	if rm.Bind == rules.BindBrowser && q.r.Method == http.MethodGet && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" {
		q.sendToBind(query)
		return
	}
	q.redirectWithoutPass(query)
}

// visitToProve is a session as the script of the page has it.
type visitToProve struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Room    string `json:"room"`
	IsBound bool   `json:"bound"`
}

// bind answers at [BindPath]: GET with the page, POST by tying each session of
// the request that has no key to the key of its proof.
func (q *requestCheck) serveBind() {
	switch q.r.Method {
	case http.MethodGet, http.MethodHead:
		q.serveBindPage()
	case http.MethodPost:
		if !q.isOwnPage() {
			http.Error(q.w, "a page of another site may not do this", http.StatusForbidden)
			return
		}
		q.bindSessions()
	default:
		q.w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(q.w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// tie ties sessions to keys.
func (q *requestCheck) bindSessions() {
	for _, rm := range q.config.rooms {
		v := new(session)
		if rm.Bind != rules.BindBrowser || !q.findSession(rm, v) || v.key != [16]byte{} || v.isUnqueued() {
			continue
		}
		if key, ok := q.proves(rm, v, pageProofTTL); ok {
			v.key = key
			q.w.Header().Add("Set-Cookie", q.cookieOf(rm, v))
		}
	}
	q.w.WriteHeader(http.StatusNoContent)
}

// bindPage answers with the page. Without scripts it goes on by itself, unless
// the session needs a proof.
func (q *requestCheck) serveBindPage() {
	to := q.r.URL.Query().Get("to")
	if to == "" || to[0] != '/' || to != localPath(to) || strings.ContainsFunc(to, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		http.Error(q.w, "to must be a path of this site", http.StatusNotFound)
		return
	}
	visits := []visitToProve{}
	for _, rm := range q.config.rooms {
		q.eachSession(rm, new(session), func(v *session) bool {
			if rm.Bind != rules.BindBrowser || v.isUnqueued() {
				return false
			}
			visits = append(visits, visitToProve{rm.name, subjectOf(rm, v), rm.URL, v.key != [16]byte{}})
			return true
		})
	}
	next := `<noscript><meta http-equiv="refresh" content="0;url=` + escape.EscapeString(to) + `"></noscript>`
	if slices.ContainsFunc(visits, func(v visitToProve) bool { return v.IsBound }) {
		next = "" // it would be sent back here
	}
	data, _ := json.Marshal(map[string]any{"to": to, "now": q.now.UnixMilli(), "visits": visits}) // texts always can be
	p, h := pageFor("bind", q.r.Header["Accept-Language"]), q.prepare()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", p.lang)
	h.Set("Content-Security-Policy", bindPolicy)
	q.w.WriteHeader(http.StatusOK)
	_, _ = q.w.Write([]byte(strings.NewReplacer("{data}", escape.EscapeString(string(data)), "{go}", next).Replace(p.html)))
}
