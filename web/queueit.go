package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/session"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/page"
)

// queueItParameter is the query parameter in the target's URL in which Queue-it connectors expect the
// token.
const queueItParameter = "queueittoken"

// queueItLink is a link made for Queue-it, by one of its connectors (KnownUser V3) or by hand.
// QUEUE-IT.md lists the forms.
type queueItLink struct {
	customer string
	event    string // slug of the room
	target   string // URL that the visitor wants to go to
	culture  string // language such as de-AT
}

// Valid forms of parameters. An event is a slug. KnownUser compares it case-sensitively, so other
// spellings are invalid.
var (
	eventForm   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	cultureForm = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$`)
)

// parseQueueItLink parses the parameters of a link into a line; false if it is not one.
func parseQueueItLink(query url.Values) (queueItLink, bool) {
	l := queueItLink{customer: query.Get("c"), event: query.Get("e"), target: query.Get("t"), culture: query.Get("cid")}
	if !cultureForm.MatchString(l.culture) {
		l.culture = ""
	}
	return l, l.customer != "" && eventForm.MatchString(l.event)
}

// parseQueueItCancel parses a link that ends a visit, below /cancel/. It has one event,
// customer/event with or without an ID, or several, multiple/customer?wrl=event~id_event~id, of which
// only the first counts.
func parseQueueItCancel(path string, query url.Values) (queueItLink, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 || len(parts) > 3 {
		return queueItLink{}, false
	}
	l := queueItLink{customer: parts[0], event: parts[1], target: query.Get("r")}
	if rooms := query.Get("wrl"); parts[0] == "multiple" && rooms != "" {
		first, _, _ := strings.Cut(rooms, "_")
		l.customer = parts[1]
		l.event, _, _ = strings.Cut(first, "~")
	}
	return l, l.customer != "" && eventForm.MatchString(l.event)
}

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
		l, ok := parseQueueItLink(c.QueryParams())
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
		l, ok := parseQueueItCancel(c.Param("*"), c.QueryParams())
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
func (q *queueItLinks) roomOf(c echo.Context, l *queueItLink) (*room.Room, error) {
	c.Set(fromLink, l.event)
	c.Response().Header()["Cache-Control"] = noStore
	r, err := q.rooms.Get(c.Request().Context(), l.event)
	if err != nil {
		return nil, err
	}
	if settings, ok := r.QueueIt.Config(); ok && !strings.EqualFold(settings.CustomerID, l.customer) {
		return nil, room.ErrNotFound
	}
	return r, q.hosts.check(c.Request(), r)
}

// followToLine redirects to the room, with target and language if the room allows them.
func (q *queueItLinks) followToLine(c echo.Context, l queueItLink) error {
	r, err := q.roomOf(c, &l)
	if err != nil {
		return err
	}
	settings, _ := r.Settings()
	query := url.Values{}
	if _, ok := settings.Target(l.target); ok && l.target != "" {
		query.Set("to", l.target)
	}
	if lang, ok := languageOf(l.culture, brand.Languages(&settings.Brand)); ok {
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
func (q *queueItLinks) followFromLine(c echo.Context, l queueItLink) error {
	r, err := q.roomOf(c, &l)
	if err != nil {
		return err
	}
	settings, _ := r.Settings()
	if u, ok := settings.Target(l.target); ok && l.target != "" {
		return c.Redirect(http.StatusSeeOther, u.String())
	}
	return c.Redirect(http.StatusSeeOther, pathOf(r))
}

// languageOf returns the offered language that matches a culture; false if there is none. No offered
// languages means all.
func languageOf(culture string, offered []page.Lang) (page.Lang, bool) {
	if len(offered) == 0 {
		offered = page.Languages()
	}
	base, _, _ := strings.Cut(culture, "-")
	for _, l := range offered {
		if strings.EqualFold(base, string(l)) {
			return l, true
		}
	}
	return "", false
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
		target = withParameter(target, passParameter, pass.Token)
	}
	if token != "" {
		target = withParameter(target, queueItParameter, token)
	}
	return target.String(), nil
}
