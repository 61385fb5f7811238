// Package limit bounds what one network may have a server do.
//
// A network is the /24 of an IPv4 address or the /48 of an IPv6 one: about what
// one household, company, campus or cloud customer has at least. People who share
// a carrier's address or a campus share its budgets too, so those are wide: what
// thousands of visitors do in the minutes around an opening passes, and what one
// machine can do in the same time does not.
//
// A budget is a token bucket, kept as the one moment at which it is full again
// (GCRA). Memory is bounded: when there are more networks than fit, the budget
// that is nearest to full is forgotten.
package limit

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"
)

// Kind is what is counted.
type Kind uint8

// The kinds. Streams are counted while they are open, the others as they happen.
const (
	Joins   Kind = iota // arrivals, wanted or recorded
	Tickets             // tickets recorded, in one room
	Pages               // pages rendered
	Passes              // invalid passes in batches
	Streams             // streams of events
	kinds
)

// String returns the name under which a kind is counted.
func (k Kind) String() string {
	return [...]string{"joins", "tickets", "pages", "passes", "streams"}[k]
}

// Options are the budgets of one network. 0: no limit.
type Options struct {
	Joins   int // a minute, and twice as many at once
	Tickets int // in one room within a day
	Pages   int // a minute, and twice as many at once
	Passes  int // invalid ones a minute, and ten times as many at once
	Streams int // open at once
	// Exempt are networks without limits, such as that of a load test.
	Exempt []netip.Prefix
	// Log hears of limits that are reached, once a minute for each kind. Never nil.
	Log *slog.Logger
}

// Default returns the budgets that suit a sale with tens of thousands of visitors.
func Default() Options {
	return Options{Joins: 1_500, Tickets: 10_000, Pages: 4_000, Passes: 1_000, Streams: 200}
}

// passBurst is how many minutes' worth of invalid passes may come at once: each
// batch is charged in full before its passes are verified, and given back the
// valid ones afterwards.
const passBurst = 10

// Error reports that a network has used a budget up.
type Error struct {
	Kind Kind
	Wait time.Duration // until there is room again
}

func (e *Error) Error() string {
	return fmt.Sprintf("your network has reached its limit of %s: try again later", e.Kind)
}

// Limits keeps the budgets of all networks. Safe for concurrent use. A nil
// *Limits limits nothing.
type Limits struct {
	budgets [kinds]budget
	streams int
	exempt  []netip.Prefix
	log     *slog.Logger
	began   time.Time
	table   table
	open    openStreams
	queues  queues

	refused [kinds]atomic.Uint64
	logged  [kinds]atomic.Int64 // when, as time since began
}

// budget is a token bucket: a token comes every interval, and at most burst are
// saved up. The zero budget is no limit.
type budget struct{ interval, burst time.Duration }

func perMinute(n int, minutes float64) budget {
	if n <= 0 {
		return budget{}
	}
	interval := time.Minute / time.Duration(n)
	return budget{interval, time.Duration(minutes * float64(time.Minute))}
}

// New returns limits with full budgets.
func New(o Options) *Limits {
	l := &Limits{streams: o.Streams, exempt: o.Exempt, log: o.Log, began: time.Now(), table: newTable(), open: newOpenStreams(), queues: queues{of: map[uint64]*queue{}}}
	l.budgets[Joins], l.budgets[Pages], l.budgets[Passes] = perMinute(o.Joins, 2), perMinute(o.Pages, 2), perMinute(o.Passes, passBurst)
	if o.Tickets > 0 {
		l.budgets[Tickets] = budget{24 * time.Hour / time.Duration(o.Tickets), 24 * time.Hour}
	}
	return l
}

// Take uses n tokens of a network's budget, or none and returns an [*Error].
func (l *Limits) Take(addr netip.Addr, k Kind, n int) error { return l.take(addr, k, "", n) }

// GiveBack returns tokens that turned out not to be needed.
func (l *Limits) GiveBack(addr netip.Addr, k Kind, n int) { l.giveBack(addr, k, "", n) }

// Join counts a join of a room, and the ticket that comes of it.
func (l *Limits) Join(addr netip.Addr, room string) error {
	if err := l.take(addr, Joins, "", 1); err != nil {
		return err
	}
	return l.take(addr, Tickets, room, 1)
}

// NoTicket takes a ticket back of a join that recorded none.
func (l *Limits) NoTicket(addr netip.Addr, room string) { l.giveBack(addr, Tickets, room, 1) }

func (l *Limits) take(addr netip.Addr, k Kind, room string, n int) error {
	if l == nil || l.budgets[k].interval == 0 || l.IsExempt(addr) {
		return nil
	}
	wait := l.table.take(l.key(addr, k, room), l.budgets[k], time.Since(l.began), n)
	if wait == 0 {
		return nil
	}
	return l.refuse(addr, k, wait)
}

func (l *Limits) giveBack(addr netip.Addr, k Kind, room string, n int) {
	if l == nil || n == 0 || l.budgets[k].interval == 0 || l.IsExempt(addr) {
		return
	}
	l.table.giveBack(l.key(addr, k, room), l.budgets[k], n)
}

// streamWait is when a page whose stream was refused may try again. It asks for
// the room's state in the meantime.
const streamWait = time.Minute

// OpenStream counts an open stream, until done is called.
func (l *Limits) OpenStream(addr netip.Addr) (done func(), err error) {
	if l == nil || l.streams == 0 || l.IsExempt(addr) {
		return func() {}, nil
	}
	network := networkOf(addr)
	if !l.open.add(network, l.streams) {
		return nil, l.refuse(addr, Streams, streamWait)
	}
	return func() { l.open.remove(network) }, nil
}

// Refused returns how many requests of each kind were refused since the start.
func (l *Limits) Refused() map[string]uint64 {
	if l == nil {
		return nil
	}
	counts := make(map[string]uint64, kinds)
	for k := range kinds {
		counts[k.String()] = l.refused[k].Load()
	}
	return counts
}

// logEvery is how often the log hears of a kind.
const logEvery = time.Minute

func (l *Limits) refuse(addr netip.Addr, k Kind, wait time.Duration) error {
	count := l.refused[k].Add(1)
	now, last := int64(time.Since(l.began)), l.logged[k].Load()
	if (last == 0 || now-last >= int64(logEvery)) && l.logged[k].CompareAndSwap(last, max(now, 1)) {
		l.log.Warn("a network has reached its limit: if it is a proxy or a load test of yours, see --trusted-proxies and --limit-exempt",
			"network", Network(addr), "limit", k.String(), "refused_so_far", count)
	}
	return &Error{k, wait}
}

// IsExempt reports whether an address is of a network without limits.
func (l *Limits) IsExempt(addr netip.Addr) bool {
	if l == nil || len(l.exempt) == 0 {
		return false
	}
	addr = addr.Unmap().WithZone("")
	for _, network := range l.exempt {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// Bits of an address that name a network.
const (
	bits4 = 24
	bits6 = 48
)

// Network returns the network that an address is counted with; the invalid
// prefix for an invalid address.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := bits6
	if addr.Is4() {
		bits = bits4
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

// networkOf is Network as a number. All addresses that are not known share one.
func networkOf(addr netip.Addr) uint64 {
	const is4, is6 = 1 << 62, 1 << 63
	switch {
	case addr.Is4() || addr.Is4In6():
		b := addr.As4()
		return is4 | uint64(b[0])<<16 | uint64(b[1])<<8 | uint64(b[2])
	case addr.Is6():
		b := addr.As16()
		return is6 | uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
	}
	return 0
}
