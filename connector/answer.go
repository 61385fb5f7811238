package connector

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/rules"
)

// PassParameter is the name of the query parameter with a pass.
const PassParameter = "proofline_pass"

// splitQuery removes all passes from a query and returns the first. The other parameters stay as
// they are. It returns false if there is none.
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

// returnURL returns the URL that the visitor should return to; empty: unknown. The
// body of a POST is lost, so that visitors return to the page before it.
func (q *requestCheck) returnURL() string {
	if session.IsNavigation(q.r) && q.r.Method != http.MethodPost {
		return q.from.url() + targetOf(q.r)
	}
	before, err := url.Parse(q.r.Header.Get("Referer"))
	if err != nil || before.Scheme != q.from.scheme || before.Host != q.from.host {
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
	if session.IsNavigation(q.r) {
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
	q.sendJSON(http.StatusForbidden, map[string]string{"error": "queue", "room": rm.URL, "join": join})
	return nil
}

// refuseClosed refuses a visitor of a closed room. Sending them there would only
// bring them back here.
func (q *requestCheck) refuseClosed(rm *room) *admittedRequest {
	q.counts.blocked.Add(1)
	q.allowSiteOrigin(q.prepare())
	q.refuse(http.StatusForbidden, map[string]string{"error": "closed", "room": rm.URL})
	return nil
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
	q.refuse(status, map[string]string{"error": why})
	return nil
}

// warnNetworkLimit logs a network over its limit, because that could be a proxy of the site that
// [Options.TrustedProxies] lacks.
func (q *requestCheck) warnNetworkLimit(rm *room) {
	if q.c.networkLogged.Allow(q.now) {
		q.c.options.Log.Warn("visitors from one network must wait: it started too many sessions within a minute; "+
			"if it is a proxy of the site, add it to the trusted proxies", "room", rm.Name, "client", q.from.client)
	}
}

// warnHost logs a host that is not in the rules, because it could be a name of the site that they
// lack.
func (q *requestCheck) warnHost() {
	if q.c.hostLogged.Allow(q.now) {
		q.c.options.Log.Warn("request blocked: its host is not in the hosts of the rules",
			"host", q.from.host[:min(len(q.from.host), 100)])
	}
}

// warnUnsigned logs that a room requires signed return URLs, which rules without hosts do not
// allow.
func (q *requestCheck) warnUnsigned(rm *room) {
	if q.c.unsignedLogged.Allow(q.now) {
		q.c.options.Log.Warn("visitors can only return to the room's first target: the room requires signed return URLs, "+
			"and none are signed until the rules name the site's hosts", "room", rm.Name)
	}
}
