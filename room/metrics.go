package room

import (
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/projection"
)

// shownAwaited is the number of pending draws that metrics list, so that they cost the same in every room.
const shownAwaited = 16

// Metrics are a room's figures for its organizer, in addition to the public [Snapshot]. Reading them costs the
// same however many visitors are in line.
type Metrics struct {
	Now      time.Time // time by the database's clock
	Snapshot *Snapshot
	Active   uint64        // called visitors whose claim is open, plus live sessions
	Queued   int           // joins and other requests waiting for an append
	Appended time.Duration // duration of this node's latest append; 0 before the first
	// time since this node last stored something, or found nothing due; negative before the first
	Stored    time.Duration
	Age       time.Duration // time since this node last knew everything that was stored
	Stuck     time.Duration // how long it has failed to store what was due; 0: it has not
	HasBeacon bool
	Pending   int                // draws waiting for a beacon round
	Awaited   []evidence.Awaited // the next of them, at most 16
	Witnesses []WitnessMetrics
	Published Published
	Gate      GateMetrics
}

// GateMetrics are the figures of a room's gate, and the latest fail-open intervals.
type GateMetrics struct {
	Since    time.Time               // time of the latest switch
	Started  uint64                  // unqueued sessions that began in the last minute
	Active   uint64                  // live unqueued sessions
	Nodes    uint64                  // connectors that share the unqueued sessions that may begin
	Switches []projection.GateSwitch // the latest, oldest first, at most 100
	FailOpen []projection.FailOpen   // the latest, oldest first, at most 64
}

// WitnessMetrics are the figures of one witness of the room.
type WitnessMetrics struct {
	Name     string
	Cosigned int // of Draws, those whose freeze it cosigned in time
	Draws    int // the latest draws, at most 10
}

// Published is the published checkpoint; zero before the first tick that saw the room.
type Published struct {
	Size uint64
	At   time.Time // time by the database's clock
}

// Metrics returns the room's figures as of the durable transcript.
func (r *Room) Metrics() Metrics {
	m := Metrics{Now: r.Now(), Snapshot: r.Snapshot(), Queued: r.sequencer.Queued(), Appended: r.sequencer.Took(),
		Stored: -1, Age: r.view.Age(), Stuck: r.Stuck(), HasBeacon: r.policy.Beacon != nil}
	if ago, ever := r.sequencer.Stored(); ever {
		m.Stored = ago
	}
	if p := r.published.Load(); p != nil {
		m.Published = *p
	}
	var cosigned [][]uint32
	r.view.Read(func(p *projection.Projection, _ uint64) {
		m.Active = p.Active(max(millis.Of(m.Now), p.Now()))
		cosigned = p.Cosigned()
		m.Gate.Since, m.Gate.Switches, m.Gate.FailOpen = p.GateHistory()
	})
	counts := r.controls.Unqueued.Counts()
	m.Gate.Started, m.Gate.Active, m.Gate.Nodes = counts.Started, counts.Active, counts.Nodes
	if m.HasBeacon {
		m.Pending, m.Awaited = r.Evidence.Waiting(shownAwaited)
	}
	for _, key := range r.policy.Witnesses {
		m.Witnesses = append(m.Witnesses, witnessMetrics(key, cosigned))
	}
	return m
}

// witnessMetrics counts the draws that a witness, given by its verifier key, cosigned.
func witnessMetrics(key string, cosigned [][]uint32) WitnessMetrics {
	name, _, _ := strings.Cut(key, "+")
	m := WitnessMetrics{Name: name, Draws: len(cosigned)}
	w, err := audit.ParseWitness(key)
	if err != nil {
		return m // cannot happen: the rules refuse such a policy
	}
	hash := w.KeyHash()
	for _, draw := range cosigned {
		if slices.Contains(draw, hash) {
			m.Cosigned++
		}
	}
	return m
}
