package room

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/room/evidence"
)

// reach is a [Reach] whose relays can be available or not.
type reach struct {
	err   error
	asked int
}

func (r *reach) Check(context.Context) error { r.asked++; return r.err }
func (r *reach) Err() error                  { return r.err }

// TestBeaconByDefault checks that a room without a configured beacon gets the default one only while its
// relays can be reached: otherwise the organizer must choose.
func TestBeaconByDefault(t *testing.T) {
	t.Parallel()
	relays := &reach{}
	o := &Options{Chains: []evidence.Chain{{Chain: beacon.Quicknet(), Reach: relays}}}
	policyOf := func(chosen string) (fairness.Policy, string) {
		var p fairness.Policy
		c := Config{Slug: "sale", Beacon: chosen}
		o.askRelays(t.Context(), c)
		problems := o.others(c, &p)
		if len(problems) == 0 {
			return p, ""
		}
		return p, problems[0].Field + " " + problems[0].Detail
	}
	if p, problem := policyOf(""); p.Beacon == nil || problem != "" || relays.asked != 1 {
		t.Errorf("in reach: beacon %v, problem %q, asked %d times", p.Beacon, problem, relays.asked)
	}
	relays.err = errors.New("no route")
	p, problem := policyOf("")
	for _, want := range []string{"beacon must be given", `"drand:quicknet"`, "waits", `"none"`, "level 1"} {
		if p.Beacon != nil || !strings.Contains(problem, want) {
			t.Errorf("out of reach: beacon %v, problem %q, want %q", p.Beacon, problem, want)
		}
	}
	if p, problem := policyOf("drand:quicknet"); p.Beacon == nil || problem != "" {
		t.Errorf("chosen: beacon %v, problem %q", p.Beacon, problem)
	}
	if p, problem := policyOf("none"); p.Beacon != nil || problem != "" {
		t.Errorf("without: beacon %v, problem %q", p.Beacon, problem)
	}
	if name, err := o.BeaconErr(); name != "drand:quicknet" || !errors.Is(err, relays.err) {
		t.Errorf("trouble is %s, %v", name, err)
	}
}
