package limit

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// attempts returns how many of n joins of a room are allowed.
func attempts(l *Limits, a netip.Addr, room string, n int) (passed int) {
	for range n {
		if l.Join(a, room) == nil {
			passed++
		}
	}
	return passed
}

// TestOpening checks that a machine that requests 121,231 tickets a minute gets a few percent of them,
// while 5,000 visitors behind one /24 all join within two minutes of the opening.
func TestOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Default()
		o.Log = quiet
		l := New(o)
		attacker, campus := addr("192.0.2.7"), addr("198.51.100.1")
		taken, honest := 0, 0
		for second := range 600 {
			taken += attempts(l, attacker, "sale", 121_231/60)
			if second < 120 { // half of them in the first ten seconds, the rest spread out
				n := 22
				if second < 10 {
					n = 258
				}
				for range n { // each from its own address, trying again a second later if refused
					if l.Join(campus.Next(), "sale") == nil {
						honest++
					}
				}
			}
			time.Sleep(time.Second)
			if second == 59 && taken > 4_600 {
				t.Errorf("one address took %d tickets in the first minute", taken)
			}
		}
		if taken > o.Tickets+o.Tickets/100 {
			t.Errorf("one address took %d tickets in ten minutes, want at most %d a day", taken, o.Tickets)
		}
		if want := 10*258 + 110*22; honest != want {
			t.Errorf("%d of %d honest visitors joined", honest, want)
		}
	})
}

// TestNetworks checks that the addresses of a network share a budget, however they are written.
func TestNetworks(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.254", true},
		{"192.0.2.1", "192.0.3.1", false},
		{"192.0.2.1", "::ffff:192.0.2.77", true},
		{"2001:db8:1::1", "2001:db8:1:ffff::1", true},
		{"2001:db8:1::1", "2001:db8:2::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
		{"0.0.0.1", "::1", false},
	} {
		l := New(Options{Pages: 1, Log: quiet})
		for l.Take(addr(test.a), Pages, 1) == nil {
		}
		if got := l.Take(addr(test.b), Pages, 1) != nil; got != test.same {
			t.Errorf("%s and %s share a budget: %v", test.a, test.b, got)
		}
		a, b := l.sizes.network(addr(test.a)), l.sizes.network(addr(test.b))
		if got := a == b; got != test.same {
			t.Errorf("%s and %s are in %v and %v", test.a, test.b, a, b)
		}
	}
	if l := New(Options{Pages: 1, Log: quiet}); l.Take(netip.Addr{}, Pages, 3) != nil || l.Take(netip.Addr{}, Pages, 1) == nil {
		t.Error("invalid addresses do not share a budget")
	}
	if (Sizes{24, 48}).network(netip.Addr{}).IsValid() {
		t.Error("an invalid address has a network")
	}
}

// TestSizes checks that the size of a network can be chosen.
func TestSizes(t *testing.T) {
	for _, test := range []struct {
		a, b string
		of   Sizes
		same bool
	}{
		{"192.0.2.1", "192.0.2.2", Sizes{32, 64}, false},
		{"192.0.2.1", "::ffff:192.0.2.1", Sizes{32, 64}, true},
		{"192.0.2.1", "192.0.255.2", Sizes{16, 64}, true},
		{"192.0.2.1", "192.1.2.1", Sizes{16, 64}, false},
		{"2001:db8:1:1::1", "2001:db8:1:1:ffff::", Sizes{24, 64}, true},
		{"2001:db8:1:1::1", "2001:db8:1:2::1", Sizes{24, 64}, false},
		{"2001:db8:1:1::1", "2001:db8:ffff::", Sizes{24, 32}, true},
		{"2001:db8:1:100::1", "2001:db8:1:1ff::1", Sizes{24, 56}, true},
	} {
		if got := test.of.number(addr(test.a)) == test.of.number(addr(test.b)); got != test.same {
			t.Errorf("%s and %s are one network of %v: %v", test.a, test.b, test.of, got)
		}
	}
	for _, wrong := range []Sizes{{15, 48}, {33, 48}, {24, 31}, {24, 65}} {
		if wrong.Check() == nil {
			t.Errorf("%v are sizes", wrong)
		}
	}
}

// TestWait checks that the wait of an error is sufficient and minimal.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Joins: 60, Tickets: 100, Log: quiet})
		a := addr("192.0.2.1")
		if got := attempts(l, a, "sale", 200); got != 100 {
			t.Errorf("%d joins at once, want the room's 100 tickets", got)
		}
		var e *Error
		if err := l.Join(a, "sale"); !errors.As(err, &e) || e.Kind != Joins || e.Wait <= 0 {
			t.Fatalf("%v, want an error for joins", err)
		}
		time.Sleep(10 * time.Minute)
		if err := l.Join(a, "sale"); !errors.As(err, &e) || e.Kind != Tickets {
			t.Fatalf("%v, want an error for tickets", err)
		}
		if err := l.Join(a, "other"); err != nil {
			t.Errorf("tickets of another room: %v", err)
		}
		l.NoTicket(a, "sale")
		if err := l.Join(a, "sale"); err != nil {
			t.Errorf("after a refund: %v", err)
		}
		if err := l.Join(a, "sale"); !errors.As(err, &e) {
			t.Fatal(err)
		}
		time.Sleep(e.Wait - time.Millisecond)
		if l.Join(a, "sale") == nil {
			t.Error("the wait is too long")
		}
		time.Sleep(time.Millisecond)
		if err := l.Join(a, "sale"); err != nil {
			t.Errorf("after the wait: %v", err)
		}
		if got := l.Refused(); got["joins"] != 81 || got["tickets"] != 23 || len(got) != int(kinds) {
			t.Errorf("refused %v", got)
		}
	})
}

// TestBatches checks that a batch larger than the remaining budget is refused before it is verified,
// and that refunds can be used again.
func TestBatches(t *testing.T) {
	l := New(Options{Passes: 100, Log: quiet})
	a := addr("192.0.2.1")
	for range 50 {
		if err := l.Take(a, Passes, 500); err != nil {
			t.Fatalf("an honest connector: %v", err)
		}
		l.GiveBack(a, Passes, 500)
	}
	taken := 0
	for l.Take(a, Passes, 500) == nil {
		taken += 500
	}
	if taken != 1000 {
		t.Errorf("%d invalid passes at once, want 1,000", taken)
	}
	if err := New(Options{Passes: 1, Log: quiet}).Take(a, Passes, 500); err != nil {
		t.Errorf("a batch larger than the budget is never allowed: %v", err)
	}
}

func TestStreams(t *testing.T) {
	l := New(Options{Streams: 2, Log: quiet})
	a, b := addr("192.0.2.1"), addr("192.0.3.1")
	done, err := l.OpenStream(a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.OpenStream(a); err != nil {
		t.Fatal(err)
	}
	if _, err := l.OpenStream(a); err == nil {
		t.Error("a third stream was allowed")
	}
	if _, err := l.OpenStream(b); err != nil {
		t.Errorf("another network's stream: %v", err)
	}
	done()
	if done, err = l.OpenStream(a); err != nil {
		t.Errorf("after another stream has ended: %v", err)
	}
	done()
}

// TestMemory checks that memory is limited even for an attacker with a million networks, who asks at many ports at once
// and does not regain a used budget this way.
func TestMemory(t *testing.T) {
	l := New(Options{Joins: 1, Log: quiet})
	a := netip.MustParseAddr("2001:db8::").As16()
	held := addr("192.0.2.1")
	for l.Take(held, Joins, 1) == nil {
	}
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			a := a
			for i := part; i < 1_000_000; i += 8 {
				a[3], a[4], a[5] = byte(i>>16), byte(i>>8), byte(i)
				_ = l.Join(netip.AddrFrom16(a), "")
			}
		})
	}
	all.Wait()
	size := 0
	for _, s := range l.table {
		size += len(s.full)
	}
	if size > shards*perShard || size < shards*perShard/2 {
		t.Errorf("%d budgets are stored, want at most %d", size, shards*perShard)
	}
	if l.Take(held, Joins, 1) == nil {
		t.Error("the flood displaced a budget that was used up")
	}
}

// TestExempt checks that an exempt network has no limits of any kind.
func TestExempt(t *testing.T) {
	l := New(Options{Joins: 1, Tickets: 1, Pages: 1, Passes: 1, Streams: 1, Log: quiet, Exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for range 100 {
		for _, err := range []error{l.Join(addr("::ffff:127.0.0.1"), "sale"), l.Take(addr("127.0.0.1"), Pages, 1), l.Take(addr("127.9.9.9"), Passes, 500)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.OpenStream(addr("127.0.0.1")); err != nil {
			t.Fatal(err)
		}
	}
	var none *Limits
	if none.Take(addr("192.0.2.1"), Passes, 1_000_000) != nil || none.Join(addr("192.0.2.1"), "sale") != nil || none.Refused() != nil {
		t.Error("nil Limits refuse something")
	}
}

// TestLog checks that a reached limit is logged once a minute.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := New(Options{Joins: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 120 {
			attempts(l, addr("192.0.2.1"), "sale", 10)
			time.Sleep(time.Second)
		}
		if got := strings.Count(log.String(), "network=192.0.2.0/24 limit=joins"); got != 2 {
			t.Errorf("%d lines in two minutes, want 2: %s", got, log.String())
		}
	})
}

func BenchmarkJoin(b *testing.B) {
	o := Default()
	o.Log = quiet
	l := New(o)
	a := addr("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		_ = l.Join(a, "sale")
	}
}
