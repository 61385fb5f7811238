package room

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
)

// TestOver tells connectors of sessions that ended at whatever server node, in
// whatever way.
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
	if _, err := rooms[0].Release(t.Context(), tokens[0]); err != nil {
		t.Fatal(err)
	}
	if _, _, err := rooms[1].ChangeSessions(t.Context(), tokens[2:3], tokens[1:2]); err != nil {
		t.Fatal(err)
	}
	free := newIDs(2)
	report(t, rooms[0], Report{Node: uuid.New(), Shares: true, Started: free})
	report(t, rooms[1], Report{Node: uuid.New(), Ended: free[:1]})
	want := []uuid.UUID{ended[0], ended[1], free[0]}
	for i, r := range rooms {
		var got []uuid.UUID
		eventually(t, "three are over", func() bool {
			got = report(t, r, Report{Node: uuid.New()}).Over
			return len(got) >= len(want)
		})
		if len(got) != len(want) || slices.ContainsFunc(want, func(id uuid.UUID) bool { return !slices.Contains(got, id) }) {
			t.Errorf("node %d tells of %v, want %v", i, got, want)
		}
	}
}

// TestOverSeldom reads what is over once a second, however many reports come.
func TestOverSeldom(t *testing.T) {
	t.Parallel()
	_, rooms := pair(t, quick("seldom"))
	r := rooms[0]
	report(t, r, Report{Node: uuid.New()})
	r.overs.mu.Lock()
	began := r.overs.at
	r.overs.mu.Unlock()
	for time.Since(began) < overAgain/2 {
		report(t, r, Report{Node: uuid.New()})
		r.overs.mu.Lock()
		at := r.overs.at
		r.overs.mu.Unlock()
		if !at.Equal(began) && time.Since(began) < overAgain {
			t.Fatal("read again")
		}
	}
}
