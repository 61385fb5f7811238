// Package traces makes the spans of a server with the SDK of OpenTelemetry, and sends them by OTLP over HTTP. The
// standard variables configure it (docs/operate/OBSERVE.md). Without one that asks for traces there is no [Tracer]: a
// nil one makes no spans and allocates nothing.
//
// Attributes are counts, and names of rooms, witnesses, beacons, events and routes: nothing that a visitor sends or is
// known by.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// closeTimeout is how long a stopping server waits for a collector to take the last spans.
const closeTimeout = 2 * time.Second

// Tracer makes spans. It is safe for concurrent use. A nil Tracer makes none.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	joins    bool // whether spans join the traces of proxies
}

// Open returns the tracer that the environment asks for; nil: none. Spans that cannot be sent are logged and dropped.
func Open(ctx context.Context, version string, log *slog.Logger) (*Tracer, error) {
	if wanted, err := isWanted(); !wanted || err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces: OpenTelemetry fails", "err", err) }))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "proofline"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	propagators := strings.Split(os.Getenv("OTEL_PROPAGATORS"), ",")
	return &Tracer{provider.Tracer("github.com/proofline/proofline"), provider,
		propagators[0] == "" || slices.Contains(propagators, "tracecontext")}, nil
}

// isWanted reports whether the environment asks for traces. The SDK leaves these variables to programs.
func isWanted() (bool, error) {
	first := func(names ...string) string {
		for _, name := range names {
			if value := os.Getenv(name); value != "" {
				return value
			}
		}
		return ""
	}
	const traces, all = "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true"), exporter == "none":
		return false, nil
	case exporter == "" && first(traces+"ENDPOINT", all+"ENDPOINT") == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is neither otlp nor none", exporter)
	}
	if protocol := first(traces+"PROTOCOL", all+"PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not http/protobuf, which collectors take on port 4318",
			protocol)
	}
	return true, nil
}

// Close sends the spans that were not sent yet.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// Start starts a span, a child of the one in ctx. It is sent once it has ended.
func (t *Tracer) Start(ctx context.Context, name string,
	options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t == nil {
		return ctx, none
	}
	return t.tracer.Start(ctx, name, options...)
}

// Call starts the span of a request to another server. The caller ends it with [End].
func (t *Tracer) Call(ctx context.Context, name string, about ...attribute.KeyValue) (context.Context, trace.Span) {
	if t == nil {
		return ctx, none
	}
	return t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(about...))
}

// none is a span that is not recorded.
var none = trace.SpanFromContext(context.Background())

// End ends a span, as failed if it has not worked. The reason is left out: errors may quote addresses.
func End(span trace.Span, worked bool) {
	if !worked {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// Join returns a context of the trace that a trusted proxy names.
func (t *Tracer) Join(ctx context.Context, header propagation.TextMapCarrier) context.Context {
	if !t.joins {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, header)
}

// Carry returns ctx with the span of another context, if that has one.
func Carry(ctx, from context.Context) context.Context {
	if span := trace.SpanFromContext(from); span.SpanContext().IsValid() {
		return trace.ContextWithSpan(ctx, span)
	}
	return ctx
}

// Log returns a handler that adds the span of its context to a log line.
func Log(h slog.Handler) slog.Handler { return handler{h} }

type handler struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(a []slog.Attr) slog.Handler { return handler{h.Handler.WithAttrs(a)} }

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
