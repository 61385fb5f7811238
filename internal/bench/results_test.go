package main

import (
	"strings"
	"testing"
)

// TestVerdict: a run that is too small for a goal can miss it, and cannot meet it.
func TestVerdict(t *testing.T) {
	most := &goal{"x", "s", atMost, 2, 3_000}
	for _, c := range []struct {
		goal  *goal
		value float64
		size  int
		want  string
	}{
		{most, 2, 3_000, "met"},
		{most, 2.1, 3_000, "missed"},
		{most, 2.1, 100, "missed"},
		{most, 1, 100, "open: measured with 100"},
		{&goal{kind: atLeast, bound: 0.5}, 0.5, 0, "met"},
		{&goal{kind: atLeast, bound: 0.5}, 0.49, 0, "missed"},
		{&goal{}, 1, 0, ""},
	} {
		if got := c.goal.verdict(c.value, c.size); got != c.want {
			t.Errorf("%+v with %v of %d: %q, want %q", *c.goal, c.value, c.size, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.456: "0.456", 15: "15", 15.25: "15.25",
		999.6: "1,000", 1_000: "1,000", 1_234_567.8: "1,234,568", -0.5: "-0.500", 150_000: "150,000"} {
		if got := number(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

// TestResults prints rows with their spread, and compares two versions by pairs.
func TestResults(t *testing.T) {
	speed, share := &goal{"speed", "/s", noGoal, 0, 0}, &goal{"share", "", atLeast, 0.5, 0}
	var base, head results
	for i, v := range []float64{100, 300, 200} {
		base.add(reading{goal: speed, value: v, cost: &cost{server: 10, generator: 4}})
		head.add(reading{goal: speed, value: v * 1.1, cost: &cost{server: 9, generator: 4}})
		head.add(reading{goal: share, value: float64(i) / 10})
	}
	var out strings.Builder
	if head.print(&out) || !strings.Contains(out.String(), "missed") {
		t.Errorf("a missed goal is kept:\n%s", &out)
	}
	out.Reset()
	if !base.print(&out) {
		t.Errorf("no goal is missed:\n%s", &out)
	}
	line := strings.Fields(strings.Split(out.String(), "\n")[1])
	if got := strings.Join(line, " "); got != "speed 3 100 200 300 /s 10.0 0.0 4.0" {
		t.Errorf("row: %s", got)
	}
	out.Reset()
	compare(&out, base, head)
	if text := out.String(); strings.Count(text, "+10.0 %") != 3 || strings.Count(text, "-10.0 %") != 3 {
		t.Errorf("comparison:\n%s", text)
	}
}

// TestChoose: selected names keep the order of the list, and the error for unknown ones lists all names.
func TestChoose(t *testing.T) {
	all, err := choose(nil, false)
	if err != nil || len(all) != len(measurements) {
		t.Errorf("%d of %d, %v", len(all), len(measurements), err)
	}
	some, err := choose([]string{"rooms", "joins"}, false)
	if err != nil || len(some) != 2 || some[0].name != "joins" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := choose([]string{"jions"}, false); err == nil || !strings.Contains(err.Error(), "latency") {
		t.Errorf("unknown name: %v", err)
	}
	if _, err := choose([]string{"window"}, true); err == nil || !strings.Contains(err.Error(), "compare") {
		t.Errorf("name without comparison: %v", err)
	}
	var b bench
	chosen, base, err := b.parse([]string{"joins", "-runs", "3", "rooms", "--base=main"})
	if err != nil || len(chosen) != 2 || b.runs != 3 || base != "main" {
		t.Errorf("%v, %d runs, base %q, %v", chosen, b.runs, base, err)
	}
}
