package room

import (
	"errors"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/keys"
)

// guarded starts a node that does not follow jumps of the clock.
func (d *dial) guarded(master *keys.MasterKey) *Rooms {
	d.t.Helper()
	rs := start(d.t, connect(d.t, d.url), Options{MasterKey: master, MaxClockStep: 5 * time.Second})
	eventually(d.t, "the node is ready", rs.Ready)
	return rs
}

// isAhead reports whether the time of a node is ahead of this machine's by a duration, to the minute.
func isAhead(rs *Rooms, by time.Duration) bool {
	return (time.Until(rs.clock.Now()) - by).Abs() < time.Minute
}

// isRefused reports whether a node keeps its own time although the database's clock has jumped.
func isRefused(rs *Rooms) bool {
	_, err := rs.clock.Stamp(rs.clock.Now().Add(rs.Health().Step))
	return err == nil && rs.Health().Step != 0
}

// TestClockJump lets the database's clock jump by an hour. Joins continue with the earlier time, on both
// nodes and on one that starts then; operations that use the database's own clock wait; and when the clock is
// set back everything continues as before.
func TestClockJump(t *testing.T) {
	t.Parallel()
	d, master := newDial(t), newMaster(t)
	nodes := [2]*Rooms{d.guarded(master), d.guarded(master)}
	rooms := share(t, nodes, Config{Slug: "jump", Windows: []WindowRule{{Length: Duration(2 * time.Hour)}}})
	d.Pass(time.Hour)
	began, slowest := time.Now(), time.Duration(0)
	for i := 0; i < 20 || time.Since(began) < 3*time.Second; i++ {
		asked := time.Now()
		j, err := rooms[i%2].Join(t.Context(), newVisitor(rooms[0]).ticket)
		if err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(asked))
		if off := time.Until(millis.Time(j.Joined)).Abs(); off > time.Minute {
			t.Fatalf("join %d is recorded %s from now", i, off)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if slowest > 20*time.Second { // 30 if joins waited until the jump is decided
		t.Errorf("a join took %s", slowest)
	}
	for _, rs := range append(nodes[:], d.guarded(master)) {
		eventually(t, "the jump is reported", func() bool { return (rs.Health().Step - time.Hour).Abs() < time.Minute })
		if !isAhead(rs, 0) {
			t.Errorf("a node uses the time %s", rs.clock.Now())
		}
	}
	if _, err := rooms[0].Sessions.Touch(t.Context(), "any"); !errors.Is(err, clock.ErrStep) {
		t.Errorf("a touch: %v, want clock.ErrStep", err)
	}
	d.Pass(-time.Hour)
	for _, rs := range nodes {
		eventually(t, "the clock is right again", func() bool { return rs.Health().Step == 0 && isAhead(rs, 0) })
	}
	auditRoom(t, rooms[0])
}

// TestClockConfirmed has an operator confirm the database's clock.
func TestClockConfirmed(t *testing.T) {
	t.Parallel()
	d, master := newDial(t), newMaster(t)
	nodes := [2]*Rooms{d.guarded(master), d.guarded(master)}
	rooms := share(t, nodes, Config{Slug: "confirmed", Windows: []WindowRule{{Length: Duration(2 * time.Hour)}}})
	d.Pass(time.Hour)
	for _, rs := range nodes {
		eventually(t, "the jump is refused", func() bool { return isRefused(rs) })
	}
	if err := nodes[0].ConfirmClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, rs := range nodes {
		eventually(t, "the jump is taken", func() bool { return rs.Health().Step == 0 && isAhead(rs, time.Hour) })
	}
	j, err := rooms[1].Join(t.Context(), newVisitor(rooms[1]).ticket)
	if err != nil || time.Until(millis.Time(j.Joined)) < 59*time.Minute {
		t.Errorf("a join is recorded at %s, %v", millis.Time(j.Joined), err)
	}
	d.Pass(2 * time.Hour) // a confirmation does not cover the next jump
	time.Sleep(3 * time.Second)
	if !isRefused(nodes[0]) || !isAhead(nodes[0], time.Hour) {
		t.Errorf("the next jump: %s", nodes[0].Health().Step)
	}
}
