package web

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
)

// customHosts keeps the hosts of organizations apart: each serves the rooms of its organization only.
type customHosts struct {
	owners *account.Hosts // nil: there are no custom hosts
	public string         // host of the server's own address, without port
}

func newCustomHosts(o Options) *customHosts {
	h := &customHosts{}
	if o.Accounts != nil {
		h.owners = o.Accounts.Hosts
	}
	if u, err := url.Parse(o.publicURL()); err == nil { // crossOrigin logs an invalid URL
		h.public = strings.ToLower(u.Hostname())
	}
	return h
}

// hostname returns the request's host in the form of custom hosts: lower case, without port.
func hostname(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isForeign reports whether a request was made to an organization's custom host, which serves rooms
// only.
func (h *customHosts) isForeign(r *http.Request) bool {
	if h.owners == nil || hostname(r) == h.public {
		return false
	}
	_, foreign, err := h.owners.Owner(r.Context(), hostname(r))
	return err == nil && foreign
}

// check returns an error if the request was made to a custom host that is not the room's: such a
// host serves no other rooms.
func (h *customHosts) check(r *http.Request, found *room.Room) error {
	host := hostname(r)
	switch {
	case h.owners == nil || host == h.public:
		return nil
	case found.Owner.Host != nil && host == *found.Owner.Host:
		if h.hasLost(r.Context(), found) {
			return room.ErrNotFound
		}
		return nil
	}
	_, foreign, err := h.owners.Owner(r.Context(), host)
	if err == nil && foreign {
		err = room.ErrNotFound
	}
	return err
}

// hasLost reports whether another organization has since verified the room's host. A host that no
// organization owns any more stays the room's, because published rooms keep their addresses.
func (h *customHosts) hasLost(ctx context.Context, found *room.Room) bool {
	if h.owners == nil || found.Owner.Host == nil {
		return false
	}
	org, taken, err := h.owners.Owner(ctx, *found.Owner.Host)
	return err == nil && taken && org != found.Owner.Org
}

// atHome redirects requests for a page on the server's own host if the room has a custom host.
func (h *customHosts) atHome(handle func(echo.Context, *room.Room) error) func(echo.Context, *room.Room) error {
	return func(c echo.Context, r *room.Room) error {
		if r.Owner.Host == nil || hostname(c.Request()) != h.public || h.public == *r.Owner.Host ||
			h.hasLost(c.Request().Context(), r) {
			return handle(c, r)
		}
		to := r.URL + strings.TrimPrefix(c.Request().URL.RequestURI(), pathOf(r))
		return c.Redirect(http.StatusTemporaryRedirect, to)
	}
}
