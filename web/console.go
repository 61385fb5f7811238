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
	"github.com/proofline/proofline/web/console/shell"
)

// openConsole adds the organizers' pages if the server has accounts.
func (s *Server) openConsole(o Options) {
	if o.Accounts == nil {
		return
	}
	manifest, err := fs.ReadFile(o.Assets, manifestFile)
	if err != nil {
		manifest = nil // pages without scripts and styles; openPages has logged it
	}
	c, err := console.New(console.Options{
		Identify: console.IdentifyBy(o.Accounts), Accounts: o.Accounts, Describe: s.explain, Control: o.Control, Activity: o.Activity, Hosts: console.VerifiedHosts(o.Accounts), Live: o.Live, Webhooks: o.Webhooks, Sites: o.Sites, Closing: s.closing,
		CrossOrigin: s.crossOrigin, Manifest: manifest, Version: o.Version, PublicURL: o.Rooms.PublicURL, Foreign: s.isForeign, Log: o.Log,
	})
	if err != nil {
		panic(err) // templates are part of the program
	}
	c.Register(s.echo)
}

// explain describes an error for the organizers' pages.
func (s *Server) explain(err error) shell.Problem {
	p := s.describe(err)
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	return shell.Problem{Status: p.Status, Title: p.Title, Detail: p.Detail, Retry: p.retry}
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
func (s *Server) isForeign(r *http.Request) bool {
	if s.accounts == nil || hostname(r) == s.publicHost {
		return false
	}
	_, foreign, err := s.accounts.Hosts.Owner(r.Context(), hostname(r))
	return err == nil && foreign
}

// checkHost returns an error if the request was made to a custom host that is not the room's: such a
// host serves no other rooms.
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
	_, foreign, err := s.accounts.Hosts.Owner(r.Context(), host)
	if err == nil && foreign {
		err = room.ErrNotFound
	}
	return err
}

// hasLost reports whether another organization has since verified the room's host. A host that no
// organization owns any more stays the room's, because published rooms keep their addresses.
func (s *Server) hasLost(ctx context.Context, found *room.Room) bool {
	if s.accounts == nil || found.Owner.Host == nil {
		return false
	}
	org, taken, err := s.accounts.Hosts.Owner(ctx, *found.Owner.Host)
	return err == nil && taken && org != found.Owner.Org
}

// atHome redirects requests for a page on the server's own host if the room has a custom host.
func (s *Server) atHome(handle func(echo.Context, *room.Room) error) func(echo.Context, *room.Room) error {
	return func(c echo.Context, r *room.Room) error {
		if r.Owner.Host == nil || hostname(c.Request()) != s.publicHost || s.publicHost == *r.Owner.Host || s.hasLost(c.Request().Context(), r) {
			return handle(c, r)
		}
		to := r.URL + strings.TrimPrefix(c.Request().URL.RequestURI(), pathOf(r))
		return c.Redirect(http.StatusTemporaryRedirect, to)
	}
}
