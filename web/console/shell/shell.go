package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
)

// Path is the path below which all pages are.
const Path = "/console"

var (
	// ErrSignIn is returned if the request has no valid session.
	ErrSignIn = errors.New("sign in first")
	// ErrConfirm is returned if a sensitive request needs the person to confirm their identity first.
	ErrConfirm = errors.New("confirm that it is you")
	// ErrCrossOrigin is returned if a page of another site sent the request.
	ErrCrossOrigin = errors.New("the request comes from another site")
	// ErrSwitched is returned if a form comes from a page of an organization that the session has
	// since left.
	ErrSwitched = errors.New("this page belongs to an organization that you have since left, " +
		"so nothing was done: switch back, or load the page again")
	// ErrTooLarge is returned if a body is larger than its page accepts.
	ErrTooLarge = errors.New("the request is too large")
	// errForeign is returned for requests to the custom host of an organization.
	errForeign = errors.New("this host does not serve the console")
	// errMustEnrol is returned to people who lack the second factor that their organization requires.
	errMustEnrol = fmt.Errorf("%w: your organization requires a second factor, set one up first",
		account.ErrForbidden)
	// errNoOrganization is returned to people without an organization.
	errNoOrganization = fmt.Errorf("%w: you belong to no organization", account.ErrForbidden)
)

// Identity is the signed-in person and the organization of the session.
type Identity struct {
	Actor         account.Actor
	Name          string // display name
	Organization  Organization
	Organizations []Organization // all organizations of this person
	Confirmed     time.Time      // when the person last confirmed their identity
	MustEnrol     bool           // the organization requires a second factor that the person lacks
}

// SignedIn reports whether the identity is that of a person.
func (i Identity) SignedIn() bool { return i.Actor.Kind != 0 }

// Organization is the part of an organization that pages show.
type Organization struct{ Slug, Name string }

// Problem describes an error to people.
type Problem struct {
	Status int
	Title  string
	Detail string
	Retry  time.Duration // 0: no advice
}

// Rooms finds the rooms that a person may see.
type Rooms interface {
	Room(ctx context.Context, by account.Actor, slug string) (*room.Room, error)
}

// Options configures a [Shell].
type Options struct {
	// Identify returns the owner of a session token, or [ErrSignIn]. nil: all requests are anonymous.
	Identify func(ctx context.Context, token string) (Identity, error)
	// Describe describes an error. It must not reveal internal details.
	Describe func(error) Problem
	// Rooms finds the room of a page, to warn while its claims are frozen.
	Rooms Rooms
	// CrossOrigin refuses requests from other sites.
	CrossOrigin *http.CrossOriginProtection
	// Manifest is the manifest.json of the built assets; empty: assets have their plain names.
	Manifest []byte
	// Version is the version of the program.
	Version string
	// PublicURL is the public address of the server.
	PublicURL string
	// Foreign reports whether a request was made to the custom host of an organization; such a
	// request is redirected to PublicURL. nil: there are no custom hosts.
	Foreign func(*http.Request) bool
	Now     func() time.Time
	Log     *slog.Logger
}

// Part is a group of pages.
type Part struct {
	Name   string // name of its package
	Routes []Route
	// Templates holds the page NAME in NAME.html, and partials in part-*.html. Pages of other parts
	// may use the partials.
	Templates fs.FS
	// Functions are template functions besides those of the shell, for the templates of all parts.
	Functions map[string]any
	// Notices are the notices that [Request.Done] can show, by their names.
	Notices map[string]string
}

// Shell serves the pages of its parts. It is safe for concurrent use.
type Shell struct {
	options   Options
	templates templates
	notices   map[string]string
	parts     []Part
}

// New returns a shell with these parts. An error means a bug in the program: a template does not
// parse, or two parts use the same name.
func New(o Options, parts ...Part) (*Shell, error) {
	assets := map[string]string{}
	if len(o.Manifest) > 0 {
		if err := json.Unmarshal(o.Manifest, &assets); err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
	}
	s := &Shell{options: o, notices: maps.Clone(notices), parts: parts}
	for _, part := range parts {
		for name, text := range part.Notices {
			if _, taken := s.notices[name]; taken {
				return nil, fmt.Errorf("part %s: notice %s exists already", part.Name, name)
			}
			s.notices[name] = text
		}
	}
	var err error
	if s.templates, err = parseTemplates(assets, parts); err != nil {
		return nil, err
	}
	return s, nil
}

// Scopes of routes besides those of package account.
const (
	// SignedIn admits every signed-in person, whatever their role.
	SignedIn account.Scope = 0
	// Public admits every request.
	Public account.Scope = 1 << 7
)

// Route is a page, or the target of a form.
type Route struct {
	Method string
	Path   string // below [Path], in Echo's syntax
	Scope  account.Scope
	Handle func(*Request) error
}

// Listed describes a route to tests that walk all of them.
type Listed struct {
	Part, Method, Path string
	Scope              account.Scope
}

// Routes lists the routes of all parts.
func (s *Shell) Routes() (list []Listed) {
	for _, part := range s.parts {
		for _, r := range part.Routes {
			list = append(list, Listed{part.Name, r.Method, Path + r.Path, r.Scope})
		}
	}
	return list
}

// Register adds the routes to a server.
func (s *Shell) Register(e *echo.Echo) {
	for _, part := range s.parts {
		for _, r := range part.Routes {
			e.Add(r.Method, Path+r.Path, s.serve(r))
			if r.Method == http.MethodGet {
				e.Add(http.MethodHead, Path+r.Path, s.serve(r))
			}
		}
	}
}

// OfRoom returns a handler for pages of a room: it finds the room of the path and limits the time of
// the answer.
func OfRoom(rooms Rooms, answer func(context.Context, *Request, *room.Room) error) func(*Request) error {
	return func(x *Request) error {
		ctx, cancel := x.Wait()
		defer cancel()
		r, err := rooms.Room(ctx, x.Actor, x.Param("slug"))
		if err != nil {
			return err
		}
		return answer(ctx, x, r)
	}
}

// Get returns the route of a page.
func Get(path string, scope account.Scope, handle func(*Request) error) Route {
	return Route{http.MethodGet, path, scope, handle}
}

// Post returns the route of a form's target.
func Post(path string, scope account.Scope, handle func(*Request) error) Route {
	return Route{http.MethodPost, path, scope, handle}
}
