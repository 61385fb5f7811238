package connector

import (
	"encoding/json"
	escape "html"
	"net/http"
	"slices"
	"strings"

	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/rules"
)

// BindPath is a page whose script ties the browser's session to a key, or proves possession of the
// key, and then continues to ?to=.
const BindPath = OwnPath + "bind"

const bindScriptPath = OwnPath + "bind.js"

// bindPolicy is the Content-Security-Policy of the page at BindPath.
var bindPolicy = pagePolicy + "; script-src 'self'; connect-src 'self'"

// redirectAfterPass redirects to the page requested after a pass was redeemed;
// browsers with scripts via BindPath, to get a key.
func (q *requestCheck) redirectAfterPass(rm *room, query string) {
	h := q.r.Header
	isPage := h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
	if rm.Bind == rules.BindBrowser && q.r.Method == http.MethodGet && isPage {
		q.sendToBind(query)
		return
	}
	q.redirectWithoutPass(query)
}

// visitToProve describes a session to the script of the page.
type visitToProve struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Room    string `json:"room"`
	IsBound bool   `json:"bound"`
}

// serveBind answers at [BindPath]: GET with the page, POST by tying the request's
// sessions to the keys of its proofs.
func (q *requestCheck) serveBind() {
	switch q.r.Method {
	case http.MethodGet, http.MethodHead:
		q.serveBindPage()
	case http.MethodPost:
		if !q.isOwnPage() {
			http.Error(q.w, "only a page of this host may do this", http.StatusForbidden)
			return
		}
		q.bindSessions()
	default:
		q.w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(q.w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// bindSessions ties sessions without a key to the key of their proof.
func (q *requestCheck) bindSessions() {
	for _, rm := range q.config.rooms {
		v := new(session.Session)
		if rm.Bind != rules.BindBrowser || !q.finder.Find(rm.Room, v) || v.Key != [16]byte{} || v.IsUnqueued() {
			continue
		}
		if key, ok := q.finder.Proves(rm.Room, v, session.PageProofTTL); ok {
			v.Key = key
			q.w.Header().Add("Set-Cookie", q.c.sessions.store.Cookie(rm.Room, v))
		}
	}
	q.w.WriteHeader(http.StatusNoContent)
}

// serveBindPage sends the page. Without scripts it continues to ?to=, unless a session needs a
// proof.
func (q *requestCheck) serveBindPage() {
	to := q.r.URL.Query().Get("to")
	isControl := func(c rune) bool { return c < ' ' || c == 0x7f }
	if to == "" || to[0] != '/' || to != localPath(to) || strings.ContainsFunc(to, isControl) {
		http.Error(q.w, "to must be a path of this site", http.StatusNotFound)
		return
	}
	visits := []visitToProve{}
	for _, rm := range q.config.rooms {
		q.finder.Each(rm.Room, new(session.Session), func(v *session.Session) bool {
			if rm.Bind != rules.BindBrowser || v.IsUnqueued() {
				return false
			}
			visits = append(visits, visitToProve{rm.Name, rm.Subject(v), rm.URL, v.Key != [16]byte{}})
			return true
		})
	}
	next := `<noscript><meta http-equiv="refresh" content="0;url=` + escape.EscapeString(to) + `"></noscript>`
	if slices.ContainsFunc(visits, func(v visitToProve) bool { return v.IsBound }) {
		next = "" // without a proof, to= would redirect back here
	}
	data, _ := json.Marshal(map[string]any{"to": to, "now": q.now.UnixMilli(), "visits": visits}) // cannot fail
	p, h := pageFor("bind", q.r.Header["Accept-Language"]), q.prepare()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", p.lang)
	h.Set("Content-Security-Policy", bindPolicy)
	q.w.WriteHeader(http.StatusOK)
	fill := strings.NewReplacer("{data}", escape.EscapeString(string(data)), "{go}", next)
	_, _ = q.w.Write([]byte(fill.Replace(p.html)))
}
