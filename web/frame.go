package web

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/web/manage"
	"github.com/proofline/proofline/web/requestid"
)

const (
	managementPath = manage.Prefix
	publicPath     = "/r/"
)

// Header values shared by many answers; they must not be modified.
var (
	closes     = []string{"close"}
	nosniff    = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	noContent  = []string{"default-src 'none'; frame-ancestors 'none'"}
	anyOrigin  = []string{"*"}
	exposed    = []string{"Retry-After"}
	// Authorization is for passes; the management API does not support CORS
	corsHeaders  = []string{"Content-Type, Authorization"}
	corsLifetime = []string{"86400"}
)

// frame wraps every handler: it gives the request an ID, sets the headers that all answers have,
// guards the management API, answers errors and panics, and writes the log. It is one function
// because each middleware costs the hot paths an allocation. For the same reason public answers
// have at most eight headers: with the ninth, net/http's two header maps grow, and the request
// takes 2 us longer. Public answers are data that cannot link anywhere, so they have no
// Referrer-Policy.
func (s *Server) frame(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		if s.draining.Load() {
			h["Connection"] = closes
		}
		h[requestid.Header] = []string{s.ids.Of(c.Request())}
		h["X-Content-Type-Options"] = nosniff
		if s.hsts != nil {
			h["Strict-Transport-Security"] = s.hsts
		}
		h["Content-Security-Policy"] = noContent
		switch {
		case isPage(c.Path()):
			shelter(h)
		case isBelow(c, publicPath), isBelow(c, registerPath):
			share(c, h)
		default:
			h["Referrer-Policy"] = noReferrer
		}
		if end := s.observer.Begin(c); end != nil {
			defer end()
		}
		handle := next
		if isBelow(c, managementPath) {
			handle = s.api.Guard(next)
		}
		if err := guard(handle, c); err != nil {
			s.failures.fail(c, err)
		}
		return nil
	}
}

// isBelow reports whether the request is for something below prefix. It checks the matched route, and
// the path for requests without a route.
func isBelow(c echo.Context, prefix string) bool {
	return strings.HasPrefix(c.Path(), prefix) || strings.HasPrefix(c.Request().URL.Path, prefix)
}

// share lets pages of every origin use a resource. That is safe because only our own pages use
// cookies. Echo answers OPTIONS itself.
func share(c echo.Context, h http.Header) {
	h["Access-Control-Allow-Origin"] = anyOrigin
	if c.Request().Method != http.MethodOptions {
		return
	}
	if methods, ok := c.Get(echo.ContextKeyHeaderAllow).(string); ok {
		h["Access-Control-Allow-Methods"] = []string{methods}
		h["Access-Control-Allow-Headers"] = corsHeaders
		h["Access-Control-Max-Age"] = corsLifetime
	}
}

// askAgain sets Retry-After, readable by pages of other origins too.
func askAgain(h http.Header, after time.Duration) {
	seconds := int64((after + time.Second - 1) / time.Second)
	h["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	h["Access-Control-Expose-Headers"] = exposed
}

// panicError is the error for a handler's panic.
type panicError struct {
	value any
	stack []byte
}

// Error returns the panic's value.
func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// Unwrap makes the panic an internal error.
func (p *panicError) Unwrap() error { return errInternal }

// guard calls the handler and converts a panic to an error.
func guard(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		if v := recover(); v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
			panic(v)
		} else if v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return next(c)
}

func requestID(c echo.Context) string { return c.Response().Header()[requestid.Header][0] }
