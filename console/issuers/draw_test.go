package issuers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/uuid"
)

func org(n byte) uuid.UUID { return uuid.UUID{15: n} }

// page is an organization's page on a host.
func page(of uuid.UUID, host, path string) target {
	return target{org: of, host: host, key: "https://" + host + "/" + path, name: host}
}

// many returns pages of an organization: at path i on the i-th host.
func many(n int, of uuid.UUID, host func(i int) string) (list []target) {
	for i := range n {
		list = append(list, page(of, host(i), fmt.Sprint(of[15], "-", i)))
	}
	return list
}

// rounds draws in many rounds, checks the bounds, and returns how often each target was drawn.
func rounds(t *testing.T, n int, needed []target) (times map[string]int) {
	t.Helper()
	times = map[string]int{}
	asked := map[string]uint64{}
	for round := range n {
		orgs, hosts, total := map[uuid.UUID]int{}, map[string]int{}, 0
		isDrawn := map[string]bool{}
		for _, one := range draw(needed, func(key string) uint64 { return asked[key] }) {
			if isDrawn[one.key] {
				t.Fatalf("%s was drawn twice", one.key)
			}
			isDrawn[one.key] = true
			times[one.key]++
			asked[one.key] = uint64(round + 1)
			if one.isOwn {
				continue
			}
			orgs[one.org]++
			hosts[one.host]++
			total++
			if orgs[one.org] > maxAnOrg || hosts[one.host] > maxAHost || total > maxAsked {
				t.Fatalf("%d of %s, %d on %s, %d in all", orgs[one.org], one.org, hosts[one.host], one.host, total)
			}
		}
	}
	return times
}

// TestDraw has organizations with many pages, and checks that none of them keeps those of another one from being asked.
func TestDraw(t *testing.T) {
	t.Parallel()
	apart := func(of byte) func(int) string {
		return func(i int) string { return fmt.Sprint("h", i, ".example", of) }
	}
	same := func(int) string { return "victim.example" }

	t.Run("many hosts", func(t *testing.T) {
		t.Parallel()
		own := target{isOwn: true, org: org(1), key: "The mail server"}
		victim := page(org(200), "club.example.org", "derby")
		needed := append(many(1000, org(1), apart(1)), own, victim, own)
		times := rounds(t, 64, needed)
		if times[victim.key] != 64 || times[own.key] != 64 {
			t.Errorf("the other's page was asked %d times, the service %d times", times[victim.key], times[own.key])
		}
		for _, one := range needed {
			if times[one.key] < 2 {
				t.Fatalf("%s was asked %d times", one.key, times[one.key])
			}
		}
	})
	t.Run("one host", func(t *testing.T) {
		t.Parallel()
		victim := page(org(200), "victim.example", "derby")
		shared := page(org(200), "victim.example", "1-0")
		times := rounds(t, 300, append(many(100, org(1), same), victim, shared))
		for key, n := range times {
			if n < 5 {
				t.Errorf("%s was asked %d times", key, n)
			}
		}
		if n := times[victim.key]; n < 150 {
			t.Errorf("the other's page was asked %d times", n)
		}
	})
	t.Run("one host of many organizations", func(t *testing.T) {
		t.Parallel()
		var needed []target
		for n := range byte(12) {
			needed = append(needed, page(org(n), "host.example", fmt.Sprint(n)), page(org(n), fmt.Sprint(n, ".example"), ""))
		}
		times := rounds(t, 30, needed)
		for i, one := range needed {
			if want := []int{10, 30}[i%2]; times[one.key] != want {
				t.Errorf("%s was asked %d times, want %d", one.key, times[one.key], want)
			}
		}
	})
	t.Run("more than are asked at once", func(t *testing.T) {
		t.Parallel()
		var needed []target
		for n := range byte(20) {
			needed = append(needed, many(40, org(n), apart(n))...)
		}
		times := rounds(t, 8, needed) // 800 pages, 256 a round
		for _, one := range needed {
			if n := times[one.key]; n < 2 || n > 3 {
				t.Errorf("%s was asked %d times", one.key, n)
			}
		}
	})
}

// TestFailuresAreKept checks that failures count while a page waits for its turn, until no room needs it.
func TestFailuresAreKept(t *testing.T) {
	t.Parallel()
	w := New(Options{Log: slog.New(slog.DiscardHandler)})
	needed := many(3*maxAHost, org(1), func(int) string { return "away.example" })
	for i := range needed {
		needed[i].ask = func(context.Context) error { return errors.New("away") }
	}
	for round, want := range []int{0, 0, 0, maxAHost, 2 * maxAHost, 3 * maxAHost, 3 * maxAHost} {
		w.ask(t.Context(), w.next(needed))
		if n := w.Count(); n != want {
			t.Errorf("round %d: %d are away, want %d", round, n, want)
		}
	}
	w.ask(t.Context(), w.next(needed[:2]))
	if n := w.Count(); n != 2 || len(w.known) != 2 {
		t.Errorf("of two that are needed, %d are away, %d known", n, len(w.known))
	}
	needed[0].ask = func(context.Context) error { return nil }
	w.ask(t.Context(), w.next(needed[:2]))
	if n := w.Count(); n != 1 {
		t.Errorf("one answers again, and %d are away", n)
	}
}
