package rooms

import (
	_ "embed"
	"encoding/json"
)

// gains describes what a bot gains from each preset, in words of the simulator. They are the same on every server, and
// take seconds to compute: a test writes them into a file.
type gains struct {
	Windows map[string]string    `json:"windows"` // by preset; none for those with a door
	Doors   map[string]doorWords `json:"doors"`   // by preset with a door
}

//go:embed gains.json
var gainsJSON []byte

var gained = readGains(gainsJSON)

func readGains(text []byte) (g gains) {
	if err := json.Unmarshal(text, &g); err != nil {
		panic("gains.json: " + err.Error()) // it is part of the program
	}
	return g
}

// Of describes what a bot gains from a preset.
func (g *gains) Of(name string) string { return g.Windows[name] }

// Door describes what the door of a preset is worth.
func (g *gains) Door(name string) doorWords { return g.Doors[name] }
