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

// Names of cookies. Browsers accept the __Host- prefix only in cookies that this host has set
// (https://www.rfc-editor.org/rfc/rfc6265bis#name-the-__host-prefix). Because a slug contains no dots, the names
// cannot collide.
const (
	secretCookie   = "__Host-proofline-"    //nolint:gosec // a name prefix, before the slug; the cookie holds the visitor's secret in base64url
	targetCookie   = "__Host-proofline.to." // prefix of the slug; the cookie holds the visitor's target
	languageCookie = "__Host-proofline.lang"
)

// Lifetimes of cookies.
const (
	secretAge   = 30 * 24 * time.Hour
	languageAge = 365 * 24 * time.Hour
)

// setCookie sets a cookie that scripts and other sites cannot read. With age 0 it lasts until the
// browser is closed.
func setCookie(c echo.Context, name, value string, age time.Duration) {
	c.SetCookie(&http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(age.Seconds()),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// cookie returns the value of a cookie, or "".
func cookie(r *http.Request, name string) string {
	found, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return found.Value
}

// holder is a visitor's secret and the ticket derived from it.
type holder struct {
	secret [fairness.SecretSize]byte
	ticket fairness.Ticket
}

func newHolder(r *room.Room, secret [fairness.SecretSize]byte) holder {
	return holder{secret, fairness.NewTicket(r.Origin, secret)}
}

// holderOf reads the room's secret cookie; false if it is missing or malformed.
func holderOf(c echo.Context, r *room.Room) (holder, bool) {
	secret, err := parseSecret(cookie(c.Request(), secretCookie+r.Slug))
	if err != nil {
		return holder{}, false
	}
	return newHolder(r, secret), true
}

// keep stores the secret in the room's cookie.
func (h holder) keep(c echo.Context, r *room.Room) {
	setCookie(c, secretCookie+r.Slug, h.text(), secretAge)
}

func (h holder) text() string { return base64.RawURLEncoding.EncodeToString(h.secret[:]) }

// language returns the language of the answer: one of those that a room offers, its own first; none
// offered means all. The link's language comes first, then the one in the cookie, then the
// browser's settings.
func language(c echo.Context, offered ...page.Lang) page.Lang {
	accepted := c.Request().Header.Get("Accept-Language")
	if chosen := page.Lang(c.QueryParam("lang")); chosen != "" && page.Match("", string(chosen), offered...) == chosen {
		return chosen
	}
	return page.Match(accepted, cookie(c.Request(), languageCookie), offered...)
}

// keepLanguage stores the page's language in a cookie if a link chose it.
func keepLanguage(c echo.Context, l page.Lang) {
	if c.QueryParam("lang") == string(l) && cookie(c.Request(), languageCookie) != string(l) {
		setCookie(c, languageCookie, string(l), languageAge)
	}
}

// sigSize is the length of signatures; values of other lengths are not signatures.
const sigSize = 22

// linked returns the target in the request's link.
func linked(c echo.Context) room.Wanted {
	return room.Wanted{To: c.QueryParam("to"), Sig: c.QueryParam("to_sig")}
}

// keepTarget stores the link's target in a cookie if the room allows it. Links with other targets
// still open the room.
func keepTarget(c echo.Context, r *room.Room) {
	if w := linked(c); r.Takes(w) {
		setCookie(c, targetCookie+r.Slug, formatWanted(w), 0)
	}
}

// formatWanted returns the cookie value of a target: the URL, which has no line breaks, and the
// signature on a second line.
func formatWanted(w room.Wanted) string {
	text := w.To
	if len(w.Sig) == sigSize {
		text += "\n" + w.Sig
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parseWanted parses the cookie value of a target; the zero value if it is malformed.
func parseWanted(value string) room.Wanted {
	text, _ := base64.RawURLEncoding.DecodeString(value)
	to, sig, _ := strings.Cut(string(text), "\n")
	return room.Wanted{To: to, Sig: sig}
}

// wantedTarget returns the visitor's target from the link or else the cookie, if the room allows it;
// zero if there is none.
func wantedTarget(c echo.Context, r *room.Room) room.Wanted {
	for _, w := range []room.Wanted{linked(c), parseWanted(cookie(c.Request(), targetCookie+r.Slug))} {
		if r.Takes(w) {
			return w
		}
	}
	return room.Wanted{}
}
