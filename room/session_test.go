package room

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/session"
)

// present returns the number of visitors that a node counts as called or at the site.
func present(r *Room) uint64 {
	return r.Metrics().Active
}

// TestSessions has one visitor who touches, one who releases and one who does nothing: both nodes, and one
// that starts later, count the visitors who are present.
func TestSessions(t *testing.T) {
	t.Parallel()
	c := quick("sessions")
	c.Session = span(time.Hour)
	d, nodes, rooms := dialed(t, c)
	_, touching := enter(t, rooms[0])
	_, releasing := enter(t, rooms[1])
	enter(t, rooms[0])
	count := func(what string, n uint64) {
		t.Helper()
		starting := node(t, d.url, masterOf(t, d.url))
		eventually(t, "the node is ready", starting.Ready)
		for _, r := range append(rooms[:], get(t, starting, "sessions")) {
			eventually(t, what, func() bool { return present(r) == n })
		}
	}
	count("three visitors are present", 3)
	d.pass(40*time.Minute, nodes[:]...)
	if _, err := rooms[1].Sessions.Touch(t.Context(), touching.Token); err != nil {
		t.Fatal(err)
	}
	released, err := rooms[0].Sessions.Release(t.Context(), releasing.Token)
	if err != nil || released.Ends.Sub(rooms[0].Now()).Abs() > time.Minute {
		t.Fatalf("released: %+v, %v", released, err)
	}
	if again, err := rooms[1].Sessions.Release(t.Context(), releasing.Token); err != nil || again != released {
		t.Errorf("released again: %+v, %v, want %+v", again, err, released)
	}
	if _, err := rooms[1].Sessions.Touch(t.Context(), releasing.Token); !errors.Is(err, session.ErrSessionOver) {
		t.Errorf("touched after the release: %v, want session.ErrSessionOver", err)
	}
	count("two visitors are present", 2)
	d.pass(25*time.Minute, nodes[:]...) // beyond the session of the idle visitor
	count("one visitor is present", 1)
	for passed := 65 * time.Minute; passed < session.MaxLengths*time.Hour; passed += 24 * time.Minute {
		s, err := rooms[0].Sessions.Touch(t.Context(), touching.Token)
		if err != nil {
			t.Fatal(err)
		}
		if left := s.Ends.Sub(rooms[0].Now()); !s.Ends.Equal(s.MaxEnds) && (left-time.Hour).Abs() > time.Minute || s.Ends.After(s.MaxEnds) || s.Ends.Equal(s.MaxEnds) != (passed > 3*time.Hour) {
			t.Errorf("%v after the admission a touch leaves %v, until %v of %v", passed, left, s.Ends, s.MaxEnds)
		}
		if again, err := rooms[1].Sessions.Touch(t.Context(), touching.Token); err != nil || again.MaxEnds != s.MaxEnds {
			t.Errorf("touched on the other node: %+v, %v", again, err)
		}
		for _, r := range rooms {
			eventually(t, "one visitor is present", func() bool { return present(r) == 1 })
		}
		d.pass(24*time.Minute, nodes[:]...)
	}
	for _, r := range rooms {
		if _, err := r.Sessions.Touch(t.Context(), touching.Token); !errors.Is(err, session.ErrSessionOver) {
			t.Errorf("touched when no touch helps any more: %v, want session.ErrSessionOver", err)
		}
	}
	count("no visitor is present", 0)
	auditRoom(t, rooms[1])
}

// dialed runs one room on two nodes, with a clock that a test sets.
func dialed(t *testing.T, c Config) (d *dial, nodes [2]*Rooms, rooms [2]*Room) {
	t.Helper()
	d = newDial(t)
	master := newMaster(t)
	masters.Store(d.url, master)
	nodes = [2]*Rooms{node(t, d.url, master), node(t, d.url, master)}
	return d, nodes, share(t, nodes, c)
}

// TestReleaseFreesPlace fills a room whose sessions last an hour, and releases one after the other on either
// node: each makes room for exactly one visitor.
func TestReleaseFreesPlace(t *testing.T) {
	t.Parallel()
	const most, people = 3, 9
	c := quick("free")
	c.Outflow.MaxActive, c.Session = most, span(time.Hour)
	_, rooms := pair(t, c)
	var there, all atomic.Int32
	var visits sync.WaitGroup
	for i := range people {
		v := newVisitor(rooms[0])
		visits.Go(func() {
			r := rooms[i%2]
			if _, err := r.Join(t.Context(), v.ticket); err != nil {
				t.Error(err)
				return
			}
			p, err := waitClaim(t, r, v)
			if err != nil {
				t.Error(err)
				return
			}
			if n := there.Add(1); n > most {
				t.Errorf("%d visitors are present, want at most %d", n, most)
			}
			all.Add(1)
			time.Sleep(400 * time.Millisecond)
			there.Add(-1)
			if _, err := rooms[(i+1)%2].Sessions.Release(t.Context(), p.Token); err != nil {
				t.Error(err)
			}
		})
	}
	visits.Wait()
	if all.Load() != people {
		t.Errorf("%d of %d visitors came", all.Load(), people)
	}
	eventually(t, "no visitor is present", func() bool { return present(rooms[0]) == 0 && present(rooms[1]) == 0 })
	auditRoom(t, rooms[0])
}

// TestTouchKeepsPlace: visitors who stay keep their place, even if every touch comes at the last moment and
// through the other node.
func TestTouchKeepsPlace(t *testing.T) {
	t.Parallel()
	c := quick("keep")
	c.Outflow.MaxActive, c.Session = 2, span(time.Hour)
	d, nodes, rooms := dialed(t, c)
	var passes [2]session.Pass
	for i := range passes {
		_, passes[i] = enter(t, rooms[0])
	}
	next := newVisitor(rooms[0])
	if _, err := rooms[0].Join(t.Context(), next.ticket); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		d.pass(58*time.Minute, nodes[:]...)
		for i, p := range passes {
			if _, err := rooms[(n+i)%2].Sessions.Touch(t.Context(), p.Token); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.pass(58*time.Minute, nodes[:]...)
	time.Sleep(3 * tickInterval)
	for _, r := range rooms {
		if got := r.Snapshot().Counts.Called; got != 2 {
			t.Errorf("%d visitors are called while two places are kept", got)
		}
	}
	d.pass(4*time.Minute, nodes[:]...)
	if _, err := waitClaim(t, rooms[1], next); err != nil { // no more touches
		t.Error(err)
	}
	auditRoom(t, rooms[0])
}

// TestPull leaves calls to a backend: the server calls no visitor by the clock, and a pull calls as many as
// requested, as are in line, and as the outflow allows.
func TestPull(t *testing.T) {
	t.Parallel()
	c := quick("pull")
	c.Outflow.PerMinute = 120 // saves up credit for 20 visitors
	url, master := pgtest.URL(t), newMaster(t)
	nodes := [2]*Rooms{node(t, url, master), node(t, url, master)}
	c.Starts = at(time.Now().Add(8 * time.Second)) // time for a busy machine to create the room
	rooms := share(t, nodes, c)
	r := rooms[0]
	if _, err := r.Pull(t.Context(), 1); !errors.Is(err, ErrNotPull) {
		t.Errorf("pulled where the clock calls: %v, want ErrNotPull", err)
	}
	if err := r.SetPull(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node knows", func() bool { return rooms[1].IsPull() && rooms[1].Snapshot().Pull })
	if p, err := r.Pull(t.Context(), 1); err != nil || p != (Pulled{}) {
		t.Errorf("pulled before the start: %+v, %v", p, err)
	}
	line := inLine(t, r, fillRoom(t, r, 40))
	time.Sleep(time.Until(r.Snapshot().Starts) + 2*time.Second)
	if got := r.Snapshot().Counts.Called; got != 0 {
		t.Fatalf("the clock called %d visitors", got)
	}
	if st, _ := r.Standing(line[0].ticket); st.Status != fairness.StatusDrawn {
		t.Errorf("first in line: %+v", st)
	} else if eta, ok := r.Snapshot().Expected(st, r.Now()); ok {
		t.Errorf("expected at %v, which only the backend knows", eta)
	}
	if p, err := r.Pull(t.Context(), 3); err != nil || p != (Pulled{Called: 3, UpTo: 3, Waiting: 3, Active: 3}) {
		t.Errorf("pulled 3 visitors: %+v, %v", p, err)
	}
	p, err := r.Pull(t.Context(), MaxPull)
	saved := uint64(2*r.Now().Sub(r.Snapshot().Starts).Seconds()) + 2 // two per second since the start; the node estimates the time
	if err != nil || p.Called == 0 || 3+p.Called > saved || uint64(p.UpTo) != p.Waiting || p.Waiting != 3+p.Called {
		t.Errorf("pulled more than the outflow allows: %+v, %v", p, err)
	}
	// Many concurrent pulls on both nodes stay within the outflow together.
	before := r.Snapshot().Counts.Called
	var all sync.WaitGroup
	var called atomic.Uint64
	for i := range 20 {
		all.Go(func() {
			p, err := rooms[i%2].Pull(t.Context(), 1)
			if err != nil {
				t.Error(err)
			}
			called.Add(p.Called)
		})
	}
	all.Wait()
	for _, r := range rooms {
		eventually(t, "both nodes know the called visitors", func() bool { return r.Snapshot().Counts.Called == before+called.Load() })
	}
	restarted := get(t, node(t, url, master), "pull")
	if !restarted.IsPull() {
		t.Error("after a restart the clock calls")
	}
	if err := restarted.SetPull(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the clock calls again", func() bool { return r.Snapshot().Counts.Called > before+called.Load()+2 })
	auditRoom(t, r)
}

// TestPullLimits: visitors who left are skipped and not counted, a paused room calls no visitor, and
// max_active also limits pulls.
func TestPullLimits(t *testing.T) {
	t.Parallel()
	c := quick("limits")
	c.Outflow.MaxActive = 4
	rs := node(t, pgtest.URL(t), newMaster(t))
	c.Starts = at(time.Now().Add(8 * time.Second)) // time for a busy machine to create the room
	r := create(t, rs, c)
	if err := r.SetPull(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	line := inLine(t, r, fillRoom(t, r, 10))
	err := r.sequencer.Do(t.Context(), func(_ *projection.Projection, now fairness.Time) (list []fairness.Entry, err error) {
		for _, i := range []int{0, 2, 3} {
			list = append(list, &fairness.Skip{Time: now, Ticket: line[i].ticket, Reason: fairness.Left})
		}
		return list, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(r.Snapshot().Starts) + 50*time.Millisecond)
	for _, step := range []struct {
		do   func() error
		n    uint64
		want Pulled
	}{
		{func() error { return r.Pause(t.Context()) }, 5, Pulled{}},
		{func() error { return r.Resume(t.Context()) }, 2, Pulled{Called: 2, UpTo: 5, Waiting: 2, Active: 2}},
		{nil, 9, Pulled{Called: 2, UpTo: 7, Waiting: 4, Active: 4}},
		{nil, 9, Pulled{UpTo: 7, Waiting: 4, Active: 4}},
		{func() error { _, err := r.Claim(t.Context(), line[1].ticket, line[1].secret); return err }, 9, Pulled{UpTo: 7, Waiting: 3, Active: 4}},
		{func() error { return r.End(t.Context()) }, 9, Pulled{UpTo: 7, Waiting: 3, Active: 4}},
	} {
		if step.do != nil {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
		}
		if p, err := r.Pull(t.Context(), step.n); err != nil || p != step.want {
			t.Errorf("pull %d: %+v, %v, want %+v", step.n, p, err, step.want)
		}
	}
	auditRoom(t, r)
}
