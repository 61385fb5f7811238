package web

import (
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room/queueit"
	"github.com/proofline/proofline/web/console/shell"
	"github.com/proofline/proofline/web/page"
)

// home serves the server's own address.
type home struct {
	renderer   *renderer
	hosts      *customHosts
	budgets    *budgets
	links      *queueItLinks
	site       string // the server's own origin; empty: unknown
	hasConsole bool
}

func (h *home) register(e *echo.Echo) { e.Match(read, "/", bounded(h.index)) }

// index redirects links made for Queue-it to their room, shows browsers the home page, and describes
// the server to programs.
func (h *home) index(c echo.Context) error {
	if l, ok := queueit.ParseLink(c.QueryParams()); ok {
		return h.links.followToLine(c, l)
	}
	if strings.Contains(c.Request().Header.Get("Accept"), "text/html") {
		return h.page(c)
	}
	return c.JSON(http.StatusOK, map[string]string{
		"name":          "proofline",
		"about":         "A virtual waiting room that can prove it was fair. The rooms are below /r/, their management below /v1/.",
		"documentation": documentation,
	})
}

// page serves the page at the server's own address.
func (h *home) page(c echo.Context) error {
	if err := h.budgets.page(c); err != nil {
		return err
	}
	v := page.HomeView{Lang: language(c), Site: h.site}
	if h.hasConsole && !h.hosts.isForeign(c.Request()) {
		v.Console = shell.Path
	}
	shelter(c.Response().Header())
	return sendPage(c, http.StatusOK, func(w io.Writer) error { return h.renderer.pages.Home(w, v) })
}
