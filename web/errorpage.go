package web

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

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
		return e.crowded.send(e.renderer.pages, c, &p)
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
	switch strings.TrimPrefix(p.Type, problemTypes) {
	case crowded:
		return page.Crowded
	case "room-limit", "server-limit":
		return page.Limited
	case "verdict":
		return page.Suspected
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

// crowdedPages caches the error pages for visitors who are to retry later, of each kind and in each language: they must
// cost less than the refused requests.
type crowdedPages struct{ byKind sync.Map } // keys are crowdedKey, values []byte

type crowdedKey struct {
	kind page.Kind
	lang page.Lang
}

// Placeholders in a cached page: of the slug, which is not a valid one, and of the seconds until the page goes back to
// the line.
const (
	crowdedRoom = "-room-"
	crowdedWait = 987_654_321
)

// Pages go back to the line at the time in Retry-After, each a little later than that, and within some minutes even if
// the network's limit of a day is reached: the visitor may have another network by then.
const (
	maxCrowdedWait = 5 * time.Minute
	crowdedSpread  = 10 * time.Second
)

// send sends the page.
func (p *crowdedPages) send(pages *page.Pages, c echo.Context, of *problem) error {
	slug, offered := c.Param("slug"), []page.Lang(nil)
	if r, ok := c.Get(roomKey).(*room.Room); ok {
		settings, _ := r.Settings()
		slug, offered = r.Slug, brand.Languages(&settings.Brand)
	}
	key := crowdedKey{kindOf(*of), language(c, offered...)}
	kept, ok := p.byKind.Load(key)
	if !ok {
		var b bytes.Buffer
		v := page.ErrorView{Lang: key.lang, Kind: key.kind, Again: publicPath + crowdedRoom, After: crowdedWait}
		if err := pages.Error(&b, v); err != nil {
			return err
		}
		kept = b.Bytes()
		p.byKind.Store(key, kept)
	}
	body, _ := kept.([]byte)
	path := "/"
	if setting.IsSlug(slug) {
		path = publicPath + slug
	}
	wait := min(of.retry, maxCrowdedWait) + rand.N(crowdedSpread) //nolint:gosec // spreads load; no secret
	seconds := strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
	body = bytes.ReplaceAll(body, []byte(publicPath+crowdedRoom), []byte(path))
	body = bytes.ReplaceAll(body, []byte(strconv.Itoa(crowdedWait)), []byte(seconds))
	c.Response().Header()["Content-Security-Policy"] = []string{contentPolicy}
	return reply.Send(c, of.Status, htmlText, body)
}

// isCrowded reports whether a request was refused because of a limit of its network, the room or the server.
func isCrowded(p *problem) bool {
	kind := kindOf(*p)
	return kind == page.Crowded || kind == page.Limited
}
