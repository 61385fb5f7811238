package web

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"

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
		return e.crowded.send(e.renderer.pages, c, p.Status)
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
	if p.Status == http.StatusConflict || p.Status >= http.StatusInternalServerError {
		v.Again = publicPath + c.Param("slug")
		if event, ok := c.Get(fromLink).(string); ok {
			v.Again = publicPath + event
		}
	}
	return sendPage(c, p.Status, func(w io.Writer) error { return e.renderer.pages.Error(w, v) })
}

// kindOf maps a problem to the kind of error page.
func kindOf(p problem) page.Kind {
	switch strings.TrimPrefix(p.Type, problemTypes) {
	case "full":
		return page.NoRoom
	case "credential-malformed", "credential-unknown-method", "credential-missing", "credential-invalid":
		return page.Unproven
	case "credential-used":
		return page.Used
	case "method-full":
		return page.Spent
	case "records-missing":
		return page.Missing
	case "records-lost":
		return page.Lost
	}
	switch p.Status {
	case http.StatusNotFound:
		return page.NotFound
	case http.StatusConflict:
		return page.Early
	case http.StatusGone:
		return page.Gone
	case http.StatusServiceUnavailable:
		return page.Busy
	}
	if p.Status >= http.StatusInternalServerError {
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

// crowdedPages caches the error page for a network that has used up its budget, in each language: it
// must cost less than the refused request.
type crowdedPages struct{ byLang sync.Map } // values are []byte

// crowdedRoom is the placeholder for the slug in a cached page. It is not a valid slug.
const crowdedRoom = "-room-"

// send sends the page.
func (p *crowdedPages) send(pages *page.Pages, c echo.Context, status int) error {
	slug, offered := c.Param("slug"), []page.Lang(nil)
	if r, ok := c.Get(roomKey).(*room.Room); ok {
		settings, _ := r.Settings()
		slug, offered = r.Slug, brand.Languages(&settings.Brand)
	}
	lang := language(c, offered...)
	kept, ok := p.byLang.Load(lang)
	if !ok {
		var b bytes.Buffer
		v := page.ErrorView{Lang: lang, Kind: page.Crowded, Again: publicPath + crowdedRoom}
		if err := pages.Error(&b, v); err != nil {
			return err
		}
		kept = b.Bytes()
		p.byLang.Store(lang, kept)
	}
	body, _ := kept.([]byte)
	if !setting.IsSlug(slug) {
		slug = ""
	}
	c.Response().Header()["Content-Security-Policy"] = []string{contentPolicy}
	return reply.Send(c, status, htmlText, bytes.ReplaceAll(body, []byte(crowdedRoom), []byte(slug)))
}

// isCrowded reports whether a request was refused because of its network's limit.
func isCrowded(p *problem) bool {
	return p.Status == http.StatusTooManyRequests && p.Type == problemTypes+crowded
}
