package fairness

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// laidOut lists all windows of a schedule that closes, as RULES.md defines them: an independent, slow version
// of At.
func laidOut(rules []WindowRule, closes Time) []Window {
	var list []Window
	for i, r := range rules {
		end := closes
		if i+1 < len(rules) {
			end = rules[i+1].From
		}
		for from := r.From; from < end; from += Time(r.Length) {
			list = append(list, Window{WindowIndex(len(list)), from, min(from+Time(r.Length), end)})
		}
	}
	return list
}

// checkSchedule compares At with the listed windows at every edge, next to it, and in the middle.
func checkSchedule(t *testing.T, s *Schedule, want []Window) {
	t.Helper()
	for i, w := range want {
		if i > 0 && (w.From != want[i-1].To || w.Index != want[i-1].Index+1) {
			t.Fatalf("windows %+v and %+v are no partition", want[i-1], w)
		}
		for _, at := range []Time{w.From, min(w.From+1, w.To-1), (w.From + w.To) / 2, w.To - 1} {
			if got, ok := s.At(at); !ok || got != w {
				t.Fatalf("at %d: got %+v, %v; want %+v (rules %+v, closes %d)", at, got, ok, w, s.Rules(), s.Closes())
			}
		}
	}
	for _, at := range []Time{0, want[0].From - 1, want[len(want)-1].To, Never - 1} {
		if got, ok := s.At(at); ok && (at < want[0].From || at >= want[len(want)-1].To) {
			t.Fatalf("at %d: got %+v, want none", at, got)
		}
	}
	if s.Opens() != want[0].From || s.Closes() != want[len(want)-1].To {
		t.Errorf("opens %d closes %d, want %d and %d", s.Opens(), s.Closes(), want[0].From, want[len(want)-1].To)
	}
}

func TestScheduleTable(t *testing.T) {
	for name, tc := range map[string]struct {
		rules  []WindowRule
		closes Time
		want   []Window
	}{
		"one window":              {[]WindowRule{{1000, 500}}, 1500, []Window{{0, 1000, 1500}}},
		"the close cuts the only": {[]WindowRule{{1000, 500}}, 1100, []Window{{0, 1000, 1100}}},
		"the close cuts the last": {[]WindowRule{{1000, 500}}, 1501, []Window{{0, 1000, 1500}, {1, 1500, 1501}}},
		"a rule cuts a window": {
			[]WindowRule{{1000, 500}, {1600, 200}}, 2000,
			[]Window{{0, 1000, 1500}, {1, 1500, 1600}, {2, 1600, 1800}, {3, 1800, 2000}},
		},
		"a rule on an edge": {
			[]WindowRule{{1000, 500}, {1500, 200}}, 1700,
			[]Window{{0, 1000, 1500}, {1, 1500, 1700}},
		},
		"a rule shorter than its window": {
			[]WindowRule{{0, 1000}, {1, 1000}, {2, 1000}}, 3,
			[]Window{{0, 0, 1}, {1, 1, 2}, {2, 2, 3}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, laidOut(tc.rules, tc.closes)); diff != "" {
				t.Errorf("laid out (-want +got):\n%s", diff)
			}
			s := NewSchedule(&Policy{Windows: tc.rules, Closes: tc.closes})
			checkSchedule(t, s, tc.want)
			if diff := cmp.Diff(tc.rules, s.Rules()); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

// randomRules returns rules from a given time on, with edges that often coincide.
func randomRules(r *rand.Rand, from Time, n int) (rules []WindowRule, closes Time) {
	for range n {
		length := Millis(100 * (1 + r.IntN(8)))
		rules = append(rules, WindowRule{from, length})
		if r.IntN(2) == 0 {
			from += Time(length) * Time(1+r.IntN(5))
		} else {
			from += Time(1 + r.IntN(3000))
		}
	}
	return rules, from
}

func TestSchedulePartitionsTime(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		rules, closes := randomRules(r, Time(r.IntN(1000)), 1+r.IntN(6))
		checkSchedule(t, NewSchedule(&Policy{Windows: rules, Closes: closes}), laidOut(rules, closes))
	}
}

// TestScheduleReplaced amends random schedules: windows before the new rules keep their times and indexes,
// and all windows together still partition time.
func TestScheduleReplaced(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 2000 {
		rules, closes := randomRules(r, 1000, 1+r.IntN(5))
		s := NewSchedule(&Policy{Windows: rules, Closes: closes})
		before := laidOut(rules, closes)
		for range 3 {
			from := before[r.IntN(len(before))].To
			newRules, newCloses := randomRules(r, from, 1+r.IntN(3))
			old := s.Rules()
			next := s.replace(newRules, newCloses)
			if diff := cmp.Diff(old, s.Rules()); diff != "" {
				t.Fatalf("replacing changed the schedule in force:\n%s", diff)
			}
			var kept []WindowRule
			for _, rule := range old {
				if rule.From < from {
					kept = append(kept, rule)
				}
			}
			kept = append(kept, newRules...)
			if diff := cmp.Diff(kept, next.Rules()); diff != "" {
				t.Fatalf("rules (-want +got):\n%s", diff)
			}
			want := laidOut(kept, newCloses)
			checkSchedule(t, next, want)
			for i, w := range before {
				if w.To <= from && want[i] != w {
					t.Fatalf("window %+v became %+v", w, want[i])
				}
			}
			s, before = next, want
		}
	}
}

func TestScheduleReplacedClose(t *testing.T) {
	s := NewSchedule(&Policy{Windows: []WindowRule{{1000, 500}, {3000, 100}, {4000, 200}}, Closes: 5000})
	sooner := s.replace(nil, 2800)
	checkSchedule(t, sooner, laidOut([]WindowRule{{1000, 500}}, 2800))
	if diff := cmp.Diff([]WindowRule{{1000, 500}}, sooner.Rules()); diff != "" {
		t.Errorf("rules after an earlier close (-want +got):\n%s", diff)
	}
	if got := s.replace(nil, 3000).Rules(); len(got) != 1 {
		t.Errorf("rules after a close where the second begins: %v", got)
	}
	if got := s.replace(nil, 3001).Rules(); len(got) != 2 {
		t.Errorf("rules after a close a moment later: %v", got)
	}
	later := sooner.replace([]WindowRule{{2800, 300}}, 9000)
	checkSchedule(t, later, laidOut([]WindowRule{{1000, 500}, {2800, 300}}, 9000))
	// The first rule stays even if a close comes before it: a schedule is never empty.
	if got := s.replace(nil, 500).Rules(); len(got) != 1 {
		t.Errorf("rules after a close before opening: %v", got)
	}
}

// TestScheduleAtTheEndOfTime fills all of time with the shortest windows.
func TestScheduleAtTheEndOfTime(t *testing.T) {
	p := testPolicy()
	p.Created, p.Opens, p.Starts, p.Closes = 0, 0, 0, Never
	p.Windows = []WindowRule{{0, MinWindow}, {Never - 1000, MaxWindow}, {Never - 1, MinWindow}}
	if problems := p.Problems(); problems != nil {
		t.Fatal(problems)
	}
	s := NewSchedule(&p)
	// 2^53 - 1 - 1000 is 9,007,199,254,739,991: one window more than a hundredth of that, and the last one is
	// cut short.
	const cut = 90_071_992_547_399
	for _, tc := range []struct {
		at   Time
		want Window
	}{
		{0, Window{0, 0, 100}},
		{Never - 1092, Window{cut - 1, cut*100 - 100, cut * 100}},
		{Never - 1001, Window{cut, cut * 100, Never - 1000}},
		{Never - 1000, Window{cut + 1, Never - 1000, Never - 1}},
		{Never - 2, Window{cut + 1, Never - 1000, Never - 1}},
		{Never - 1, Window{cut + 2, Never - 1, Never}},
	} {
		if got, ok := s.At(tc.at); !ok || got != tc.want {
			t.Errorf("at %d: got %+v, %v; want %+v", tc.at, got, ok, tc.want)
		}
	}
	for _, at := range []Time{-1, Never, Never + 1, 1<<63 - 1, -1 << 63} {
		if got, ok := s.At(at); ok {
			t.Errorf("at %d: got %+v, want none", at, got)
		}
	}
}
