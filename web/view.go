package web

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/confirm"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/place"
	"github.com/proofline/proofline/web/poll"
	"github.com/proofline/proofline/web/reply"
)

// sendPage renders a page and sends it; if rendering fails, it sends nothing.
func sendPage(c echo.Context, status int, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	c.Response().Header()["Content-Security-Policy"] = []string{policyOf(c)}
	// a page contains no secret that its compressed length could reveal
	body := reply.Coded(c, b.Bytes(), func() []byte { return reply.Compress(b.Bytes()) })
	return reply.Send(c, status, htmlText, body)
}

// policyOf returns the Content-Security-Policy of a page, with the targets of its room.
func policyOf(c echo.Context) string {
	r, ok := c.Get(roomKey).(*room.Room)
	if !ok {
		return contentPolicy
	}
	settings, _ := r.Settings()
	if len(settings.Issuers) > 0 { // issuers ask browsers for the origin of their forms
		c.Response().Header()["Referrer-Policy"] = strictOrigin
	}
	return strings.Join(append([]string{contentPolicy}, settings.Origins()...), " ")
}

// renderer renders visitors' pages.
type renderer struct {
	pages         *page.Pages
	organizations *account.Organizations // nil: pages name no organizer
	isAway        func(*room.Room, *room.Confirmation) bool
}

// view returns the data of a line's page for a ticket that may not have joined; the zero ticket is
// for visitors without one. Error: [*room.StaleError].
func (re *renderer) view(c echo.Context, r *room.Room, ticket fairness.Ticket) (page.View, error) {
	snapshot := r.Snapshot() // taken before the standing, so that it does not contain more calls than the standing
	var st fairness.Standing
	joined := ticket != fairness.Ticket{}
	if joined {
		var err error
		st, err = r.Place(c.Request().Context(), ticket)
		if joined = !errors.Is(err, room.ErrTicketUnknown); joined && err != nil {
			return page.View{}, err
		}
	}
	policy, now := r.Policy(), r.Now()
	settings, _ := r.Settings()
	lang := language(c, brand.Languages(&settings.Brand)...)
	v := page.View{
		Room: re.roomView(c, r, lang), Lang: lang, State: stateWithout(r, now), Now: now,
		Opens: snapshot.Opens, Starts: snapshot.Starts, Claim: time.Duration(policy.Claim) * time.Millisecond,
		Paused: snapshot.Paused, ClaimsFrozen: snapshot.ClaimsFrozen, Rehearsal: r.Owner.RehearsalOf != nil,
		Vouched: r.Snapshot().OpenLane() == "", Party: snapshot.Party,
		Slower:  snapshot.Outflow.PerMinute < policy.Outflow.PerMinute,
		HasGate: snapshot.Gate != room.GateNone, Open: snapshot.Gate == room.GateOpen,
		Poll: poll.Room(snapshot, now), Refresh: refresh(c),
	}
	v.Without, v.Returned = v.State, c.QueryParam("confirm") == "1"
	if own, ok := holderOf(c, r); ok {
		v.Own = own.ticket.String()
	}
	if snapshot.Closes != nil {
		v.Closes = *snapshot.Closes
	}
	if u, ok := r.Target(wantedTarget(c, r)); ok {
		v.Target, v.Way = u.Scheme+"://"+u.Host, u.String()
	}
	v.HasGaps, v.Slots = snapshot.HasGaps(), place.Slots(snapshot, &policy, now)
	if joined {
		v.State, v.Poll, v.Ticket = stateOf(&st, snapshot), poll.Ticket(&st, snapshot, now),
			place.Ticket(&st, snapshot, now)
		if v.State == page.Admitted && !r.Sessions.IsIn(c.Request().Context(), st) {
			v.State = page.Over
		}
		place.AddLots(&v, r, &st, snapshot)
	}
	confirm.Add(&v, r, ticket, re.isAway)
	return v, nil
}

// roomView returns the data that every page of a room shows.
func (re *renderer) roomView(c echo.Context, r *room.Room, lang page.Lang) page.Room {
	snapshot := r.Snapshot()
	settings, version := r.Settings()
	v := page.Room{
		Slug: r.Slug, Title: snapshot.Title,
		Message: messageView(c, snapshot.Message(r.Now()), lang, brand.Languages(&settings.Brand)), Origin: r.Origin,
		VKey: r.VKey, URL: r.URL, Zone: settings.Zone(), Chance: chanceOf(r),
		Appeal: settings.Appeal, AppealURL: setting.AppealURL(settings.Appeal),
	}
	logo := ""
	if re.organizations != nil {
		ctx := c.Request().Context()
		v.Organizer = re.organizations.PublicName(ctx, r.Owner.Org)
		logo = re.organizations.PublicLogo(ctx, r.Owner.Org)
	}
	b := &settings.Brand
	v.Offered, v.Texts = brand.Languages(b), brand.Texts(b, lang)
	links := brand.LinksOf(pathOf(r), b, version, logo)
	v.Brand, v.Logo, v.Dark = links.CSS, links.Logo, links.Dark
	return v
}

// messageView returns the organizer's message in the visitor's language.
func messageView(c echo.Context, m *room.Message, lang page.Lang, offered []page.Lang) page.Message {
	v := page.Message{Wanted: page.Wanted(c.Request().Header.Get("Accept-Language"), lang, offered...)}
	if m == nil {
		return v
	}
	words, tag := m.For(v.Wanted)
	v.Text = page.Text{Words: words, Lang: page.Lang(tag)}
	if m.Until != nil {
		v.Until = *m.Until
	}
	return v
}

// pathOf returns the path of a room's page.
func pathOf(r *room.Room) string { return publicPath + url.PathEscape(r.Slug) }

// stateWithout returns the page's state for a visitor without a place.
func stateWithout(r *room.Room, now time.Time) page.State {
	s := r.Snapshot()
	switch {
	case s.Ended:
		return page.Ended
	case now.Before(s.Opens):
		return page.Upcoming
	case s.Closes != nil && !now.Before(*s.Closes):
		return page.Closed
	case r.IsFull():
		return page.Full
	}
	return page.Joinable
}

// stateOf returns the page's state for a ticket.
func stateOf(st *fairness.Standing, s *room.Snapshot) page.State {
	switch {
	case st.Status == fairness.StatusAdmitted:
		return page.Admitted
	case st.Status == fairness.StatusSkipped:
		return skipState(st.Reason)
	case s.Ended:
		return page.Ended
	case st.Status == fairness.StatusCalled:
		return page.Called
	case st.Status == fairness.StatusDrawn:
		return page.Drawn
	}
	return page.Waiting
}

func skipState(reason fairness.Reason) page.State {
	switch reason {
	case fairness.NoShow:
		return page.Missed
	case fairness.Left:
		return page.Left
	default:
		return page.Revoked
	}
}

// Limits of the refresh interval of a page without scripts.
const (
	minRefresh = 15 * time.Second
	maxRefresh = 10 * time.Minute
)

// refresh returns the refresh interval that the visitor has chosen; 0: none.
func refresh(c echo.Context) time.Duration {
	seconds, err := strconv.ParseUint(c.QueryParam("refresh"), 10, 16)
	if err != nil || seconds == 0 {
		return 0
	}
	return min(max(time.Duration(seconds)*time.Second, minRefresh), maxRefresh)
}
