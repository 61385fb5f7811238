package room

import (
	"errors"
	"testing"
	"time"
)

// guarded starts a node that does not follow a clock that jumps.
func (d *dial) guarded(master *MasterKey) *Rooms {
	d.t.Helper()
	rs := start(d.t, connect(d.t, d.url), Options{MasterKey: master, MaxClockStep: maxClockStep})
	eventually(d.t, "the node is ready", rs.Ready)
	return rs
}

// isAhead reports how far the time of a node is ahead of this machine's, to the
// minute.
func isAhead(rs *Rooms, by time.Duration) bool {
	return (time.Until(rs.clock.Now()) - by).Abs() < time.Minute
}

// TestClockJump has the database's clock jump by an hour: joins go on with the
// time before, on both nodes and on one that starts then, what the database keeps
// by its own clock waits, and when the clock is back all is as it was.
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
		if off := time.Until(timeOf(j.Joined)).Abs(); off > time.Minute {
			t.Fatalf("join %d is recorded %s from now", i, off)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if slowest > 4*time.Second {
		t.Errorf("a join took %s", slowest)
	}
	for _, rs := range append(nodes[:], d.guarded(master)) {
		eventually(t, "the jump is reported", func() bool { return (rs.Health().Step - time.Hour).Abs() < time.Minute })
		if !isAhead(rs, 0) {
			t.Errorf("a node goes by %s", rs.clock.Now())
		}
	}
	if _, err := rooms[0].Touch(t.Context(), "any"); !errors.Is(err, ErrClock) {
		t.Errorf("a touch: %v, want ErrClock", err)
	}
	d.Pass(-time.Hour)
	for _, rs := range nodes {
		eventually(t, "the clock is right again", func() bool { return rs.Health().Step == 0 && isAhead(rs, 0) })
	}
	auditRoom(t, rooms[0])
}

// TestClockConfirmed has a person say that the database's clock is right now.
func TestClockConfirmed(t *testing.T) {
	t.Parallel()
	d, master := newDial(t), newMaster(t)
	nodes := [2]*Rooms{d.guarded(master), d.guarded(master)}
	rooms := share(t, nodes, Config{Slug: "confirmed", Windows: []WindowRule{{Length: Duration(2 * time.Hour)}}})
	d.Pass(time.Hour)
	for _, rs := range nodes {
		eventually(t, "the jump is refused", func() bool { return rs.clock.pending().refused })
	}
	if err := nodes[0].ConfirmClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, rs := range nodes {
		eventually(t, "the jump is taken", func() bool { return rs.Health().Step == 0 && isAhead(rs, time.Hour) })
	}
	j, err := rooms[1].Join(t.Context(), newVisitor(rooms[1]).ticket)
	if err != nil || time.Until(timeOf(j.Joined)) < 59*time.Minute {
		t.Errorf("a join is recorded at %s, %v", timeOf(j.Joined), err)
	}
	d.Pass(2 * time.Hour) // what was confirmed says nothing about the next one
	time.Sleep(2 * viewPatience)
	if s := nodes[0].clock.pending(); !s.refused || !isAhead(nodes[0], time.Hour) {
		t.Errorf("the next jump: %+v", s)
	}
}

// TestClockOfOneNode has a machine stand still for an hour, by its own clock: the
// other node sees no jump, so it is this one that is wrong.
func TestClockOfOneNode(t *testing.T) {
	t.Parallel()
	d, master := newDial(t), newMaster(t)
	still := d.guarded(master)
	d.guarded(master)
	f := still.clock.fix.Load()
	still.clock.put(f.at.Add(-time.Hour), f.ref)
	eventually(t, "the node follows the database again", func() bool { return still.Health().Step == 0 && isAhead(still, 0) })
}

// TestClockObserve is what a step is.
func TestClockObserve(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	database := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		after, took, by time.Duration // of the second answer; by which it is beyond what is expected
		isStep          bool
	}{
		"as expected":                {time.Minute, time.Millisecond, 0, false},
		"slow drift":                 {time.Minute, time.Millisecond, 4 * time.Second, false},
		"forward":                    {time.Minute, time.Millisecond, time.Hour, true},
		"back":                       {time.Minute, time.Millisecond, -6 * time.Second, true},
		"an answer that takes long":  {time.Minute, 20 * time.Second, 9 * time.Second, false},
		"further than it took":       {time.Minute, 20 * time.Second, 30 * time.Second, true},
		"after an hour without news": {time.Hour, time.Millisecond, 0, false},
	} {
		var c clock
		c.observe(database, begin, begin)
		asked := begin.Add(test.after)
		expected := database.Add(test.after + test.took/2)
		got := c.observe(expected.Add(test.by), asked, asked.Add(test.took))
		want := expected.Add(test.by)
		if test.isStep {
			want = expected
		}
		if isStep := c.pending().by != 0; isStep != test.isStep || !got.Equal(want) {
			t.Errorf("%s: step %t, time %s, want %t, %s", name, isStep, got, test.isStep, want)
		}
	}
	var c clock
	if at, err := c.stamp(database); err != nil || !at.Equal(database) {
		t.Errorf("the first time: %s, %v", at, err)
	}
	if _, err := c.stamp(database.Add(time.Hour)); !errors.Is(err, ErrClock) {
		t.Errorf("a jump that is not decided: %v", err)
	}
	c.refuse()
	if at, err := c.stamp(database.Add(time.Hour)); err != nil || at.Sub(database) > time.Minute {
		t.Errorf("a jump that is refused: %s, %v", at, err)
	}
	c.take()
	if now := c.Now(); now.Sub(database) < time.Hour {
		t.Errorf("a jump that is taken: %s", now)
	}
}
