package room

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
)

// TestSlots runs a room with slots, two lanes and a method that gives a lot, on two nodes, one of which is replaced while
// the first window is open. Slots last many minutes, so that no join comes in another one because the machine is slow.
func TestSlots(t *testing.T) {
	t.Parallel()
	const slots, length = 4, 20 * time.Minute
	d, master := newDial(t), newMaster(t)
	b, fans := newBeaconAt(t, d.Now), issuertest.Signed("fans", 0)
	first, second := doorNode(t, d.url, master, b), doorNode(t, d.url, master, b)
	opens := d.Now().Add(time.Hour).Truncate(time.Millisecond)
	ends := opens.Add(slots * length)
	r := create(t, first, Config{
		Slug: "slots", Opens: &opens, Closes: at(ends.Add(4 * time.Hour)), Beacon: "drand:test",
		Windows: []WindowRule{{Length: Duration(slots * length)}, {From: &ends, Length: Duration(time.Hour)}},
		Slots:   span(length), Methods: []credential.Method{fans.Method}, Lots: []string{"fans"},
		Lanes: []LaneRule{{Name: "general", Weight: 2}, {Name: "members", Weight: 1}}, Outflow: Outflow{PerMinute: 60_000},
		Claim: span(time.Hour), Grace: span(24 * time.Hour), // hours pass without entries
	})
	if lots := r.Snapshot().SlotLots(); len(lots) != 2 || len(lots["members"]) != slots || slices.Max(lots["general"]) != 0 {
		t.Errorf("before the opening: %v", lots)
	}
	nodes := []*Room{r, get(t, second, "slots")}
	d.pass(time.Hour+length/4, first, second)
	voucher := func(v visitor, lane fairness.Lane, account int) credential.Credential {
		return fans.Show(credential.Subject{Room: r.Snapshot().Door.Entry, Lane: string(lane), Ticket: v.ticket}, account)
	}
	want := map[fairness.Lane][]uint32{"general": make([]uint32, slots), "members": make([]uint32, slots)} // lots by slot
	var visitors []visitor
	account, slot := 0, 0
	join := func(node int, lane fairness.Lane, withLot bool) visitor {
		t.Helper()
		v := newVisitor(r)
		var shown []credential.Credential
		if withLot {
			account++
			shown = append(shown, voucher(v, lane, account))
		}
		j, err := nodes[node].JoinLane(t.Context(), v.ticket, lane, 1, shown...)
		if err != nil {
			t.Fatal(err)
		}
		drums := want[lane]
		if j.Slot != slot || j.Seq != drums[slot] {
			t.Fatalf("slot %d and seq %d, want %d and %d", j.Slot, j.Seq, slot, drums[slot])
		}
		if drums[j.Slot]++; withLot {
			drums[j.Slot]++
		}
		if j.AheadMax < uint64(drums[j.Slot]-1) || j.BeforeMax > uint64(2*len(visitors)+8) {
			t.Errorf("%d to %d places ahead, %d to %d tickets before", j.AheadMin, j.AheadMax, j.BeforeMin, j.BeforeMax)
		}
		visitors = append(visitors, v)
		return v
	}
	for slot = range slots {
		for range []int{9, 1, 0, 4}[slot] { // the third is empty
			join(0, "general", false)
			join(1, "members", true)
		}
		switch slot {
		case 1:
			v := join(1, "general", false)
			account++
			late := voucher(v, "general", account)
			m, err := nodes[0].Show(t.Context(), v.ticket, v.secret, late)
			if err != nil || m.Again {
				t.Fatalf("%+v, %v", m, err)
			}
			want["general"][slot]++
			eventually(t, "the other node knows the lot", func() bool {
				return cmp.Equal(want, nodes[1].Snapshot().SlotLots())
			})
			if again, err := nodes[1].Show(t.Context(), v.ticket, v.secret, late); err != nil || !again.Again {
				t.Errorf("%+v, %v", again, err)
			}
		case 2:
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			first = doorNode(t, d.url, master, b)
			r = get(t, first, "slots")
			nodes[0] = r
			if diff := cmp.Diff(want, r.Snapshot().SlotLots()); diff != "" {
				t.Errorf("after a restart (-want +got):\n%s", diff)
			}
		}
		d.pass(length, first, second)
	}
	eventually(t, "the window is frozen", func() bool { return len(r.view.Pending()) > 0 })
	d.pass(time.Minute) // until it is drawn
	eventually(t, "all are called", func() bool { return r.Snapshot().Passed == uint64(len(visitors)) })
	s := r.Snapshot()
	if s.SlotLots() != nil || s.Counts.Drawn != uint64(len(visitors)) || s.Counts.Ready != 0 || s.Counts.InLine != 0 || !s.HasGaps() {
		t.Errorf("%+v", s.Counts)
	}
	if s.Counts.Called <= s.Passed || s.Uncalled[0] != 0 {
		t.Errorf("%d places called of %d visitors, %d of whom are not", s.Counts.Called, s.Passed, s.Uncalled[0])
	}
	seen := map[string]bool{}
	for i, v := range visitors {
		st, ok := r.Standing(v.ticket)
		place := fmt.Sprint(st.Lane, " ", st.Position)
		if !ok || st.Position == 0 || seen[place] {
			t.Errorf("place %s: %+v", place, st)
		}
		seen[place] = true
		if i%2 == 0 {
			if _, err := waitClaim(t, nodes[i/2%2], v); err != nil {
				t.Error(err)
			}
		}
	}
	report := auditRoom(t, r)
	if want := uint64(len(visitors)); report.Arrivals != want || report.Assignments != want {
		t.Errorf("%d arrivals and %d places, want %d", report.Arrivals, report.Assignments, want)
	}
	audited(t, r, b)
}
