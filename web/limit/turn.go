package limit

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
)

// turnsAtOnce is how many turns a network has at the same time.
const turnsAtOnce = 16

// Turn waits until few enough requests of the network are with the database, and
// counts one more until done is called. So those of one network that sends very
// many wait for each other, and others hardly for them. Whoever holds a turn must
// not wait for its client, which could hold up its neighbours. Error: that of ctx.
func (l *Limits) Turn(ctx context.Context, addr netip.Addr) (done func(), err error) {
	if l == nil || l.IsExempt(addr) {
		return func() {}, nil
	}
	network := networkOf(addr)
	at := l.queues.join(network)
	done = func() { <-at.turns; l.queues.leave(network) }
	select { // a turn that is free is had even at the last moment
	case at.turns <- struct{}{}:
		return done, nil
	default:
	}
	select {
	case at.turns <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		l.queues.leave(network)
		return nil, fmt.Errorf("wait for a turn: %w", ctx.Err())
	}
}

// queues are those of networks that have, or wait for, a turn.
type queues struct {
	mu sync.Mutex // guards of
	of map[uint64]*queue
}

type queue struct {
	turns chan struct{} // has one for each request that has a turn
	n     int           // requests that have or wait for one
}

func (q *queues) join(network uint64) *queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.of[network]
	if at == nil {
		at = &queue{turns: make(chan struct{}, turnsAtOnce)}
		q.of[network] = at
	}
	at.n++
	return at
}

func (q *queues) leave(network uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.of[network]; at.n == 1 {
		delete(q.of, network)
	} else {
		at.n--
	}
}
