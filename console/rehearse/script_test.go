package rehearse

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/limit"
)

// needing makes joins of the only lane need a method.
func needing(c room.Config, m credential.Method) room.Config {
	c.Methods = []credential.Method{m}
	c.Lanes = []room.LaneRule{{Name: fairness.General, Weight: 1, Needs: []string{m.Name}}}
	return c
}

// TestScript plays a script that asks for 60 tickets among 60 people, against each door.
func TestScript(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("plays whole rehearsals, which take seconds")
	}
	one, many := Script{Tickets: 60}, Script{Tickets: 60, Networks: 60}
	tests := map[string]struct {
		base    room.Config
		script  Script
		joined  int
		refused [refusals]int
	}{
		"open":        {sale("sale"), many, 60, [refusals]int{}},
		"accounts":    {needing(sale("sale"), issuertest.Signed("account", 0).Method), many, 10, [refusals]int{ByAccount: 50}},
		"codes":       {needing(sale("sale"), issuertest.Signed("code", 500).Method), many, 3, [refusals]int{ByAccount: 57}},
		"work":        {needing(sale("sale"), issuertest.Work("work", 20).Method), many, 60, [refusals]int{}},
		"one network": {sale("sale"), one, 7, [refusals]int{ByNetwork: 53}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, withBeacon(t))
			s.networks = limit.New(limit.Options{Tickets: 7, Log: servertest.Log(t)})
			s.lingers = 300 * time.Millisecond
			if name == "work" {
				tt.base.Beacon = ""
			}
			p := quick()
			p.Script = tt.script
			if _, err := s.Start(t.Context(), owner(1), tt.base, p); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the rehearsal is over", func() bool { return s.List(owner(1).Org)[0].Over })
			end := s.List(owner(1).Org)[0]
			script := end.Script
			if script.Joined != tt.joined || script.Failed != 60-tt.joined || script.Refused != tt.refused || script.Admitted != tt.joined {
				t.Errorf("the script: %+v", script)
			}
			if end.Joined != 60 || end.Failed != 0 || end.Visitors != 60 {
				t.Errorf("the people: %+v", end.Progress)
			}
			if script.First != 30 || script.Drawn != 30 || script.Ahead > tt.joined {
				t.Errorf("%d of %d, of %d first places", script.Ahead, script.Drawn, script.First)
			}
			if tt.refused[ByNetwork] == 0 && math.Abs(script.Share()-script.Predicted) > 0.35 {
				t.Errorf("the script has %.2f of the first places, and the simulator predicts %.2f", script.Share(), script.Predicted)
			}
		})
	}
}

// TestPredict: the simulator gives the script its share of the line, which the door decides.
func TestPredict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base room.Config
		want float64
	}{
		"open":          {sale("sale"), 0.5},
		"accounts":      {needing(sale("sale"), issuertest.Signed("account", 0).Method), 10.0 / 1010},
		"codes":         {needing(sale("sale"), issuertest.Signed("code", 2_000).Method), 50.0 / 1050},
		"too few codes": {needing(sale("sale"), issuertest.Signed("code", 200).Method), 10.0 / 200},
	} {
		p := Plan{Visitors: 1_000, Script: Script{Tickets: 1_000}}.withDefaults()
		early := simulate.Default()
		early.Arrivals.Shape, early.Arrivals.Early = simulate.Early, 1
		p.Crowd = &early
		now := time.Now()
		script := p.newScript(c.base)
		got, err := p.predict(t.Context(), Copy(c.base, now.Add(lead), now.Add(lasts), p.Before, p.Window), &script)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got-c.want) > 0.1*c.want+0.01 {
			t.Errorf("%s: %.4f, want about %.4f", name, got, c.want)
		}
	}
}

// TestEntrance: a script takes the lane that is the easiest to get into.
func TestEntrance(t *testing.T) {
	t.Parallel()
	methods := []credential.Method{issuertest.Signed("club", 0).Method, issuertest.Signed("code", 100).Method, issuertest.Work("work", 24).Method}
	lane := func(name fairness.Lane, needs ...string) room.LaneRule {
		return room.LaneRule{Name: name, Weight: 1, Needs: needs}
	}
	for name, c := range map[string]struct {
		lanes []room.LaneRule
		lane  fairness.Lane
		kind  simulate.DoorKind
		holds int
		crowd int
	}{
		"no lanes":        {nil, fairness.General, simulate.Open, 0, 300},
		"an open one":     {[]room.LaneRule{lane("a", "club"), lane("b"), lane("c", "work")}, "b", simulate.Open, 0, 100},
		"work":            {[]room.LaneRule{lane("a", "club"), lane("c", "work")}, "c", simulate.Work, 0, 150},
		"accounts":        {[]room.LaneRule{lane("a", "code"), lane("b", "club", "work")}, "b", simulate.Accounts, 10, 150},
		"codes":           {[]room.LaneRule{lane("a", "code")}, "a", simulate.Codes, 5, 300},
		"both are needed": {[]room.LaneRule{lane("a", "club", "code")}, "a", simulate.Codes, 5, 300},
	} {
		p := Plan{Visitors: 300}
		e := p.entrance(room.Config{Methods: methods, Lanes: c.lanes})
		if e.Lane != c.lane || e.Door.Kind != c.kind || e.Holds != c.holds || e.crowd != c.crowd || c.kind == simulate.Work && e.Door.Bits != 24 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestAddresses: a script has as many networks as it should, and two rehearsals share none.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for networks, want := range map[int]int{0: 1, 1: 1, 1_000: 1_000} {
		s, seen := Script{Networks: networks}, map[string]bool{}
		for n := range 2_000 {
			a := s.address(n, 7)
			network, err := a.Prefix(16)
			if err != nil || a == s.address(n, 8) {
				t.Fatal(a, err)
			}
			seen[network.String()] = true
		}
		if len(seen) != want {
			t.Errorf("%d networks, want %d", len(seen), want)
		}
	}
	p := &fairness.Policy{Methods: []credential.Method{issuertest.Signed("club", 0).Method}, Lots: []string{"club"}, Party: 6}
	script := ScriptResult{Script: Script{Tickets: 20}, Entrance: Entrance{Door: simulate.Default().Door}}
	var shows int
	for n := range 20 {
		w := script.wish(n, p, 1)
		if w.seats != 6 {
			t.Errorf("%d seats", w.seats)
		}
		shows += len(w.shows)
	}
	if diff := cmp.Diff(10, shows); diff != "" {
		t.Errorf("each of ten accounts gives one lot: %s", diff)
	}
}
