package limit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// Size of the table, which takes about 8 MB when it is full.
const (
	shards   = 64
	perShard = 2048
	sample   = 8 // number of budgets examined, of which the fullest is dropped
)

// key identifies a budget.
type key struct {
	network uint64
	use     uint64 // kind, and hash of the room
}

var seed = maphash.MakeSeed()

func (l *Limits) key(addr netip.Addr, k Kind, room string) key {
	use := uint64(k)
	if room != "" {
		use |= maphash.String(seed, room) &^ 0xff
	}
	return key{l.sizes.number(addr), use}
}

// table holds the times at which budgets that are not full will be full again.
type table [shards]*shard

type shard struct {
	mu   sync.Mutex // guards full
	full map[key]time.Duration
}

func newTable() (t table) {
	for i := range t {
		t[i] = &shard{full: map[key]time.Duration{}}
	}
	return t
}

func (t *table) of(k key) *shard {
	return t[((k.network^k.use)*0x9e3779b97f4a7c15)>>58]
}

// take takes n tokens, or takes none and returns the time to wait for them. A request for more than
// the burst is granted when the budget is full.
func (t *table) take(k key, b budget, now time.Duration, n int) (wait time.Duration) {
	s := t.of(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	full, known := s.full[k]
	cost := min(time.Duration(n)*b.interval, b.burst)
	next := max(full, now) + cost
	if wait = next - now - b.burst; wait > 0 {
		return wait
	}
	if !known && len(s.full) >= perShard {
		s.forget(now)
	}
	s.full[k] = next
	return 0
}

func (t *table) giveBack(k key, b budget, n int) {
	s := t.of(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if full, ok := s.full[k]; ok {
		s.full[k] = full - min(time.Duration(n)*b.interval, b.burst)
	}
}

// forget examines a few budgets in random order and drops those that are full, or else the one that
// is nearest to full.
func (s *shard) forget(now time.Duration) {
	var nearest key
	seen, removed := 0, false
	for k, full := range s.full {
		if full <= now {
			delete(s.full, k)
			removed = true
		} else if n, ok := s.full[nearest]; !ok || full < n {
			nearest = k
		}
		if seen++; seen == sample {
			break
		}
	}
	if !removed {
		delete(s.full, nearest)
	}
}

// openStreams counts the open streams of networks. Its size is limited by the number of streams.
type openStreams struct {
	mu    *sync.Mutex // guards count
	count map[uint64]int
}

func newOpenStreams() openStreams { return openStreams{new(sync.Mutex), map[uint64]int{}} }

func (o *openStreams) add(network uint64, most int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count[network] >= most {
		return false
	}
	o.count[network]++
	return true
}

func (o *openStreams) remove(network uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count[network]--; o.count[network] == 0 {
		delete(o.count, network)
	}
}
