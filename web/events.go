package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
)

const (
	// DefaultStreams is how many streams of events a server keeps open at most.
	DefaultStreams = 2_000
	// streamAhead is how many people may be ahead of a visitor whose page
	// should listen instead of asking: further away a few seconds do not matter.
	streamAhead = 100
	// streamLook is how often a stream looks for news.
	streamLook = 500 * time.Millisecond
	// streamIdle is when a stream without news shows that it is alive.
	streamIdle = 15 * time.Second
	// streamPatience is how long a listener may take for one event beyond what
	// the connection holds back for it, which is several. A server that stops
	// waits no longer for those who do not read.
	streamPatience = 3 * time.Second
	// streamLife is how long a stream lasts, so that the load moves on to
	// servers that were added. Browsers come back by themselves.
	streamLife = 10 * time.Minute
)

// errStreams is returned when the server keeps as many streams open as it may.
var errStreams = errors.New("too many listen at this moment: ask for the state instead")

var (
	eventStream = []string{"text/event-stream"}
	unbuffered  = []string{"no"}
	closed      = []string{"close"}
)

// events sends the room's state whenever it has changed, as server-sent
// events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
// What is sent is the document that [Server.state] answers with.
func (s *Server) events(c echo.Context, r *room.Room) error {
	if s.streams.Add(1) > int64(s.maxStreams) {
		s.streams.Add(-1)
		return errStreams
	}
	defer s.streams.Add(-1)
	h, out := c.Response().Header(), stream{http.NewResponseController(c.Response().Writer), c.Response()}
	if c.Request().ContentLength != 0 { // net/http would wait for it before it answers
		h["Connection"] = closed
		_ = out.SetReadDeadline(time.Now())
		return invalid("", "must be empty")
	}
	h["Content-Type"], h["Cache-Control"] = eventStream, noStore
	h["X-Accel-Buffering"] = unbuffered // by nginx in front
	c.Response().WriteHeader(http.StatusOK)
	_ = out.SetReadDeadline(time.Time{}) // of the whole request: it is read

	look, end := time.NewTicker(streamLook), time.NewTimer(streamLife)
	defer look.Stop()
	defer end.Stop()
	sent, idle := &document{}, time.Duration(0)
	for {
		var err error
		switch d := s.documents.of(r); {
		case len(sent.etag) == 0 || d.etag[0] != sent.etag[0]:
			sent, idle = d, 0
			err = out.send("data: ", d.body, "\n\n")
		case idle >= streamIdle:
			idle = 0
			err = out.send(": still here", nil, "\n\n")
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

// stream writes events, each within [streamPatience].
type stream struct {
	*http.ResponseController
	to http.ResponseWriter
}

func (o stream) send(before string, body []byte, after string) error {
	_ = o.SetWriteDeadline(time.Now().Add(streamPatience))
	b := make([]byte, 0, len(before)+len(body)+len(after))
	b = append(append(append(b, before...), body...), after...)
	if _, err := o.to.Write(b); err != nil {
		return err
	}
	return o.Flush()
}
