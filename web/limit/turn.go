package limit

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
)

// turnsAtOnce is the number of simultaneous turns of a network.
const turnsAtOnce = 16

// Turn waits for one of the network's turns to use the database, and holds it until done is called.
// So if a network sends very many requests, they wait for each other and hardly delay other
// networks. A caller must not wait for its client during a turn, because a slow client would
// block the others. Error: that of ctx.
func (l *Limits) Turn(ctx context.Context, addr netip.Addr) (done func(), err error) {
	if l == nil || l.IsExempt(addr) {
		return func() {}, nil
	}
	network := l.sizes.number(addr)
	at := l.queues.join(network)
	done = func() { <-at.turns; l.queues.leave(network) }
	select { // a free turn is granted even if ctx has ended
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

// queues are the queues of networks that have or wait for a turn.
type queues struct {
	mu sync.Mutex // guards of
	of map[uint64]*queue
}

type queue struct {
	turns chan struct{} // one value per request that has a turn
	n     int           // number of requests that have or wait for a turn
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
