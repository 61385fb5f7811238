package rooms_test

import (
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/web/console/rooms"
)

// TestCardsAgreeWithTheSimulator: a card's text about bots is the simulator's verdict for the room that the
// card creates.
func TestCardsAgreeWithTheSimulator(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	cards := html.UnescapeString(s.Get(consoletest.Operator, "/console/rooms/new").Want(http.StatusOK).Body)
	for _, name := range rooms.PresetNames() {
		verdict, err := rooms.PresetVerdict(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if verdict != "" && !strings.Contains(cards, "<strong>Bots:</strong> "+verdict) {
			t.Errorf("%s: the simulator's verdict %q is on no card", name, verdict)
		}
	}
}
