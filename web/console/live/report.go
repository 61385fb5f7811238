package live

import (
	"time"

	"github.com/proofline/proofline/web/console/shell"
)

// reportPatience is how long a browser waits for the audit. After that, the audit continues without it.
const reportPatience = 5 * time.Second

func (h *controls) publishReport(x *shell.Request) error {
	slug := x.Param("slug")
	done, err := h.rooms.Reports.Publish(x.Request().Context(), x.Actor, slug)
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		if err != nil {
			return err
		}
		return x.Done("/rooms/"+slug, "report-published")
	case <-time.After(reportPatience):
		return x.Done("/rooms/"+slug, "report-begun")
	}
}
