package web

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
)

// live answers as long as the process runs: a server that waits for its database must not be
// restarted for that.
func (s *Server) live(c echo.Context) error {
	c.Response().Header()["Cache-Control"] = noStore
	return send(c, http.StatusOK, plainText, []byte("ok\n"))
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

// readyz answers 200 while the database answers and the rooms are loaded. A room that cannot store
// entries is reported but does not make the server unready: the other rooms work, and another server
// could not store its entries either.
func (s *Server) readyz(c echo.Context) error {
	if s.draining.Load() {
		return room.ErrStopping
	}
	if !s.ready() {
		return errNotReady
	}
	h := s.rooms.Health()
	r := readiness{Status: "ok", Rooms: h.Rooms, Stuck: h.Stuck, Held: h.Held, Step: h.Step.Seconds(), Database: time.Since(h.Answered).Milliseconds()}
	if h.Step != 0 {
		r.Status = "clock jumped"
	}
	if h.Stuck > 0 {
		seconds := h.Longest.Seconds()
		r.Status, r.Longest = "rooms cannot store", &seconds
	}
	if h.Held > 0 {
		r.Status = "rooms lack records"
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	c.Response().Header()["Cache-Control"] = noStore
	return send(c, http.StatusOK, jsonText, append(body, '\n'))
}
