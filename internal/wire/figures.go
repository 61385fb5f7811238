package wire

import (
	"github.com/proofline/proofline/console/live"
)

// History holds a room's metrics over time.
type History struct {
	Minutes []live.Minute `json:"minutes" doc:"Steps with changes, oldest first."`
}
