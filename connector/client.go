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

// EnterPath is where visitors come back to who need a session at this host for
// a page at another one of the site, ?to= that page.
const EnterPath = OwnPath + "enter"

//go:embed client/wait.js
var script []byte

var scriptTag = func() string {
	sum := sha256.Sum256(script)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}()

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
	case path != ScriptPath && path != EnterPath:
		http.Error(q.w, "not found", http.StatusNotFound)
	case method != http.MethodGet && method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(q.w, "method not allowed", http.StatusMethodNotAllowed)
	case path == EnterPath:
		q.enter()
	default:
		h.Set("Content-Type", "text/javascript; charset=utf-8")
		h.Set("Cache-Control", "public, max-age=3600, stale-while-revalidate=86400")
		h.Set("ETag", scriptTag)
		http.ServeContent(q.w, q.r, "", time.Time{}, bytes.NewReader(script))
	}
}

// enter uses up the pass, if there is one, and leads to the page.
func (q *inquiry) enter() {
	if token, clean, ok := splitQuery(q.r.URL.RawQuery); ok {
		q.decision.Outcome = rules.Bypass
		if done, _ := q.arrive(token, clean); !done {
			q.cleaned(clean)
		}
		return
	}
	to, ok := q.neighbour(q.r.URL.Query().Get("to"))
	if !ok {
		http.Error(q.w, "to must be a page of the site, whose host its rules name", http.StatusNotFound)
		return
	}
	q.w.Header().Set("Location", to.String())
	q.w.WriteHeader(http.StatusSeeOther)
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
