package visitor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/proofline/proofline/console/simulate"
)

const second = simulate.Duration(time.Second)

// TestTake plays visitors through scripted responses, and compares their requests and the pauses between
// them.
func TestTake(t *testing.T) {
	t.Parallel()
	type step struct {
		answer Answer
		next   Request
		pause  time.Duration // without jitter
	}
	patient := simulate.Guest{Patience: simulate.Forever, Stay: simulate.Forever}
	for name, tt := range map[string]struct {
		guest simulate.Guest
		steps []step
	}{
		"waits, claims and stays": {patient, []step{
			{Answer{Again, 3 * time.Second}, Join, 3 * time.Second},
			{Answer{Done, time.Second}, Look, time.Second},
			{Answer{Again, 5 * time.Second}, Look, 5 * time.Second},
			{Answer{Outcome: Called}, Claim, 0},
			{Answer{Again, time.Second}, Claim, time.Second},
			{Answer{Outcome: Done}, None, 0},
		}},
		"releases its pass": {simulate.Guest{Patience: simulate.Forever, Claims: 2 * second, Stay: 9 * second}, []step{
			{Answer{Outcome: Done}, Look, 0},
			{Answer{Outcome: Called}, Claim, 2 * time.Second},
			{Answer{Outcome: Done}, Release, 9 * time.Second},
			{Answer{Outcome: Done}, None, 0},
		}},
		"does not show up": {simulate.Guest{Patience: simulate.Forever, Claims: simulate.Forever}, []step{
			{Answer{Outcome: Done}, Look, 0},
			{Answer{Called, time.Second}, Look, time.Second},
			{Answer{Outcome: Over}, None, 0},
		}},
		"leaves": {simulate.Guest{}, []step{
			{Answer{Outcome: Done}, Look, 0},
			{Answer{Again, time.Hour}, Leave, 0},
			{Answer{Outcome: Done}, None, 0},
		}},
		"is called before it leaves": {simulate.Guest{}, []step{
			{Answer{Outcome: Done}, Look, 0},
			{Answer{Again, time.Hour}, Leave, 0},
			{Answer{Again, time.Second}, Look, time.Second},
			{Answer{Outcome: Called}, Claim, 0},
		}},
		"is refused": {patient, []step{{Answer{Outcome: Over}, None, 0}}},
		"claims too late": {patient, []step{
			{Answer{Outcome: Done}, Look, 0}, {Answer{Outcome: Called}, Claim, 0}, {Answer{Outcome: Over}, None, 0},
		}},
	} {
		var v Visitor
		now := time.Minute
		for i, s := range tt.steps {
			v.Take(s.answer, &tt.guest, now)
			pause := v.Due - now
			if v.Next != s.next || pause < s.pause || pause > s.pause+s.pause*3/10 {
				t.Errorf("%s: after answer %d the request is %d in %s, want %d in %s", name, i, v.Next, pause, s.next, s.pause)
			}
			now = v.Due
		}
	}
}

// TestRun: a visitor joins, polls until it is done, and stops when a request fails or the context ends.
func TestRun(t *testing.T) {
	t.Parallel()
	const arrives = 20 * time.Millisecond
	g := simulate.Guest{Patience: simulate.Forever, Stay: simulate.Forever}
	answers := []Answer{{Outcome: Done}, {Again, time.Millisecond}, {Outcome: Called}, {Outcome: Done}}
	var asked []Request
	start := time.Now()
	send := func(_ context.Context, r Request) (Answer, error) {
		asked = append(asked, r)
		return answers[len(asked)-1], nil
	}
	err := Run(t.Context(), &g, arrives, send)
	if want := []Request{Join, Look, Look, Claim}; err != nil || !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v: %v", asked, want, err)
	}
	if took := time.Since(start); took < arrives {
		t.Errorf("done after %s, before the arrival", took)
	}
	failed := errors.New("failed")
	broken := func(context.Context, Request) (Answer, error) { return Answer{}, failed }
	if err := Run(t.Context(), &g, 0, broken); !errors.Is(err, failed) {
		t.Errorf("a request fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, &g, time.Hour, broken); !errors.Is(err, context.Canceled) {
		t.Errorf("the context ends: %v", err)
	}
}
