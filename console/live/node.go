package live

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/proofline/proofline/console/live/pglive"
)

const (
	beatEvery = 5 * time.Second
	lostAfter = 3 * beatEvery // a node that was not seen for so long is shown as lost
	seenSince = time.Hour     // and is shown for so long
)

// beat says that this node is there, and learns of the others.
func (l *Live) beat(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	failing := false
	for {
		asked, cancel := context.WithTimeout(ctx, beatEvery)
		nodes, err := l.Store.SeeNode(asked, l.self(), seenSince)
		cancel()
		if err == nil {
			l.nodes.Store(&nodes)
		} else if ctx.Err() == nil && !failing {
			l.Log.Warn("other nodes are not known", "err", err)
		}
		failing = err != nil
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// leave tells the others that this node stops in order.
func (l *Live) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.Store.LeaveNode(ctx, l.id) // they see it anyway, a quarter of a minute later
}

// self is this node.
func (l *Live) self() pglive.Node {
	h := l.Rooms.Health()
	return pglive.Node{
		ID: l.id, Name: l.Name, Version: l.Version, Started: l.started,
		Healthy: h.Ready, Rooms: h.Rooms, Goroutines: runtime.NumGoroutine(), Heap: heap(), Ahead: h.Ahead,
		Refused: l.refused(),
	}
}

// refused is never nil.
func (l *Live) refused() map[string]uint64 {
	if l.Refused != nil {
		if counts := l.Refused(); counts != nil {
			return counts
		}
	}
	return map[string]uint64{}
}

// heap returns how many bytes live objects, and dead ones not swept yet, take.
// It stops nothing, unlike [runtime.ReadMemStats].
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(s[0].Value.Uint64()) //nolint:gosec // bytes of memory
}
