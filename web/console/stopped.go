package console

import "github.com/proofline/proofline/room"

// stoppedPage is a room whose transcript lacks entries that were shown.
type stoppedPage struct {
	Slug string
	*room.Regression
}

// Title is what the page is about.
func (p stoppedPage) Title() string {
	if p.Statement != "" {
		return "This room has ended: its records are lost"
	}
	return "This room is stopped: records are missing"
}

// IsOther tells whether the database has other entries than were shown, rather
// than fewer.
func (p stoppedPage) IsOther() bool { return p.Had.Size <= p.Has.Size }

// Missing is how many entries that were shown the database lacks.
func (p stoppedPage) Missing() uint64 { return p.Had.Size - p.Has.Size }

// Last is the last entry that is missing.
func (p stoppedPage) Last() uint64 { return p.Had.Size - 1 }
