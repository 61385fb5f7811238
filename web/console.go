package web

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console"
)

// openConsole adds the organizer's pages, on a server that has accounts.
func (s *Server) openConsole(o Options) {
	if o.Accounts == nil {
		return
	}
	manifest, err := fs.ReadFile(o.Assets, manifestFile)
	if err != nil {
		manifest = nil // that pages have no scripts and styles is logged already
	}
	c, err := console.New(console.Options{
		Identify: console.IdentifyBy(o.Accounts), Accounts: o.Accounts, Describe: s.explain, Desk: o.Desk, Hosts: console.VerifiedHosts(o.Accounts), Live: o.Live, Hooks: o.Hooks, Sites: o.Sites, Closing: s.closing,
		CrossOrigin: s.crossOrigin, Manifest: manifest, Version: o.Version, PublicURL: o.Rooms.PublicURL, Foreign: s.isForeign, Log: o.Log,
	})
	if err != nil {
		panic(err) // templates are part of the program
	}
	c.Register(s.echo)
}

// explain says an error in words for the organizer's pages.
func (s *Server) explain(err error) console.Problem {
	p := s.describe(err)
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	return console.Problem{Status: p.Status, Title: p.Title, Detail: p.Detail, Retry: p.retry}
}

// hostname is a request's host as custom hosts are named.
func hostname(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isForeign tells whether a request came under the custom host of an
// organization, where rooms alone are.
func (s *Server) isForeign(r *http.Request) bool {
	if s.accounts == nil || hostname(r) == s.publicHost {
		return false
	}
	_, foreign, err := s.accounts.HostOwner(r.Context(), hostname(r))
	return err == nil && foreign
}

// checkHost refuses a room under a custom host that is not its own: to whoever
// comes by that host, other rooms do not exist.
func (s *Server) checkHost(r *http.Request, found *room.Room) error {
	host := hostname(r)
	switch {
	case s.accounts == nil || host == s.publicHost:
		return nil
	case found.Owner.Host != nil && host == *found.Owner.Host:
		if s.hasLost(r.Context(), found) {
			return room.ErrNotFound
		}
		return nil
	}
	_, foreign, err := s.accounts.HostOwner(r.Context(), host)
	if err == nil && foreign {
		err = room.ErrNotFound
	}
	return err
}

// hasLost tells whether another organization has shown since that the host of a
// room is its own. A host that nobody has any more stays the room's: what was
// published keeps its address.
func (s *Server) hasLost(ctx context.Context, found *room.Room) bool {
	if s.accounts == nil || found.Owner.Host == nil {
		return false
	}
	org, taken, err := s.accounts.HostOwner(ctx, *found.Owner.Host)
	return err == nil && taken && org != found.Owner.Org
}

// atHome answers a page that is asked for under the server's own host though
// its room has another with a redirect there.
func (s *Server) atHome(handle func(echo.Context, *room.Room) error) func(echo.Context, *room.Room) error {
	return func(c echo.Context, r *room.Room) error {
		if r.Owner.Host == nil || hostname(c.Request()) != s.publicHost || s.publicHost == *r.Owner.Host || s.hasLost(c.Request().Context(), r) {
			return handle(c, r)
		}
		to := r.URL + strings.TrimPrefix(c.Request().URL.RequestURI(), pathOf(r))
		return c.Redirect(http.StatusTemporaryRedirect, to)
	}
}
