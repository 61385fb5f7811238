package live

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/proofline/proofline/console/live/pglive"
)

const (
	heartbeatInterval = 5 * time.Second
	lostAfter         = 3 * heartbeatInterval // a node not seen for this long is shown as lost
	lostShown         = time.Hour             // a lost node is shown for this long
)

// heartbeat sends heartbeats of this node and reads those of the others.
func (l *Live) heartbeat(ctx context.Context) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	failing := false
	for {
		asked, cancel := context.WithTimeout(ctx, heartbeatInterval)
		nodes, err := l.Store.SeeNode(asked, l.self(), lostShown)
		cancel()
		if err == nil {
			l.nodes.Store(&nodes)
		} else if ctx.Err() == nil && !failing {
			l.Log.Warn("cannot exchange heartbeats with other nodes", "err", err)
		}
		failing = err != nil
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// leave removes this node from the list of nodes on shutdown.
func (l *Live) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.Store.LeaveNode(ctx, l.id) // if it fails, the others notice after 15 seconds
}

// self returns the heartbeat of this node.
func (l *Live) self() pglive.Node {
	h := l.Rooms.Health()
	return pglive.Node{
		ID: l.id, Name: l.Name, Version: l.Version, Started: l.started,
		Healthy: h.Ready, Rooms: h.Rooms, Goroutines: runtime.NumGoroutine(), Heap: heap(), Ahead: h.Ahead,
		Refused: l.refused(),
	}
}

// refused returns the counts of refused requests, never nil.
func (l *Live) refused() map[string]uint64 {
	if l.Refused != nil {
		if counts := l.Refused(); counts != nil {
			return counts
		}
	}
	return map[string]uint64{}
}

// heap returns the size of heap objects in bytes, including dead ones not yet swept. Unlike
// [runtime.ReadMemStats], it does not stop the world.
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(s[0].Value.Uint64()) //nolint:gosec // bytes of memory
}
