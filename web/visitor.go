package web

import (
	"errors"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/reply"
)

// Header values of pages. Other origins must not read pages, because pages depend on cookies.
var (
	htmlText     = []string{"text/html; charset=utf-8"}
	cssText      = []string{"text/css; charset=utf-8"}
	sameOrigin   = []string{"same-origin"}
	strictOrigin = []string{"strict-origin"}
	permissions  = []string{"camera=(), geolocation=(), microphone=(), payment=(), usb=()"}
)

// contentPolicy is the Content-Security-Policy of pages without a room. Pages of a room add its
// targets to form-action, which also applies to redirects.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

// isPage reports whether a route serves a page or handles a page's form.
func isPage(route string) bool {
	switch route {
	case inRoom, inRoom + "/check", inRoom + "/fair", inRoom + "/report", inRoom + "/brand.css", inRoom + "/logo",
		inRoom + "/line", inRoom + "/claim", inRoom + "/leave", inRoom + "/extend", inRoom + "/link", inRoom + "/take",
		inRoom + "/credential":
		return true
	}
	return false
}

// shelter sets the headers of all pages.
func shelter(h http.Header) {
	h["Cache-Control"] = reply.NoStore
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
	joins    joins
	looks    brand.Sheets
}

func (p *pages) register(e *echo.Echo) {
	e.Match(read, inRoom, p.pageOf(p.linePage))
	e.Match(read, inRoom+"/check", p.pageOf(p.checkPage))
	e.Match(read, inRoom+"/fair", p.pageOf(p.fairPage))
	e.Match(read, inRoom+"/report", p.pageOf(p.report))
	e.POST(inRoom+"/credential", p.finder.inLine(p.joinIssued))
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
	settings, version := r.Settings()
	if !brand.HasLooks(&settings.Brand) {
		return echo.ErrNotFound
	}
	css, err := p.looks.Of(r.Slug, version, &settings.Brand)
	if err != nil {
		return err
	}
	c.Response().Header()["Cache-Control"] = reply.Minutes
	return reply.Send(c, http.StatusOK, cssText, css)
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
	c.Response().Header()["Cache-Control"] = reply.Minutes
	return reply.Send(c, http.StatusOK, []string{mediaType}, image)
}
