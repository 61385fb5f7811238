package console

import (
	"html"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestCardsAgreeWithTheSimulator: what a card says that a bot gains is the verdict
// of the simulator for the room that the card begins.
func TestCardsAgreeWithTheSimulator(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	cards := html.UnescapeString(s.get(operator, "/console/rooms/new").want(http.StatusOK).body)
	for _, p := range presets {
		if p.IsNet() {
			continue
		}
		editor := editorPage{Form: p.form(time.Now(), ""), Trial: defaultTrial()}
		plan, problems := editor.plan(trialVisitors)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", p.Name, problems)
		}
		result, err := simulateSale(t.Context(), plan, false)
		if err != nil {
			t.Fatal(err)
		}
		if verdict := result.Findings[0]; !strings.Contains(cards, "<strong>Bots:</strong> "+verdict) {
			t.Errorf("%s: the simulator's verdict %q is on no card", p.Name, verdict)
		}
	}
}
