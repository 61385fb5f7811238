package console

import (
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/web/console/shell"
)

// homePart returns the first page, which is the list of rooms, and the guide.
func homePart() shell.Part {
	first := func(x *shell.Request) error { return x.Done("/rooms", "") }
	return shell.Part{
		Name: "console", Templates: shell.Templates(files),
		Routes: []shell.Route{
			shell.Get("", shell.SignedIn, first),
			shell.Get("/", shell.SignedIn, first),
			shell.Get("/guide", shell.SignedIn, func(x *shell.Request) error { return x.Page("guide", nil) }),
			shell.Get("/*", shell.SignedIn, func(*shell.Request) error { return echo.ErrNotFound }),
		},
	}
}
