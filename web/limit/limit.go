// Package limit restricts what one network can make a server do.
//
// A network is the /24 of an IPv4 address or the /48 of an IPv6 one, unless configured otherwise: about the smallest
// range of a household, company, campus or cloud customer. People behind one carrier or campus address share its
// budgets, so these are wide: thousands of visitors in the minutes around an opening pass, but one
// machine sending all it can does not.
//
// A budget is a token bucket, stored as the one time at which it is full again (GCRA). Memory is
// limited: when there are more budgets than fit, the one that is nearest to full is dropped.
package limit

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"
)

// Kind is a kind of limited event.
type Kind uint8

// The kinds. Streams are counted while they are open, the others when they happen.
const (
	Joins   Kind = iota // join requests and credentials shown later, recorded or not
	Tickets             // tickets recorded in one room
	Pages               // rendered pages
	Passes              // invalid passes in batches
	Streams             // event streams
	kinds
)

// String returns the name of the kind, used in metrics and errors.
func (k Kind) String() string {
	return [...]string{"joins", "tickets", "pages", "passes", "streams"}[k]
}

// Options holds the budgets of one network. 0: no limit.
type Options struct {
	Joins   int   // maximum per minute; twice as many at once
	Tickets int   // tickets per room and day
	Pages   int   // maximum per minute; twice as many at once
	Passes  int   // invalid passes per minute; ten times as many at once
	Streams int   // number open at once
	Network Sizes // size of a network; the zero value: a /24 and, in IPv6, a /48
	// Exempt lists networks without limits, such as that of a load test.
	Exempt []netip.Prefix
	// Log receives a warning about reached limits, once a minute per kind. Required.
	Log *slog.Logger
}

// Default returns budgets for a sale with tens of thousands of visitors.
func Default() Options {
	return Options{Joins: 1_500, Tickets: 10_000, Pages: 4_000, Passes: 1_000, Streams: 200,
		Network: Sizes{}.orDefault()}
}

// passBurst is the burst of invalid passes in minutes' worth of budget. It is large because each
// batch is charged in full before its passes are verified, and the valid ones are refunded
// afterwards.
const passBurst = 10

// Error means that a network has used up a budget.
type Error struct {
	Kind Kind
	Wait time.Duration // time until the budget suffices again
}

func (e *Error) Error() string {
	return fmt.Sprintf("your network has reached its limit of %s: try again later", e.Kind)
}

// Limits keeps the budgets of all networks. Safe for concurrent use. A nil *Limits has no limits.
type Limits struct {
	budgets [kinds]budget
	streams int
	sizes   Sizes
	exempt  []netip.Prefix
	log     *slog.Logger
	began   time.Time
	table   table
	open    openStreams
	queues  queues

	refused [kinds]atomic.Uint64
	logged  [kinds]atomic.Int64 // time of the latest log line, relative to began
}

// budget is a token bucket: it gains a token every interval and holds at most burst. The zero
// budget is unlimited.
type budget struct{ interval, burst time.Duration }

func perMinute(n int, minutes float64) budget {
	if n <= 0 {
		return budget{}
	}
	interval := time.Minute / time.Duration(n)
	return budget{interval, time.Duration(minutes * float64(time.Minute))}
}

// New returns Limits with full budgets.
func New(o Options) *Limits {
	l := &Limits{streams: o.Streams, sizes: o.Network.orDefault(), exempt: o.Exempt, log: o.Log,
		began: time.Now(), table: newTable(),
		open: newOpenStreams(), queues: queues{of: map[uint64]*queue{}}}
	l.budgets[Joins], l.budgets[Pages], l.budgets[Passes] = perMinute(o.Joins, 2), perMinute(o.Pages, 2),
		perMinute(o.Passes, passBurst)
	if o.Tickets > 0 {
		l.budgets[Tickets] = budget{24 * time.Hour / time.Duration(o.Tickets), 24 * time.Hour}
	}
	return l
}

// Take takes n tokens from a network's budget, or takes none and returns an [*Error].
func (l *Limits) Take(addr netip.Addr, k Kind, n int) error { return l.take(addr, k, "", n) }

// GiveBack refunds n tokens.
func (l *Limits) GiveBack(addr netip.Addr, k Kind, n int) { l.giveBack(addr, k, "", n) }

// Join charges a join and the ticket that it records in a room.
func (l *Limits) Join(addr netip.Addr, room string) error {
	if err := l.take(addr, Joins, "", 1); err != nil {
		return err
	}
	return l.take(addr, Tickets, room, 1)
}

// NoTicket refunds the ticket of a join that recorded none.
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

// streamWait is the time after which a page whose stream was refused may try again. Meanwhile it
// polls the room's state.
const streamWait = time.Minute

// OpenStream counts an open stream until done is called.
func (l *Limits) OpenStream(addr netip.Addr) (done func(), err error) {
	if l == nil || l.streams == 0 || l.IsExempt(addr) {
		return func() {}, nil
	}
	network := l.sizes.number(addr)
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

// logInterval is the minimum time between warnings about a kind.
const logInterval = time.Minute

func (l *Limits) refuse(addr netip.Addr, k Kind, wait time.Duration) error {
	count := l.refused[k].Add(1)
	now, last := int64(time.Since(l.began)), l.logged[k].Load()
	if (last == 0 || now-last >= int64(logInterval)) && l.logged[k].CompareAndSwap(last, max(now, 1)) {
		l.log.Warn("a network has reached its limit: if it is your own proxy or load test, see --trusted-proxies and --limit-exempt",
			"network", l.sizes.network(addr), "limit", k.String(), "refused_so_far", count)
	}
	return &Error{k, wait}
}

// IsExempt reports whether an address belongs to a network without limits.
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

// Sizes are the prefix lengths of networks.
type Sizes struct{ IPv4, IPv6 int }

// Bounds and defaults of prefix lengths. An IPv4 /16 and an IPv6 /32 are whole carriers, and an IPv6 /64 is one link.
const (
	minIPv4, defaultIPv4, maxIPv4 = 16, 24, 32
	minIPv6, defaultIPv6, maxIPv6 = 32, 48, 64
)

// Check reports whether the sizes are allowed.
func (s Sizes) Check() error {
	if s.IPv4 < minIPv4 || s.IPv4 > maxIPv4 || s.IPv6 < minIPv6 || s.IPv6 > maxIPv6 {
		return fmt.Errorf("a network is an IPv4 /%d to /%d and an IPv6 /%d to /%d", minIPv4, maxIPv4, minIPv6, maxIPv6)
	}
	return nil
}

// orDefault returns the sizes, or those of a household for the zero value.
func (s Sizes) orDefault() Sizes {
	if s == (Sizes{}) {
		return Sizes{defaultIPv4, defaultIPv6}
	}
	return s
}

// network returns the network of an address; the invalid prefix for an invalid address.
func (s Sizes) network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := s.IPv6
	if addr.Is4() {
		bits = s.IPv4
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

// number returns the network of an address as a number. All invalid addresses share one.
func (s Sizes) number(addr netip.Addr) uint64 {
	const is4, none = 0xffff << 48, 1<<64 - 1 // no IPv6 network begins like this: it would be multicast
	switch {
	case addr.Is4() || addr.Is4In6():
		b := addr.As4()
		return is4 | uint64(binary.BigEndian.Uint32(b[:])>>(32-s.IPv4))
	case addr.Is6():
		b := addr.As16()
		return binary.BigEndian.Uint64(b[:]) >> (64 - s.IPv6) << (64 - s.IPv6)
	}
	return none
}
