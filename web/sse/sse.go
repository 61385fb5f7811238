// Package sse writes server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). It sets headers that keep proxies
// from buffering them, and limits the time that a client may take to receive one.
package sse

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// Idle is the time without events after which a stream sends a comment.
	Idle = 15 * time.Second
	// Life is the maximum duration of a stream. Browsers reconnect automatically, so the load moves
	// on to new servers.
	Life = 10 * time.Minute
	// patience is the time that a client may take for one event once the connection's buffers, which
	// hold several events, are full. A stopping server does not wait longer for clients that do not
	// read.
	patience = 3 * time.Second
)

// ErrBody means that the request has a body, which net/http would read before it answers.
var ErrBody = errors.New("must be empty")

var (
	eventStream = []string{"text/event-stream"}
	unstored    = []string{"no-store"}
	unbuffered  = []string{"no"}
	closed      = []string{"close"}
)

// Stream is an answer that consists of events. Not safe for concurrent use.
type Stream struct {
	*http.ResponseController
	to *echo.Response
	b  []byte // buffer of one event
}

// Open starts the answer. If it returns [ErrBody], nothing has been sent.
func Open(c echo.Context) (*Stream, error) {
	s := &Stream{ResponseController: http.NewResponseController(c.Response().Writer), to: c.Response()}
	h := s.to.Header()
	if c.Request().ContentLength != 0 {
		h["Connection"] = closed
		_ = s.SetReadDeadline(time.Now())
		return nil, ErrBody
	}
	h["Content-Type"], h["Cache-Control"] = eventStream, unstored
	h["X-Accel-Buffering"] = unbuffered // tells nginx not to buffer
	s.to.WriteHeader(http.StatusOK)
	_ = s.SetReadDeadline(time.Time{}) // the request has been read
	return s, nil
}

// Send writes an event, with a name unless that is empty. An error means that the client has
// disconnected.
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

// Alive writes a comment, which shows that the connection still works.
func (s *Stream) Alive() error { return s.write(append(s.b[:0], ": still here\n\n"...)) }

func (s *Stream) write(b []byte) error {
	s.b = b
	_ = s.SetWriteDeadline(time.Now().Add(patience))
	if _, err := s.to.Write(b); err != nil {
		return err
	}
	return s.Flush()
}
