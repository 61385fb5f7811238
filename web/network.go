package web

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/limit"
	"github.com/proofline/proofline/web/page"
)

// chargeJoin charges a join to its network's budgets.
func (s *Server) chargeJoin(c echo.Context, r *room.Room) error {
	if s.limits == nil {
		return nil
	}
	return s.limits.Join(s.clients.of(c.Request()), r.Slug)
}

// settleJoin refunds the charge for a ticket if the join recorded none. A join of unknown outcome
// stays charged.
func (s *Server) settleJoin(c echo.Context, r *room.Room, joined *room.Joined, err error) {
	if _, unsure := tookTooLong(err); s.limits == nil || unsure || err == nil && !joined.Again {
		return
	}
	s.limits.NoTicket(s.clients.of(c.Request()), r.Slug)
}

// inTurn runs do, which uses the database, in the network's turn. It must not wait for the client:
// the
// body is read before, and the answer is written after.
func (s *Server) inTurn(c echo.Context, do func() error) error {
	done, err := s.limits.Turn(c.Request().Context(), s.clients.of(c.Request()))
	if err != nil {
		return err
	}
	defer done()
	return do()
}

// chargePage charges a page that is about to be rendered.
func (s *Server) chargePage(c echo.Context) error {
	if s.limits == nil {
		return nil
	}
	return s.limits.Take(s.clients.of(c.Request()), limit.Pages, 1)
}

// chargeErrorPage charges an error page, unless it is cached. If the network has no budget left, the
// error is sent as a problem document.
func (s *Server) chargeErrorPage(c echo.Context, p *problem) error {
	if isCrowded(p) {
		return nil
	}
	return s.chargePage(c)
}

// pageOf wraps the handler of a page that is rendered for each request.
func (s *Server) pageOf(handle func(echo.Context, *room.Room) error) echo.HandlerFunc {
	return s.inLine(s.atHome(func(c echo.Context, r *room.Room) error {
		if err := s.chargePage(c); err != nil {
			return err
		}
		return handle(c, r)
	}))
}

// crowdedPages caches the error page for a network that has used up its budget, in each language: it
// must cost less than the refused request.
type crowdedPages struct{ byLang sync.Map } // of []byte

// crowdedRoom is the placeholder for the slug in a cached page. It is not a valid slug.
const crowdedRoom = "-room-"

// send sends the page.
func (p *crowdedPages) send(s *Server, c echo.Context, status int) error {
	slug, offered := c.Param("slug"), []page.Lang(nil)
	if r, ok := c.Get(roomKey).(*room.Room); ok {
		settings, _ := r.Settings()
		slug, offered = r.Slug, brand.Languages(&settings.Brand)
	}
	lang := language(c, offered...)
	kept, ok := p.byLang.Load(lang)
	if !ok {
		var b bytes.Buffer
		if err := s.pages.Error(&b, page.ErrorView{Lang: lang, Kind: page.Crowded, Again: publicPath + crowdedRoom}); err != nil {
			return err
		}
		kept = b.Bytes()
		p.byLang.Store(lang, kept)
	}
	body, _ := kept.([]byte)
	if !eventForm.MatchString(slug) {
		slug = ""
	}
	c.Response().Header()["Content-Security-Policy"] = []string{contentPolicy}
	return send(c, status, htmlText, bytes.ReplaceAll(body, []byte(crowdedRoom), []byte(slug)))
}

// isCrowded reports whether a request was refused because of its network's limit.
func isCrowded(p *problem) bool {
	return p.Status == http.StatusTooManyRequests && p.Type == problemTypes+crowded
}
