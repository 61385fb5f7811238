package page

import "testing"

// TestLead: a visitor whose visit is over is told to take a new place only while there are any.
func TestLead(t *testing.T) {
	for without, want := range map[State]string{
		Joinable: "over.lead", Full: "over.lead", Closed: "admitted.lead", Ended: "admitted.lead",
	} {
		p := &linePage{View: &View{State: Over, Without: without}}
		if got := p.Lead(); got != want {
			t.Errorf("%s: %s, want %s", without, got, want)
		}
	}
}
