package web

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/web/manage"
)

const (
	managementPath = manage.Prefix
	publicPath     = "/r/"
)

// Header values that many answers share. They are never changed.
var (
	jsonText     = []string{"application/json"}
	plainText    = []string{"text/plain; charset=utf-8"}
	octets       = []string{"application/octet-stream"}
	noCache      = []string{"no-cache"}
	noStore      = []string{"no-store"}
	closes       = []string{"close"}
	nosniff      = []string{"nosniff"}
	noReferrer   = []string{"no-referrer"}
	noContent    = []string{"default-src 'none'; frame-ancestors 'none'"}
	anyOrigin    = []string{"*"}
	exposed      = []string{"Retry-After"}
	corsHeaders  = []string{"Content-Type, Authorization"} // the latter for passes: the management is not shared
	corsLifetime = []string{"86400"}
)

// frame is around every handler: it gives the request an id, sets the headers
// that all answers have, guards the management, answers errors and panics,
// and writes the log. It is one function because each middleware costs the
// hot paths an allocation. For the same reason public answers have at most
// eight headers: with the ninth, net/http's two maps of them grow, and the
// request takes 2 us longer. They are data, not pages that could refer to
// anything, so they go without a Referrer-Policy.
func (s *Server) frame(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		if s.draining.Load() {
			h["Connection"] = closes
		}
		h["X-Request-Id"] = []string{s.ids.of(c.Request())}
		h["X-Content-Type-Options"] = nosniff
		h["Content-Security-Policy"] = noContent
		switch {
		case isPage(c.Path()):
			shelter(h)
		case isBelow(c, publicPath):
			share(c, h)
		default:
			h["Referrer-Policy"] = noReferrer
		}
		if s.log.Enabled(c.Request().Context(), slog.LevelDebug) {
			defer s.logAccess(c, time.Now())
		}
		handle := next
		if isBelow(c, managementPath) {
			handle = s.api.Guard(next)
		}
		if err := guard(handle, c); err != nil {
			s.fail(c, err)
		}
		return nil
	}
}

// isBelow tells whether the request is for something below prefix: by the
// route that was found, whatever the path looked like, and by the path when
// none was.
func isBelow(c echo.Context, prefix string) bool {
	return strings.HasPrefix(c.Path(), prefix) || strings.HasPrefix(c.Request().URL.Path, prefix)
}

// share lets pages of every origin use a resource. Nothing but our pages looks
// at cookies, so there is nothing to steal. Echo answers OPTIONS itself.
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

// askAgain says when to come back, to pages of other origins too.
func askAgain(h http.Header, after time.Duration) {
	seconds := int64((after + time.Second - 1) / time.Second)
	h["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	h["Access-Control-Expose-Headers"] = exposed
}

// panicError is a handler's panic.
type panicError struct {
	value any
	stack []byte
}

// Error says what the handler panicked with.
func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// Unwrap makes it an internal error.
func (p *panicError) Unwrap() error { return errInternal }

// guard turns a panic into an error.
func guard(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		if v := recover(); v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like this, too
			panic(v)
		} else if v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return next(c)
}

// logAccess never writes query, headers or body: they may hold secrets.
func (s *Server) logAccess(c echo.Context, began time.Time) {
	r := c.Request()
	s.log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", c.Response().Status,
		"bytes", c.Response().Size, "took", time.Since(began), "ip", c.RealIP(), "request_id", requestID(c))
}

// requestIDs numbers the requests of this process, under a random prefix.
type requestIDs struct {
	prefix string
	last   *atomic.Uint64
}

func newRequestIDs() requestIDs {
	return requestIDs{strings.ToLower(rand.Text()[:10]) + "-", new(atomic.Uint64)}
}

// of returns the id a proxy in front has given to the request, or a new one.
func (ids requestIDs) of(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && requestIDForm.MatchString(given[0]) {
		return given[0]
	}
	b := make([]byte, 0, 32)
	b = append(b, ids.prefix...)
	return string(strconv.AppendUint(b, ids.last.Add(1), 36))
}

// requestIDForm is what an id from outside must be like, to do no harm in a log.
var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func requestID(c echo.Context) string { return c.Response().Header()["X-Request-Id"][0] }
