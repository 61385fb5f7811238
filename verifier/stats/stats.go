// Package stats searches an audited room for favouritism that replaying it cannot show: arrivals
// favoured by their time, neighbours kept together, draws repeated until they favoured a group.
//
//	entries ─► per window and lane: arrival (seq) ─► place (from 0) ─► scores ─► p-values ─► Holm ─► verdict
//
// Where the draws are fair, each window's places are a random permutation of its arrivals, and
// windows are independent. Every test here checks whether they look like that, without any model of
// how people arrive. The time of an arrival is represented by its seq, the order of arrival, which
// has no ties.
//
// Audits work without this package. It is pure and uses no randomness: all p-values are formulas,
// with references next to them. It keeps the arrivals of windows whose places are not all published
// yet in memory, about 60 bytes each, and only sums of the others.
package stats

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/proofline/proofline/fairness"
)

// ErrUnaudited is returned when entries do not follow the rules: audit the room first.
var ErrUnaudited = errors.New("the entries are not those of a room that passes its audit")

// Lists are tickets about which the auditor knows something.
type Lists struct {
	Own   []fairness.Ticket // the auditor's own: are their places spread evenly?
	Group []fairness.Ticket // people who may have been favoured: are they further to the front?
}

// Collector collects the entries of one room, from first error on. It rejects inconsistent entries
// but does not check the rules: its results are only valid for a room that passes its audit. It is
// not safe for concurrent use.
type Collector struct {
	state   fairness.State // has only the policy and amendments, for the schedule
	pending []*window      // windows with arrivals whose places are not all published, oldest first
	frozen  int            // number of frozen windows at the start of pending
	own     map[fairness.Ticket]bool
	group   map[fairness.Ticket]bool

	scores scores
	room   description
	err    error // first error
}

// New returns a collector for a room.
func New(lists Lists) *Collector {
	return &Collector{own: set(lists.Own), group: set(lists.Group), scores: newScores()}
}

func set(list []fairness.Ticket) map[fairness.Ticket]bool {
	s := make(map[fairness.Ticket]bool, len(list))
	for _, t := range list {
		s[t] = true
	}
	return s
}

// window is a window whose places are not all published.
type window struct {
	fairness.Window
	count  int // arrivals
	left   int // arrivals without a place
	frozen bool
	drums  map[fairness.Lane]*drum
}

// drum is what is drawn together: the arrivals of a window in one lane.
type drum struct {
	fairness.Window
	count int                        // arrivals
	seqs  map[fairness.Ticket]uint32 // seqs of arrivals without a place
	order []uint32                   // maps places to seqs, as far as published

	own   []float64 // places of the auditor's tickets, see [evenPlace]
	group labelled
}

// Add adds the next entry, without retaining it. After an error it always returns the same error.
func (c *Collector) Add(e fairness.Entry) error {
	if c.err == nil {
		c.err = c.add(e)
	}
	return c.err
}

func (c *Collector) add(e fairness.Entry) error {
	switch e := e.(type) {
	case *fairness.Room:
		return c.begin(e)
	case *fairness.Arrive:
		return c.arrive(e)
	case *fairness.Freeze:
		return c.freeze(e)
	case *fairness.Draw:
		c.room.Draws++
	case *fairness.Assign:
		return c.assign(e)
	case *fairness.Admit:
		c.room.Admissions++
	case *fairness.Skip:
		c.room.skip(e)
	case *fairness.Amend:
		c.room.amend(e)
		return c.policy(e)
	}
	return nil
}

func (c *Collector) begin(e *fairness.Room) error {
	c.room.begin(&e.Policy)
	return c.policy(e)
}

// policy applies policy and amendments to the schedule, for the ends of windows.
func (c *Collector) policy(e fairness.Entry) error {
	if err := c.state.Apply(e, nil); err != nil {
		return fmt.Errorf("%w: %w", ErrUnaudited, err)
	}
	return nil
}

func (c *Collector) arrive(e *fairness.Arrive) error {
	var w *window
	if n := len(c.pending); n > 0 && c.pending[n-1].Index == e.Window {
		w = c.pending[n-1]
	} else {
		bounds, ok := fairness.Window{}, c.state.Size() > 0
		if ok {
			bounds, ok = c.state.Schedule().At(e.Time)
		}
		if !ok || bounds.Index != e.Window {
			return fmt.Errorf("%w: an arrival at %d in window %d", ErrUnaudited, e.Time, e.Window)
		}
		w = &window{Window: bounds, drums: map[fairness.Lane]*drum{}}
		c.pending = append(c.pending, w)
	}
	d := w.drums[e.Lane]
	if d == nil {
		d = &drum{Window: w.Window, seqs: map[fairness.Ticket]uint32{}}
		w.drums[e.Lane] = d
	}
	d.seqs[e.Ticket] = e.Seq
	d.count++
	w.count++
	w.left++
	if w.frozen || int(e.Seq) != d.count-1 || len(d.seqs) != d.count {
		return fmt.Errorf("%w: arrival %d of window %d", ErrUnaudited, e.Seq, e.Window)
	}
	c.scores.own.arrived(c.own[e.Ticket])
	c.scores.group.arrived(c.group[e.Ticket])
	c.room.arrive(e.Time)
	return nil
}

func (c *Collector) freeze(e *fairness.Freeze) error {
	if c.frozen == len(c.pending) || c.pending[c.frozen].Index != e.Window {
		return fmt.Errorf("%w: a freeze of window %d", ErrUnaudited, e.Window)
	}
	w := c.pending[c.frozen]
	w.frozen = true
	c.frozen++
	c.room.freeze(w, e.Time)
	return nil
}

// assign adds a place. Places are published in order, so it belongs to the oldest window.
func (c *Collector) assign(e *fairness.Assign) error {
	if c.frozen == 0 || c.pending[0].Index != e.Window {
		return fmt.Errorf("%w: place %d of window %d", ErrUnaudited, e.Position, e.Window)
	}
	w := c.pending[0]
	d := w.drums[e.Lane]
	if d == nil {
		return fmt.Errorf("%w: place %d of lane %q", ErrUnaudited, e.Position, e.Lane)
	}
	seq, ok := d.seqs[e.Ticket]
	if !ok {
		return fmt.Errorf("%w: place %d: its ticket already has one or did not arrive", ErrUnaudited, e.Position)
	}
	delete(d.seqs, e.Ticket)
	if d.order == nil {
		d.order = make([]uint32, 0, d.count)
	}
	if c.own[e.Ticket] {
		d.own = append(d.own, evenPlace(len(d.order), d.count, e.Ticket))
	}
	if c.group[e.Ticket] {
		d.group.add(len(d.order), d.count)
	}
	d.order = append(d.order, seq)
	if len(d.order) == d.count {
		c.scores.add(d)
		w.drums[e.Lane] = &drum{} // lets it be freed
	}
	if w.left--; w.left == 0 {
		c.pending[0] = nil // lets the window be freed
		c.pending, c.frozen = c.pending[1:], c.frozen-1
	}
	return nil
}

// evenPlace maps place r of n, from 0, to a value in [r/n, (r+1)/n) by a hash of the ticket. If the
// n places are equally likely, the result is uniform over [0, 1) even for a small n, and every
// auditor gets the same.
func evenPlace(r, n int, t fairness.Ticket) float64 {
	sum := sha256.Sum256(append([]byte("proofline/stats/v1\x00"), t[:]...))
	inside := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
	return (float64(r) + inside) / float64(n)
}
