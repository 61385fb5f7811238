package console

import (
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/ready"
	"github.com/proofline/proofline/web/console/shell"
)

// checksOf returns the checks of the server; nil: there are none.
func checksOf(c *control.Rooms) *ready.Ready {
	if c == nil {
		return nil
	}
	return c.Ready
}

// readyPage is what has to be right before a sale.
type readyPage struct {
	Worst  ready.State
	Checks []ready.Check
}

// homePart returns the first page, which is the list of rooms, the guide, and the checks before a sale.
func homePart(checks *ready.Ready) shell.Part {
	showReady := func(x *shell.Request) error {
		if checks == nil {
			return echo.ErrNotFound
		}
		ctx, stop := x.Wait()
		defer stop()
		found, err := checks.Checks(ctx, x.Actor)
		if err != nil {
			return err
		}
		return x.Page("ready", readyPage{ready.Worst(found), found})
	}
	first := func(x *shell.Request) error { return x.Done("/rooms", "") }
	return shell.Part{
		Name: "console", Templates: shell.Templates(files),
		Routes: []shell.Route{
			shell.Get("", shell.SignedIn, first),
			shell.Get("/", shell.SignedIn, first),
			shell.Get("/guide", shell.SignedIn, func(x *shell.Request) error { return x.Page("guide", nil) }),
			shell.Get("/ready", account.Operate, showReady),
			shell.Get("/*", shell.SignedIn, func(*shell.Request) error { return echo.ErrNotFound }),
		},
	}
}
