package web

import (
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/sse"
)

const (
	// DefaultStreams is the default maximum number of open event streams.
	DefaultStreams = 2_000
	// streamAhead is the maximum number of people ahead of a visitor whose page should use the stream
	// instead of polling: further back, a few seconds do not matter.
	streamAhead = 100
	// streamLook is the interval at which a stream checks for changes.
	streamLook = 500 * time.Millisecond
)

// events sends the room's state document whenever it has changed, as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func (f *feed) events(c echo.Context, r *room.Room) error {
	done, err := f.budgets.limits.OpenStream(f.budgets.network(c))
	if err != nil {
		return err
	}
	defer done()
	if f.open.Add(1) > int64(f.max) {
		f.open.Add(-1)
		return room.ErrStreams
	}
	defer f.open.Add(-1)
	done, err = r.Quota.OpenStream()
	if err != nil {
		return err
	}
	defer done()
	out, err := sse.Open(c)
	if err != nil {
		return invalid.Field("", err.Error())
	}
	look, end := time.NewTicker(streamLook), time.NewTimer(sse.Life)
	defer look.Stop()
	defer end.Stop()
	sent, idle := &document{}, time.Duration(0)
	for {
		switch d := f.documents.of(r); {
		case len(sent.etag) == 0 || d.etag[0] != sent.etag[0]:
			sent, idle = d, 0
			err = out.Send("", d.body)
		case idle >= sse.Idle:
			idle = 0
			err = out.Alive()
		}
		if err != nil {
			return nil //nolint:nilerr // the client has disconnected
		}
		select {
		case <-look.C:
			idle += streamLook
		case <-end.C:
			return nil
		case <-f.closing:
			return nil
		case <-c.Request().Context().Done():
			return nil
		}
	}
}
