package connector

import (
	"context"
	"time"

	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/reach"
	"github.com/proofline/proofline/connector/internal/state"
)

// loadState loads the state file: fail-open intervals still to be reported, and
// the last known open gates.
func (c *Connector) loadState() {
	if c.options.State == "" || c.options.Token == "" {
		return // nothing is reported, so nothing is stored
	}
	var before state.State
	c.file, before = state.Open(c.options.State, c.options.Log, c.options.Now)
	for _, o := range before.FailOpen {
		c.unrecorded.Add(o)
	}
	c.savedGates.Set(before.Gates)
}

// saveChanges saves the state until ctx ends: on every tick, because the end of an
// open interval moves, and when intervals change.
func (c *Connector) saveChanges(ctx context.Context) {
	tick := time.NewTicker(c.options.batchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.unrecorded.Changed():
		}
		c.saveState()
	}
}

// saveState writes the state file.
func (c *Connector) saveState() {
	if c.file != nil {
		c.file.Save(state.State{FailOpen: c.unrecordedFailOpen(), Gates: c.gatesToSave()})
	}
}

// unrecordedFailOpen returns the fail-open intervals that the server has not
// recorded, including those still open, as if they ended now.
func (c *Connector) unrecordedFailOpen() []reach.Past {
	now := c.options.Now()
	var current []reach.Past
	for _, st := range c.current.Load().states {
		if o, ok := st.reach.Current(now); ok {
			current = append(current, o)
		}
	}
	return c.unrecorded.All(current)
}

// gatesToSave returns the open gates that are fresh enough to be restored.
func (c *Connector) gatesToSave() (list []gate.Saved) {
	now := c.options.Now()
	for _, st := range c.current.Load().states {
		if k, ok := st.gate.Save(st.server.URL()); ok && k.IsFresh(now) {
			list = append(list, k)
		}
	}
	if c.HasRules() {
		return list
	}
	return append(list, c.savedGates.Remaining()...)
}
