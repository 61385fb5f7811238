package connector

import (
	"crypto/sha256"
	_ "embed" // embeds the scripts
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/rules"
)

// OwnPath is the prefix of the paths that the connector answers itself, whatever
// the rules say. An encoded form of the prefix does not count.
const OwnPath = "/.proofline/"

// ScriptPath is the path of a script for the site's pages, which sends visitors to the room when a
// fetch has to wait: see client/README.md.
const ScriptPath = OwnPath + "wait.js"

// ReleasePath ends the sessions of a POST request. The site's pages and backend
// call it when a visitor is done.
const ReleasePath = OwnPath + "release"

// EnterPath gives a visitor of the page ?to= on another host of the site a session on this host:
// visitors return to it with a pass. With ?room= it sends them to the room first.
const EnterPath = OwnPath + "enter"

//go:embed client/wait.js
var script []byte

//go:embed client/bind.js
var bindScript []byte

var scriptTag, bindTag = tagOfText(script), tagOfText(bindScript)

func tagOfText(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// isOwn reports whether a request is for the connector itself.
func isOwn(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, OwnPath) && strings.HasPrefix(r.URL.EscapedPath(), OwnPath)
}

// serveOwn answers below OwnPath. Unknown paths are not passed on, because the
// site could resolve them to another path.
func (q *requestCheck) serveOwn() {
	path, method := q.r.URL.Path, q.r.Method
	h := q.prepare()
	switch {
	case q.isDry:
	case path == BindPath:
		q.serveBind()
	case path != ScriptPath && path != EnterPath && path != ReleasePath && path != bindScriptPath:
		http.Error(q.w, "not found", http.StatusNotFound)
	case path == ReleasePath && method != http.MethodPost:
		h.Set("Allow", "POST")
		http.Error(q.w, "method not allowed", http.StatusMethodNotAllowed)
	case path == ReleasePath && !q.isOwnPage():
		http.Error(q.w, "only a page of this host may end a session", http.StatusForbidden)
	case path == ReleasePath:
		q.serveRelease()
	case method != http.MethodGet && method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(q.w, "method not allowed", http.StatusMethodNotAllowed)
	case path == EnterPath:
		q.serveEnter()
	case path == bindScriptPath:
		q.serveScript(bindScript, bindTag)
	default:
		q.serveScript(script, scriptTag)
	}
}

// serveEnter redeems the pass, if there is one, and redirects to the page or a room.
func (q *requestCheck) serveEnter() {
	if token, clean, ok := splitQuery(q.r.URL.RawQuery); ok {
		q.decision.Outcome = rules.Bypass
		if done, _ := q.redeemInURL(token, clean); !done {
			q.redirectWithoutPass(clean)
		}
		return
	}
	query := q.r.URL.Query()
	to, ok := q.sitePage(query.Get("to"))
	if !ok {
		http.Error(q.w, "to must be a page on a host that the rules name", http.StatusNotFound)
		return
	}
	if query.Has("room") {
		q.waitAndEnter(query.Get("room"), query.Get("to"))
		return
	}
	q.w.Header().Set("Location", to.String())
	q.w.WriteHeader(http.StatusSeeOther)
}

// isOwnPage reports whether a request was made by a page of this very host, or not by a page at
// all.
func (q *requestCheck) isOwnPage() bool {
	for _, site := range q.r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return false
		}
	}
	for _, origin := range q.r.Header["Origin"] {
		if hostOf(origin, q.from.scheme) != q.from.scheme+"://"+hostOf(q.from.host, q.from.scheme) {
			return false
		}
	}
	return true
}

// hostOf normalizes a host or an origin: lower case, without the scheme's default
// port.
func hostOf(host, scheme string) string {
	return strings.TrimSuffix(strings.ToLower(host), map[string]string{"http": ":80", "https": ":443"}[scheme])
}

// serveRelease ends the visitor's sessions of all rooms, and removes their cookies.
func (q *requestCheck) serveRelease() {
	for _, rm := range q.config.rooms {
		if !rm.HasCookie(q.r) {
			continue
		}
		// A backend sends the cookie, but no proof.
		q.finder.Each(rm.Room, new(session.Session), func(v *session.Session) bool {
			if rm.IsBoundTo(v, q.from.client) {
				q.c.sessions.release(rm, v)
			}
			return false
		})
		q.w.Header().Add("Set-Cookie", rm.NoCookie())
	}
	q.w.WriteHeader(http.StatusNoContent)
}

// sitePage parses the address of a page of the site: same scheme, on a host that
// the rules name without a wildcard.
func (q *requestCheck) sitePage(address string) (*url.URL, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != q.from.scheme || u.User != nil || u.Opaque != "" || u.Hostname() == "" {
		return nil, false
	}
	host := strings.ToLower(u.Hostname())
	return u, slices.Contains(q.config.Site.Hosts, host) && !strings.Contains(host, "*")
}

// allowSiteOrigin lets scripts on the site's other hosts read where to wait
// (https://fetch.spec.whatwg.org/#http-cors-protocol).
func (q *requestCheck) allowSiteOrigin(h http.Header) {
	origin := q.r.Header.Get("Origin")
	if _, ok := q.sitePage(origin); !ok {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", QueueHeader)
	h.Add("Vary", "Origin")
}
