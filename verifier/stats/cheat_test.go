package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
)

// toFront moves favoured arrivals to the front, each by a share of the window.
func toFront(order []uint32, share float64, favoured func(seq uint32) bool) []uint32 {
	type standing struct {
		seq uint32
		at  float64
	}
	line := make([]standing, len(order))
	for place, seq := range order {
		line[place] = standing{seq, float64(place)}
		if favoured(seq) {
			line[place].at -= share*float64(len(order)) + 0.5
		}
	}
	slices.SortStableFunc(line, func(a, b standing) int {
		if a.at < b.at {
			return -1
		} else if a.at > b.at {
			return 1
		}
		return 0
	})
	for place, s := range line {
		order[place] = s.seq
	}
	return order
}

// scattered reports whether an arrival is one of 1 in n, spread over the window.
func scattered(r room, w, n int, seq uint32) bool {
	t := r.ticket(w, int(seq))
	return (int(t[0])<<8|int(t[1]))%n == 0
}

// friends returns the list of the tickets that are [scattered].
func friends(r room, n int) (list []fairness.Ticket) {
	for w, size := range r.sizes {
		for seq := range size {
			if scattered(r, w, n, uint32(seq)) {
				list = append(list, r.ticket(w, seq))
			}
		}
	}
	return list
}

// Each cheat is detected by the tests made for it, and the same room without it is not called unusual.
func TestCheatsAreFound(t *testing.T) {
	favouritesFirst := newRoom("favourites", 10, 500, nil)
	favouritesFirst.cheat = func(w int, _ []fairness.Ticket, order []uint32) []uint32 {
		return toFront(order, 1, func(seq uint32) bool { return scattered(favouritesFirst, w, 100, seq) })
	}
	listed := favouritesFirst
	listed.lists.Group = friends(listed, 100)
	shoppers := favouritesFirst // the auditor's own tickets are at a disadvantage
	shoppers.lists.Own = friends(shoppers, 100)

	redrawn := newRoom("redrawn", 12, 200, nil)
	redrawn.lists.Group = friends(redrawn, 20)
	redrawn.cheat = func(w int, _ []fairness.Ticket, order []uint32) []uint32 {
		sum := func(order []uint32) (sum int) {
			for place, seq := range order {
				if scattered(redrawn, w, 20, seq) {
					sum += place
				}
			}
			return sum
		}
		for try := 1; try < 100; try++ {
			if other := fairness.Shuffle(redrawn.seed(w, try), fairness.General, uint32(len(order))); sum(other) < sum(order) {
				order = other
			}
		}
		return order
	}

	for _, c := range []struct {
		name  string
		room  room
		tests []string // that must detect it
		clean []string // tests that must not detect it, because it does not affect what they look at
	}{
		{"favourites first, with a list", listed, []string{testGroup}, []string{testGrid, testOrder, testNeighbours}},
		{"favourites first, and the auditor's tickets are some", shoppers, []string{testOwn}, []string{testGrid, testOrder}},
		{"the best of a hundred draws for a group", redrawn, []string{testGroup}, []string{testGrid, testOrder, testNeighbours}},
		{"the last twentieth arrives late and goes first", newRoom("late", 5, 400, func(_ int, _ []fairness.Ticket, order []uint32) []uint32 {
			return toFront(order, 1, func(seq uint32) bool { return int(seq) >= len(order)*19/20 })
		}), []string{testGrid, testWindows, testOrder}, nil},
		{"staged arrivals in the middle get half a window's start", newRoom("staged", 10, 400, func(_ int, _ []fairness.Ticket, order []uint32) []uint32 {
			return toFront(order, 0.5, func(seq uint32) bool { return int(seq) >= len(order)*4/10 && int(seq) < len(order)*5/10 })
		}), []string{testGrid, testMoments, testWindows}, []string{testNeighbours}},
		{"one hundredth of each window gets a tenth's start", newRoom("staged hundredth", 10, 5000, func(_ int, _ []fairness.Ticket, order []uint32) []uint32 {
			return toFront(order, 0.1, func(seq uint32) bool { return seq/50 == 61 })
		}), []string{testMoments}, []string{testOrder, testNeighbours}},
		{"first come, first served by a bit", newRoom("early", 20, 100, func(_ int, _ []fairness.Ticket, order []uint32) []uint32 {
			return toFront(order, 0.2, func(seq uint32) bool { return int(seq) < len(order)/2 })
		}), []string{testGrid, testOrder}, []string{testNeighbours}},
		{"families of four kept together", newRoom("families", 4, 300, func(_ int, _ []fairness.Ticket, order []uint32) []uint32 {
			var kept []uint32
			for _, seq := range order {
				if seq%4 == 0 {
					kept = append(kept, seq, seq+1, seq+2, seq+3)
				}
			}
			return kept
		}), []string{testNeighbours, testWorst}, nil},
		{"buses of ten kept together, shuffled inside", newRoom("buses", 4, 300, func(_ int, _ []fairness.Ticket, order []uint32) []uint32 {
			first := map[uint32]int{}
			for place, seq := range order {
				if _, ok := first[seq/10]; !ok {
					first[seq/10] = place
				}
			}
			slices.SortStableFunc(order, func(a, b uint32) int { return first[a/10] - first[b/10] })
			return order
		}), []string{testNeighbours}, nil},
		{"one window of many in order of arrival", newRoom("one window", 200, 100, func(w int, _ []fairness.Ticket, order []uint32) []uint32 {
			if w == 120 {
				slices.Sort(order)
			}
			return order
		}), []string{testWorst, testNeighbours}, []string{testGrid}},
		{"another tenth of each window goes first", newRoom("moving", 20, 200, func(w int, _ []fairness.Ticket, order []uint32) []uint32 {
			return toFront(order, 1, func(seq uint32) bool { return int(seq)*10/len(order) == w%10 })
		}), []string{testWindows}, nil},
		{"tiny windows, the last always first", newRoom("tiny", 200, 4, func(_ int, _ []fairness.Ticket, order []uint32) []uint32 {
			return toFront(order, 0.5, func(seq uint32) bool { return seq == 3 })
		}), []string{testOrder, testGrid}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.room.result(t)
			if r.Verdict != Unusual {
				t.Errorf("verdict %q", r.Verdict)
			}
			for _, id := range c.tests {
				if test := r.test(t, id); !test.Unusual {
					t.Errorf("not found by %s: p = %.2g, adjusted %.2g; %s", id, test.P, test.Adjusted, test.Finding)
				}
			}
			for _, id := range c.clean {
				if test := r.test(t, id); test.Unusual {
					t.Errorf("found by %s, which cannot see it: p = %.2g", id, test.P)
				}
			}
			honest := c.room
			honest.cheat = fair
			if r := honest.result(t); r.Verdict != Usual {
				t.Errorf("without the cheat: %q by %v", r.Verdict, r.unusual())
			}
		})
	}
}

// The limits stated in the result are real: without a list, favourites with nothing in common are not
// detected.
func TestScatteredFavouritesNeedAList(t *testing.T) {
	r := newRoom("favourites", 10, 500, nil)
	r.cheat = func(w int, _ []fairness.Ticket, order []uint32) []uint32 {
		return toFront(order, 1, func(seq uint32) bool { return scattered(r, w, 100, seq) })
	}
	result := r.result(t)
	if result.Verdict != Usual || result.test(t, testGroup).Made {
		t.Errorf("verdict %q by %v", result.Verdict, result.unusual())
	}
	r.lists.Group = friends(r, 100)
	if got := r.result(t).unusual(); !cmp.Equal(got, []string{testGroup}) {
		t.Errorf("with a list, unusual: %v", got)
	}
}

// rare returns the largest likely number of hits among n (1 in 10,000) if each has probability p, by a normal
// approximation with continuity correction.
func rare(n int, p float64) int {
	mean := float64(n) * p
	return int(math.Ceil(mean + 3.72*math.Sqrt(mean*(1-p)) + 0.5))
}

// At most 1 of 100 fair rooms is called unusual, and each test keeps its level by itself.
func TestFalseAlarms(t *testing.T) {
	for _, c := range []struct{ rooms, windows, arrivals int }{
		{1000, 1, 150}, {400, 10, 60}, {150, 60, 12}, {100, 200, 4}, {100, 2, 1000},
	} {
		t.Run(fmt.Sprintf("%d windows of %d", c.windows, c.arrivals), func(t *testing.T) {
			t.Parallel()
			alarms := 0
			low, high := map[string]int{}, map[string]int{} // p at most 0.05 and 0.5
			for i := range c.rooms {
				r := newRoom(fmt.Sprintf("fair %d %v", i, c), c.windows, c.arrivals, fair)
				r.lists.Own, r.lists.Group = friends(r, 6), friends(r, 9)
				result := r.result(t)
				if result.Verdict == Unusual {
					alarms++
				}
				for _, test := range result.Tests {
					if test.Made && test.P <= 0.05 {
						low[test.ID]++
					}
					if test.Made && test.P <= 0.5 {
						high[test.ID]++
					}
				}
			}
			if alarms > rare(c.rooms, Level) {
				t.Errorf("%d alarms in %d fair rooms, at most %d are likely", alarms, c.rooms, rare(c.rooms, Level))
			}
			for id, n := range low {
				if n > rare(c.rooms, 0.05) {
					t.Errorf("%s: p <= 0.05 in %d of %d fair rooms", id, n, c.rooms)
				}
			}
			// These tests are nearly exact, so they must not be too cautious either.
			for _, id := range []string{testGrid, testOrder, testGroup} {
				if n, least := high[id], c.rooms-rare(c.rooms, 0.5); n < least-c.rooms/20 {
					t.Errorf("%s: p <= 0.5 in %d of %d fair rooms, at least %d are likely", id, n, c.rooms, least)
				}
			}
			t.Logf("%d alarms; p <= 0.05: %v; p <= 0.5: %v", alarms, low, high)
		})
	}
}

// The predicted power matches that of simulated cheats.
func TestPower(t *testing.T) {
	const rooms = 150
	share := func(id string, make func(name string) room, want func(*Result) bool) (foretold, seen float64) {
		for i := range rooms {
			r := make(fmt.Sprintf("power %s %d", id, i)).result(t)
			for _, p := range r.Power {
				if p.ID == id {
					foretold = p.Probability
				}
			}
			if want(r) {
				seen++
			}
		}
		return foretold, seen / rooms
	}
	unusual := func(id string) func(*Result) bool {
		return func(r *Result) bool {
			tests := 0
			for _, test := range r.Tests {
				if test.Made {
					tests++
				}
			}
			return r.test(t, id).P <= Level/float64(tests)
		}
	}
	for _, c := range []struct {
		id   string
		by   string
		make func(name string) room
	}{
		{cheatTogether, testMoments, func(name string) room {
			return newRoom(name, 4, 3500, func(_ int, _ []fairness.Ticket, order []uint32) []uint32 {
				return toFront(order, headStart, func(seq uint32) bool { return seq >= 35*42 && seq < 35*43 })
			})
		}},
		{cheatGroup, testGroup, func(name string) room {
			r := newRoom(name, 4, 600, nil)
			r.lists.Group = friends(r, 25)
			r.cheat = func(w int, _ []fairness.Ticket, order []uint32) []uint32 {
				return toFront(order, headStart, func(seq uint32) bool { return scattered(r, w, 25, seq) })
			}
			return r
		}},
		{cheatRedraw, testGroup, func(name string) room {
			r := newRoom(name, 2, 100, nil)
			r.lists.Group = friends(r, 10)
			r.cheat = func(w int, _ []fairness.Ticket, order []uint32) []uint32 {
				best, least := order, math.MaxInt
				for try := range redraws {
					sum, other := 0, fairness.Shuffle(r.seed(w, try), fairness.General, uint32(len(order)))
					for place, seq := range other {
						if scattered(r, w, 10, seq) {
							sum += place
						}
					}
					if sum < least {
						best, least = other, sum
					}
				}
				return best
			}
			return r
		}},
	} {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			foretold, seen := share(c.id, c.make, unusual(c.by))
			t.Logf("foretold %.3f, seen %.3f", foretold, seen)
			if foretold < 0.1 || foretold > 0.95 || math.Abs(foretold-seen) > 0.15 {
				t.Errorf("foretold %.3f, seen %.3f", foretold, seen)
			}
		})
	}
}
