package sse_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/web/sse"
)

func TestStream(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	s, err := sse.Open(echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", http.NoBody), answer))
	if err := errors.Join(err, s.Send("", []byte("one")), s.Alive(), s.Send("past", []byte("two\nlines"))); err != nil {
		t.Fatal(err)
	}
	if want := "data: one\n\n: still here\n\nevent: past\ndata: two\ndata: lines\n\n"; answer.Body.String() != want || !answer.Flushed {
		t.Errorf("wrote %q, want %q", answer.Body, want)
	}
	if h := answer.Header(); answer.Code != http.StatusOK || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("status %d, header %v", answer.Code, h)
	}
}

func TestBody(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	_, err := sse.Open(echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", strings.NewReader("a")), answer))
	if !errors.Is(err, sse.ErrBody) || answer.Header().Get("Connection") != "close" || answer.Body.Len() > 0 {
		t.Errorf("with a body: %v, header %v, wrote %q", err, answer.Header(), answer.Body)
	}
}
