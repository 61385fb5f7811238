package retention

import (
	"context"

	"github.com/proofline/proofline/internal/personal"
)

// Round does what Run does at its start.
func (j *Job) Round(ctx context.Context) { j.round(ctx, personal.NewSteady()) }
