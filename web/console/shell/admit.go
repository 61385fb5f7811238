package shell

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// maxBody is the maximum size of a form without uploads, in bytes.
const maxBody = 256 << 10

// serve wraps the handler of a route.
func (s *Shell) serve(r Route) echo.HandlerFunc {
	return func(e echo.Context) error {
		x := &Request{Context: e, shell: s, isData: wantsData(e.Request())}
		setHeaders(e.Response().Header())
		err := s.admit(x, r)
		if err == nil {
			err = r.Handle(x)
		}
		if err == nil || e.Response().Committed {
			return err
		}
		return s.fail(x, err)
	}
}

// admit checks the session and the input before the handler runs. Handlers limit their own time.
func (s *Shell) admit(x *Request, r Route) error {
	q := x.Request()
	if s.options.Foreign != nil && s.options.Foreign(q) {
		return errForeign
	}
	if q.Method == http.MethodPost && s.options.CrossOrigin.Check(q) != nil {
		return ErrCrossOrigin
	}
	if err := x.Identify(r.Scope); err != nil {
		return err
	}
	if q.Method == http.MethodPost {
		if err := x.readForm(); err != nil {
			return err
		}
		if r.Scope != Public && r.Scope != SignedIn && x.IsElsewhere() {
			return ErrSwitched
		}
	}
	return x.checkText()
}

// Identify finds the session of the request and checks its scope. Public pages get the identity too, if there is a
// session. Streams call it repeatedly while they last.
func (x *Request) Identify(scope account.Scope) error {
	cookie, err := x.Cookie(SessionCookie)
	if err != nil || x.shell.options.Identify == nil {
		if scope == Public {
			return nil
		}
		return ErrSignIn
	}
	x.Identity, err = x.shell.options.Identify(x.Request().Context(), cookie.Value)
	switch {
	case scope == Public && errors.Is(err, ErrSignIn):
		return nil
	case err != nil:
		return err
	case scope != Public && scope != SignedIn && !x.Actor.May(scope):
		return x.whyForbidden()
	}
	return nil
}

// whyForbidden returns why the person lacks a scope, so that the answer can redirect to the page that
// helps.
func (x *Request) whyForbidden() error {
	switch {
	case x.Identity.MustEnrol:
		return errMustEnrol
	case x.Actor.Kind == account.Person && x.Actor.Org == uuid.Nil:
		return errNoOrganization
	}
	return account.ErrForbidden
}

// IsElsewhere reports whether the form comes from a page of an organization that the session has
// since left. Handlers of uploads check it after they have read the form.
func (x *Request) IsElsewhere() bool {
	meant := x.Form(organizationField)
	return meant != "" && meant != x.Organization.Slug
}

// checkText refuses invalid UTF-8 and NUL in path, query and form: PostgreSQL cannot store them.
func (x *Request) checkText() error {
	for _, fields := range []url.Values{{"": x.ParamValues()}, x.QueryParams(), x.Request().PostForm} {
		for name, values := range fields {
			if !isText(name) || slices.ContainsFunc(values, func(value string) bool { return !isText(value) }) {
				return invalid.Field(strings.ToValidUTF8(name, ""), "must be UTF-8 without NUL")
			}
		}
	}
	return nil
}

// readForm reads the body of a form without uploads.
func (x *Request) readForm() error {
	q := x.Request()
	if strings.HasPrefix(q.Header.Get("Content-Type"), "multipart/") {
		return nil // its handler calls ReadUpload
	}
	q.Body = http.MaxBytesReader(x.Response(), q.Body, maxBody)
	if isJSON(q) {
		return nil
	}
	err := q.ParseForm()
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return ErrTooLarge
	}
	if err != nil {
		return invalid.Field("", "must be a form")
	}
	return nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func isJSON(q *http.Request) bool {
	return strings.HasPrefix(q.Header.Get("Content-Type"), "application/json")
}

// wantsData reports whether a script asks for data, rather than a person for a page.
func wantsData(q *http.Request) bool {
	accept := q.Header.Get("Accept")
	return !strings.Contains(accept, "text/html") &&
		(strings.Contains(accept, "json") || strings.Contains(accept, "event-stream"))
}

// contentPolicy restricts what pages may load. Frames are for the preview of the visitors' page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; " +
	"connect-src 'self'; frame-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

// setHeaders sets the headers of all answers.
func setHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// fail answers an error.
func (s *Shell) fail(x *Request, err error) error {
	switch {
	case errors.Is(err, errForeign):
		return x.Redirect(http.StatusSeeOther, s.options.PublicURL+Path)
	case x.isData:
		return err // the server answers with a problem document
	case errors.Is(err, ErrSignIn):
		return x.detour("/sign-in")
	case errors.Is(err, ErrConfirm):
		return x.detour("/confirm")
	case errors.Is(err, errMustEnrol):
		return x.Done("/account/second-factor", "must-enrol")
	case errors.Is(err, errNoOrganization):
		return x.Done("/account", "no-organization")
	}
	p := s.options.Describe(err)
	page, data := "error", any(p)
	lost := (*room.Regression)(nil)
	if errors.As(err, &lost) && x.Param("slug") != "" {
		page, data = "room-stopped", stoppedPage{x.Param("slug"), lost}
	} else if p.Status >= http.StatusInternalServerError {
		s.options.Log.Error("console request failed", "method", x.Request().Method, "path", x.Request().URL.Path,
			"err", err, "request_id", x.Response().Header().Get("X-Request-Id"))
	}
	if p.Retry > 0 {
		x.Response().Header().Set("Retry-After", fmt.Sprint(int64((p.Retry+time.Second-1)/time.Second)))
	}
	return x.Render(p.Status, page, View{Data: data})
}

// detour redirects to a page that returns here afterwards. The input of a form is lost, so a detour
// from a form returns to the page of the form.
func (x *Request) detour(path string) error {
	next := x.Request().URL.RequestURI()
	if x.Request().Method == http.MethodPost {
		next = Path
		if from, err := url.Parse(x.Request().Referer()); err == nil && strings.HasPrefix(from.Path, Path) {
			next = from.RequestURI()
		}
	}
	return x.Redirect(http.StatusSeeOther, Path+path+"?next="+url.QueryEscape(next))
}

// Next returns the page that a detour returns to: a page of the console, never of another site.
func (x *Request) Next() string {
	wanted := x.QueryParam("next")
	if given := x.Form("next"); given != "" {
		wanted = given
	}
	return SafeNext(wanted)
}

// SafeNext returns an address if it is a page of the console, and the console's first page otherwise.
func SafeNext(wanted string) string {
	u, err := url.Parse(wanted)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.Contains(wanted, "\\") ||
		u.Path != Path && !strings.HasPrefix(u.Path, Path+"/") {
		return Path
	}
	return u.RequestURI()
}

// notices are those of redirects by the shell.
var notices = map[string]string{
	"must-enrol":      "Your organization requires a second factor. Set one up to continue.",
	"no-organization": "You do not belong to an organization. Ask an owner for an invitation.",
}
