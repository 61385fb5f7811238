package web

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/page"
)

// Names of cookies. Browsers take the prefix for a promise that nobody but
// this host has set them
// (https://www.rfc-editor.org/rfc/rfc6265bis#name-the-__host-prefix). A slug has
// no dots, so no room's cookie can be mistaken for another.
const (
	secretCookie   = "__Host-proofline-"    //nolint:gosec // a name; with the slug, of the cookie that holds the visitor's secret in base64url
	targetCookie   = "__Host-proofline.to." // and the slug: where the visitor wants to go in the end
	languageCookie = "__Host-proofline.lang"
)

// How long browsers keep cookies.
const (
	secretAge   = 30 * 24 * time.Hour
	languageAge = 365 * 24 * time.Hour
)

// setCookie sets a cookie that scripts and other sites cannot read, until the
// browser is closed when age is 0.
func setCookie(c echo.Context, name, value string, age time.Duration) {
	c.SetCookie(&http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(age.Seconds()),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// cookie returns the value of a cookie, empty for none.
func cookie(r *http.Request, name string) string {
	found, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return found.Value
}

// holder is whoever shows a secret, and the ticket that goes with it.
type holder struct {
	secret [fairness.SecretSize]byte
	ticket fairness.Ticket
}

func newHolder(r *room.Room, secret [fairness.SecretSize]byte) holder {
	return holder{secret, fairness.NewTicket(r.Origin, secret)}
}

// holderOf reads the room's cookie. One that is malformed is as good as none.
func holderOf(c echo.Context, r *room.Room) (holder, bool) {
	secret, err := parseSecret(cookie(c.Request(), secretCookie+r.Slug))
	if err != nil {
		return holder{}, false
	}
	return newHolder(r, secret), true
}

// keep puts the secret into the room's cookie.
func (h holder) keep(c echo.Context, r *room.Room) {
	setCookie(c, secretCookie+r.Slug, h.text(), secretAge)
}

func (h holder) text() string { return base64.RawURLEncoding.EncodeToString(h.secret[:]) }

// language returns the language for a request: that of the link, that chosen
// earlier, or the best for the browser's settings, among those that a room
// offers, its own first; none for all.
func language(c echo.Context, offered ...page.Lang) page.Lang {
	accepted := c.Request().Header.Get("Accept-Language")
	if chosen := page.Lang(c.QueryParam("lang")); chosen != "" && page.Match("", string(chosen), offered...) == chosen {
		return chosen
	}
	return page.Match(accepted, cookie(c.Request(), languageCookie), offered...)
}

// keepLanguage remembers the language of a page, if a link chose it.
func keepLanguage(c echo.Context, l page.Lang) {
	if c.QueryParam("lang") == string(l) && cookie(c.Request(), languageCookie) != string(l) {
		setCookie(c, languageCookie, string(l), languageAge)
	}
}

// sigSize is how long signatures are; what is of another length is none.
const sigSize = 22

// linked returns where the link of a request says that the visitor wants to go.
func linked(c echo.Context) room.Wanted {
	return room.Wanted{To: c.QueryParam("to"), Sig: c.QueryParam("to_sig")}
}

// keepTarget remembers where the visitor wants to go in the end, if the room
// takes it. A link that asks for more than that leads to the room as any other.
func keepTarget(c echo.Context, r *room.Room) {
	if w := linked(c); r.Takes(w) {
		setCookie(c, targetCookie+r.Slug, formatWanted(w), 0)
	}
}

// formatWanted returns the value of a cookie: the URL, which has no line breaks,
// and on a line of its own the signature.
func formatWanted(w room.Wanted) string {
	text := w.To
	if len(w.Sig) == sigSize {
		text += "\n" + w.Sig
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parseWanted reads the value of a cookie. What is malformed is no target.
func parseWanted(value string) room.Wanted {
	text, _ := base64.RawURLEncoding.DecodeString(value)
	to, sig, _ := strings.Cut(string(text), "\n")
	return room.Wanted{To: to, Sig: sig}
}

// wantedTarget returns where the visitor wants to go, as the link says now or as
// remembered, that the room takes; zero for nowhere in particular.
func wantedTarget(c echo.Context, r *room.Room) room.Wanted {
	for _, w := range []room.Wanted{linked(c), parseWanted(cookie(c.Request(), targetCookie+r.Slug))} {
		if r.Takes(w) {
			return w
		}
	}
	return room.Wanted{}
}
