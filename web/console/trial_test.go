package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/room"
)

// saleForm is a draft with a small crowd, sent to the simulator.
func saleForm(change ...string) []string {
	return someForm(append([]string{"sim_visitors", "600", "sim_tickets", "60", "sim_bots", "10", "sim_no_show", "5 %"}, change...)...)
}

// TestTrial tries a sale out from a draft and before there is one, with the
// page around it and without.
func TestTrial(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	path := s.draftOf(someForm()...)
	for _, at := range []string{path + "/simulate", "/console/drafts/new/simulate"} {
		s.post(owner, at, saleForm("title", "Typed")...).want(http.StatusOK).has("60 tickets are sold", `class="chart"`, `value="Typed"`, `value="600"`, "<html")
		part := s.post(owner, at, saleForm("part", "1")...).want(http.StatusOK).has("60 tickets are sold", `class="chart"`).lacks("<html", "<form", "style=")
		if strings.Contains(part.body, `class="error"`) {
			t.Error(part.body)
		}
	}
	for field, wrong := range map[string]string{
		"sim_visitors": "50,001", "sim_tickets": "many", "sim_bots": "91", "sim_no_show": "-1",
	} {
		s.post(owner, path+"/simulate", saleForm(field, wrong)...).want(http.StatusBadRequest).has(`id="e-`+field+`"`, `value="`+wrong+`"`).lacks("to be published", "being published")
		s.post(owner, path+"/simulate", saleForm(field, wrong, "part", "1")...).want(http.StatusBadRequest).has(`class="error"`).lacks("<html")
	}
	for field, wrong := range map[string]string{"windows[0].length": "soon", "opens": "", "starts": "2130-01-01T00:00", "outflow.per_minute": "many", "claim": "300 d"} {
		s.post(owner, path+"/simulate", saleForm(field, wrong, "part", "1")...).want(http.StatusBadRequest).has(`class="error"`)
	}
	if s.get(owner, path).want(http.StatusOK).has(`value="Sale"`); len(s.trials.known) != 1 {
		t.Errorf("%d results are kept of one sale", len(s.trials.known))
	}
}

// TestTrialBusy allows fewer visitors while a room has people in line.
func TestTrialBusy(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	later := time.Now().Add(time.Hour)
	r := s.create(owner, room.Config{Slug: "busy", Starts: &later})
	s.post(owner, "/console/drafts/new/simulate", saleForm("sim_visitors", "10,001", "part", "1")...).want(http.StatusOK)
	s.join(r, 1)
	s.post(owner, "/console/drafts/new/simulate", saleForm("sim_visitors", "10,001", "part", "1")...).want(http.StatusBadRequest).has("to 10,000")
	s.post(owner, "/console/drafts/new/simulate", saleForm("part", "1")...).want(http.StatusOK)
}

// TestTrials lets everybody run one simulation at a time, one at a time in all,
// and forgets the oldest results.
func TestTrials(t *testing.T) {
	t.Parallel()
	trials := newTrials()
	plan := simulate.Default()
	plan.Visitors, plan.Tickets, plan.Bots.Count = 20, 2, 1
	one, other := uuid.New(), uuid.New()

	trials.slots <- struct{}{} // somebody's is under way
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
		t.Error("a sale that nobody waits for is simulated")
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
