package source

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/proofline/proofline/verifier"
)

const (
	statePath = "state"
	maxState  = 64 << 10
)

// About is what a room says of itself beside its transcript. Nobody signs it, and
// no audit relies on it.
type About struct {
	Title    string `json:"title"`     // of the event
	TimeZone string `json:"time_zone"` // where it is, by its IANA name; empty for UTC
}

// ReadAbout asks a room that is published at an address. A copy says nothing.
func ReadAbout(ctx context.Context, src verifier.Source) (a About, err error) {
	s, ok := src.(*httpSource)
	if !ok {
		return a, nil
	}
	text, err := s.get(ctx, statePath, maxState)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return About{}, fmt.Errorf("read %s: %w", statePath, err)
	}
	return a, nil
}
