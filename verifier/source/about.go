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

// About is unsigned information from the room's page, outside of its transcript. Audits do not rely
// on it.
type About struct {
	Title    string `json:"title"`     // title of the event
	TimeZone string `json:"time_zone"` // time zone of the event, as IANA name; "": UTC
}

// ReadAbout reads the information from a room at an address. For a copy it returns an empty About.
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
