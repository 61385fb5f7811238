package fairness

import "testing"

// TestArrivals joins so many tickets that some have equal halves of hashes, and undoes half of them.
func TestArrivals(t *testing.T) {
	const count = 400_000 // a pair on average, and nearly all share slots with others before growth
	l := arrivals{}
	tickets := benchTickets(count)
	check := func(joined uint32) {
		t.Helper()
		for i, ticket := range tickets {
			if n, ok := l.find(ticket); ok != (uint32(i) < joined) || ok && n != uint32(i) {
				t.Fatalf("of %d arrivals, ticket %d is found as %d, %t", joined, i, n, ok)
			}
		}
		used := 0
		for i := range l.index.shards {
			used += l.index.shards[i].used
		}
		if l.count != joined || used != int(joined) {
			t.Fatalf("%d arrivals and %d used slots after %d joins", l.count, used, joined)
		}
	}
	for _, ticket := range tickets {
		l.join(arrival{ticket: ticket})
	}
	check(count)
	for range count / 2 {
		l.leave()
	}
	check(count / 2)
	for _, ticket := range tickets[count/2:] {
		l.join(arrival{ticket: ticket})
	}
	check(count)
}
