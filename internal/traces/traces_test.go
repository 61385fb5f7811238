package traces

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

// TestWanted checks which environments turn traces on.
func TestWanted(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"
	for _, c := range []struct {
		env   []string
		on    bool
		wrong string
	}{
		{nil, false, ""},
		{[]string{"OTEL_SERVICE_NAME=queue", "OTEL_TRACES_SAMPLER=always_on"}, false, ""},
		{[]string{endpoint}, true, ""},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces"}, true, ""},
		{[]string{"OTEL_TRACES_EXPORTER=otlp"}, true, ""},
		{[]string{endpoint, "OTEL_TRACES_EXPORTER=none"}, false, ""},
		{[]string{endpoint, "OTEL_SDK_DISABLED=true"}, false, ""},
		{[]string{endpoint, "OTEL_TRACES_EXPORTER=jaeger"}, false, "OTEL_TRACES_EXPORTER"},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, false, "OTEL_EXPORTER_OTLP_PROTOCOL"},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, true, ""},
	} {
		t.Run(strings.Join(c.env, " "), func(t *testing.T) {
			for _, variable := range c.env {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			tracer, err := Open(t.Context(), "test", slog.New(slog.DiscardHandler))
			if (tracer != nil) != c.on || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%v, %v", tracer, err)
			}
			tracer.Close(t.Context())
		})
	}
}

// TestNil checks that no tracer makes no spans, and that carrying none costs nothing.
func TestNil(t *testing.T) {
	var tracer *Tracer
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		started, span := tracer.Start(ctx, "append")
		End(span, true)
		if started != ctx || Carry(ctx, started) != ctx {
			t.Error("the context changes")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLog checks that log lines of a span name it, and others do not.
func TestLog(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	tracer, err := Open(t.Context(), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close(t.Context())
	var out bytes.Buffer
	log := slog.New(Log(slog.NewTextHandler(&out, nil))).With("room", "sale")
	ctx, span := tracer.Start(t.Context(), "append")
	log.InfoContext(ctx, "one")
	log.Info("two")
	lines := strings.Split(out.String(), "\n")
	id := "trace_id=" + span.SpanContext().TraceID().String() + " span_id=" + span.SpanContext().SpanID().String()
	if !strings.Contains(lines[0], "room=sale "+id) || strings.Contains(lines[1], "trace_id") {
		t.Errorf("%q", lines)
	}
}
