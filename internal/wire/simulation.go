package wire

import (
	"github.com/proofline/proofline/console/simulate"
)

// Simulation is the result of a simulation.
type Simulation struct {
	Result   *simulate.Result `json:"result"`
	Findings []string         `json:"findings" doc:"The result in sentences."`
	// Comparison is empty unless requested.
	Comparison []simulate.Row `json:"comparison" doc:"The same crowd with windows of other lengths; empty unless asked for."`
}
