// Package sse writes server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html): the headers
// that keep proxies from holding them back, and a bound on how long a listener
// may take for one.
package sse

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// Idle is when a stream without news shows that it is alive.
	Idle = 15 * time.Second
	// Life is how long a stream lasts, so that the load moves on to servers that
	// were added. Browsers come back by themselves.
	Life = 10 * time.Minute
	// patience is how long a listener may take for one event beyond what the
	// connection holds back for it, which is several. A server that stops waits
	// no longer for those who do not read.
	patience = 3 * time.Second
)

// ErrBody is returned when the request has a body, which net/http would wait
// for before it answers.
var ErrBody = errors.New("must be empty")

var (
	eventStream = []string{"text/event-stream"}
	unstored    = []string{"no-store"}
	unbuffered  = []string{"no"}
	closed      = []string{"close"}
)

// Stream is an answer that is a stream of events. Not safe for concurrent use.
type Stream struct {
	*http.ResponseController
	to *echo.Response
	b  []byte // of one event
}

// Open begins the answer. Error: [ErrBody], with nothing answered.
func Open(c echo.Context) (*Stream, error) {
	s := &Stream{ResponseController: http.NewResponseController(c.Response().Writer), to: c.Response()}
	h := s.to.Header()
	if c.Request().ContentLength != 0 {
		h["Connection"] = closed
		_ = s.SetReadDeadline(time.Now())
		return nil, ErrBody
	}
	h["Content-Type"], h["Cache-Control"] = eventStream, unstored
	h["X-Accel-Buffering"] = unbuffered // by nginx in front
	s.to.WriteHeader(http.StatusOK)
	_ = s.SetReadDeadline(time.Time{}) // of the whole request: it is read
	return s, nil
}

// Send writes an event, of a name unless that is empty. An error says that
// nobody listens any more.
func (s *Stream) Send(name string, data []byte) error {
	s.b = s.b[:0]
	if name != "" {
		s.b = append(append(append(s.b, "event: "...), name...), '\n')
	}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		s.b = append(append(append(s.b, "data: "...), line...), '\n')
	}
	return s.write(append(s.b, '\n'))
}

// Alive writes a comment, so that nobody takes the stream for a broken one.
func (s *Stream) Alive() error { return s.write(append(s.b[:0], ": still here\n\n"...)) }

func (s *Stream) write(b []byte) error {
	s.b = b
	_ = s.SetWriteDeadline(time.Now().Add(patience))
	if _, err := s.to.Write(b); err != nil {
		return err
	}
	return s.Flush()
}
