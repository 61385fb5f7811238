package shell

import "github.com/proofline/proofline/room"

// stoppedPage is the page of a room whose transcript lacks entries that visitors have seen.
type stoppedPage struct {
	Slug string
	*room.Regression
}

// Title returns the heading of the page.
func (p stoppedPage) Title() string {
	if p.Statement != "" {
		return "This room has ended: its records are lost"
	}
	return "This room is stopped: records are missing"
}

// IsOther reports whether the database has different entries, rather than fewer.
func (p stoppedPage) IsOther() bool { return p.Had.Size <= p.Has.Size }

// Missing returns the number of entries that the database lacks.
func (p stoppedPage) Missing() uint64 { return p.Had.Size - p.Has.Size }

// Last returns the last entry that is missing.
func (p stoppedPage) Last() uint64 { return p.Had.Size - 1 }
