// Package stats looks at an audited room for what replaying it cannot show:
// arrivals favoured for their moment, neighbours kept together, a group whose
// draws were tried until they pleased.
//
//	entries ─► per window: arrival (seq) ─► place (from 0) ─► scores ─► p-values ─► Holm ─► verdict
//
// Where the draws are fair, each window's places are a random permutation of
// its arrivals, and windows are independent. Every test here asks whether they
// look like that, and needs nothing else: no model of how people arrive. The
// moment of an arrival enters as its seq, the order of arrival, which has no
// ties.
//
// The package is outside of the core: whoever does not use it can audit
// without it. It is pure, and has no randomness: all p-values are formulas,
// named where they stand. It holds the arrivals of windows whose places are
// not all stated yet, about 60 bytes each, and of the others sums alone.
package stats

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/proofline/proofline/fairness"
)

// ErrUnaudited is returned when entries do not follow the rules: audit first.
var ErrUnaudited = errors.New("the entries are not those of a room that passes its audit")

// Lists are tickets that somebody knows something about.
type Lists struct {
	Own   []fairness.Ticket // the auditor's own: are their places even?
	Group []fairness.Ticket // people who may be favoured: do they stand further to the front?
}

// Collector takes the entries of one room, from the first on. It refuses those
// that make no sense and does not check the others: what it says holds for a
// room that passes its audit. Not safe for concurrent use.
type Collector struct {
	state   fairness.State // of policy and amendments alone: it knows the schedule
	pending []*window      // with arrivals, not all of whose places are stated; oldest first
	frozen  int            // how many of them are, the first ones
	own     map[fairness.Ticket]bool
	group   map[fairness.Ticket]bool

	scores scores
	room   description
	err    error // the first
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

// window is one whose places are not all stated.
type window struct {
	fairness.Window
	count  int                        // arrivals
	seqs   map[fairness.Ticket]uint32 // of those without a place
	frozen bool
	order  []uint32 // place → seq, as far as stated

	own   []float64 // places of the auditor's tickets, as in [evenPlace]
	group labelled
}

// Add takes the next entry, which is not kept. After an error it returns the
// same again.
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

// policy follows the schedule, for the ends of windows.
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
		w = &window{Window: bounds, seqs: map[fairness.Ticket]uint32{}}
		c.pending = append(c.pending, w)
	}
	w.seqs[e.Ticket] = e.Seq
	w.count++
	if w.frozen || int(e.Seq) != w.count-1 || len(w.seqs) != w.count {
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

// assign takes a place. Places are stated in order, so the window is the
// oldest one.
func (c *Collector) assign(e *fairness.Assign) error {
	if c.frozen == 0 || c.pending[0].Index != e.Window {
		return fmt.Errorf("%w: place %d of window %d", ErrUnaudited, e.Position, e.Window)
	}
	w := c.pending[0]
	seq, ok := w.seqs[e.Ticket]
	if !ok {
		return fmt.Errorf("%w: place %d, and its ticket has one or did not arrive", ErrUnaudited, e.Position)
	}
	delete(w.seqs, e.Ticket)
	if w.order == nil {
		w.order = make([]uint32, 0, w.count)
	}
	if c.own[e.Ticket] {
		w.own = append(w.own, evenPlace(len(w.order), w.count, e.Ticket))
	}
	if c.group[e.Ticket] {
		w.group.add(len(w.order), w.count)
	}
	w.order = append(w.order, seq)
	if len(w.order) == w.count {
		c.scores.add(w)
		c.pending[0] = nil // to be freed
		c.pending, c.frozen = c.pending[1:], c.frozen-1
	}
	return nil
}

// evenPlace spreads place r of n, from 0, over the interval [r/n, (r+1)/n) by
// a hash of the ticket: where the n places are equally likely, the result is
// even over [0, 1) also for a small n, and anybody gets the same.
func evenPlace(r, n int, t fairness.Ticket) float64 {
	sum := sha256.Sum256(append([]byte("proofline/stats/v1\x00"), t[:]...))
	inside := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
	return (float64(r) + inside) / float64(n)
}
