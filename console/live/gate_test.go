package live

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/safetynet"
)

// TestGate follows a gate from its opening to the end of the room, in figures and summary.
func TestGate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := quick("sale")
	c.Outflow.PerMinute, c.Outflow.MaxActive = 4, 100
	r := create(t, s.rooms, c)
	figures := func() Figures {
		t.Helper()
		f, err := s.live.Figures(t.Context(), "sale")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := figures(); f.Gate != nil || f.FailOpen == nil || len(f.FailOpen) > 0 {
		t.Errorf("of a room without a gate %+v, %+v", f.Gate, f.FailOpen)
	}
	node := uuid.New()
	report := func(in safetynet.Report) {
		t.Helper()
		in.Node, in.Shares = node, true
		if _, err := r.SafetyNet.Report(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the gate is open", func() bool { report(safetynet.Report{}); return r.Snapshot().Gate == room.GateOpen })
	report(safetynet.Report{Started: []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}})
	f := figures()
	if f.Gate == nil || f.Active != 3 {
		t.Fatalf("figures %+v", f)
	}
	if diff := cmp.Diff(Gate{room.GateOpen, f.Gate.Since, 3, 3, 1}, *f.Gate); diff != "" ||
		f.At.Sub(f.Gate.Since).Abs() > time.Minute {
		t.Errorf("the gate (-want +got):\n%s", diff)
	}
	report(safetynet.Report{Started: []uuid.UUID{uuid.New()}})
	eventually(t, "the gate is shut", func() bool {
		g := figures().Gate
		return g.State == room.GateShut &&
			g.Started == 4
	})

	now := time.Now().Truncate(time.Millisecond).UTC()
	var want []FailOpen
	for i := range shownFailOpen + 2 {
		u := FailOpen{From: now.Add(-time.Minute), Until: now.Add(time.Duration(i-30) * time.Second),
			Requests: uint64(i)}
		report(safetynet.Report{FailOpen: []pgroom.FailOpen{{ID: uuid.New(), From: u.From.UnixMilli(),
			Until: u.Until.UnixMilli(), Requests: int64(i)}}})
		want = append([]FailOpen{u}, want...)
	}
	got := figures().FailOpen
	for i := range got {
		got[i].At = time.Time{}
	}
	if diff := cmp.Diff(want[:shownFailOpen], got); diff != "" {
		t.Errorf("fail_open (-want +got):\n%s", diff)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the room has ended", func() bool { return r.Snapshot().Ended })
	sum, err := s.live.Summary(t.Context(), "sale")
	if err != nil || len(sum.Switches) != 2 || len(sum.FailOpen) != shownFailOpen+2 || sum.Changes != 2 {
		t.Fatalf("summary %+v, %v", sum, err)
	}
	if a, b := sum.Switches[0], sum.Switches[1]; a.To != room.GateOpen || b.To != room.GateShut || a.Entry != 1 ||
		b.Entry != 2 || b.At.Before(a.At) {
		t.Errorf("switches %+v", sum.Switches)
	}
	if u := sum.FailOpen[0]; u.From != want[len(want)-1].From || u.Requests != 0 || u.At.Before(u.Until) {
		t.Errorf("the first fail-open interval %+v", u)
	}
}
