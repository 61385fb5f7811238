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
func (q *inquiry) own() {
	path, method := q.r.URL.Path, q.r.Method
	h := q.answer()
	switch {
	case q.isDry:
	case path == BindPath:
		q.bind()
	case path != ScriptPath && path != EnterPath && path != ReleasePath && path != bindScriptPath:
		http.Error(q.w, "not found", http.StatusNotFound)
	case path == ReleasePath && method != http.MethodPost:
		h.Set("Allow", "POST")
		http.Error(q.w, "method not allowed", http.StatusMethodNotAllowed)
	case path == ReleasePath && !q.isOwnPage():
		http.Error(q.w, "a page of another site may not end a visit", http.StatusForbidden)
	case path == ReleasePath:
		q.depart()
	case method != http.MethodGet && method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(q.w, "method not allowed", http.StatusMethodNotAllowed)
	case path == EnterPath:
		q.enter()
	case path == bindScriptPath:
		q.script(bindScript, bindTag)
	default:
		q.script(script, scriptTag)
	}
}

// script answers with a script that caches may keep for an hour.
func (q *inquiry) script(text []byte, tag string) {
	h := q.w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=3600, stale-while-revalidate=86400")
	h.Set("ETag", tag)
	http.ServeContent(q.w, q.r, "", time.Time{}, bytes.NewReader(text))
}

// enter uses up the pass, if there is one, and leads to the page, or to a room.
func (q *inquiry) enter() {
	if token, clean, ok := splitQuery(q.r.URL.RawQuery); ok {
		q.decision.Outcome = rules.Bypass
		if done, _ := q.arrive(token, clean); !done {
			q.cleaned(clean)
		}
		return
	}
	query := q.r.URL.Query()
	to, ok := q.neighbour(query.Get("to"))
	if !ok {
		http.Error(q.w, "to must be a page of the site, whose host its rules name", http.StatusNotFound)
		return
	}
	if query.Has("room") {
		q.waitFor(query.Get("room"), query.Get("to"))
		return
	}
	q.w.Header().Set("Location", to.String())
	q.w.WriteHeader(http.StatusSeeOther)
}

// isOwnPage tells whether a request is of a page of the very host it is for, or
// of no page at all.
func (q *inquiry) isOwnPage() bool {
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
func (q *inquiry) depart() {
	for _, d := range q.state.doors {
		if !hasCookie(q.r, d.cookie) {
			continue
		}
		q.each(d, new(session), func(v *session) bool { // the site's own program shows the cookie alone
			if d.Bind != rules.BindNetwork || v.bind == d.bindOf(q.client, "") {
				q.release(d, v)
			}
			return false
		})
		q.w.Header().Add("Set-Cookie", noCookie(d))
	}
	q.w.WriteHeader(http.StatusNoContent)
}

// neighbour reads the address of a page of the site: by the same scheme, at a
// host that the rules name without *.
func (q *inquiry) neighbour(address string) (*url.URL, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != q.scheme || u.User != nil || u.Opaque != "" || u.Hostname() == "" {
		return nil, false
	}
	host := strings.ToLower(u.Hostname())
	return u, slices.Contains(q.state.site.Hosts, host) && !strings.Contains(host, "*")
}

// allowNeighbour lets scripts of the site's other hosts see where to wait
// (https://fetch.spec.whatwg.org/#http-cors-protocol).
func (q *inquiry) allowNeighbour(h http.Header) {
	origin := q.r.Header.Get("Origin")
	if _, ok := q.neighbour(origin); !ok {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", QueueHeader)
	h.Add("Vary", "Origin")
}
