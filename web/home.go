package web

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/web/console/shell"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/picture"
)

// robots excludes pages that are not for search engines. Rooms are missing on purpose: their pages
// have a noindex tag, and messengers that respect this file could not preview links to them.
const robots = "User-agent: *\nDisallow: /console\nDisallow: /v1/\n"

// home serves the page at the server's own address.
func (s *Server) home(c echo.Context) error {
	if err := s.chargePage(c); err != nil {
		return err
	}
	v := page.HomeView{Lang: language(c), Site: s.site}
	if s.accounts != nil && !s.isForeign(c.Request()) {
		v.Console = shell.Path
	}
	shelter(c.Response().Header())
	return s.sendPage(c, http.StatusOK, func(w io.Writer) error { return s.pages.Home(w, v) })
}

// robotsText serves robots.txt.
func (s *Server) robotsText(c echo.Context) error {
	c.Response().Header()["Cache-Control"] = brandCache
	return send(c, http.StatusOK, plainText, []byte(robots))
}

// iconCache is the Cache-Control of pictures, whose names do not change.
var iconCache = []string{"public, max-age=86400"}

// pictures are the images with fixed names, for browsers and messengers that expect them there or do
// not support SVG.
var pictures = map[string]struct {
	contentType []string
	draw        func() []byte
}{
	"/favicon.ico":          {[]string{"image/x-icon"}, sync.OnceValue(picture.Tab)},
	"/apple-touch-icon.png": {[]string{"image/png"}, sync.OnceValue(picture.Touch)},
	"/preview.png":          {[]string{"image/png"}, sync.OnceValue(picture.Preview)},
}

// picture serves one of [pictures].
func (s *Server) picture(c echo.Context) error {
	p := pictures[c.Path()]
	c.Response().Header()["Cache-Control"] = iconCache
	return send(c, http.StatusOK, p.contentType, p.draw())
}

// contactLife is the validity of security.txt; RFC 9116 recommends less than a year.
const contactLife = 90 * 24 * time.Hour

// securityText serves security.txt, the contacts for reports of vulnerabilities
// (https://www.rfc-editor.org/rfc/rfc9116).
func (s *Server) securityText(c echo.Context) error {
	if len(s.contacts) == 0 {
		return echo.ErrNotFound
	}
	var b strings.Builder
	for _, contact := range s.contacts {
		b.WriteString("Contact: " + contact + "\r\n")
	}
	b.WriteString("Expires: " + time.Now().Add(contactLife).UTC().Truncate(time.Hour).Format(time.RFC3339) + "\r\n")
	b.WriteString("Preferred-Languages: en\r\n")
	c.Response().Header()["Cache-Control"] = iconCache
	return send(c, http.StatusOK, plainText, []byte(b.String()))
}
