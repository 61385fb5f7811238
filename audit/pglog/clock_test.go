package pglog_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit/pglog"
)

// TestClockViews: a server learns the views of running servers, but not of one that reported long ago, or before the
// clock was set back.
func TestClockViews(t *testing.T) {
	t.Parallel()
	s := newTranscript(t).store
	now := time.Now().Truncate(time.Millisecond)
	for age, want := range map[time.Duration]bool{
		14 * time.Second: true, 0: true, -2 * time.Second: true, // another server asks first
		16 * time.Second: false, -4 * time.Second: false, -10 * time.Second: false,
	} {
		other := pglog.ClockView{Node: uuid.New(), Raw: now.Add(-age), Step: 10 * time.Second}
		exchange := func(v pglog.ClockView) (others []pglog.ClockView) {
			others, _, err := s.ExchangeClock(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			return others
		}
		exchange(other)
		found := false
		for _, o := range exchange(pglog.ClockView{Node: uuid.New(), Raw: now}) {
			found = found || o.Node == other.Node && o.Step == other.Step
		}
		if found != want {
			t.Errorf("a view from %s ago is found: %t", age, found)
		}
	}
}
