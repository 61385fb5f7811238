// Package testlog gives tests loggers that may be used after the test.
package testlog

import (
	"io"
	"log/slog"
	"sync"
	"testing"
)

// New returns a logger that writes to the test's output.
func New(t testing.TB, level slog.Level) *slog.Logger {
	w := &output{to: t.Output()}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.to = io.Discard
	})
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// output ends with the test: a write to the output of a test that has completed panics, and what a
// server does in the background may outlast its test.
type output struct {
	mu sync.Mutex // guards to
	to io.Writer
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(p)
}
