package web

import (
	"errors"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/sse"
)

const (
	// DefaultStreams is how many streams of events a server keeps open at most.
	DefaultStreams = 2_000
	// streamAhead is how many people may be ahead of a visitor whose page
	// should listen instead of asking: further away a few seconds do not matter.
	streamAhead = 100
	// streamLook is how often a stream looks for news.
	streamLook = 500 * time.Millisecond
)

// errStreams is returned when the server keeps as many streams open as it may.
var errStreams = errors.New("too many listen at this moment: ask for the state instead")

// events sends the room's state whenever it has changed, as server-sent
// events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
// What is sent is the document that [Server.state] answers with.
func (s *Server) events(c echo.Context, r *room.Room) error {
	done, err := s.limits.OpenStream(s.clients.of(c.Request()))
	if err != nil {
		return err
	}
	defer done()
	if s.streams.Add(1) > int64(s.maxStreams) {
		s.streams.Add(-1)
		return errStreams
	}
	defer s.streams.Add(-1)
	out, err := sse.Open(c)
	if err != nil {
		return invalid("", err.Error())
	}
	look, end := time.NewTicker(streamLook), time.NewTimer(sse.Life)
	defer look.Stop()
	defer end.Stop()
	sent, idle := &document{}, time.Duration(0)
	for {
		switch d := s.documents.of(r); {
		case len(sent.etag) == 0 || d.etag[0] != sent.etag[0]:
			sent, idle = d, 0
			err = out.Send("", d.body)
		case idle >= sse.Idle:
			idle = 0
			err = out.Alive()
		}
		if err != nil {
			return nil //nolint:nilerr // nobody listens any more
		}
		select {
		case <-look.C:
			idle += streamLook
		case <-end.C:
			return nil
		case <-s.closing:
			return nil
		case <-c.Request().Context().Done():
			return nil
		}
	}
}
