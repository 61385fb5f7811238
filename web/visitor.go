package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/page"
)

// Header values of pages. Since pages use cookies, other origins must not read them.
var (
	htmlText    = []string{"text/html; charset=utf-8"}
	cssText     = []string{"text/css; charset=utf-8"}
	sameOrigin  = []string{"same-origin"}
	permissions = []string{"camera=(), geolocation=(), microphone=(), payment=(), usb=()"}
	brandCache  = []string{"public, max-age=300"}
)

// contentPolicy is the Content-Security-Policy of pages without a room. Pages of a room add its
// targets to form-action, which also applies to redirects.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

// isPage reports whether a route serves a page or handles a page's form.
func isPage(route string) bool {
	switch route {
	case publicPath + ":slug", publicPath + ":slug/check", publicPath + ":slug/fair", publicPath + ":slug/report",
		publicPath + ":slug/brand.css", publicPath + ":slug/logo",
		publicPath + ":slug/line", publicPath + ":slug/claim", publicPath + ":slug/leave", publicPath + ":slug/link", publicPath + ":slug/take":
		return true
	}
	return false
}

// shelter sets the headers of all pages.
func shelter(h http.Header) {
	h["Cache-Control"] = noStore
	h["Referrer-Policy"] = sameOrigin
	h["Cross-Origin-Opener-Policy"] = sameOrigin
	h["Permissions-Policy"] = permissions
}

// pages serves the pages of rooms to visitors.
type pages struct {
	renderer *renderer
	finder   *roomFinder
	hosts    *customHosts
	budgets  *budgets
	reports  Reports
	looks    stylesheets
}

func (p *pages) register(e *echo.Echo) {
	e.Match(read, inRoom, p.pageOf(p.linePage))
	e.Match(read, inRoom+"/check", p.pageOf(p.checkPage))
	e.Match(read, inRoom+"/fair", p.pageOf(p.fairPage))
	e.Match(read, inRoom+"/report", p.pageOf(p.report))
	e.Match(read, inRoom+"/brand.css", p.finder.inLine(p.brandStyle))
	e.Match(read, inRoom+"/logo", p.finder.inLine(p.logo))
}

// pageOf wraps the handler of a page that is rendered for each request.
func (p *pages) pageOf(handle func(echo.Context, *room.Room) error) echo.HandlerFunc {
	return p.finder.inLine(p.hosts.atHome(func(c echo.Context, r *room.Room) error {
		if err := p.budgets.page(c); err != nil {
			return err
		}
		return handle(c, r)
	}))
}

// linePage serves the page of a line, or only its <main>.
func (p *pages) linePage(c echo.Context, r *room.Room) error {
	fragment := c.QueryParam("fragment") == "1"
	own, known := holderOf(c, r)
	ticket := own.ticket
	if id := c.QueryParam("ticket"); fragment && id != "" {
		var err error
		if ticket, err = parseTicket(id); err != nil {
			return err
		}
		if _, err := r.Place(c.Request().Context(), ticket); err != nil {
			return err
		}
	}
	v, err := p.renderer.view(c, r, ticket)
	if err != nil {
		return err
	}
	v.Cookie = known
	if fragment {
		return sendPage(c, http.StatusOK, func(w io.Writer) error { return p.renderer.pages.Fragment(w, v) })
	}
	keepLanguage(c, v.Lang)
	keepTarget(c, r)
	return sendPage(c, http.StatusOK, func(w io.Writer) error { return p.renderer.pages.Visitor(w, v) })
}

// checkPage serves the page that checks the visitor's own place.
func (p *pages) checkPage(c echo.Context, r *room.Room) error {
	own, _ := holderOf(c, r)
	v, err := p.renderer.view(c, r, own.ticket)
	if err != nil {
		return err
	}
	keepLanguage(c, v.Lang)
	return sendPage(c, http.StatusOK, func(w io.Writer) error {
		return p.renderer.pages.Check(w, page.CheckView{Room: v.Room, Lang: v.Lang, Now: v.Now, Ticket: v.Ticket})
	})
}

// brandStyle serves the organizer's style sheet.
func (p *pages) brandStyle(c echo.Context, r *room.Room) error {
	settings, _ := r.Settings()
	if !brand.HasLooks(&settings.Brand) {
		return echo.ErrNotFound
	}
	css, err := p.looks.of(r)
	if err != nil {
		return err
	}
	c.Response().Header()["Cache-Control"] = brandCache
	return send(c, http.StatusOK, cssText, css)
}

// stylesheets caches the style sheet of each room, because parsing custom CSS takes milliseconds.
type stylesheets struct{ bySlug sync.Map } // of *stylesheet

type stylesheet struct {
	version int64 // of the settings
	css     []byte
}

func (all *stylesheets) of(r *room.Room) ([]byte, error) {
	settings, version := r.Settings()
	if found, ok := all.bySlug.Load(r.Slug); ok {
		if known, _ := found.(*stylesheet); known.version == version {
			return known.css, nil
		}
	}
	css, err := brand.Looks(&settings.Brand).CSS()
	if err != nil {
		return nil, err
	}
	all.bySlug.Store(r.Slug, &stylesheet{version, css})
	return css, nil
}

// logo serves the room's image, optionally the one for dark mode, or else the organization's.
func (p *pages) logo(c echo.Context, r *room.Room) error {
	settings, _ := r.Settings()
	scheme := settings.Brand.Scheme
	if c.QueryParam("scheme") == "dark" {
		scheme = settings.Brand.Dark
	}
	mediaType, image, ok := scheme.Image()
	if !ok && p.renderer.organizations != nil && c.QueryParam("scheme") == "" {
		logo, err := p.renderer.organizations.Logo(c.Request().Context(), r.Owner.Org)
		if err != nil && !errors.Is(err, account.ErrNotFound) {
			return err
		}
		mediaType, image, ok = logo.MediaType, logo.Image, err == nil
	}
	if !ok {
		return echo.ErrNotFound
	}
	c.Response().Header()["Cache-Control"] = brandCache
	return send(c, http.StatusOK, []string{mediaType}, image)
}

// sendPage renders a page and sends it; if rendering fails, it sends nothing.
func sendPage(c echo.Context, status int, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	h := c.Response().Header()
	h["Content-Security-Policy"] = []string{policyOf(c)}
	h["Vary"] = acceptEncoding
	body := b.Bytes()
	if acceptsGzip(c.Request().Header["Accept-Encoding"]) { // no secret in a page could leak by its compressed length
		h["Content-Encoding"] = gzipped
		body = compress(body)
	}
	return send(c, status, htmlText, body)
}

// policyOf returns the Content-Security-Policy of a page, with the targets of its room.
func policyOf(c echo.Context) string {
	r, ok := c.Get(roomKey).(*room.Room)
	if !ok {
		return contentPolicy
	}
	settings, _ := r.Settings()
	return strings.Join(append([]string{contentPolicy}, settings.Origins()...), " ")
}

// renderer renders visitors' pages.
type renderer struct {
	pages         *page.Pages
	organizations *account.Organizations // nil: pages name no organizer
}

// view returns the data of a line's page for a ticket that may not have joined; the zero ticket is
// for
// visitors without one. Error: [*room.StaleError].
func (re *renderer) view(c echo.Context, r *room.Room, ticket fairness.Ticket) (page.View, error) {
	snapshot := r.Snapshot() // taken before the standing, so that it does not have more calls than the standing
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
		Paused: snapshot.Paused, ClaimsFrozen: r.ClaimsFrozen(), Rehearsal: r.Owner.RehearsalOf != nil,
		Slower:  snapshot.Outflow.PerMinute < policy.Outflow.PerMinute,
		HasGate: snapshot.Gate != room.GateNone, Open: snapshot.Gate == room.GateOpen,
		Poll: roomPoll(snapshot, now), Refresh: refresh(c),
	}
	v.Without = v.State
	if snapshot.Closes != nil {
		v.Closes = *snapshot.Closes
	}
	if u, ok := r.Target(wantedTarget(c, r)); ok {
		v.Target, v.Way = u.Scheme+"://"+u.Host, u.String()
	}
	if joined {
		v.State, v.Poll, v.Ticket = stateOf(&st, snapshot), ticketPoll(&st, snapshot, now), ticketView(&st, snapshot, now)
		if v.State == page.Admitted && !r.IsIn(c.Request().Context(), st) {
			v.State = page.Over
		}
	}
	return v, nil
}

// roomView returns the data that every page of a room shows.
func (re *renderer) roomView(c echo.Context, r *room.Room, lang page.Lang) page.Room {
	snapshot := r.Snapshot()
	settings, stored := r.Settings()
	version := strconv.FormatInt(stored, 10)
	v := page.Room{
		Slug: r.Slug, Title: snapshot.Title,
		Message: messageView(c, snapshot.Message(r.Now()), lang, brand.Languages(&settings.Brand)), Origin: r.Origin,
		VKey: r.VKey, URL: r.URL, Zone: settings.Zone(), Chance: chanceOf(r),
	}
	if re.organizations != nil {
		ctx := c.Request().Context()
		v.Organizer = re.organizations.PublicName(ctx, r.Owner.Org)
		if logo := re.organizations.PublicLogo(ctx, r.Owner.Org); logo != "" {
			v.Logo = pathOf(r) + "/logo?v=" + logo
		}
	}
	b := &settings.Brand
	v.Offered, v.Texts = brand.Languages(b), brand.Texts(b, lang)
	if b.Logo != "" {
		v.Logo = pathOf(r) + "/logo?v=" + version
	}
	if b.Dark.Logo != "" {
		v.Dark = pathOf(r) + "/logo?scheme=dark&v=" + version
	}
	if brand.HasLooks(b) {
		v.Brand = pathOf(r) + "/brand.css?v=" + version
	}
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
	}
	return page.Revoked
}

// reasons maps the reasons for revoking tickets to those of the pages.
var reasons = map[fairness.Reason]page.Reason{
	fairness.RevokedBot: page.ReasonBot, fairness.RevokedDuplicate: page.ReasonDuplicate,
	fairness.RevokedFraud: page.ReasonFraud, fairness.RevokedRequest: page.ReasonRequest,
}

// ticketView returns the data of the visitor's own place.
func ticketView(st *fairness.Standing, s *room.Snapshot, now time.Time) *page.Ticket {
	t := &page.Ticket{
		ID: st.Ticket.String(), Joined: time.UnixMilli(int64(st.Joined)),
		Window: windowView(st, s), Called: s.Counts.Called, Position: uint64(st.Position),
		AheadMin: st.AheadMin, AheadMax: st.AheadMax, Left: time.Duration(st.Left) * time.Millisecond,
	}
	if st.Status == fairness.StatusDrawn {
		t.Called = t.Position - 1 - t.AheadMin // the snapshot may be slightly older
	}
	if st.Reason.IsRevoked() {
		t.Reason = reasons[st.Reason]
	}
	if st.Settled != 0 {
		t.Settled = time.UnixMilli(int64(st.Settled))
	}
	if span, ok := s.Expected(*st, now); ok {
		t.Expected = &page.Span{Earliest: span.Earliest, Latest: span.Latest}
		t.Grows = s.Grows(*st, now)
	}
	return t
}

// windowView returns the data of a ticket's window.
func windowView(st *fairness.Standing, s *room.Snapshot) page.Window {
	to := time.UnixMilli(int64(st.Window.To))
	w := page.Window{
		Index: uint64(st.Window.Index), From: time.UnixMilli(int64(st.Window.From)), To: to, Draws: s.Draws(st.Window),
	}
	if st.Status == fairness.StatusWaiting {
		w.Arrivals = uint32(st.AheadMax - st.AheadMin + 1) //nolint:gosec // at most fairness.MaxArrivals
	}
	for _, sum := range s.Windows {
		if sum.Index == st.Window.Index {
			w.Arrivals = max(w.Arrivals, sum.Arrivals)
		}
	}
	return w
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
