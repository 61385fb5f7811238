package console

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/proofline/proofline/console/account"
)

// Cookies beside [SessionCookie], each of which only this host can set.
const (
	knownCookie      = "__Host-proofline.known"      // that this browser has signed in before
	pendingCookie    = "__Host-proofline.pending"    // a sign-in that waits for a code
	oidcCookie       = "__Host-proofline.oidc"       // a sign-in that is at the issuer
	oidcNextCookie   = "__Host-proofline.oidc-next"  // where that leads to
	invitationCookie = "__Host-proofline.invitation" // token of a link that is being accepted
)

// invitationAge is how long a browser keeps the token of a link.
const invitationAge = time.Hour

// keep sets a cookie that scripts and other sites' forms cannot use. Lax, not
// Strict: people follow links from mails, and come back from an issuer.
func (x *request) keep(name, value string, age time.Duration) {
	x.SetCookie(&http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(age.Seconds()),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// forget removes a cookie.
func (x *request) forget(name string) { x.keep(name, "", -time.Second) }

// kept returns the value of a cookie, empty for none.
func (x *request) kept(name string) string {
	c, err := x.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// keepSession keeps the token that a session has from now on.
func (x *request) keepSession(token string) {
	x.keep(SessionCookie, token, account.SessionLife)
}

// client is the browser that asks.
func (x *request) client() account.Client {
	addr, err := netip.ParseAddr(x.RealIP())
	if err != nil {
		addr = netip.IPv6Unspecified() // all such share a count
	}
	return account.Client{Addr: addr, UserAgent: x.Request().UserAgent(), Known: x.kept(knownCookie)}
}
