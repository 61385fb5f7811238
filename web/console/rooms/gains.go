package rooms

import (
	"context"
	"sync"
	"time"

	"github.com/proofline/proofline/console/simulate"
)

// gains describes what a bot gains from each preset: the simulator's verdict on the preset's own plan and crowd,
// so that the cards and the editor agree. It is computed on first use, which takes seconds.
type gains struct {
	once  sync.Once
	words map[string]string
	doors map[string]doorWords
}

// gained is the same on every server.
var gained gains

// Of describes what a bot gains from a preset.
func (g *gains) Of(name string) string {
	g.once.Do(g.simulate)
	return g.words[name]
}

// Door describes what the door of a preset is worth.
func (g *gains) Door(name string) doorWords {
	g.once.Do(g.simulate)
	return g.doors[name]
}

func (g *gains) simulate() {
	g.words, g.doors = map[string]string{}, map[string]doorWords{}
	for _, p := range presets {
		if p.door == nil {
			g.words[p.Name] = p.gain()
		} else if words, err := p.words(context.Background()); err == nil { // its plan is valid, as a test shows
			g.doors[p.Name] = words
		}
	}
}

// gain simulates the sale that the editor proposes for the preset.
func (p preset) gain() string {
	if p.IsNet() {
		return p.bots // a safety net has no start that can be simulated
	}
	editor := editorPage{Form: p.form(time.Unix(0, 0), ""), Trial: defaultTrial()}
	plan, problems := editor.plan(trialVisitors)
	if len(problems) > 0 {
		return p.bots
	}
	result, err := simulate.Run(context.Background(), plan, nil)
	if err != nil {
		return p.bots
	}
	return simulate.BotGain(result)
}
