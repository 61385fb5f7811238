package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/queueit"
	"github.com/proofline/proofline/room/session"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/reply"
)

// queueItParameter is the query parameter in the target's URL in which Queue-it connectors expect the
// token.
const queueItParameter = "queueittoken"

// queueItLinks serves links made for Queue-it.
type queueItLinks struct {
	rooms   *room.Rooms
	hosts   *customHosts
	log     *slog.Logger
	refusal atomic.Int64 // Unix time in nanoseconds of the latest log line about a site's refusal
}

// register adds the routes of such links, except the one at the root, which index serves.
func (q *queueItLinks) register(e *echo.Echo) {
	join := func(c echo.Context) error {
		l, ok := queueit.ParseLink(c.QueryParams())
		if !ok {
			return echo.ErrNotFound
		}
		return q.followToLine(c, l)
	}
	for _, path := range []string{"/inqueue", "/inqueue.aspx"} {
		e.Match(read, path, bounded(join))
	}
	e.Match(read, "/error/*", bounded(func(c echo.Context) error {
		err := join(c)
		if err == nil {
			q.noteRefusal(strings.Trim(c.Param("*"), "/"), c.QueryParam("e"))
		}
		return err
	}))
	e.Match(read, "/cancel/*", bounded(func(c echo.Context) error {
		l, ok := queueit.ParseCancel(c.Param("*"), c.QueryParams())
		if !ok {
			return echo.ErrNotFound
		}
		return q.followFromLine(c, l)
	}))
}

// fromLink is the context key of the event in a request by such a link. Errors of these requests are sent as
// pages, because they come from visitors.
const fromLink = "queue-it event"

// roomOf returns the room of a link, or [room.ErrNotFound] if there is none or the link is for another customer.
func (q *queueItLinks) roomOf(c echo.Context, l *queueit.Link) (*room.Room, error) {
	c.Set(fromLink, l.Event)
	c.Response().Header()["Cache-Control"] = reply.NoStore
	r, err := q.rooms.Get(c.Request().Context(), l.Event)
	if err != nil {
		return nil, err
	}
	if settings, ok := r.QueueIt.Config(); ok && !strings.EqualFold(settings.CustomerID, l.Customer) {
		return nil, room.ErrNotFound
	}
	return r, q.hosts.check(c.Request(), r)
}

// followToLine redirects to the room, with target and language if the room allows them.
func (q *queueItLinks) followToLine(c echo.Context, l queueit.Link) error {
	r, err := q.roomOf(c, &l)
	if err != nil {
		return err
	}
	settings, _ := r.Settings()
	query := url.Values{}
	if _, ok := settings.Target(l.Target); ok && l.Target != "" {
		query.Set("to", l.Target)
	}
	if lang, ok := page.LanguageOf(l.Culture, brand.Languages(&settings.Brand)); ok {
		query.Set("lang", string(lang))
	}
	location := pathOf(r)
	if len(query) > 0 {
		location += "?" + query.Encode()
	}
	return c.Redirect(http.StatusSeeOther, location)
}

// refusals are the codes with which a site reports that it refuses a token.
var refusals = map[string]bool{"hash": true, "eventid": true, "timestamp": true, "ip": true, "qidlimit": true,
	"connector/sessionstate": true}

// noteRefusal logs that a site refuses its visitors' tokens, at most once a minute, because any client can forge
// such a link.
func (q *queueItLinks) noteRefusal(code, event string) {
	now, last := time.Now().UnixNano(), q.refusal.Load()
	if refusals[code] && now-last >= int64(time.Minute) && q.refusal.CompareAndSwap(last, now) {
		q.log.Warn("a site refuses a queueittoken", "room", event, "code", code)
	}
}

// followFromLine redirects to the link's target after a visit, if the room allows it, else to the
// room. It does not end the session, because any client can forge such a link.
func (q *queueItLinks) followFromLine(c echo.Context, l queueit.Link) error {
	r, err := q.roomOf(c, &l)
	if err != nil {
		return err
	}
	settings, _ := r.Settings()
	if u, ok := settings.Target(l.Target); ok && l.Target != "" {
		return c.Redirect(http.StatusSeeOther, u.String())
	}
	return c.Redirect(http.StatusSeeOther, pathOf(r))
}

// landing returns the URL to redirect an admitted visitor to: the target with the parameters that the
// site's connector expects. The pass is zero if it has expired.
func landing(ctx context.Context, r *room.Room, target url.URL, st fairness.Standing,
	pass session.Pass) (string, error) {
	token, err := r.QueueIt.Token(ctx, st)
	if err != nil {
		return "", err
	}
	if q, _ := r.QueueIt.Config(); pass.Token != "" && (token == "" || q.WithPass) {
		target = reply.WithParameter(target, passParameter, pass.Token)
	}
	if token != "" {
		target = reply.WithParameter(target, queueItParameter, token)
	}
	return target.String(), nil
}
