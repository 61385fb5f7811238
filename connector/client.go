package connector

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the script
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// OwnPath is what paths begin with that connectors answer themselves, whatever
// the rules say, when it is written like this. The site gets no such request.
const OwnPath = "/.proofline/"

// ScriptPath is where a page of the site has the script that leads it to the
// room when what it fetches has to wait: see client/README.md.
const ScriptPath = OwnPath + "wait.js"

// ReleasePath is what the site's pages and its backend POST to when a visitor is
// done: the sessions that the request shows end.
const ReleasePath = OwnPath + "release"

// EnterPath is where visitors come back to who need a session at this host for
// a page at another one of the site, ?to= that page. With ?room= they go to the
// room first.
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

// isOwn tells whether a request is for the connector itself.
func isOwn(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, OwnPath) && strings.HasPrefix(r.URL.EscapedPath(), OwnPath)
}

// own answers what is for the connector itself. What it has not, nobody has:
// the site might read another path out of it.
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
		http.Error(q.w, "a page of another site may not end a visit", http.StatusForbidden)
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

// script answers with a script that caches may keep for an hour.
func (q *requestCheck) serveScript(text []byte, tag string) {
	h := q.w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=3600, stale-while-revalidate=86400")
	h.Set("ETag", tag)
	http.ServeContent(q.w, q.r, "", time.Time{}, bytes.NewReader(text))
}

// enter uses up the pass, if there is one, and leads to the page, or to a room.
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
		http.Error(q.w, "to must be a page of the site, whose host its rules name", http.StatusNotFound)
		return
	}
	if query.Has("room") {
		q.waitAndEnter(query.Get("room"), query.Get("to"))
		return
	}
	q.w.Header().Set("Location", to.String())
	q.w.WriteHeader(http.StatusSeeOther)
}

// isOwnPage tells whether a request is of a page of the very host it is for, or
// of no page at all.
func (q *requestCheck) isOwnPage() bool {
	for _, site := range q.r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return false
		}
	}
	for _, origin := range q.r.Header["Origin"] {
		if hostOf(origin, q.scheme) != q.scheme+"://"+hostOf(q.host, q.scheme) {
			return false
		}
	}
	return true
}

// hostOf returns a host, or an origin, as it is compared: without the port that
// the scheme has anyway.
func hostOf(host, scheme string) string {
	return strings.TrimSuffix(strings.ToLower(host), map[string]string{"http": ":80", "https": ":443"}[scheme])
}

// depart ends the sessions of the visitor, whatever room each is of, and takes
// away the cookies that there are.
func (q *requestCheck) serveRelease() {
	for _, rm := range q.config.rooms {
		if !hasCookie(q.r, rm.cookie) {
			continue
		}
		q.eachSession(rm, new(session), func(v *session) bool { // the site's own program shows the cookie alone
			if rm.Bind != rules.BindNetwork || v.bind == rm.bindOf(q.client, "") {
				q.release(rm, v)
			}
			return false
		})
		q.w.Header().Add("Set-Cookie", noCookie(rm))
	}
	q.w.WriteHeader(http.StatusNoContent)
}

// neighbour reads the address of a page of the site: by the same scheme, at a
// host that the rules name without *.
func (q *requestCheck) sitePage(address string) (*url.URL, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != q.scheme || u.User != nil || u.Opaque != "" || u.Hostname() == "" {
		return nil, false
	}
	host := strings.ToLower(u.Hostname())
	return u, slices.Contains(q.config.site.Hosts, host) && !strings.Contains(host, "*")
}

// allowNeighbour lets scripts of the site's other hosts see where to wait
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
