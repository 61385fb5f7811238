// Package safetynet lets visitors into a site without waiting, as long as the line is empty, within the outflow
// of the room. Connectors report these unqueued sessions, and learn how many more may begin; the database counts
// them for all nodes.
//
// Entries of the transcript open and shut the gate. Like calls, they are appended when due: if two nodes decide at
// once, the second finds the entry already there. Counts by other nodes are up to a quarter of a second old, and
// connectors report once a second, so sessions may exceed the limits by what begins in that time.
//
// Connectors also report fail-open intervals, in which they let visitors in because the room was out of reach. The
// package records them in the transcript.
package safetynet

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/sequence"
)

// Transcript is the room's transcript, and its projection on this node.
type Transcript interface {
	// Do waits until the entries of a change are durable or refused.
	Do(ctx context.Context, change sequence.Change) error
	// WakeDue makes the sequencer append the gate switch that is due.
	WakeDue()
	// View returns the room as readers see it.
	View() *sequence.View
}

// Status is what connectors follow, as of the durable transcript.
type Status struct {
	Gate    projection.Gate
	Outflow fairness.Outflow
	IsEnded bool
}

// Options configures [New].
type Options struct {
	Room       uuid.UUID
	Session    time.Duration // how long a session lasts after each activity
	Store      *pgroom.Connectors
	Unqueued   *projection.Unqueued
	Transcript Transcript
	Status     func() Status
	Clock      *clock.Clock
}

// Net is the safety net of one room. It is safe for concurrent use.
type Net struct {
	o       Options
	reports reportBatcher
	ended   endedSessions
}

// New returns the safety net of a loaded room.
func New(o Options) *Net {
	n := &Net{o: o}
	n.reports.store = n.storeBatch
	n.ended.query = func(ctx context.Context) ([]uuid.UUID, error) {
		return o.Store.Ended(ctx, o.Room, endedWithin, MaxSessions)
	}
	return n
}

// Take stores counts of the room's unqueued sessions, and triggers the gate switch if one is due. It returns how
// many more sessions may begin.
func (n *Net) Take(c projection.Count) (left uint64) {
	isDue := false
	n.o.Transcript.View().Read(func(p *projection.Projection, _ uint64) { left, isDue = p.TakeUnqueued(c) })
	if isDue {
		n.o.Transcript.WakeDue()
	}
	return left
}
