package session

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/rules"
)

// Room is a room of the rules, with the properties that its cookies need.
type Room struct {
	rules.Room
	Name   string
	cookie string // name of the session cookie, followed by =
	proof  string // name of the proof cookie, followed by =
	tag    [8]byte
}

// NewRoom returns a room of the rules.
func NewRoom(name string, r rules.Room) *Room {
	return &Room{r, name, CookiePrefix + name + "=", proofPrefix + name + "=", tagOf(r.URL, r.Origin)}
}

// New returns a session of a client. The caller sets its ticket and times.
func (rm *Room) New(pass id.ID, client netip.Addr, agent string, now time.Time) *Session {
	return &Session{Room: rm.tag, Pass: pass, Issued: now.UnixMilli(), Bind: bindOf(rm.Bind, client, agent)}
}

// IsBoundTo reports whether a session may be used from a network, as far as its room binds sessions to networks.
func (rm *Room) IsBoundTo(v *Session, client netip.Addr) bool {
	return rm.Bind != rules.BindNetwork || v.Bind == NetworkOf(client)
}

// HasCookie reports whether a request has a session cookie of the room.
func (rm *Room) HasCookie(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Cookie"], func(line string) bool {
		return slices.ContainsFunc(strings.Split(line, ";"), func(part string) bool {
			return strings.HasPrefix(strings.Trim(part, " \t"), rm.cookie)
		})
	})
}

// NoCookie returns the Set-Cookie header that removes the session cookie.
func (rm *Room) NoCookie() string {
	return rm.cookie + "; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"
}
