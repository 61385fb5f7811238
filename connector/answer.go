package connector

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// PassParameter is the name of the query parameter with a pass.
const PassParameter = "proofline_pass"

// splitQuery removes all passes from a query and returns the first. The other
// parameters stay as they are. False: there is none.
func splitQuery(query string) (token, rest string, ok bool) {
	if !hasPass(query) {
		return "", query, false
	}
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		value, isPass := passIn(part)
		if !isPass {
			kept = append(kept, part)
		} else if !ok {
			token, ok = value, true
		}
	}
	return token, strings.Join(kept, "&"), true
}

func hasPass(query string) bool {
	for query != "" {
		var part string
		part, query, _ = strings.Cut(query, "&")
		if _, ok := passIn(part); ok {
			return true
		}
	}
	return false
}

// passIn returns the value of a parameter that holds a pass, even if its name is
// percent-encoded.
func passIn(part string) (string, bool) {
	name, value, _ := strings.Cut(part, "=")
	if name != PassParameter {
		if !strings.Contains(name, "%") {
			return "", false
		}
		if decoded, err := url.QueryUnescape(name); err != nil || decoded != PassParameter {
			return "", false
		}
	}
	value, err := url.QueryUnescape(value)
	if err != nil {
		return "", true
	}
	return value, true
}

// isNavigation reports whether a browser loads a page, which can be redirected.
// Scripts that fetch HTML send X-Requested-With: XMLHttpRequest; apps that show a
// page send their own name there.
func isNavigation(r *http.Request) bool {
	isPageMethod := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost
	if r.Header["Upgrade"] != nil || !isPageMethod {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return r.Method != http.MethodPost && strings.Contains(r.Header.Get("Accept"), "text/html") &&
		!strings.EqualFold(r.Header.Get("X-Requested-With"), "XMLHttpRequest")
}

// returnURL returns the URL that the visitor should return to; empty: unknown. The
// body of a POST is lost, so that visitors return to the page before it.
func (q *requestCheck) returnURL() string {
	if isNavigation(q.r) && q.r.Method != http.MethodPost {
		return q.ownOrigin() + targetOf(q.r)
	}
	before, err := url.Parse(q.r.Header.Get("Referer"))
	if err != nil || before.Scheme != q.scheme || before.Host != q.host {
		return ""
	}
	_, before.RawQuery, _ = splitQuery(before.RawQuery)
	before.User, before.Fragment = nil, ""
	return before.String()
}

// sendToRoom sends a visitor to the room: browsers by redirect, scripts by JSON.
func (q *requestCheck) sendToRoom(rm *room) *admittedRequest {
	q.counts.queued.Add(1)
	page := q.returnURL()
	back := q.returnTarget(rm, page)
	join := back.join(rm)
	h := q.prepare()
	if isNavigation(q.r) {
		h.Set("Location", join)
		status := http.StatusFound
		if q.r.Method == http.MethodPost {
			status = http.StatusSeeOther
		}
		q.w.WriteHeader(status)
		return nil
	}
	h.Set(QueueHeader, rm.URL)
	if how := q.returnHeader(rm, back, page); how != "" {
		h.Set(ReturnHeader, how)
	}
	q.allowSiteOrigin(h)
	return q.sendJSON(http.StatusForbidden, map[string]string{"error": "queue", "room": rm.URL, "join": join})
}

// refuseClosed refuses a visitor of a closed room. Sending them there would only
// bring them back here.
func (q *requestCheck) refuseClosed(rm *room) *admittedRequest {
	q.counts.blocked.Add(1)
	q.allowSiteOrigin(q.prepare())
	return q.refuse(http.StatusForbidden, map[string]string{"error": "closed", "room": rm.URL})
}

// prepare sets the headers of the connector's own responses.
func (q *requestCheck) prepare() http.Header {
	h := q.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	return h
}

func (q *requestCheck) sendJSON(status int, body map[string]string) *admittedRequest {
	q.prepare().Set("Content-Type", "application/json")
	text, _ := json.Marshal(body) // cannot fail: strings only
	q.w.WriteHeader(status)
	_, _ = q.w.Write(append(text, '\n'))
	return nil
}

// redirectWithoutPass redirects to the same URL without the pass. The location is
// relative, and cannot be read as another host's.
func (q *requestCheck) redirectWithoutPass(query string) {
	location := "/" + strings.TrimLeft(q.r.URL.EscapedPath(), `/\`)
	if query != "" {
		location += "?" + query
	}
	q.prepare().Set("Location", location)
	q.w.WriteHeader(http.StatusSeeOther)
}

// block answers a request that the rules refuse.
func (q *requestCheck) block() *admittedRequest {
	q.counts.blocked.Add(1)
	status, why := http.StatusForbidden, "blocked"
	switch q.decision.Rule {
	case rules.Malformed:
		status, why = http.StatusBadRequest, "malformed"
	case rules.WrongHost:
		status, why = http.StatusMisdirectedRequest, "host"
		q.warnHost()
	}
	return q.refuse(status, map[string]string{"error": why})
}

// warnNetworkLimit logs a network over its limit, because it could be a proxy of
// the site that is missing in [Options.TrustedProxies].
func (q *requestCheck) warnNetworkLimit(rm *room) {
	if mayLog(&q.networkLogged, q.now) {
		q.options.Log.Warn("visitors of one network must wait: it started too many sessions within a minute; "+
			"if it is a proxy of the site, add it to the trusted proxies", "room", rm.name, "client", q.client)
	}
}

// warnHost logs a host that is not in the rules, because it could be a name of the
// site that is missing there.
func (q *requestCheck) warnHost() {
	if mayLog(&q.hostLogged, q.now) {
		q.options.Log.Warn("request blocked: its host is not in the hosts of the rules",
			"host", q.host[:min(len(q.host), 100)])
	}
}

// warnUnsigned logs that a room needs signed return URLs, which rules without
// hosts cannot have.
func (q *requestCheck) warnUnsigned(rm *room) {
	if mayLog(&q.unsignedLogged, q.now) {
		q.options.Log.Warn("visitors return to the room's first target only: the room requires signed return URLs, "+
			"and none are signed until the rules name the site's hosts", "room", rm.name)
	}
}

// mayLog reports whether logInterval has passed since the last log line of a kind,
// and records the new one. logged is in ms since 1970.
func mayLog(logged *atomic.Int64, now time.Time) bool {
	last, ms := logged.Load(), now.UnixMilli()
	return ms-last >= logInterval.Milliseconds() && logged.CompareAndSwap(last, ms)
}
