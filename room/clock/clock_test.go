package clock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit/pglog"
)

// views is a database in which servers publish their views of its clock.
type views map[uuid.UUID]pglog.ClockView

// ExchangeClock implements [Servers].
func (v views) ExchangeClock(_ context.Context, own pglog.ClockView) (others []pglog.ClockView, _ int64, _ error) {
	v[own.Node] = own
	for node, view := range v {
		if node != own.Node {
			others = append(others, view)
		}
	}
	return others, 0, nil
}

// TestOneMachineStandsStill lets one machine stand still for an hour by its own clock. The other server sees
// no jump, so this one follows the database again.
func TestOneMachineStandsStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers, log := views{}, slog.New(slog.DiscardHandler)
		still, other := NewWatcher(New(0), servers, log), NewWatcher(New(0), servers, log)
		run := func(until func() bool) {
			t.Helper()
			for range 100 {
				now := time.Now()
				for _, w := range []*Watcher{still, other} {
					w.clock.Observe(now, now, now)
					if err := w.Exchange(t.Context(), now); err != nil {
						t.Fatal(err)
					}
				}
				if until() {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Fatal("not within ten seconds")
		}
		run(func() bool { return len(still.known) == 1 && len(other.known) == 1 })
		f := still.clock.fix.Load()
		still.clock.put(f.at.Add(-time.Hour), f.ref)
		run(func() bool { return still.clock.Step() == 0 && time.Until(still.clock.Now()).Abs() < time.Minute })
		if other.clock.Step() != 0 || time.Until(other.clock.Now()).Abs() > time.Minute {
			t.Errorf("the other clock shows %s", other.clock.Now())
		}
	})
}

// TestObserve distinguishes a step from drift and from a slow response.
func TestObserve(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	database := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		after, took, by time.Duration // of the second response; by how much it exceeds the expected value
		isStep          bool
	}{
		"as expected":                {time.Minute, time.Millisecond, 0, false},
		"slow drift":                 {time.Minute, time.Millisecond, 4 * time.Second, false},
		"forward":                    {time.Minute, time.Millisecond, time.Hour, true},
		"back":                       {time.Minute, time.Millisecond, -6 * time.Second, true},
		"an answer that takes long":  {time.Minute, 20 * time.Second, 9 * time.Second, false},
		"further than it took":       {time.Minute, 20 * time.Second, 30 * time.Second, true},
		"after an hour without news": {time.Hour, time.Millisecond, 0, false},
	} {
		c := New(0)
		c.Observe(database, begin, begin)
		asked := begin.Add(test.after)
		expected := database.Add(test.after + test.took/2)
		got := c.Observe(expected.Add(test.by), asked, asked.Add(test.took))
		want := expected.Add(test.by)
		if test.isStep {
			want = expected
		}
		if isStep := c.Step() != 0; isStep != test.isStep || !got.Equal(want) {
			t.Errorf("%s: step %t, time %s, want %t, %s", name, isStep, got, test.isStep, want)
		}
	}
	c := New(0)
	if at, err := c.Stamp(database); err != nil || !at.Equal(database) {
		t.Errorf("the first time: %s, %v", at, err)
	}
	if _, err := c.Stamp(database.Add(time.Hour)); !errors.Is(err, ErrStep) {
		t.Errorf("a jump that is not decided: %v", err)
	}
	c.refuse()
	if at, err := c.Stamp(database.Add(time.Hour)); err != nil || at.Sub(database) > time.Minute {
		t.Errorf("a jump that is refused: %s, %v", at, err)
	}
	c.take()
	if now := c.Now(); now.Sub(database) < time.Hour {
		t.Errorf("a jump that is taken: %s", now)
	}
}

// TestReportSkew logs once that the database's clock is wrong, and once that it is right again.
func TestReportSkew(t *testing.T) {
	t.Parallel()
	logged := new(bytes.Buffer)
	w := NewWatcher(New(AnyStep), nil, slog.New(slog.NewTextHandler(logged, nil)))
	for _, ahead := range []time.Duration{0, time.Second, -3 * time.Second, -2 * time.Second, 4 * time.Second, 1500 * time.Millisecond, 0, time.Second} {
		now := time.Now()
		w.clock.Observe(now.Add(ahead), now, now)
		w.ReportSkew()
	}
	off, on := strings.Count(logged.String(), "clocks differ"), strings.Count(logged.String(), "clocks agree again")
	if off != 1 || on != 1 || !strings.Contains(logged.String(), "database_ahead=-3s") {
		t.Errorf("logged %d times that they differ, %d times that they agree:\n%s", off, on, logged.String())
	}
}
