package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/reply"
)

var discoveryCache = []string{"public, max-age=3600"}

// registerPath is the path below which the log of rooms is served.
const registerPath = "/" + roomlog.Path + "/"

// ofRoom serves a part of the room's transcript.
func ofRoom(send func(echo.Context, reply.Log) error) func(echo.Context, *room.Room) error {
	return func(c echo.Context, r *room.Room) error { return send(c, r.Transcript) }
}

// ofRooms serves a part of the log of rooms.
func (rs *resources) ofRooms(send func(echo.Context, reply.Log) error) echo.HandlerFunc {
	return bounded(func(c echo.Context) error { return send(c, rs.finder.rooms.Register) })
}

// sendPassKeys serves the keys that verify the room's passes, as a JSON Web Key Set
// (https://www.rfc-editor.org/rfc/rfc7517#section-5). Caches must revalidate it, because a new key
// signs at once.
func sendPassKeys(c echo.Context, r *room.Room) error {
	c.Response().Header()["Cache-Control"] = reply.NoCache
	return c.JSON(http.StatusOK, map[string]any{"keys": r.Sessions.PublicKeys()})
}
