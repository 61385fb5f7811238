package demo

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
)

// TestGuests: all visitors arrive while the room is open, and enough of them in
// both parts of the sale.
func TestGuests(t *testing.T) {
	p := newPlan(10_000)
	list := guests(10_000)
	before := 0
	for _, g := range list {
		at := p.opens.Add(edge + time.Duration(g.Arrives))
		if !at.After(p.opens) || !at.Before(p.lastJoin) {
			t.Fatalf("a visitor arrives %v after the opening", at.Sub(p.opens))
		}
		if at.Before(p.starts) {
			before++
		}
	}
	if len(list) != 10_000 || before < 5_700 || before > 6_300 {
		t.Errorf("%d of %d arrive before the start, want about 6000", before, len(list))
	}
}

// TestCrowd: each habit has its share of visitors, and each visitor a ticket.
func TestCrowd(t *testing.T) {
	for _, n := range []int{MinVisitors, 1_000, 5_000} {
		p := newPlan(n)
		c := newCrowd(&demoRoom{Room: wire.Room{URL: "http://example.com/r/demo"}}, nil, nil, p.opens, guests(n))
		tickets := map[string]bool{}
		for _, v := range c.people {
			tickets[v.ticket] = true
		}
		if len(tickets) != n {
			t.Errorf("%d visitors with %d tickets", n, len(tickets))
		}
		for _, s := range share {
			if got, want := len(c.with(s.habit)), sized(n, s.habit, s.percent); got != want {
				t.Errorf("%d of %d visitors have habit %d, want %d", got, n, s.habit, want)
			}
		}
	}
}

// TestSized: the habits' shares leave plain visitors, and shoppers stay within their
// limit.
func TestSized(t *testing.T) {
	for _, n := range []int{MinVisitors, 2_000, MaxVisitors} {
		sum := 0
		for _, s := range share {
			sum += sized(n, s.habit, s.percent)
		}
		if shoppers := sized(n, shopper, 30); shoppers < 1 || shoppers > maxShoppers || sum >= n {
			t.Errorf("of %d visitors %d shop, and %d have a habit", n, shoppers, sum)
		}
	}
}

// TestReplacements counts calls beyond those that the outflow allows. The time of a
// pause allows none.
func TestReplacements(t *testing.T) {
	room := &fairness.Room{Policy: fairness.Policy{Starts: 1_000,
		Outflow: fairness.Outflow{PerMinute: 600}}} // 1 in 100 ms
	call := func(at, upTo int) fairness.Entry {
		return &fairness.Call{Time: fairness.Time(at), UpTo: []fairness.Position{fairness.Position(upTo)}}
	}
	amend := func(at int, c fairness.Change) fairness.Entry {
		return &fairness.Amend{Time: fairness.Time(at), Change: c}
	}
	for name, tt := range map[string]struct {
		entries []fairness.Entry
		want    int
	}{
		"at the outflow":   {[]fairness.Entry{room, call(1_000, 1), call(2_000, 11)}, 0},
		"slower":           {[]fairness.Entry{room, call(2_000, 5)}, 0},
		"instead of three": {[]fairness.Entry{room, call(2_000, 14), call(9_000, 15)}, 3},
		"time in a pause": {[]fairness.Entry{room, amend(1_000, fairness.ChangePause),
			amend(2_000, fairness.ChangeResume), call(2_000, 2)}, 1},
	} {
		if got := replacements(tt.entries); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestChangeByte: one digit of one ticket changes, in full and partial bundles, and
// the entry stays well-formed.
func TestChangeByte(t *testing.T) {
	const size = audit.TileWidth + 3
	for index, path := range map[uint64]string{7: "tile/entries/000", audit.TileWidth + 1: "tile/entries/001.p/3"} {
		for digit := range 16 {
			dir := t.TempDir()
			ticket := "0b7f0d4c-6c1f-8d55-9a52-6b0a4a8b6f1" + string("0123456789abcdef"[digit])
			name := filepath.Join(dir, filepath.FromSlash(path))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			before := []byte("arrive 1 0 0 " + ticket + " general")
			if err := os.WriteFile(name, before, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := changeByte(dir, index, size, ticket); err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			changed := 0
			for i := range before {
				if before[i] != after[i] {
					changed++
				}
			}
			if _, err := fairness.ParseEntry(after); err != nil || changed != 1 || len(after) != len(before) {
				t.Errorf("%q becomes %q: %v", before, after, err)
			}
		}
	}
}

// TestAttacks: the script asks for enough tickets to see what its accounts and the limits per network hold back, and
// joins last long enough for the people of all rooms.
func TestAttacks(t *testing.T) {
	for people, want := range map[int]struct {
		asked, limit int
		time         time.Duration
		most         []int
	}{
		MinVisitors: {20, 5, 8 * time.Second, []int{5, 5, 20, 5, 5, 20, 5, 5, 10, 1, 1, 1}},
		10_000:      {1_000, 100, 102 * time.Second, []int{100, 100, 1_000, 100, 100, 1_000, 10, 10, 10, 25, 25, 25}},
		MaxVisitors: {2_000, 200, 203 * time.Second, []int{200, 200, 2_000, 200, 200, 2_000, 10, 10, 10, 50, 50, 50}},
	} {
		d := &demo{Options: Options{Visitors: people, Bots: true}}
		if d.config().Limits.Tickets != want.limit || len(d.config().TrustedProxies) == 0 {
			t.Errorf("%d people: %+v", people, d.config())
		}
		all := d.attacks(&desk{})
		var most []int
		for _, a := range all {
			most = append(most, a.most)
			if a.tickets != want.asked || a.length != want.time {
				t.Errorf("%d people: %d tickets, %s", people, a.tickets, a.length)
			}
		}
		if !slices.Equal(most, want.most) {
			t.Errorf("%d people: the script gets %v, want %v", people, most, want.most)
		}
	}
}

// TestAddresses: the server's limits see one network of a script or one for each ticket, no two rooms share any, and
// no network of people has more of them than may join.
func TestAddresses(t *testing.T) {
	for _, people := range []int{MinVisitors, 10_000, MaxVisitors} {
		d, owner := &demo{Options: Options{Visitors: people}}, map[netip.Prefix]int{}
		network := func(a netip.Addr) netip.Prefix {
			bits := 24
			if a.Is6() {
				bits = 48
			}
			p, err := a.Prefix(bits)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		for _, a := range d.attacks(&desk{}) {
			own := map[netip.Prefix]bool{}
			for n := range a.tickets {
				p := network(a.from.address(a.number, n))
				if other, taken := owner[p]; taken && other != a.number {
					t.Fatalf("rooms %d and %d share %s", a.number, other, p)
				}
				own[p], owner[p] = true, a.number
			}
			if a.from.isOne != (len(own) == 1) || !a.from.isOne && len(own) != a.tickets {
				t.Errorf("%d people, %s: %d networks", people, a.from.name, len(own))
			}
			crowd, addresses := map[netip.Prefix]int{}, map[netip.Addr]bool{}
			for n := range a.visits {
				from := personAddress(n, a.visits)
				crowd[network(from)]++
				addresses[from] = true
				if _, taken := owner[network(from)]; taken || crowd[network(from)] > ticketLimit(people) {
					t.Fatalf("%d of %d people come from %s", crowd[network(from)], a.visits, network(from))
				}
			}
			if len(addresses) != a.visits {
				t.Errorf("%d people have %d addresses", a.visits, len(addresses))
			}
		}
	}
}

// TestForwarding names the address of a request, if it has one.
func TestForwarding(t *testing.T) {
	var got string
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("X-Forwarded-For") }))
	defer site.Close()
	for want, ctx := range map[string]context.Context{"": t.Context(), "10.1.2.3": from(t.Context(), netip.MustParseAddr("10.1.2.3"))} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, site.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := visitorsHTTP().Do(r)
		if err != nil || got != want {
			t.Fatalf("%q, want %q: %v", got, want, err)
		}
		_ = a.Body.Close()
	}
}

// TestDoors: behind each door the script asks for more tickets than it has accounts or codes, and every person has one.
func TestDoors(t *testing.T) {
	for people, want := range map[int][4]int{MinVisitors: {0, 0, 10, 1}, 10_000: {0, 0, 10, 25}, MaxVisitors: {0, 0, 10, 50}} {
		var holds [4]int
		for i, one := range doors(people, &desk{}) {
			holds[i] = one.holds
			if one.holds >= asked(people) || one.visits > people ||
				one.holds > 0 && (one.desk == nil || !strings.Contains(one.needs, strconv.Itoa(one.holds))) {
				t.Errorf("%d people: %+v", people, one)
			}
		}
		if holds != want {
			t.Errorf("%d people: the script has %d, want %d", people, holds, want)
		}
	}
}

// TestBringPeople: people who cannot be sent in time do not come.
func TestBringPeople(t *testing.T) {
	a := &attack{door: door{visits: 1_000}, opens: time.Now().Add(-5 * time.Second), starts: time.Now().Add(lastJoin)}
	arrivals := make(chan int)
	done := make(chan error)
	go func() { done <- a.bringPeople(t.Context(), arrivals) }()
	for sent := 0; ; sent++ {
		select {
		case <-arrivals:
			time.Sleep(20 * time.Millisecond) // a slow machine
		case err := <-done:
			if err != nil || sent == 0 || sent > 100 || time.Until(a.starts) > lastJoin/2 || time.Now().After(a.starts) {
				t.Errorf("%d people were sent until %s before the draw: %v", sent, time.Until(a.starts), err)
			}
			return
		}
	}
}

// TestChance compares the mean and the deviation of a hypergeometric distribution with those of its definition.
func TestChance(t *testing.T) {
	const all, script, first = 12, 5, 4
	choose := func(n, k int) float64 {
		if k < 0 || k > n {
			return 0
		}
		x := 1.0
		for i := range k {
			x = x * float64(n-i) / float64(i+1)
		}
		return x
	}
	var mean, square float64
	for k := range first + 1 {
		p := choose(script, k) * choose(all-script, first-k) / choose(all, first)
		mean += p * float64(k)
		square += p * float64(k*k)
	}
	got, deviation := chance(all, script, first)
	if math.Abs(got-mean) > 1e-9 || math.Abs(deviation*deviation-(square-mean*mean)) > 1e-9 {
		t.Errorf("mean %f, deviation %f, want %f, %f", got, deviation, mean, math.Sqrt(square-mean*mean))
	}
}

// TestWrap breaks lines at spaces, and no words.
func TestWrap(t *testing.T) {
	got := wrap("a bot  with ten tickets, 0123456789 and no more", 9)
	want := []string{"a bot", "with ten", "tickets,", "0123456789", "and no", "more"}
	if !slices.Equal(got, want) || len(wrap("", 9)) != 0 {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNarrator writes plain lines to a file, and a status line on a terminal.
func TestNarrator(t *testing.T) {
	for _, live := range []bool{false, true} {
		var out bytes.Buffer
		n := NewNarrator(&out, live)
		n.printed = n.printed.Add(-plainInterval)
		n.Status("%d joined", 1)
		n.Status("%d joined", 2)
		n.Say("the %s opens", "room")
		n.ClearStatus()
		n.Print("end\n")
		got := out.String()
		if strings.Contains(got, "\x1b") != live || strings.Contains(got, "2 joined") != live {
			t.Errorf("live %t: %q", live, got)
		}
		for _, want := range []string{"1 joined", " s  the room opens\n", "end\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("live %t: no %q in %q", live, want, got)
			}
		}
	}
}
