package observe

import (
	"bytes"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/internal/otlptest"
	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/web/client"
)

const (
	given  = "0af7651916cd43dd8448eb211c80319c"
	parent = "00-" + given + "-b7ad6b7169203331-01"
)

// TestParent checks that only a trusted proxy decides which trace a request belongs to, and what a span says.
func TestParent(t *testing.T) {
	collector := otlptest.Start(t)
	for _, variable := range collector.Env() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	log := slog.New(slog.DiscardHandler)
	tracer, err := traces.Open(t.Context(), "test", log)
	if err != nil || tracer == nil {
		t.Fatal(tracer, err)
	}
	o := &Observer{Clients: client.New([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, log), Tracer: tracer, Log: log}
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			defer o.Begin(c)()
			return next(c)
		}
	})
	e.GET("/r/:slug/tickets/:ticket", func(c echo.Context) error { return c.NoContent(http.StatusInternalServerError) })
	for _, peer := range []string{"192.0.2.7:1", "203.0.113.7:1"} {
		r := httptest.NewRequest(http.MethodGet, "/r/sale/tickets/secret-ticket?token=secret-token", nil)
		r.RemoteAddr = peer
		r.Header.Set("Traceparent", parent)
		e.ServeHTTP(httptest.NewRecorder(), r)
	}
	r := httptest.NewRequest("SECRET-METHOD", "/secret-path", nil)
	e.ServeHTTP(httptest.NewRecorder(), r)
	tracer.Close(t.Context())
	spans := collector.Spans("GET /r/{slug}/tickets/{ticket}")
	if len(spans) != 2 || len(collector.Spans("_OTHER")) != 1 {
		t.Fatalf("%d and %d spans: %s", len(spans), len(collector.Spans("_OTHER")), collector.Received())
	}
	if hex.EncodeToString(spans[0].GetTraceId()) != given {
		t.Error("a trusted proxy's trace is not joined")
	}
	if hex.EncodeToString(spans[1].GetTraceId()) == given || len(spans[1].GetParentSpanId()) != 0 {
		t.Error("another client decides about the trace")
	}
	if spans[0].GetStatus().GetCode() != 2 || spans[0].Attribute("http.response.status_code") != "500" {
		t.Errorf("a failed request is %v", spans[0])
	}
	if text := bytes.ToLower(collector.Received()); bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("203.0.113")) {
		t.Errorf("a span has more than it should: %s", text)
	}
}

// TestOff checks that a request costs nothing when it is neither logged nor traced.
func TestOff(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	o := &Observer{Clients: client.New(nil, log), Log: log}
	c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder())
	if n := testing.AllocsPerRun(100, func() {
		if o.Begin(c) != nil {
			t.Error("something has begun")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
