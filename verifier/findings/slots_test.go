package findings_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier/findings"
)

// TestMeanPlace compares the formula of the mean place of a slot's lots with 10,000 draws.
func TestMeanPlace(t *testing.T) {
	t.Parallel()
	lots := []uint32{12, 3, 0, 25, 7}
	filled, sums, counts := fairness.Fill(lots), make([]float64, len(lots)), make([]float64, len(lots))
	aheads := make([]float64, len(lots)) // of lots of tickets
	for i := range 10_000 {
		seed := fairness.Seed{byte(i), byte(i >> 8)}
		tickets := 0
		for k, lot := range fairness.Deal(seed, "general", lots) {
			sums[lot.Slot] += float64(k + 1)
			counts[lot.Slot]++
			if lot.Seq < lots[lot.Slot] {
				aheads[lot.Slot] += float64(tickets) / float64(lots[lot.Slot]) / 10_000
				tickets++
			}
		}
	}
	for slot := range lots {
		if want, got := findings.MeanPlace(filled, slot), sums[slot]/counts[slot]; math.Abs(got-want) > 0.2 {
			t.Errorf("slot %d: mean place %.2f, want %.2f", slot, got, want)
		}
		if lots[slot] == 0 {
			continue
		}
		if got := findings.MeanAhead(lots, filled, slot); math.Abs(got-aheads[slot]) > 0.2 {
			t.Errorf("slot %d: behind %.2f lots of tickets, want %.2f", slot, got, aheads[slot])
		}
	}
}

// TestSlots lists what each slot of the first window held, and what gave lots.
func TestSlots(t *testing.T) {
	t.Parallel()
	keys, err := roomtest.NewKeys("example.com/r/slots", "slots")
	if err != nil {
		t.Fatal(err)
	}
	policy, issuers := keys.Door()
	policy.Lanes = []fairness.LaneRule{{Name: "general", Weight: 1}, {Name: "members", Weight: 1}}
	policy.Slots, policy.Lots = policy.Windows[0].Length/4, []string{"club"}
	opens, each := policy.Opens, fairness.Time(policy.Windows[0].Length/4)
	r := roomtest.Open(keys, policy)
	var f findings.Finder
	seen := 0
	find := func() { // in the entries since the last time
		for _, text := range r.Entries()[seen:] {
			e, err := fairness.ParseEntry(text)
			if err != nil {
				t.Fatal(err)
			}
			f.Add(r.State(), e)
			seen++
		}
	}
	find()
	r.JoinLane(opens, "general", 8)
	r.JoinShowing(opens+each, "members", issuers, 1, "club")
	r.Freeze(opens + 4*each)
	find()
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	list := f.Findings()
	slots, lots := findings.Of(list, findings.Slots), findings.Of(list, findings.Lots)
	if slots == nil || lots == nil || len(slots.Items) != 8 || lots.Count != 1 || !strings.HasPrefix(lots.Text, "1 ticket had more than one lot") {
		t.Fatalf("%+v", list)
	}
	for i, want := range map[int]string{
		0: "Slot 1, lane general: 8 arrivals with 8 lots; 0 empty lots; mean place of a lot",
		1: "Slot 2, lane general: 0 arrivals with 0 lots; 1 empty lot.",
		5: "Slot 2, lane members: 1 arrival with 2 lots; 0 empty lots; mean place of a lot",
	} {
		if got := fmt.Sprint(slots.Items[i].Text); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
