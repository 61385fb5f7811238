package web

import (
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/page"
)

// wantsPage reports whether to send an error as a page, because a visitor will see it: the browser
// asked for a page or sent a form, and not by a script. Other paths get an error page only if they do
// not exist, since a visitor may have mistyped them, or come from a link made for Queue-it.
func wantsPage(c echo.Context, p problem) bool {
	r := c.Request()
	accept := r.Header.Get("Accept")
	if !isPage(c.Path()) {
		isMistyped := p.Status == http.StatusNotFound && p.Type == noType && !isBelow(c, managementPath) && !isBelow(c, assetsPath)
		return (isMistyped || c.Get(fromLink) != nil) && strings.Contains(accept, "text/html")
	}
	isScript := isJSON(r.Header.Get("Content-Type")) || c.QueryParam("fragment") == "1"
	isData := strings.Contains(accept, "json") && !strings.Contains(accept, "text/html")
	return !isScript && !isData
}

// sendErrorPage sends an error as a page.
func (s *Server) sendErrorPage(c echo.Context, p problem) error {
	for _, shared := range []string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers"} {
		delete(c.Response().Header(), shared)
	}
	if isCrowded(&p) {
		return s.crowded.send(s, c, p.Status)
	}
	v := page.ErrorView{Lang: language(c), Kind: kindOf(p), RequestID: p.RequestID, Statement: page.Statement{Words: p.words, Signed: p.Statement}}
	if r, ok := c.Get(roomKey).(*room.Room); ok {
		settings, _ := r.Settings()
		v.Lang = language(c, brand.Languages(&settings.Brand)...)
		view := s.roomView(c, r, v.Lang)
		v.Room = &view
	}
	if p.Status == http.StatusConflict || p.Status >= http.StatusInternalServerError {
		v.Again = publicPath + c.Param("slug")
		if event, ok := c.Get(fromLink).(string); ok {
			v.Again = publicPath + event
		}
	}
	return s.sendPage(c, p.Status, func(w io.Writer) error { return s.pages.Error(w, v) })
}

// kindOf maps a problem to the kind of error page.
func kindOf(p problem) page.Kind {
	switch strings.TrimPrefix(p.Type, problemTypes) {
	case "full":
		return page.NoRoom
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
