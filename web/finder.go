package web

import (
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
)

// roomFinder finds the room of a request.
type roomFinder struct {
	rooms *room.Rooms
	hosts *customHosts
}

// inRoom passes the room named in the path to handle.
func (f *roomFinder) inRoom(handle func(echo.Context, *room.Room) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, err := f.rooms.Get(c.Request().Context(), c.Param("slug"))
		if err != nil {
			return err
		}
		if err := f.hosts.check(c.Request(), r); err != nil {
			return err
		}
		return handle(c, r)
	}
}

// roomKey is the context key of a request's room, for error pages.
const roomKey = "room"

// inLine passes the room of a page to handle, and to error pages.
func (f *roomFinder) inLine(handle func(echo.Context, *room.Room) error) echo.HandlerFunc {
	return bounded(f.inRoom(func(c echo.Context, r *room.Room) error {
		c.Set(roomKey, r)
		return handle(c, r)
	}))
}
