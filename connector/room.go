package connector

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/reach"
	"github.com/proofline/proofline/connector/internal/report"
	"github.com/proofline/proofline/connector/internal/roomapi"
	"github.com/proofline/proofline/connector/internal/session"
)

// CookiePrefix begins the name of a session cookie; the room's name follows.
const CookiePrefix = session.CookiePrefix

// room is a room of the rules, with what the connector knows about it.
type room struct {
	*session.Room
	state *roomState
}

// roomState is what the connector knows about a room. It survives new rules while the
// room keeps its URL and origin.
type roomState struct {
	server   *roomapi.Server
	reach    *reach.Reach
	gate     *gate.Gate
	reported *report.Room
	observed observed
}

// newRoomState returns the state of a room, with its saved gate if there is one.
func (c *Connector) newRoomState(url, origin string) *roomState {
	g, r, now := new(gate.Gate), reach.New(url, c.options.Log, c.unrecorded), c.options.Now()
	if k, ok := c.savedGates.Take(url, now); ok {
		g.Restore(k, now)
	}
	server := roomapi.NewServer(url, origin, r, roomapi.Options{
		Client: c.client, Now: c.options.Now, ProbeNow: c.probeNow,
	})
	return &roomState{server: server, reach: r, gate: g, reported: report.NewRoom(url, g)}
}

// failsOpen reports whether the connector fails open for the room.
func (rm *room) failsOpen() bool {
	after, ok := rm.Failure.FailOpenAfter()
	return ok && rm.state.reach.FailsOpen(after)
}

// admit reports whether the connector fails open for the room, and counts the request as admitted.
func (rm *room) admit(now time.Time) bool {
	after, ok := rm.Failure.FailOpenAfter()
	return ok && rm.state.reach.Admit(after, now)
}

// probeRoom fetches a room's keys, and reports whether the room is out of reach.
func (c *Connector) probeRoom(ctx context.Context, rm *room) bool {
	err := rm.state.server.Probe(ctx)
	if err != nil && !errors.Is(err, roomapi.ErrUnreachable) {
		c.options.Log.Warn("cannot fetch the room's keys", "room", rm.Name, "err", err)
	}
	return errors.Is(err, roomapi.ErrUnreachable)
}

// probe polls the rooms until ctx ends, so that outages are noticed and keys are present before
// visitors arrive with passes. A room that is down is polled every second.
func (c *Connector) probe(ctx context.Context) {
	for {
		var all sync.WaitGroup
		var isDown atomic.Bool
		for _, rm := range c.current.Load().rooms {
			all.Go(func() {
				c.group.Run("a probe of a room", func() {
					if c.probeRoom(ctx, rm) {
						isDown.Store(true)
					}
				})
			})
		}
		all.Wait()
		wait := c.options.Probe
		if isDown.Load() {
			wait = min(wait, time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-c.probeNow:
		case <-time.After(wait):
		}
	}
}
