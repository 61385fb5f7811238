package simulate

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
)

func TestPlanRoundTrip(t *testing.T) {
	t.Parallel()
	closes := Duration(time.Hour)
	full := small()
	full.Room.Closes = &closes
	recorded := Default()
	recorded.Record([]Bucket{{0, 5}, {Duration(time.Second), 7}}, 3)
	full.Door = Door{Codes, 8, 1, 2, 3, 4, 5, 0.25}
	for _, p := range []Plan{Default(), full, recorded} {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParsePlan(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPlanDefaults(t *testing.T) {
	t.Parallel()
	p, err := ParsePlan([]byte(`{"room": {"starts": "5m", "outflow": {"max_active": 9}}, "bots": {"count": 3}, "tickets": null}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Room.Starts, want.Room.Outflow.MaxActive, want.Bots.Count = Duration(5*time.Minute), 9, 3
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string][2]int{
		`{}`: {50_000, 5_000}, `{"visitors": 70}`: {70, 7}, `{"visitors": 70, "bots": {"count": 9}}`: {70, 9}, `{"bots": {"count": 9}}`: {50_000, 9},
		`{"arrivals": {"shape": "recorded", "buckets": [{"count": 30}]}}`:                              {30, 0},
		`{"bots": {"count": 9}, "arrivals": {"shape": "recorded", "buckets": [{"count": 30}]}}`:        {39, 9},
		`{"visitors": 900, "arrivals": {"shape": "recorded", "buckets": [{"at": "1s", "count": 30}]}}`: {900, 0},
	} {
		p, err := ParsePlan([]byte(text))
		if got := [2]int{p.Visitors, p.Bots.Count}; err != nil || got != want {
			t.Errorf("%s: %v visitors and bots, want %v, %v", text, got, want, err)
		}
	}
	five := Duration(5 * time.Minute)
	if diff := cmp.Diff([]WindowRule{{0, five}, {five, Duration(time.Minute)}}, p.Room.Rules()); diff != "" {
		t.Error(diff)
	}
}

func TestPlanProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`[]`:                     {""},
		`{`:                      {""},
		`{"visitor": 3}`:         {"visitor"},
		`{"visitors": 0}`:        {"visitors"},
		`{"visitors": 2000001}`:  {"visitors"},
		`{"visitors": "many"}`:   {"visitors"},
		`{"tickets": -1}`:        {"tickets"},
		`{"seed": -1}`:           {"seed"},
		`{"room": 7}`:            {"room"},
		`{"room": {"claim": 5}}`: {"room.claim"},
		`{"room": {"claim": "1ms", "session": "0s", "outflow": {"per_minute": 0}}}`: {"room.outflow.per_minute", "room.claim", "room.session"},
		`{"room": {"starts": "-1s"}}`:                                                            {"room.starts"},
		`{"room": {"starts": "2h", "closes": "0s"}}`:                                             {"room.closes", "room.windows[0].from", "room.windows[1].from"},
		`{"room": {"draw": "2h"}}`:                                                               {"room.draw"},
		`{"room": {"windows": {}}}`:                                                              {"room.windows"},
		`{"room": {"windows": [{"from": "1s", "length": "1s"}]}}`:                                {"room.windows[0].from"},
		`{"room": {"windows": [{"length": "1ms"}, {"length": "1s", "to": 3}]}}`:                  {"room.windows[1].to"},
		`{"room": {"windows": [{"length": "1ms"}, {"length": "1s"}]}}`:                           {"room.windows[0].length", "room.windows[1].from"},
		`{"people": {"no_show": 2, "leave": -0.1, "buys": 7, "fast": 1.01}}`:                     {"people.fast", "people.no_show", "people.leave", "people.buys"},
		`{"people": {"claims": "25h", "reaction": "2h", "stay": "-1s", "fast_reaction": "-1s"}}`: {"people.reaction", "people.fast_reaction", "people.claims", "people.stay"},
		`{"bots": {"count": 50001}}`:                                                             {"bots.count"},
		`{"bots": {"per_operator": 0, "latency": "-1ms"}}`:                                       {"bots.latency", "bots.per_operator"},
		`{"door": {"kind": "locked", "bits": 41, "phone_rate": 0, "core_rate": -1, "cores": 0, "accounts": -1, "codes": -1, "sold": 2}}`: {
			"door.kind", "door.bits", "door.phone_rate", "door.core_rate", "door.cores", "door.accounts", "door.codes", "door.sold"},
		`{"door": {"kind": 1, "key": "a"}}`:                                                                    {"door.kind", "door.key"},
		`{"arrivals": {"shape": "wave"}}`:                                                                      {"arrivals.shape"},
		`{"arrivals": {"half_life": "0s", "over": "0s", "ready": 2, "early": -1}}`:                             {"arrivals.half_life", "arrivals.over", "arrivals.ready", "arrivals.early"},
		`{"arrivals": {"buckets": [{"at": "1s", "count": 1}]}}`:                                                {"arrivals.buckets"},
		`{"arrivals": {"shape": "recorded"}}`:                                                                  {"arrivals.buckets"},
		`{"arrivals": {"shape": "recorded", "buckets": [{"at": "1s", "count": 1}, {"at": "1s", "count": 1}]}}`: {"arrivals.buckets[1]"},
		`{"arrivals": {"shape": "recorded", "buckets": [{"at": "1s", "count": 0}]}}`:                           {"arrivals.buckets"},
		`{"arrivals": {"shape": "recorded", "buckets": [{"at": "1s", "count": "many"}]}}`:                      {"arrivals.buckets[0].count"},
	} {
		_, err := ParsePlan([]byte(text))
		wrong, ok := errors.AsType[*invalid.Error](err)
		if !ok {
			t.Errorf("%s: got %v", text, err)
			continue
		}
		var fields []string
		for _, p := range wrong.Problems {
			fields = append(fields, p.Field)
			if p.Detail == "" || !strings.Contains(err.Error(), p.Detail) {
				t.Errorf("%s: the error %q does not say %q", text, err, p.Detail)
			}
		}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// FuzzParsePlan checks that parsed plans survive a round trip.
func FuzzParsePlan(f *testing.F) {
	for _, p := range []Plan{Default(), small()} {
		text, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"arrivals": {"shape": "recorded", "buckets": [{"at": "1s", "count": 3}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePlan(text)
		if err != nil {
			if _, ok := errors.AsType[*invalid.Error](err); !ok {
				t.Fatal(err)
			}
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParsePlan(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := cmp.Diff(p, read); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestDurationText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"60s": "1m", "1h0m0s": "1h", "90s": "1m30s", "100ms": "100ms", "0s": "0s", "3630s": "1h0m30s", "10m": "10m", "20h": "20h"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != want {
			t.Errorf("%s: got %s, %v; want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "1", "1us", "a minute"} {
		if new(Duration).UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestReadArrivals(t *testing.T) {
	t.Parallel()
	second := Duration(time.Second)
	for text, want := range map[string][]Bucket{
		"0,10\n1,20\n":                                      {{0, 10}, {second, 20}},
		"time,count\n0,10\n2.5,1\n":                         {{0, 10}, {Duration(2500 * time.Millisecond), 1}},
		"\ufeffCount, Time\n10,30s\n1,1m\n":                 {{30 * second, 10}, {60 * second, 1}},
		"ticket,time\nabc,2\ndef,2\nghi,5\n":                {{2 * second, 2}, {5 * second, 1}},
		"2030-05-01T12:00:01Z\n2030-05-01T14:00:00+02:00\n": {{0, 1}, {second, 1}},
		"# from our shop\n1767225600,3\n1767225601.5,4\n":   {{0, 3}, {Duration(1500 * time.Millisecond), 4}},
		"1767225600000\n1767225600250\n1767225600250\n":     {{0, 1}, {Duration(250 * time.Millisecond), 2}},
		"5,0\n3,1\n": {{3 * second, 1}, {5 * second, 0}},
	} {
		got, err := ReadArrivals(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"":                    "it is empty",
		"time,count\n":        "it is empty",
		"0,0\n":               "it is empty",
		"0,1\nsoon,1\n":       `line 2: "soon" is not a time`,
		"0,1\n1,-1\n":         `line 2: "-1" is not a count`,
		"0,1\n1,1.5\n":        "not a count",
		"0,2000000\n1,1\n":    "more than 2000000",
		"-5,1\n":              "is not a time",
		"NaN,1\n":             "is not a time",
		"0,1\n1767225600,1\n": "mixes",
		"0,1\n800h,1\n":       "more than 31 days",
		"0,\"1\n":             "line 1",
		"0\"0000":             "line 1",
		"count,time\n5\n":     "has no time",
	} {
		_, err := ReadArrivals(strings.NewReader(text))
		if !errors.Is(err, ErrArrivals) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	broken := errors.New("the disk is gone")
	if _, err := ReadArrivals(failing{broken}); !errors.Is(err, broken) || errors.Is(err, ErrArrivals) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzReadArrivals checks that every recording that can be read makes a valid plan.
func FuzzReadArrivals(f *testing.F) {
	for _, text := range []string{"0,10\n1,20\n", "time,count\n2030-05-01T12:00:01Z,5", "\ufeffcount,time\n1,1m", "1767225600000\n\"1767225600250\"\n# x\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadArrivals(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, ErrArrivals) {
				t.Fatal(err)
			}
			return
		}
		p := Default()
		p.Record(list, 0)
		if problems := p.Problems(); problems != nil {
			t.Fatal(problems)
		}
	})
}

// TestRecordedCrowd replays a recording at its own and at another size.
func TestRecordedCrowd(t *testing.T) {
	t.Parallel()
	second := Duration(time.Second)
	list := []Bucket{{10 * second, 100}, {11 * second, 0}, {12 * second, 300}, {20 * second, 600}}
	p := Default()
	p.Record(list, 0)
	count := func(visitors int) []int {
		p.Visitors = visitors
		got := make([]int, len(list))
		for _, v := range newCrowd(&p) {
			i := slices.IndexFunc(list, func(b Bucket) bool {
				return v.arrives >= b.At.after() && v.arrives < (b.At+second).after()
			})
			if i < 0 {
				t.Fatalf("arrival at %d", v.arrives)
			}
			got[i]++
		}
		return got
	}
	if diff := cmp.Diff([]int{100, 0, 300, 600}, count(1000)); diff != "" {
		t.Errorf("as recorded: %s", diff)
	}
	if diff := cmp.Diff([]int{1000, 0, 3000, 6000}, count(10_000)); diff != "" {
		t.Errorf("ten times as many: %s", diff)
	}
}

// TestCrowd compares the behaviour of a crowd with its plan.
func TestCrowd(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Visitors, p.Bots.Count = 40_000, 10_000
	p.Arrivals.Ready, p.People.Reaction = 0, 0
	p.People.Fast, p.People.Leave = 0.25, 0.3
	var arrives, claims, latency, stay []fairness.Millis
	quick, lost, buyers, gone := 0, 0, 0, 0
	for _, v := range newCrowd(&p) {
		if v.kind == bot {
			latency = append(latency, fairness.Millis(v.arrives))
			continue
		}
		if v.kind == fast {
			quick++
		}
		if v.claims == forever {
			lost++
		} else {
			claims = append(claims, v.claims)
		}
		if v.buys {
			buyers++
		}
		if v.patience <= 3_600_000 {
			gone++
		}
		stay = append(stay, v.stay)
		arrives = append(arrives, fairness.Millis(v.arrives))
	}
	near := func(what string, got, want, within float64) {
		t.Helper()
		if math.Abs(got/want-1) > within {
			t.Errorf("%s: %g, want about %g", what, got, want)
		}
	}
	at := func(list []fairness.Millis, q float64) float64 {
		slices.Sort(list)
		return float64(list[int(q*float64(len(list)))])
	}
	near("half-life", at(arrives, 0.5), 60_000, 0.05)
	near("two half-lives", at(arrives, 0.75), 120_000, 0.05)
	near("claims", at(claims, 0.5), 15_000, 0.05)
	near("claims of the slow", at(claims, 0.9)/at(claims, 0.5), 2.157, 0.05) // exp(0.6*1.2816)
	near("stay", at(stay, 0.5), 240_000, 0.05)
	near("latency", at(latency, 0.5), 20, 0.1)
	near("fast", float64(quick), 7_500, 0.06)
	near("no-shows", float64(lost), 3_000, 0.08)
	near("buyers", float64(buyers), 27_000, 0.02)
	near("leave within the hour", float64(gone), 9_000, 0.06)
}

// TestGuests compares guests with the visitors of a simulation.
func TestGuests(t *testing.T) {
	t.Parallel()
	p := small()
	p.People.Leave = 0
	crowd, lost, robots := newCrowd(&p), 0, 0
	for i, g := range p.Guests() {
		v := crowd[i]
		if g.Arrives.after() != v.arrives || g.Claims.millis() != v.claims || g.Stay.millis() != v.stay || g.Bot != (v.kind == bot) || g.Patience != Forever {
			t.Fatalf("guest %+v differs from visitor %+v", g, v)
		}
		if g.Claims == Forever {
			lost++
		}
		if g.Bot {
			robots++
		}
	}
	if lost == 0 || robots != p.Bots.Count {
		t.Errorf("%d no-shows, %d bots", lost, robots)
	}
}

// TestSamePeople checks that neither the no-show rate nor the windows change arrivals.
func TestSamePeople(t *testing.T) {
	t.Parallel()
	p, q := small(), small()
	q.People.NoShow, q.People.Leave, q.Room.Windows = 0.7, 0.1, nil
	a, b := newCrowd(&p), newCrowd(&q)
	for i := range a {
		if a[i].arrives != b[i].arrives || a[i].kind != b[i].kind || a[i].buys != b[i].buys {
			t.Fatalf("visitor %d: %+v and %+v", i, a[i], b[i])
		}
	}
}
