package connector

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/roomapi"
	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/rules"
)

// Visitor is the visitor of a request that has a session.
type Visitor struct {
	Room   string // the room's name in the rules
	Ticket string // ticket as in the room's transcript; empty: the visitor did not have to wait
}

type visitorKey struct{}

// VisitorOf returns the visitor of a request behind [Connector.Middleware]. It returns false if the
// request did not need a session.
func VisitorOf(ctx context.Context) (Visitor, bool) {
	v, ok := ctx.Value(visitorKey{}).(Visitor)
	return v, ok
}

// Headers between connector, site and room.
const (
	TicketHeader  = "X-Proofline-Ticket" // request to the site: the visitor's ticket
	RoomHeader    = "X-Proofline-Room"   // request to the site: the room's name in the rules
	CommandHeader = "Proofline-Command"  // response of the site; "release" ends the session
	QueueHeader   = "Proofline-Queue"    // response to a script: the room to wait in
	ClientHeader  = roomapi.ClientHeader // request to a room: pseudonym of the pass holder
)

// Middleware passes requests on to next if they have a session or do not need one.
func (c *Connector) Middleware(next http.Handler) http.Handler {
	return c.middleware(next, requestCheck{c: c, counts: &c.counts})
}

// Refused answers requests that [Connector.Allows] has refused. Those that may pass by now go to
// retry, which must make the client send them again. A connector that fails open counts only these repeats.
func (c *Connector) Refused(retry http.Handler) http.Handler {
	return c.middleware(retry, requestCheck{c: c, counts: &c.counts, isRefused: true})
}

func (c *Connector) middleware(next http.Handler, check requestCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := check
		q.response = response{w, r}
		v := c.guard(&q)
		if v == nil {
			return
		}
		out := &writer{ResponseWriter: w, c: c, admitted: v}
		next.ServeHTTP(out, v.request)
		out.finish() // in case the site has written nothing
	})
}

// Allows reports whether a request may pass as it is. If it may, Allows sets in h the headers
// [TicketHeader] and [RoomHeader] and the renewed session cookie. It does not redeem a pass in the
// URL, so a pass alone does not allow a request: send refused requests to [Connector.Refused],
// which answers them.
func (c *Connector) Allows(h http.Header, r *http.Request) bool {
	var own counts
	v := c.guard(&requestCheck{c: c, counts: &own, response: response{discard{http.Header{}}, r}, isDry: true})
	if v == nil {
		return false // Refused counts it
	}
	c.counts.bypassed.Add(own.bypassed.Load())
	c.counts.observed.Add(own.observed.Load())
	c.counts.passed.Add(own.passed.Load())
	c.counts.started.Add(own.started.Load())
	c.counts.failedOpen.Add(own.failedOpen.Load())
	if who, ok := VisitorOf(v.request.Context()); ok {
		if who.Ticket != "" {
			h.Set(TicketHeader, who.Ticket)
		}
		h.Set(RoomHeader, who.Room)
	}
	(&writer{ResponseWriter: discard{h}, c: c, admitted: v}).finish()
	return true
}

// discard drops the response.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// admittedRequest is a request on its way to the site.
type admittedRequest struct {
	request *http.Request
	room    *room            // nil: the request needs no session
	session *session.Session // nil: no session
	isDue   bool             // the response renews the session
	isNew   bool             // the response starts the session
	holder  uint64           // client that uses the session; 0: not counted
}

// requestCheck is a request being checked.
type requestCheck struct {
	response
	c        *Connector
	counts   *counts
	now      time.Time
	from     origin
	finder   session.Finder
	config   *config
	decision rules.Decision
	isDry    bool // do not redeem passes
	// isRefused: Allows has refused the request, so nothing is admitted
	isRefused bool
}

// guard returns the request to pass to the site; nil: it has been answered. A panic counts as a
// failure of the room, or of all rooms if none is known yet.
func (c *Connector) guard(q *requestCheck) (v *admittedRequest) {
	r := q.r
	defer func() {
		if fault := recover(); fault != nil {
			c.group.LogPanic("a request", fault)
			v = q.afterFault()
		}
	}()
	q.now, q.config, q.from = c.options.Now(), c.current.Load(), originOf(r, c.options.TrustedProxies)
	q.finder = session.Finder{
		Store: c.sessions.store, Request: r, Client: q.from.client, Now: q.now, Copied: &q.counts.copied,
	}
	switch {
	case q.config.IsEarly:
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
	default:
		return q.admitOrQueue(q.config.rooms[q.decision.Room])
	}
}

// afterFault applies the room's failure mode after a panic.
func (q *requestCheck) afterFault() *admittedRequest {
	if q.config != nil {
		if rm, ok := q.config.rooms[q.decision.Room]; ok {
			return q.fail(rm)
		}
	}
	return q.retryLater()
}

// decide returns the strictest decision for all ways in which the site may read the request: with
// the address as passed on or as the client wrote it, because net/url re-encodes some bytes, and
// with each host that the site's own proxies name.
func (q *requestCheck) decide() rules.Decision {
	site, r := q.config.Site, q.r
	asked := &rules.Request{
		Method: r.Method, Host: r.Host, Target: targetOf(r), Header: r.Header, Client: q.from.client,
	}
	d := site.Decide(asked, q.now)
	if r.RequestURI != "" && r.RequestURI != asked.Target {
		asked.Target = r.RequestURI
		d = site.Stricter(d, site.Decide(asked, q.now))
	}
	for _, host := range q.from.hosts {
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

// admitOrQueue admits a request that has a session or may start one at an open
// gate, and sends others to the room.
func (q *requestCheck) admitOrQueue(rm *room) *admittedRequest {
	s := new(session.Session)
	if q.finder.Find(rm.Room, s) {
		q.counts.passed.Add(1)
		return &admittedRequest{
			request: asVisitor(q.r, rm, s), room: rm, session: s, isDue: s.IsDue(q.now), holder: q.finder.Holder(),
		}
	}
	if q.finder.CanProve(rm.Room) {
		q.sendToBind(q.r.URL.RawQuery)
		return nil
	}
	if rm.Mode == rules.SafetyNet {
		s, why := rm.state.gate.Begin(rm.Room, q.from.client, q.r.UserAgent(), q.now, q.isDry)
		switch why {
		case gate.Admitted:
			q.counts.started.Add(1)
			return &admittedRequest{request: asVisitor(q.r, rm, s), room: rm, session: s, isNew: true}
		case gate.OverShare:
			q.counts.turned.Add(1)
		case gate.OverNetworkLimit:
			q.counts.crowded.Add(1)
			q.warnNetworkLimit(rm)
		}
	}
	return q.withoutPass(rm)
}

// withoutPass sends the visitor to the room, unless the room is out of reach.
func (q *requestCheck) withoutPass(rm *room) *admittedRequest {
	if !rm.state.reach.DownSince().IsZero() {
		return q.fail(rm)
	}
	return q.sendToRoom(rm)
}

// fail applies the room's failure mode.
func (q *requestCheck) fail(rm *room) *admittedRequest {
	if q.isRefused {
		if rm.failsOpen() { // since a moment ago
			return &admittedRequest{request: withoutClaims(q.r)}
		}
	} else if rm.admit(q.c.options.Now()) {
		q.counts.failedOpen.Add(1)
		return &admittedRequest{request: withoutClaims(q.r)}
	}
	if rm.Failure == rules.Page && session.IsNavigation(q.r) {
		return q.sendOwnerPage()
	}
	return q.retryLater()
}

// redeemInURL redeems a pass in the URL. done reports whether the request has been answered, or is
// admitted as v. Otherwise the check continues without the pass.
func (q *requestCheck) redeemInURL(token, clean string) (done bool, v *admittedRequest) {
	rm, ok := q.config.byURL[roomapi.IssuerOf(token)]
	own := q.config.rooms[q.decision.Room]
	if !ok || own != nil && own.URL == rm.URL { // a room can have several names: prefer this page's
		rm = own
	}
	if rm == nil || q.decision.Outcome == rules.Bypass && !ok {
		return false, nil // the pass is not for a room of these rules
	}
	before := new(session.Session)
	hasSession := q.finder.Find(rm.Room, before)
	if hasSession && !before.IsUnqueued() {
		q.redirectWithoutPass(clean)
		return true, nil
	}
	if q.isDry {
		return true, nil
	}
	p, err := rm.state.server.Verify(q.r.Context(), token)
	if err == nil {
		var s *session.Session
		s, err = q.c.redeemer.Redeem(q.r.Context(), rm.state.server, rm.Room, p, q.from.client, q.r.UserAgent())
		if err == nil && q.c.sessions.store.IsActive(rm.Room, s, q.now) {
			q.counts.redeemed.Add(1)
			if hasSession { // so that the visitor is counted once
				q.c.sessions.store.End(before.Pass, before.MaxEnds, q.now)
				rm.state.gate.End(before)
			}
			q.w.Header().Add("Set-Cookie", q.c.sessions.store.Cookie(rm.Room, s))
			q.redirectAfterPass(rm, clean)
			return true, nil
		}
	}
	q.r = withQuery(q.r, clean) // neither the site nor the return URL gets the pass
	switch {
	case q.decision.Outcome == rules.Bypass:
		q.redirectWithoutPass(clean)
		return true, nil
	case errors.Is(err, roomapi.ErrBusy):
		return true, q.retryLater()
	case errors.Is(err, roomapi.ErrUnreachable):
		return q.failUnverified(rm, hasSession)
	}
	q.counts.refused.Add(1)
	return false, nil
}

// failUnverified handles a pass that cannot be verified now, with the results of redeemInURL. A
// Such a pass of another room must not trigger the failure mode of this page's room, because anyone
// can forge one.
func (q *requestCheck) failUnverified(rm *room, hasSession bool) (done bool, v *admittedRequest) {
	own := q.config.rooms[q.decision.Room]
	switch {
	case hasSession:
		return false, nil // an existing session is enough
	case own.state != rm.state:
		return true, q.retryLater()
	}
	return true, q.fail(own)
}

// withQuery returns the request with a different query.
func withQuery(r *http.Request, query string) *http.Request {
	out, u := *r, *r.URL
	u.RawQuery = query
	out.URL, out.RequestURI = &u, u.RequestURI()
	return &out
}

// isClaim reports whether a header is forbidden to clients: it is one of ours, or makes some sites
// serve a path other than the one checked. Some servers treat _ as -.
func isClaim(name string) bool {
	plain := strings.ReplaceAll(name, "_", "-")
	if strings.EqualFold(plain, "X-Original-Url") || strings.EqualFold(plain, "X-Rewrite-Url") {
		return true
	}
	const prefix = "x-proofline-"
	return len(name) >= len(prefix) && (name[1] == '-' || name[1] == '_') &&
		(name[len(prefix)-1] == '-' || name[len(prefix)-1] == '_') &&
		strings.EqualFold(name[:1], "x") && strings.EqualFold(name[2:len(prefix)-1], "proofline")
}

// withoutClaims returns the request without headers that clients may not send.
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

// asVisitor returns the request with the visitor's headers.
func asVisitor(r *http.Request, rm *room, s *session.Session) *http.Request {
	v := Visitor{Room: rm.Name}
	if !s.IsUnqueued() {
		v.Ticket = id.UUID(s.Ticket)
	}
	out := r.WithContext(context.WithValue(r.Context(), visitorKey{}, v))
	out.Header = scrubbed(r.Header)
	if v.Ticket != "" {
		out.Header[TicketHeader] = []string{v.Ticket}
	}
	out.Header[RoomHeader] = []string{v.Room}
	return out
}
