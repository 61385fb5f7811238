package rooms

import (
	"context"
	"encoding/json"
	"time"

	"github.com/proofline/proofline/console/simulate"
)

// AtOnce returns the outline of a room that opens when it is published.
const AtOnce = atOnce

// PresetNames lists the presets with an open door.
func PresetNames() (names []string) {
	for _, p := range presets {
		if p.door == nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// DoorPresets lists the presets whose rooms need something of a join.
func DoorPresets() (names []string) {
	for _, p := range presets {
		if p.door != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// DoorComparison simulates a preset with each kind of door.
func DoorComparison(ctx context.Context, name string) ([]simulate.Row, error) {
	p, _ := findPreset(name)
	plan, err := p.doorPlan(p.door.kind)
	if err != nil {
		return nil, err
	}
	return simulate.CompareDoors(ctx, plan, nil)
}

// PresetConfig returns the configuration that a preset starts with, with other values for fields: names and
// values in turn.
func PresetConfig(name, slug string, fields ...string) (json.RawMessage, error) {
	p, _ := findPreset(name)
	form := p.form(time.Now(), "none")
	form.set("slug", slug)
	for i := 0; i+1 < len(fields); i += 2 {
		form.set(fields[i], fields[i+1])
	}
	return form.config(nil)
}

// PresetVerdict returns the simulator's verdict on a preset, or "" if it cannot be simulated.
func PresetVerdict(ctx context.Context, name string) (string, error) {
	p, _ := findPreset(name)
	if p.IsNet() {
		return "", nil
	}
	editor := editorPage{Form: p.form(time.Now(), ""), Trial: defaultTrial()}
	plan, problems := editor.plan(trialVisitors)
	if err := problems.Err(); err != nil {
		return "", err
	}
	result, err := simulateSale(ctx, plan, false)
	if err != nil {
		return "", err
	}
	return result.Findings[0], nil
}
