// Package otlptest is a collector of traces for tests.
package otlptest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Collector takes spans by OTLP over HTTP.
type Collector struct {
	URL string

	mu       sync.Mutex // guards the fields below
	spans    []*Span
	received bytes.Buffer // everything as JSON
}

// Span is a span with the attributes of its resource.
type Span struct {
	*tracepb.Span
	Resource map[string]string
}

// Attribute returns an attribute as a text; "": the span does not have it.
func (s *Span) Attribute(name string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() != name {
			continue
		}
		if text := a.GetValue().GetStringValue(); text != "" {
			return text
		}
		return strconv.FormatInt(a.GetValue().GetIntValue(), 10)
	}
	return ""
}

// Start starts a collector that runs until the test ends.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			t.Errorf("the server sends %s %s: %v", r.Method, r.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty message has no bytes
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// Env returns the environment of a program that sends every span to the collector, soon.
func (c *Collector) Env() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_BSP_SCHEDULE_DELAY=50",
		"OTEL_TRACES_SAMPLER=parentbased_always_on", "OTEL_SERVICE_NAME=queue"}
}

func (c *Collector) take(r *http.Request) error {
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		in = unpacked
	}
	body, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &sent); err != nil {
		return err
	}
	text, err := protojson.Marshal(&sent)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received.Write(append(text, '\n'))
	for _, of := range sent.GetResourceSpans() {
		about := map[string]string{}
		for _, a := range of.GetResource().GetAttributes() {
			about[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, &Span{span, about})
			}
		}
	}
	return nil
}

// Received returns everything that was received, as JSON.
func (c *Collector) Received() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.received.Bytes())
}

// Plant adds a text to what was received.
func (c *Collector) Plant(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received.WriteString(text)
}

// Spans returns the spans with a name, in the order of their arrival.
func (c *Collector) Spans(name string) (list []*Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.GetName() == name {
			list = append(list, s)
		}
	}
	return list
}

// Tree returns the names of a span and of everything below it, a line each, sorted among siblings and indented.
func (c *Collector) Tree(root *Span) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.below(root, ""), "\n")
}

func (c *Collector) below(s *Span, indent string) []string {
	lines := []string{indent + s.GetName()}
	var children [][]string
	for _, child := range c.spans {
		if bytes.Equal(child.GetParentSpanId(), s.GetSpanId()) && bytes.Equal(child.GetTraceId(), s.GetTraceId()) {
			children = append(children, c.below(child, indent+"  "))
		}
	}
	slices.SortFunc(children, slices.Compare[[]string])
	return append(lines, slices.Concat(children...)...)
}
