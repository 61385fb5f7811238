package web

import (
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/files"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/reply"
)

// wantsPage reports whether to send an error as a page, because a visitor will see it: the browser, not a script,
// asked for a page or sent a form. Other paths get an error page only if they do not exist, because a visitor may
// have mistyped them, or followed a link made for Queue-it.
func wantsPage(c echo.Context, p problem) bool {
	r := c.Request()
	accept := r.Header.Get("Accept")
	if !isPage(c.Path()) {
		isMistyped := p.Status == http.StatusNotFound && p.Type == noType &&
			!isBelow(c, managementPath) && !isBelow(c, files.Path)
		return (isMistyped || c.Get(fromLink) != nil) && strings.Contains(accept, "text/html")
	}
	isScript := isJSON(r.Header.Get("Content-Type")) || c.QueryParam("fragment") == "1"
	isData := strings.Contains(accept, "json") && !strings.Contains(accept, "text/html")
	return !isScript && !isData
}

// sendErrorPage sends an error as a page.
func (e *errorAnswers) sendErrorPage(c echo.Context, p problem) error {
	for _, shared := range []string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers"} {
		delete(c.Response().Header(), shared)
	}
	if isCrowded(&p) {
		return e.sendCrowded(c, &p)
	}
	v := page.ErrorView{
		Lang: language(c), Kind: kindOf(p), RequestID: p.RequestID,
		Statement: page.Statement{Words: p.words, Signed: p.Statement},
	}
	if r, ok := c.Get(roomKey).(*room.Room); ok {
		settings, _ := r.Settings()
		v.Lang = language(c, brand.Languages(&settings.Brand)...)
		view := e.renderer.roomView(c, r, v.Lang)
		v.Room = &view
	}
	if v.Kind == page.Suspected || p.Status == http.StatusConflict || p.Status >= http.StatusInternalServerError {
		v.Again = publicPath + c.Param("slug")
		if event, ok := c.Get(fromLink).(string); ok {
			v.Again = publicPath + event
		}
	}
	return sendPage(c, p.Status, func(w io.Writer) error { return e.renderer.pages.Error(w, v) })
}

// kindOf maps a problem to the kind of error page.
func kindOf(p problem) page.Kind {
	kind, ok := page.KindOf(strings.TrimPrefix(p.Type, problemTypes))
	switch {
	case ok:
		return kind
	case p.Status == http.StatusNotFound:
		return page.NotFound
	case p.Status == http.StatusConflict:
		return page.Early
	case p.Status == http.StatusGone:
		return page.Gone
	case p.Status == http.StatusServiceUnavailable:
		return page.Busy
	case p.Status >= http.StatusInternalServerError:
		return page.Failed
	}
	return page.Refused
}

// chargeErrorPage charges an error page, unless it is cached. If the network has no budget left, the
// error is sent as a problem document.
func (e *errorAnswers) chargeErrorPage(c echo.Context, p *problem) error {
	if isCrowded(p) {
		return nil
	}
	return e.budgets.page(c)
}

// sendCrowded sends the page of a visitor who is to retry later.
func (e *errorAnswers) sendCrowded(c echo.Context, p *problem) error {
	slug, offered := c.Param("slug"), []page.Lang(nil)
	if r, ok := c.Get(roomKey).(*room.Room); ok {
		settings, _ := r.Settings()
		slug, offered = r.Slug, brand.Languages(&settings.Brand)
	}
	path := "/"
	if setting.IsSlug(slug) {
		path = publicPath + slug
	}
	body, err := e.crowded.Page(e.renderer.pages, kindOf(*p), language(c, offered...), path, p.retry)
	if err != nil {
		return err
	}
	c.Response().Header()["Content-Security-Policy"] = []string{contentPolicy}
	return reply.Send(c, p.Status, htmlText, body)
}

// isCrowded reports whether a request was refused because of a limit of its network, the room or the server.
func isCrowded(p *problem) bool {
	kind := kindOf(*p)
	return kind == page.Crowded || kind == page.Limited
}
