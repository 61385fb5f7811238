package simulate

import (
	"math"
	"testing"
	"time"
)

// TestCompareSlots: visitors who choose their slot lower the peak and get better places than those who come at the opening.
func TestCompareSlots(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Visitors, p.Bots.Count, p.Room.Starts = 4000, 0, Duration(10*time.Minute)
	p.Arrivals = Arrivals{Shape: Burst, HalfLife: Duration(time.Minute), Ready: 0.5, Over: Duration(time.Hour), Early: 1}
	rows := CompareSlots(p, 10)
	if len(rows) != 4 || rows[0].Slots != 1 || rows[0].Opening != rows[0].Random || math.Abs(rows[0].Opening-2000) > 30 {
		t.Fatalf("%+v", rows)
	}
	naive, half, all := rows[1], rows[2], rows[3]
	if naive.Peak != rows[0].Peak || half.Peak >= naive.Peak || all.Peak*2 > naive.Peak {
		t.Errorf("peaks of %d, %d and %d", naive.Peak, half.Peak, all.Peak)
	}
	if naive.Opening <= naive.Random || half.Chosen >= half.Opening {
		t.Errorf("%+v", rows)
	}
	if all.Chosen < 1800 || all.Chosen > 2200 { // when all choose, nobody gains
		t.Errorf("%+v", all)
	}
}

// TestCompareLots: as section 9 of the rules says, two lots give a chance of 1 - (1 - p)^2 where one gives p.
func TestCompareLots(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Visitors, p.Tickets = 10_000, 1_000
	for _, row := range CompareLots(p) {
		if want := 1 - (1-row.Without)*(1-row.Without); math.Abs(row.With-want) > 0.01 {
			t.Errorf("%+v, want %.3f with two lots", row, want)
		}
		if total := row.Share*row.With + (1-row.Share)*row.Without; math.Abs(total-0.1) > 1e-6 {
			t.Errorf("%+v: %f of the visitors have a place", row, total)
		}
	}
}
