package rooms

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/simulate"
)

// TestTrials lets each person run one simulation at a time, one at a time in all, and forgets the oldest
// results.
func TestTrials(t *testing.T) {
	t.Parallel()
	trials := newTrials()
	plan := simulate.Default()
	plan.Visitors, plan.Tickets, plan.Bots.Count = 20, 2, 1
	one, other := uuid.New(), uuid.New()

	trials.slots <- struct{}{} // another person's simulation is running
	done := make(chan error, 1)
	go func() {
		_, err := trials.run(t.Context(), one, plan, false)
		done <- err
	}()
	for begun := false; !begun; time.Sleep(time.Millisecond) {
		trials.mu.Lock()
		begun = trials.busy[one]
		trials.mu.Unlock()
	}
	if _, err := trials.run(t.Context(), one, plan, false); !errors.Is(err, errTrialBusy) {
		t.Errorf("a second one of the same person: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := trials.run(short, other, plan, false); !errors.Is(err, errTrialBusy) {
		t.Errorf("one of another person meanwhile: %v", err)
	}
	<-trials.slots
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	first, err := trials.run(t.Context(), other, plan, false)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := trials.run(t.Context(), one, plan, false); again != first {
		t.Error("the same sale is simulated twice")
	}
	for seed := range uint64(trialsKept + 1) {
		plan.Seed = 1000 + seed
		if _, err := trials.run(t.Context(), one, plan, seed%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(trials.known) != trialsKept || len(trials.order) != trialsKept || len(trials.busy) != 0 {
		t.Errorf("%d results, %d in order, busy %v", len(trials.known), len(trials.order), trials.busy)
	}
	plan.Visitors = 0
	if _, err := trials.run(t.Context(), one, plan, false); err == nil || errors.Is(err, errTrialBusy) {
		t.Errorf("a sale without visitors: %v", err)
	}
	if len(trials.busy) != 0 {
		t.Errorf("busy %v", trials.busy)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	plan.Visitors, plan.Seed = 5000, 1
	if _, err := trials.run(stopped, one, plan, false); err == nil {
		t.Error("a sale without visitors is simulated")
	}
}

func BenchmarkTrial(b *testing.B) {
	for _, visitors := range []int{10_000, trialVisitors} {
		b.Run(fmt.Sprint(visitors), func(b *testing.B) {
			plan := simulate.Default()
			plan.Visitors, plan.Tickets, plan.Bots.Count = visitors, visitors/10, visitors/10
			for b.Loop() {
				if _, err := simulateSale(b.Context(), plan, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
