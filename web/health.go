package web

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/reply"
)

// sendLive answers as long as the process runs: a server that waits for its database must not be
// restarted for that.
func sendLive(c echo.Context) error {
	c.Response().Header()["Cache-Control"] = reply.NoStore
	return reply.Send(c, http.StatusOK, reply.Text, []byte("ok\n"))
}

// readiness is the server's health, for load balancers and monitoring. It names no room.
type readiness struct {
	Status   string   `json:"status"`      // "ok", "rooms cannot store", "clock jumped" or "rooms lack records"
	Database int64    `json:"database_ms"` // time since the database last answered
	Rooms    int      `json:"rooms"`       // number of rooms in memory
	Stuck    int      `json:"rooms_stuck"` // number of rooms with due entries that this server cannot store
	Held     int      `json:"rooms_held"`  // number of rooms whose database lacks published entries
	Longest  *float64 `json:"longest_stuck_s"`
	Step     float64  `json:"clock_step_s"` // jump of the database's clock, which rooms ignore
}

// health serves the server's health.
type health struct {
	rooms    *room.Rooms
	ready    func() bool
	draining *atomic.Bool
}

func (h *health) register(e *echo.Echo) {
	e.Match(read, "/livez", sendLive)
	e.Match(read, "/readyz", h.readyz)
}

// readyz answers 200 while the database answers and the rooms are loaded. A room that cannot store
// entries is reported but does not make the server unready: the other rooms work, and another server
// could not store its entries either.
func (h *health) readyz(c echo.Context) error {
	if h.draining.Load() {
		return room.ErrStopping
	}
	if !h.ready() {
		return errNotReady
	}
	rooms := h.rooms.Health()
	r := readiness{
		Status: "ok", Rooms: rooms.Rooms, Stuck: rooms.Stuck, Held: rooms.Held, Step: rooms.Step.Seconds(),
		Database: time.Since(rooms.Answered).Milliseconds(),
	}
	if rooms.Step != 0 {
		r.Status = "clock jumped"
	}
	if rooms.Stuck > 0 {
		seconds := rooms.Longest.Seconds()
		r.Status, r.Longest = "rooms cannot store", &seconds
	}
	if rooms.Held > 0 {
		r.Status = "rooms lack records"
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	c.Response().Header()["Cache-Control"] = reply.NoStore
	return reply.Send(c, http.StatusOK, reply.JSON, append(body, '\n'))
}
