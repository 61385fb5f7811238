package live

import (
	"strings"
	"testing"

	"github.com/proofline/proofline/room"
)

// TestAlarms checks which alarms are raised, worst first.
func TestAlarms(t *testing.T) {
	t.Parallel()
	share := func(f float64) *float64 { return &f }
	well := Database{Answers: true}
	for name, test := range map[string]struct {
		figures Figures
		want    []string
	}{
		"no problem": {Figures{Database: well, Rates: NoShowRate{Recent: share(0.2), Overall: share(0.9)},
			Nodes: []Node{{Name: "a", Healthy: true}}}, nil},
		"some no-shows": {Figures{Database: well, Rates: NoShowRate{Recent: share(0.3)}},
			[]string{"warn 30 % of the called visitors"}},
		"mostly no-shows": {Figures{Database: well, Rates: NoShowRate{Recent: share(0.78)}},
			[]string{"bad 78 % of the called visitors"}},
		"no-shows at first": {Figures{Database: well, Rates: NoShowRate{Overall: share(0.5)}},
			[]string{"bad 50 % of the called visitors"}},
		"after the end": {Figures{Database: well, Phase: room.PhaseEnded, Rates: NoShowRate{Recent: share(0.78)}},
			nil},
		"almost all alarms": {Figures{Rates: NoShowRate{Recent: share(0.3)}, Beacon: &Beacon{LateMS: 34_400, WorkLateMS: 60_000},
			Nodes: []Node{{Name: "a", Lost: true, Healthy: true}, {Name: "b"}}}, []string{"bad The database",
			"bad The public randomness is 1m0s late, so devices cannot begin their work", "warn 30 %", "warn The public randomness is 34s late", "warn Not ready: server a, b."}},
		"a beacon in time": {Figures{Database: well, Beacon: &Beacon{LateMS: 9_000, WorkLateMS: 9_000}}, nil},
	} {
		got := test.figures.alarms()
		if len(got) != len(test.want) {
			t.Errorf("%s: %+v, want %q", name, got, test.want)
			continue
		}
		for i, a := range got {
			if !strings.HasPrefix(string(a.Level)+" "+a.Text, test.want[i]) {
				t.Errorf("%s: %+v, want %q", name, a, test.want[i])
			}
		}
	}
}

// TestSeen puts what visitors see before everything else.
func TestSeen(t *testing.T) {
	t.Parallel()
	list := []Alarm{{LevelWarn, "Not ready: server a."}}
	if got := withSeen(list, ""); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if got := withSeen(list, "A shorter history is shown."); len(got) != 2 || got[0] != (Alarm{LevelBad, "A shorter history is shown."}) {
		t.Errorf("%+v", got)
	}
}
