package console

import (
	"time"

	"github.com/proofline/proofline/console/account"
)

// reportPatience is how long a browser waits for an audit before it is told that
// the audit goes on without it.
const reportPatience = 5 * time.Second

// reportRoutes publish the audit report of a room that has ended.
func (c *Console) reportRoutes() []route {
	return []route{{POST, "/rooms/:slug/report", account.Operate, c.publishReport}}
}

func (c *Console) publishReport(x *request) error {
	slug := x.Param("slug")
	done, err := c.Control.PublishReport(x.Request().Context(), x.Actor, slug)
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		if err != nil {
			return err
		}
		return x.done("/rooms/"+slug, "report-published")
	case <-time.After(reportPatience):
		return x.done("/rooms/"+slug, "report-begun")
	}
}
