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

// PassParameter is what a URL has a pass in.
const PassParameter = "proofline_pass"

// splitQuery takes the first pass out of a query, and all others. The rest
// stays as it is, in its order. False: there is none.
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

// passIn returns the value of a parameter that is a pass, however it is spelled.
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

// isNavigation tells whether a browser opens a page, which can be led away.
// Scripts that want a page say so in X-Requested-With, where apps have their
// names as they open one.
func isNavigation(r *http.Request) bool {
	if r.Header["Upgrade"] != nil || r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return r.Method != http.MethodPost && strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.EqualFold(r.Header.Get("X-Requested-With"), "XMLHttpRequest")
}

// wanted returns the URL that a visitor is to come back to; empty: none. What
// was sent with a POST is lost, so that the page before it is wanted.
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

// lead sends a visitor to the room.
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

// shut refuses a visitor of a closed room. Nobody is led there: whoever waited
// would come back here.
func (q *requestCheck) refuseClosed(rm *room) *admittedRequest {
	q.counts.blocked.Add(1)
	q.allowSiteOrigin(q.prepare())
	return q.refuse(http.StatusForbidden, map[string]string{"error": "closed", "room": rm.URL})
}

// answer prepares an answer of ours, which nobody keeps.
func (q *requestCheck) prepare() http.Header {
	h := q.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	return h
}

func (q *requestCheck) sendJSON(status int, body map[string]string) *admittedRequest {
	q.prepare().Set("Content-Type", "application/json")
	text, _ := json.Marshal(body) // texts always can be
	q.w.WriteHeader(status)
	_, _ = q.w.Write(append(text, '\n'))
	return nil
}

// cleaned leads to the same URL without the pass. The address is relative, and
// cannot be read as one of another host.
func (q *requestCheck) redirectWithoutPass(query string) {
	location := "/" + strings.TrimLeft(q.r.URL.EscapedPath(), `/\`)
	if query != "" {
		location += "?" + query
	}
	q.prepare().Set("Location", location)
	q.w.WriteHeader(http.StatusSeeOther)
}

// block refuses a request for good.
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

// tellCrowd logs a network of which too many come, for it may be a proxy of the
// site that its owner forgot.
func (q *requestCheck) warnNetworkLimit(rm *room) {
	if mayLog(&q.networkLogged, q.now) {
		q.options.Log.Warn("visitors of one network wait, for many of them got in within a minute; if it is a proxy of the site, it must be among the trusted ones", "room", rm.name, "client", q.client)
	}
}

// tellHost logs a host that is not in the rules, for it may be a name of the
// site that its owner forgot.
func (q *requestCheck) warnHost() {
	if mayLog(&q.hostLogged, q.now) {
		q.options.Log.Warn("a request is blocked, for its host is not among the hosts of the rules", "host", q.host[:min(len(q.host), 100)])
	}
}

// tellUnsigned logs that a room leads nobody back, for rules that name no hosts
// have nothing signed.
func (q *requestCheck) warnUnsigned(rm *room) {
	if mayLog(&q.unsignedLogged, q.now) {
		q.options.Log.Warn("the room leads visitors to its first target alone, for it wants signed ways back, and nothing is signed until the rules name the hosts of the site", "room", rm.name)
	}
}

// isTime tells whether something may be logged again, that was at that time
// before, in ms since 1970.
func mayLog(told *atomic.Int64, now time.Time) bool {
	last, ms := told.Load(), now.UnixMilli()
	return ms-last >= logInterval.Milliseconds() && told.CompareAndSwap(last, ms)
}
