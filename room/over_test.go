package room

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/safetynet"
)

// TestOver reports sessions to connectors that have ended, through any server node and in any way.
func TestOver(t *testing.T) {
	t.Parallel()
	c := quick("over")
	c.Session = span(time.Hour)
	_, rooms := pair(t, c)
	var ended []uuid.UUID
	var tokens []string
	for range 4 {
		v, p := admit(t, rooms[0])
		ended, tokens = append(ended, uuid.UUID(fairness.NewPassID(rooms[0].Origin, v.ticket))), append(tokens, p.Token)
	}
	if _, err := rooms[0].Sessions.Release(t.Context(), tokens[0]); err != nil {
		t.Fatal(err)
	}
	if _, _, err := rooms[1].Sessions.Change(t.Context(), tokens[2:3], tokens[1:2]); err != nil {
		t.Fatal(err)
	}
	free := newIDs(2)
	report(t, rooms[0], safetynet.Report{Node: uuid.New(), Shares: true, Started: free})
	report(t, rooms[1], safetynet.Report{Node: uuid.New(), Ended: free[:1]})
	want := []uuid.UUID{ended[0], ended[1], free[0]}
	for i, r := range rooms {
		var got []uuid.UUID
		eventually(t, "three are over", func() bool {
			got = report(t, r, safetynet.Report{Node: uuid.New()}).Ended
			return len(got) >= len(want)
		})
		if len(got) != len(want) || slices.ContainsFunc(want, func(id uuid.UUID) bool { return !slices.Contains(got, id) }) {
			t.Errorf("node %d reports %v, want %v", i, got, want)
		}
	}
}
