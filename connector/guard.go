package connector

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// Visitor is who is let through with a session.
type Visitor struct {
	Room   string // its name in the rules
	Ticket string // as the room's transcript has it; empty: the visitor did not have to wait
}

type visitorKey struct{}

// VisitorOf returns the visitor of a request behind [Connector.Middleware].
// False: the request needed no pass.
func VisitorOf(ctx context.Context) (Visitor, bool) {
	v, ok := ctx.Value(visitorKey{}).(Visitor)
	return v, ok
}

// Headers that the site gets, and one that it may answer with.
const (
	TicketHeader  = "X-Proofline-Ticket"
	RoomHeader    = "X-Proofline-Room"
	CommandHeader = "Proofline-Command" // "release": the visit is over
	QueueHeader   = "Proofline-Queue"   // of answers to scripts: where to wait
	ClientHeader  = "Proofline-Client"  // of our requests to rooms: who has the pass
)

// Middleware lets requests through to next that need no pass, or have one.
func (c *Connector) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := c.guard(&requestCheck{Connector: c, counts: &c.counts, w: w, r: r})
		if v == nil {
			return
		}
		out := &writer{ResponseWriter: w, c: c, admitted: v}
		next.ServeHTTP(out, v.request)
		out.finish() // of a site that said nothing
	})
}

// Allows tells whether a request would be let through as it is. It writes
// nothing but what goes with a visitor who is: the headers [TicketHeader] and
// [RoomHeader], and the cookie of a session that slides. A pass in the URL is not
// used up, and not enough: what is not allowed is for [Connector.Middleware] to
// answer.
func (c *Connector) Allows(h http.Header, r *http.Request) bool {
	var own counts
	v := c.guard(&requestCheck{Connector: c, counts: &own, w: discard{http.Header{}}, r: r, isDry: true})
	if v == nil {
		return false // counted when it is answered
	}
	c.counts.bypassed.Add(own.bypassed.Load())
	c.counts.observed.Add(own.observed.Load())
	c.counts.passed.Add(own.passed.Load())
	c.counts.started.Add(own.started.Load())
	c.counts.opened.Add(own.opened.Load())
	if who, ok := VisitorOf(v.request.Context()); ok {
		if who.Ticket != "" {
			h.Set(TicketHeader, who.Ticket)
		}
		h.Set(RoomHeader, who.Room)
	}
	(&writer{ResponseWriter: discard{h}, c: c, admitted: v}).finish()
	return true
}

// discard takes an answer that nobody gets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// visit is a request that is under way to the site.
type admittedRequest struct {
	request *http.Request
	room    *room    // nil: no pass is needed
	session *session // nil: without a pass
	isDue   bool     // the session slides with the answer
	isNew   bool     // the session begins with the answer
	holder  uint64   // the client that has the session; 0: nobody counts them
}

// inquiry is a request that is looked at.
type requestCheck struct {
	*Connector
	counts     *counts
	w          http.ResponseWriter
	r          *http.Request
	now        time.Time
	client     netip.Addr
	scheme     string
	host       string   // that visitors come back to
	hosts      []string // beside that of the request: those that a proxy of the site's own names
	config     *config
	decision   rules.Decision
	isDry      bool   // no pass is used up
	proofsRead int    // proofs that were looked at
	holder     uint64 // the client that has the session that was found; 0: nobody counts them
}

// guard returns the request as the site gets it; nil: it is answered. A fault
// of ours is a failure of the room, or of all while it is not known which.
func (c *Connector) guard(q *requestCheck) (v *admittedRequest) {
	r := q.r
	defer func() {
		if fault := recover(); fault != nil {
			c.logPanic("a request", fault)
			v = q.afterFault()
		}
	}()
	q.now, q.config = c.options.Now(), c.current.Load()
	q.resolveClient()
	switch {
	case q.config.isEarly:
		return q.guardWithoutRules()
	case isOwn(r):
		q.serveOwn()
		return nil
	}
	q.decision = q.decide()
	if q.decision.Outcome == rules.Block {
		return q.block()
	}
	if token, clean, ok := splitQuery(r.URL.RawQuery); ok && q.decision.Outcome != rules.Shut {
		if done, v := q.redeemInURL(token, clean); done {
			return v
		}
	}
	switch q.decision.Outcome {
	case rules.Bypass:
		q.counts.bypassed.Add(1)
		q.observe()
		return &admittedRequest{request: withoutClaims(r)}
	case rules.Shut:
		return q.refuseClosed(q.config.rooms[q.decision.Room])
	}
	return q.admitOrQueue(q.config.rooms[q.decision.Room])
}

// afterFault does what is decided for failures.
func (q *requestCheck) afterFault() *admittedRequest {
	if q.config != nil {
		if rm, ok := q.config.rooms[q.decision.Room]; ok {
			return q.fail(rm)
		}
	}
	return q.retryLater()
}

// decide returns the strictest decision of all that the site may look at: the
// address as it is passed on and as the client wrote it, for net/url writes some
// bytes differently, and each host that a proxy of the site's own names.
func (q *requestCheck) decide() rules.Decision {
	site, r := q.config.site, q.r
	asked := &rules.Request{Method: r.Method, Host: r.Host, Target: targetOf(r), Header: r.Header, Client: q.client}
	d := site.Decide(asked, q.now)
	if r.RequestURI != "" && r.RequestURI != asked.Target {
		asked.Target = r.RequestURI
		d = site.Stricter(d, site.Decide(asked, q.now))
	}
	for _, host := range q.hosts {
		asked.Host, asked.Target = host, targetOf(r)
		d = site.Stricter(d, site.Decide(asked, q.now))
	}
	return d
}

// targetOf returns the path and query that the site will see.
func targetOf(r *http.Request) string {
	path := r.URL.EscapedPath()
	if path == "" && r.URL.Host != "" {
		path = "/"
	}
	if r.URL.RawQuery == "" {
		return path
	}
	return path + "?" + r.URL.RawQuery
}

// wait lets a request through that has a session.
func (q *requestCheck) admitOrQueue(rm *room) *admittedRequest {
	s := new(session)
	if q.findSession(rm, s) {
		q.counts.passed.Add(1)
		return &admittedRequest{asVisitor(q.r, rm, s), rm, s, s.isDue(q.now), false, q.holder}
	}
	if q.canProve(rm) {
		q.sendToBind(q.r.URL.RawQuery)
		return nil
	}
	if rm.Mode == rules.SafetyNet {
		s, why := rm.state.gate.begin(rm, q.client, q.r.UserAgent(), q.now, q.isDry)
		switch why {
		case notRefused:
			q.counts.started.Add(1)
			return &admittedRequest{asVisitor(q.r, rm, s), rm, s, false, true, 0}
		case overShare:
			q.counts.turned.Add(1)
		case overNetworkLimit:
			q.counts.crowded.Add(1)
			q.warnNetworkLimit(rm)
		}
	}
	return q.withoutPass(rm)
}

// withoutPass leads to the line, if there is one.
func (q *requestCheck) withoutPass(rm *room) *admittedRequest {
	if !rm.state.downAt().IsZero() {
		return q.fail(rm)
	}
	return q.sendToRoom(rm)
}

// fail does what the rules say about a room that cannot be reached.
func (q *requestCheck) fail(rm *room) *admittedRequest {
	if q.failsOpen(rm) {
		q.counts.opened.Add(1)
		return &admittedRequest{request: withoutClaims(q.r)}
	}
	if rm.Failure == rules.Page && isNavigation(q.r) {
		return q.sendOwnerPage()
	}
	return q.retryLater()
}

// arrive takes a pass from the URL. It is done when the request is answered,
// or goes to the site as it is; else it goes on without the pass.
func (q *requestCheck) redeemInURL(token, clean string) (done bool, v *admittedRequest) {
	rm, ok := q.config.byURL[issuerOf(token)]
	if own := q.config.rooms[q.decision.Room]; !ok || own != nil && own.URL == rm.URL { // of two names of a room that of this page
		rm = own
	}
	if rm == nil || q.decision.Outcome == rules.Bypass && !ok {
		return false, nil // nobody's business here
	}
	before := new(session)
	hasSession := q.findSession(rm, before)
	if hasSession && !before.isUnqueued() {
		q.redirectWithoutPass(clean)
		return true, nil
	}
	if q.isDry {
		return true, nil
	}
	p, err := q.verify(q.r.Context(), rm, token)
	if err == nil {
		var s *session
		if s, err = q.redeem(q.r.Context(), rm, p, q.client, q.r.UserAgent()); err == nil && q.isActive(s, rm, q.now) {
			q.counts.redeemed.Add(1)
			if hasSession { // the visitor counts once
				q.ended.add(before.pass, before.maxEnds, q.now.UnixMilli())
				rm.state.gate.end(before)
			}
			q.w.Header().Add("Set-Cookie", q.cookieOf(rm, s))
			q.redirectAfterPass(rm, clean)
			return true, nil
		}
	}
	q.r = withQuery(q.r, clean) // neither the site nor the way back gets the pass
	switch {
	case q.decision.Outcome == rules.Bypass:
		q.redirectWithoutPass(clean)
		return true, nil
	case errors.Is(err, errBusy):
		return true, q.retryLater()
	case errors.Is(err, errUnreachable):
		return q.failUnverified(rm, hasSession)
	}
	q.counts.refused.Add(1)
	return false, nil
}

// unheard goes on when nobody can say what a pass is worth: it is done when the
// request is answered. A pass of another room than this page's says nothing about
// how this one fails: anybody can show one.
func (q *requestCheck) failUnverified(rm *room, hasSession bool) (done bool, v *admittedRequest) {
	own := q.config.rooms[q.decision.Room]
	switch {
	case hasSession:
		return false, nil // whoever is in goes on
	case own.state != rm.state:
		return true, q.retryLater()
	}
	return true, q.fail(own)
}

// withQuery returns a request with another query.
func withQuery(r *http.Request, query string) *http.Request {
	out, u := *r, *r.URL
	u.RawQuery = query
	out.URL, out.RequestURI = &u, u.RequestURI()
	return &out
}

// origin finds out the client and the host, from the site's own proxies where
// they say so.
func (q *requestCheck) resolveClient() {
	r := q.r
	q.host, q.scheme = r.Host, "http"
	if r.TLS != nil {
		q.scheme = "https"
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	q.client = peer.Addr().Unmap()
	if !q.trusts(q.client) {
		return
	}
	if proto := last(r.Header["X-Forwarded-Proto"]); proto == "https" || proto == "http" {
		q.scheme = proto
	}
	if host := last(r.Header["X-Forwarded-Host"]); host != "" {
		q.host = host
	}
	q.hosts = forwardedHosts(r)
	lines := r.Header["X-Forwarded-For"]
	for _, line := range slices.Backward(lines) {
		for _, text := range slices.Backward(strings.Split(line, ",")) {
			a, err := netip.ParseAddr(strings.TrimSpace(text))
			if err != nil {
				return
			}
			q.client = a.Unmap()
			if !q.trusts(q.client) {
				return
			}
		}
	}
}

func (c *Connector) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(c.options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// last returns the last of the values in all lines of a header.
func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	line := lines[len(lines)-1]
	return strings.TrimSpace(line[strings.LastIndexByte(line, ',')+1:])
}

// isClaim tells whether a header is one that clients may not send: one of ours,
// or one by which some sites would answer another path than was judged. Some
// servers take _ for -.
func isClaim(name string) bool {
	if plain := strings.ReplaceAll(name, "_", "-"); strings.EqualFold(plain, "X-Original-Url") || strings.EqualFold(plain, "X-Rewrite-Url") {
		return true
	}
	const prefix = "x-proofline-"
	return len(name) >= len(prefix) && (name[1] == '-' || name[1] == '_') && (name[len(prefix)-1] == '-' || name[len(prefix)-1] == '_') &&
		strings.EqualFold(name[:1], "x") && strings.EqualFold(name[2:len(prefix)-1], "proofline")
}

// withoutClaims returns the request without headers that only we may set.
func withoutClaims(r *http.Request) *http.Request {
	for name := range r.Header {
		if isClaim(name) {
			out := *r
			out.Header = scrubbed(r.Header)
			return &out
		}
	}
	return r
}

func scrubbed(h http.Header) http.Header {
	out := maps.Clone(h)
	maps.DeleteFunc(out, func(name string, _ []string) bool { return isClaim(name) })
	return out
}

// asVisitor returns the request as the site gets it from a visitor.
func asVisitor(r *http.Request, rm *room, s *session) *http.Request {
	v := Visitor{Room: rm.name}
	if !s.isUnqueued() {
		v.Ticket = uuidText(s.ticket)
	}
	out := r.WithContext(context.WithValue(r.Context(), visitorKey{}, v))
	out.Header = scrubbed(r.Header)
	if v.Ticket != "" {
		out.Header[TicketHeader] = []string{v.Ticket}
	}
	out.Header[RoomHeader] = []string{v.Room}
	return out
}
