package web

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/web/console"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/picture"
)

// robots keeps search engines from what is not for them. Rooms are not in it:
// their pages say that they are not to be listed, and messengers that respect this
// file could not show what a link leads to.
const robots = "User-agent: *\nDisallow: /console\nDisallow: /v1/\n"

// home answers people at the server's own address.
func (s *Server) home(c echo.Context) error {
	if err := s.chargePage(c); err != nil {
		return err
	}
	v := page.HomeView{Lang: language(c), Site: s.site}
	if s.accounts != nil && !s.isForeign(c.Request()) {
		v.Console = console.Path
	}
	shelter(c.Response().Header())
	return s.sendPage(c, http.StatusOK, func(w io.Writer) error { return s.pages.Home(w, v) })
}

// robotsText answers search engines.
func (s *Server) robotsText(c echo.Context) error {
	c.Response().Header()["Cache-Control"] = brandCache
	return send(c, http.StatusOK, plainText, []byte(robots))
}

// iconCache is for pictures, whose names stay the same.
var iconCache = []string{"public, max-age=86400"}

// pictures are the images that have names of their own: browsers and messengers
// look for them there, or take no SVG.
var pictures = map[string]struct {
	contentType []string
	draw        func() []byte
}{
	"/favicon.ico":          {[]string{"image/x-icon"}, sync.OnceValue(picture.Tab)},
	"/apple-touch-icon.png": {[]string{"image/png"}, sync.OnceValue(picture.Touch)},
	"/preview.png":          {[]string{"image/png"}, sync.OnceValue(picture.Preview)},
}

// picture answers with one of [pictures].
func (s *Server) picture(c echo.Context) error {
	p := pictures[c.Path()]
	c.Response().Header()["Cache-Control"] = iconCache
	return send(c, http.StatusOK, p.contentType, p.draw())
}

// contactLife is how long security.txt holds: RFC 9116 wants less than a year.
const contactLife = 90 * 24 * time.Hour

// securityText tells people who found a vulnerability whom to write to
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
