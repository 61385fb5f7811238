package rooms

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
)

// outlineVector has a room's times and the sentences about them, in UTC. The editor's script is tested
// against the same file.
type outlineVector struct {
	About  string         `json:"about"`
	Starts fairness.Time  `json:"starts"`
	Closes *fairness.Time `json:"closes"` // null: never
	Rules  []struct {
		From   fairness.Time   `json:"from"`
		Length fairness.Millis `json:"length"`
	} `json:"rules"`
	Sentences []string `json:"sentences"`
}

const outlineFile = "testdata/outlines.json"

var update = flag.Bool("update", false, "write testdata/outlines.json and gains.json; review the diff")

func TestOutline(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(outlineFile)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []outlineVector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		closes := fairness.Never
		if v.Closes != nil {
			closes = *v.Closes
		}
		var rules []fairness.WindowRule
		for _, r := range v.Rules {
			rules = append(rules, fairness.WindowRule(r))
		}
		got := outline(v.Starts, closes, rules)
		if *update {
			vectors[i].Sentences = append([]string{}, got...)
			continue
		}
		if diff := cmp.Diff(v.Sentences, append([]string{}, got...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.About, diff)
		}
	}
	if *update {
		out, err := json.MarshalIndent(vectors, "", "  ")
		if err == nil {
			err = os.WriteFile(outlineFile, append(out, '\n'), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(vectors) < 8 {
		t.Errorf("%d vectors", len(vectors))
	}
}

// FuzzOutline checks that every valid room has sentences, and that the times in their examples are in the
// windows that they name.
func FuzzOutline(f *testing.F) {
	f.Add(int64(1_900_000_000_000), int64(60_000), int64(60_000), int64(1_900_000_300_000), int64(1_900_000_600_000))
	f.Add(int64(0), int64(100), int64(100), int64(1), int64(7))
	f.Fuzz(func(t *testing.T, opens, first, second, change, closes int64) {
		rules := []fairness.WindowRule{{From: fairness.Time(opens), Length: fairness.Millis(first)}, {From: fairness.Time(change), Length: fairness.Millis(second)}}
		starts := rules[0].From
		list := outline(starts, fairness.Time(closes), rules)
		if (list != nil) != isSchedule(starts, fairness.Time(closes), rules) {
			t.Fatalf("%d sentences", len(list))
		}
		if list == nil {
			return
		}
		for k, r := range rules {
			end := fairness.Time(closes)
			if k == 0 {
				end = rules[1].From
			}
			to := min(r.From+fairness.Time(r.Length), end)
			early, late, after := examples(r.From, to)
			if early < r.From || late < early || late >= to || after < to {
				t.Fatalf("window from %d to %d: examples %d, %d and %d", r.From, to, early, late, after)
			}
		}
	})
}
