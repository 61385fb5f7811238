package rooms

import (
	"encoding/json"
	"time"
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

// PresetWords returns what the card of a preset says about bots.
func PresetWords(name string) []string {
	if p, _ := findPreset(name); p.door == nil {
		return []string{gained.Of(name)}
	}
	return []string{gained.Door(name).Script, gained.Door(name).Person}
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
