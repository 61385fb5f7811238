package console

import (
	"context"
	"net/http"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// The names below are those of the shell and of package format. They go when the pages have moved to
// packages of their own.

const (
	Path          = shell.Path
	SessionCookie = shell.SessionCookie
	SignedIn      = shell.SignedIn
	Public        = shell.Public
	GET           = http.MethodGet
	POST          = http.MethodPost

	dash = format.Dash
)

var (
	ErrSignIn   = shell.ErrSignIn
	ErrConfirm  = shell.ErrConfirm
	ErrSwitched = shell.ErrSwitched
	ErrTooLarge = shell.ErrTooLarge
)

type (
	Identity     = shell.Identity
	Organization = shell.Organization
	view         = shell.View
	question     = shell.Question
	change       = shell.Change
	option       = shell.Option
	badge        = format.Badge
)

type route struct {
	method string
	path   string
	scope  account.Scope
	handle func(*request) error
}

type shellRequest = shell.Request

type request struct {
	*shellRequest
	console *Console
}

type questionPage struct {
	question
	Fields map[string]string
	Path   string
	Back   string
}

func (c *Console) shellRoutes() (list []shell.Route) {
	for _, r := range c.allRoutes() {
		list = append(list, shell.Route{Method: r.method, Path: r.path, Scope: r.scope, Handle: func(x *shell.Request) error {
			return r.handle(&request{x, c})
		}})
	}
	return list
}

func (c *Console) ofRoom(answer func(context.Context, *request, *room.Room) error) func(*request) error {
	return func(x *request) error {
		return shell.OfRoom(c.Control, func(ctx context.Context, _ *shell.Request, r *room.Room) error {
			return answer(ctx, x, r)
		})(x.shellRequest)
	}
}

func (x *request) form(name string) string                     { return x.Form(name) }
func (x *request) wait() (context.Context, context.CancelFunc) { return x.Wait() }
func (x *request) next() string                                { return x.Next() }
func (x *request) page(name string, data any) error {
	return x.render(http.StatusOK, name, view{Data: data})
}
func (x *request) invalid(name string, data any, err error) error { return x.Invalid(name, data, err) }
func (x *request) done(path, notice string) error                 { return x.Done(path, notice) }
func (x *request) confirm(q question, back string) error          { return x.Confirm(q, back) }
func (x *request) isConfirmed() bool                              { return x.IsConfirmed() }
func (x *request) keep(name, value string, age time.Duration)     { x.SetToken(name, value, age) }
func (x *request) forget(name string)                             { x.RemoveToken(name) }
func (x *request) kept(name string) string                        { return x.Token(name) }
func (x *request) keepSession(token string)                       { x.SetSession(token) }
func (x *request) client() account.Client                         { return x.Client() }
func (x *request) render(status int, name string, v view) error {
	for _, page := range beaconPages {
		if page == name && x.SignedIn() {
			v.Beacon = x.console.beaconTrouble()
		}
	}
	return x.Render(status, name, v)
}

func (x *request) renderPart(status int, page, part string, v view) error {
	return x.RenderPart(status, page, part, v)
}

func plainQuestion(title, button string, notes ...string) question {
	return shell.Ask(title, button, notes...)
}

var (
	number      = format.Number
	decimal     = format.Decimal
	percent     = format.Percent
	span        = format.Span
	duration    = format.Duration
	momentWords = format.Moment
	momentLine  = format.MomentLine
	when        = format.When
	safeNext    = shell.SafeNext
)
