package wire

import (
	"github.com/proofline/proofline/console/live"
)

// History is a room's metrics over a time.
type History struct {
	Minutes []live.Minute `json:"minutes" doc:"Steps with changes, oldest first."`
}
