package verifier_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

// slottedRoom is an open room whose first window, of a minute, has three slots.
func slottedRoom(t *testing.T, operator string) (*roomtest.Keys, *roomtest.Room) {
	t.Helper()
	keys := newKeys(t, origin, operator)
	policy := keys.Policy()
	policy.Slots = 20_000
	return keys, roomtest.Open(keys, policy)
}

// slotReroll: no slot is frozen before the window is over.
func slotReroll(t *testing.T) {
	keys, room := slottedRoom(t, "honest")
	room.Join(after(0), 5)
	size := len(room.Entries())
	other, _ := fairness.ParseEntry(room.Entries()[size-1])
	arrive := *other.(*fairness.Arrive)
	e := &fairness.Freeze{Time: after(20_000), Window: arrive.Window, Lots: []uint32{5, 0, 0}, Size: uint64(size), Root: room.Root()}
	caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, e)), "freeze")
	room.Join(after(20_001), 5)
	room.Settle(after(60_000))
	caught(t, keys, transcript(room.Entries()).set(transcript(room.Entries()).index(fairness.KindFreeze, 0), 3, "5,5"), "freeze")
}

// loneSlot: alone in a slot beside two of ten, in each of 200 rooms, a bot is in the first round in a quarter of them,
// and not in all.
func loneSlot(t *testing.T) {
	first := 0
	for i := range 200 {
		_, room := slottedRoom(t, fmt.Sprintf("slots %d", i))
		room.Join(after(0), 10)
		room.Join(after(20_000), 10)
		bot := room.Join(after(40_000), 1)[0]
		room.Settle(after(60_000))
		if st, _ := room.State().Standing(bot, room.State().Size(), after(60_000)); st.Position <= 3 {
			first++
		}
	}
	if first < 25 || first > 80 {
		t.Errorf("in the first round in %d of 200 rooms", first)
	}
}
