//go:build !race

package rooms

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/web/console/format"
)

// TestGains simulates again what the cards say. Under the race detector it would take a minute, and find nothing: the
// simulator uses one goroutine.
func TestGains(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("simulates ten sales")
	}
	const file = "gains.json"
	want, err := simulateGains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go test ./web/console/rooms -run TestGains -update\n%s", diff)
	}
}

// simulateGains returns what gains.json must be: the simulator's verdict on the plan and crowd of each preset, so that
// cards and editor agree.
func simulateGains(ctx context.Context) ([]byte, error) {
	g := gains{map[string]string{}, map[string]doorWords{}}
	for _, p := range presets {
		var err error
		if p.door == nil {
			g.Windows[p.Name], err = p.gain(ctx)
		} else {
			g.Doors[p.Name], err = p.words(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(g)
	return text.Bytes(), err
}

// gain simulates the sale that the editor proposes for the preset.
func (p preset) gain(ctx context.Context) (string, error) {
	if p.IsNet() {
		return p.bots, nil // a safety net has no start that can be simulated
	}
	editor := editorPage{Form: p.form(time.Unix(0, 0), ""), Trial: defaultTrial()}
	plan, problems := editor.plan(trialVisitors)
	if err := problems.Err(); err != nil {
		return "", err
	}
	result, err := simulate.Run(ctx, plan, nil)
	if err != nil {
		return "", err
	}
	gain := simulate.BotGain(result)
	if said := simulate.Findings(&plan, result, nil)[0]; said != gain {
		return "", fmt.Errorf("the editor says %q, and the card %q", said, gain)
	}
	return gain, nil
}

// The crowd with which doors are compared: people who all come before the draw, and one script.
const (
	doorPeople  = 10_000
	doorTickets = 1_000 // that the script asks for, and that are on sale
)

// doorPlan returns the simulation of a sale with the door.
func (p preset) doorPlan(kind simulate.DoorKind) (simulate.Plan, error) {
	trial := defaultTrial()
	trial.Visitors, trial.Tickets = format.Number(doorPeople+doorTickets), format.Number(doorTickets)
	editor := editorPage{Form: p.form(time.Unix(0, 0), ""), Trial: trial}
	plan, problems := editor.plan(trialVisitors)
	plan.Arrivals.Early = 1
	plan.Bots.Count, plan.Bots.PerOperator = doorTickets, doorTickets
	plan.Door.Kind, plan.Door.Codes = kind, p.door.codes
	return plan, problems.Err()
}

// words simulates a sale with the preset's door, and one without.
func (p preset) words(ctx context.Context) (w doorWords, err error) {
	of := func(kind simulate.DoorKind) (plan simulate.Plan, r *simulate.Result, err error) {
		if plan, err = p.doorPlan(kind); err == nil {
			r, err = simulate.Run(ctx, plan, nil)
		}
		return plan, r, err
	}
	_, open, err := of(simulate.Open)
	if err != nil {
		return w, err
	}
	plan, own, err := of(p.door.kind)
	if err != nil {
		return w, err
	}
	script, _ := own.Group(simulate.Machines)
	operator, person := plan.Prices(&simulate.Row{Door: p.door.kind, Result: own})
	if noun := p.door.shows; noun != "" {
		operator, person = plural(script.Cost.Shown, noun), person+" "+noun
	}
	before, _ := open.Group(simulate.Machines)
	w.Script = fmt.Sprintf("%s in line, %s. That takes %s. With an open door: %s.",
		plural(script.Places, "place"), ofTheFirst(own, &script), operator, ofTheFirst(open, &before))
	w.Person = strings.ToUpper(person[:1]) + person[1:] + "."
	if people, _ := own.Group(simulate.Humans); people.Barred > 0 {
		w.Person += fmt.Sprintf(" %s of the %s people were given none or sold theirs, and cannot join.", format.Number(people.Barred),
			format.Number(people.Visitors))
	}
	return w, nil
}

// ofTheFirst says how many of the first places a group has.
func ofTheFirst(r *simulate.Result, g *simulate.Group) string {
	return fmt.Sprintf("%s of the first %s (%s)", format.Number(g.Front), format.Number(r.Front),
		simulate.Percent(float64(g.Front)/float64(max(r.Front, 1))))
}

// plural counts things.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return format.Number(n) + " " + noun + "s"
}
