package sequence

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/traces"
)

// waiting is the context of a traced request that waits for its batch.
type waiting struct {
	context.Context // with the span of the request
	span            trace.Span
}

// wait starts the span in which a request waits for its batch. Without a tracer it returns ctx.
func (s *Sequencer) wait(ctx context.Context) context.Context {
	if s.o.Tracer == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	_, span := s.o.Tracer.Start(ctx, "wait for the batch")
	return &waiting{ctx, span}
}

// traced is the trace of one append. A nil traced follows nothing.
type traced struct {
	ctx    context.Context
	tracer *traces.Tracer
	span   trace.Span
	began  time.Time // when the current part began
}

// trace starts the span of an append of w. It is a child of the first request in it, so that the sampler decides about
// both together, and is linked to all others, whose waiting ends.
func (s *Sequencer) trace(ctx context.Context, w *work) *traced {
	if s.o.Tracer == nil {
		return nil
	}
	var all []*waiting
	note := func(ctx context.Context) {
		if one, ok := ctx.(*waiting); ok {
			all = append(all, one)
		}
	}
	for _, j := range w.joins {
		note(j.ctx)
	}
	for _, c := range w.commands {
		note(c.ctx)
	}
	first := firstSampled(all)
	var links []trace.Link
	for _, one := range all {
		if at := trace.SpanContextFromContext(one); one != first && at.IsSampled() {
			links = append(links, trace.Link{SpanContext: at})
		}
	}
	if first != nil {
		ctx = traces.Carry(ctx, first)
	}
	t := &traced{tracer: s.o.Tracer, began: time.Now()}
	t.ctx, t.span = s.o.Tracer.Start(ctx, "append", trace.WithLinks(links...), trace.WithAttributes(
		attribute.String("proofline.room", s.o.Slug), attribute.Int("proofline.joins", len(w.joins)),
		attribute.Int("proofline.commands", len(w.commands))))
	for _, one := range all {
		if one != first {
			one.span.AddLink(trace.Link{SpanContext: t.span.SpanContext()})
		}
		one.span.End() // an append that is repeated finds it ended
	}
	return t
}

// firstSampled returns the first request that is sampled or, if none is, the first one; nil: there is none.
func firstSampled(all []*waiting) *waiting {
	for _, one := range all {
		if trace.SpanContextFromContext(one).IsSampled() {
			return one
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// part ends a part of the append that began when the part before it ended.
func (t *traced) part(name string) {
	if t == nil {
		return
	}
	now := time.Now()
	_, span := t.tracer.Start(t.ctx, name, trace.WithTimestamp(t.began))
	span.End(trace.WithTimestamp(now))
	t.began = now
}

// window starts the span of work on a window.
func (t *traced) window(name string, n fairness.WindowIndex) trace.Span {
	if t == nil {
		return trace.SpanFromContext(context.Background())
	}
	_, span := t.tracer.Start(t.ctx, name, trace.WithAttributes(attribute.Int64("proofline.window", int64(n))))
	return span
}

// end ends the span of the append. One that had nothing to store is not sent.
func (t *traced) end(entries int, isStored bool, err error) {
	if t == nil || !isStored && err == nil {
		return
	}
	t.part("commit")
	t.span.SetAttributes(attribute.Int("proofline.entries", entries))
	traces.End(t.span, err == nil)
}
