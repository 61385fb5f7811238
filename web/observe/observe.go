// Package observe logs and traces the requests of a server.
package observe

import (
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/web/client"
	"github.com/proofline/proofline/web/requestid"
)

// Observer logs and traces requests. It is safe for concurrent use.
type Observer struct {
	Clients *client.Addresses
	Tracer  *traces.Tracer // nil: requests are not traced
	Log     *slog.Logger
}

// Begin begins a request, whose ID is among the answer's headers. It returns a function that ends it, or nil if
// requests are neither logged nor traced.
func (o *Observer) Begin(c echo.Context) (end func()) {
	isLogged := o.Log.Enabled(c.Request().Context(), slog.LevelDebug)
	if !isLogged && o.Tracer == nil {
		return nil
	}
	began := time.Now()
	span := o.start(c)
	return func() {
		if span != nil {
			finish(c, span)
		}
		if isLogged {
			o.access(c, began)
		}
	}
}

// access logs a request without query, headers and body, which may contain secrets.
func (o *Observer) access(c echo.Context, began time.Time) {
	r := c.Request()
	o.Log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", c.Response().Status,
		"bytes", c.Response().Size, "took", time.Since(began), "ip", c.RealIP(), "request_id",
		c.Response().Header()[requestid.Header][0])
}

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions}

// start starts the span of a request, named after its route. A span has no path, query, address or header of the
// request: they name tickets and visitors. Only trusted proxies decide which trace a request belongs to, and whether it
// is sampled.
func (o *Observer) start(c echo.Context) trace.Span {
	if o.Tracer == nil {
		return nil
	}
	r := c.Request()
	ctx := r.Context()
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // an invalid one is not trusted
	if o.Clients.IsTrusted(peer.Addr().Unmap().WithZone("")) {
		ctx = o.Tracer.Join(ctx, propagation.HeaderCarrier(r.Header))
	}
	method := r.Method
	if !slices.Contains(methods, method) {
		method = "_OTHER"
	}
	name, about := method, []attribute.KeyValue{attribute.String("http.request.method", method)}
	if route := c.Path(); route != "" {
		route = parameter.ReplaceAllString(route, "{$1}")
		name, about = method+" "+route, append(about, attribute.String("http.route", route))
	}
	ctx, span := o.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(about...))
	c.SetRequest(r.WithContext(ctx))
	return span
}

// parameter matches a parameter of a route.
var parameter = regexp.MustCompile(`:([a-z]+)`)

// finish ends the span of a request that was answered. The room is named only if there is one: otherwise the text in
// its place may be anything.
func finish(c echo.Context, span trace.Span) {
	status := c.Response().Status
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if slug := c.Param("slug"); slug != "" && status < http.StatusBadRequest {
		span.SetAttributes(attribute.String("proofline.room", slug))
	}
	traces.End(span, status < http.StatusInternalServerError)
}
