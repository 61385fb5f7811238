package wire

import (
	"time"

	"github.com/google/uuid"
)

// Rehearsal is the state of a rehearsal. Numbers count simulated visitors.
type Rehearsal struct {
	Slug     string     `json:"slug" doc:"Slug of the copy."`
	Title    string     `json:"title"`
	URL      string     `json:"url" doc:"Address at which people can join it, too."`
	Of       *uuid.UUID `json:"of" doc:"ID of the room or draft that it rehearses."`
	Started  time.Time  `json:"started"`
	Opens    time.Time  `json:"opens"`
	Starts   time.Time  `json:"starts"`
	Ends     time.Time  `json:"ends" doc:"Latest end, or the actual end once it is over."`
	Over     bool       `json:"over"`
	Visitors int        `json:"visitors"`
	Joined   int        `json:"joined"`
	Called   int        `json:"called"`
	Admitted int        `json:"admitted"`
	Missed   int        `json:"missed" doc:"Number of visitors that were called but did not claim."`
	Left     int        `json:"left"`
	Failed   int        `json:"failed" doc:"Number of visitors that could not join."`
}

// RehearsalList lists rehearsals.
type RehearsalList struct {
	Rehearsals []Rehearsal `json:"rehearsals"`
}

// RehearsalInput describes the crowd of a rehearsal.
type RehearsalInput struct {
	Visitors int `json:"visitors" doc:"Number of simulated visitors, from 10 to 2000. Default: 200."`
}
