package live

import (
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/console/simulate"
)

// TestScriptWords says in words what a script got, for each door.
func TestScriptWords(t *testing.T) {
	t.Parallel()
	const predicts = " The simulator, which knows the windows and the door but no limits of networks, predicts "
	var r rehearse.ScriptResult
	r.Tickets, r.Networks, r.Door.Kind, r.Predicted = 1_000, 1, simulate.Open, 0.5
	want := []string{"It asks for 1,000 tickets from one machine. A join needs nothing.", "It got 0 places in line.",
		"No place has been drawn yet." + predicts + "50%."}
	if got := scriptWords(r); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	r.Networks, r.Needs, r.Door.Kind, r.Holds = 1_000, []string{"club", "work"}, simulate.Accounts, 10
	r.Joined, r.Failed, r.Refused = 10, 990, [...]int{rehearse.ByAccount: 986, rehearse.ByLimit: 1, rehearse.ByNetwork: 2, rehearse.TooLate: 1}
	r.First, r.Drawn, r.Ahead, r.Predicted = 100, 100, 5, 0.048
	want = []string{"It asks for 1,000 tickets from 1,000 networks. A join needs club and work, and the script has 10 accounts.",
		"It got 10 places in line. 990 joins were refused: 986 because their account or code had a place; 1 because the room " +
			"takes no more of these credentials; 2 because their network had reached its limit; 1 because the room took no more joins.",
		"Of the first 100 places it has 5: 5%." + predicts + "4.8%."}
	if got := scriptWords(r); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for kind, words := range map[simulate.DoorKind]string{simulate.Work: "16 processor cores of the script do it for all of its tickets.",
		simulate.Codes: "and the script bought 1 code."} {
		r.Door, r.Holds = simulate.Default().Door, 1
		r.Door.Kind = kind
		if got := scriptWords(r)[0]; !strings.HasSuffix(got, words) {
			t.Errorf("%q", got)
		}
	}
}
