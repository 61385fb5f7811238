package fairness

import "testing"

// TestArrivals joins so many tickets that some have the same hash, and undoes half of them.
func TestArrivals(t *testing.T) {
	const count = 400_000 // eighteen pairs on average
	l := arrivals{numbers: map[uint32]uint32{}}
	tickets := benchTickets(count)
	check := func(joined uint32) {
		t.Helper()
		for i, ticket := range tickets {
			if n, ok := l.find(ticket); ok != (uint32(i) < joined) || ok && n != uint32(i) {
				t.Fatalf("of %d arrivals, ticket %d is found as %d, %t", joined, i, n, ok)
			}
		}
		if l.count != joined || uint32(len(l.numbers)) != joined {
			t.Fatalf("%d arrivals and %d keys after %d joins", l.count, len(l.numbers), joined)
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
