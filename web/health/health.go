// Package health tells load balancers and monitoring how a server is.
package health

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/reply"
)

// ErrNotReady means that the server cannot accept joins yet.
var ErrNotReady = errors.New("the server is starting, or its database is away")

// sendLive answers as long as the process runs: a server that waits for its database must not be
// restarted for that.
func sendLive(c echo.Context) error {
	c.Response().Header()["Cache-Control"] = reply.NoStore
	return reply.Send(c, http.StatusOK, reply.Text, []byte("ok\n"))
}

// readiness is the server's health, for load balancers and monitoring. It names no room.
type readiness struct {
	Status   string   `json:"status"`      // "ok", "rooms cannot store", "clock jumped", "rooms lack records" or "database away"
	Database int64    `json:"database_ms"` // time since the database last answered
	Rooms    int      `json:"rooms"`       // number of rooms in memory
	Stuck    int      `json:"rooms_stuck"` // number of rooms with due entries that this server cannot store
	Held     int      `json:"rooms_held"`  // number of rooms whose database lacks published entries
	Longest  *float64 `json:"longest_stuck_s"`
	Step     float64  `json:"clock_step_s"` // jump of the database's clock, which rooms ignore
}

// Health serves the server's health.
type Health struct {
	Rooms    *room.Rooms
	Ready    func() bool // reports whether the server can accept joins
	Draining *atomic.Bool
}

// Routes returns the functions that answer, by path.
func (h *Health) Routes() map[string]echo.HandlerFunc {
	return map[string]echo.HandlerFunc{"/livez": sendLive, "/readyz": h.readyz}
}

// readyz answers 200 while the database answers and the rooms are loaded. A room that cannot store
// entries is reported but does not make the server unready: the other rooms work, and another server
// could not store its entries either.
//
// With ?exclude=database it also answers 200 while the database is away, once the rooms are loaded. If all
// servers share the database, a load balancer that asked for more would turn visitors away.
func (h *Health) readyz(c echo.Context) error {
	if h.Draining.Load() {
		return room.ErrStopping
	}
	ready, rooms := h.Ready(), h.Rooms.Health()
	if !ready && (!rooms.Loaded || c.QueryParam("exclude") != "database") {
		return ErrNotReady
	}
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
	if !ready {
		r.Status = "database away"
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	c.Response().Header()["Cache-Control"] = reply.NoStore
	return reply.Send(c, http.StatusOK, reply.JSON, append(body, '\n'))
}
