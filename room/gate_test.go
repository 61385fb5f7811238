package room

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/pgroom"
)

func newIDs(n int) []uuid.UUID {
	list := make([]uuid.UUID, n)
	for i := range list {
		list[i] = uuid.New()
	}
	return list
}

// report sends a report of a node.
func report(t *testing.T, r *Room, in Report) Reported {
	t.Helper()
	out, err := r.Report(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// openGate reports until the gate is open on all nodes.
func openGate(t *testing.T, rooms ...*Room) (node uuid.UUID) {
	t.Helper()
	node = uuid.New()
	for _, r := range rooms {
		eventually(t, "the gate is open", func() bool { return report(t, r, Report{Node: node, Shares: true}).Gate == GateOpen })
	}
	return node
}

// changes returns the switches and fail-open intervals of a room's transcript.
func changes(t *testing.T, r *Room) (list []fairness.Amend) {
	t.Helper()
	err := r.ReadEntries(t.Context(), func(e fairness.Entry) error {
		if a, ok := e.(*fairness.Amend); ok {
			list = append(list, *a)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func switchesOf(list []fairness.Amend) (names []fairness.Change) {
	for _, a := range list {
		names = append(names, a.Change)
	}
	return names
}

// TestGate opens a gate by the first report, shares what may begin among nodes
// that report to two servers, and shuts it when the rate is used up.
func TestGate(t *testing.T) {
	t.Parallel()
	c := quick("gate")
	c.Outflow.PerMinute, c.Session = 10, span(time.Hour)
	url, rooms := pair(t, c)
	if s := rooms[0].Snapshot(); s.Gate != GateNone {
		t.Errorf("before any report the gate is %q", s.Gate)
	}
	a, b := openGate(t, rooms[0], rooms[1]), uuid.New()
	want := Reported{Gate: GateOpen, Share: 5, Outflow: fairness.Outflow{PerMinute: 10}, Nodes: 2, Session: time.Hour}
	if diff := cmp.Diff(want, report(t, rooms[1], Report{Node: b, Shares: true})); diff != "" {
		t.Errorf("the second node (-want +got):\n%s", diff)
	}
	first, second := newIDs(4), newIDs(3)
	if got := report(t, rooms[0], Report{Node: a, Shares: true, Started: first}); got.Share != 3 {
		t.Errorf("with 6 of 10 left the share is %d", got.Share)
	}
	if got := report(t, rooms[1], Report{Node: b, Shares: true, Started: append(second, first[0])}); got.Share != 2 {
		t.Errorf("with 3 of 10 left the share is %d", got.Share)
	}
	if got := report(t, rooms[0], Report{Node: a, Started: newIDs(1)}); got.Share != 0 || got.Gate != GateOpen {
		t.Errorf("a node that takes no part: %+v", got)
	}
	restarted := get(t, node(t, url, rooms[0].flow.master), "gate")
	if got := present(restarted); got != 8 {
		t.Errorf("a server that starts counts %d people, want 8", got)
	}
	if got := report(t, restarted, Report{Node: a, Shares: true}); got.Share != 1 || got.Gate != GateOpen {
		t.Errorf("by a server that starts: %+v", got)
	}
	var all sync.WaitGroup
	for _, r := range append(rooms[:], restarted) {
		all.Go(func() { _, _ = r.Report(t.Context(), Report{Node: a, Shares: true, Started: newIDs(5)}) })
	}
	all.Wait()
	for _, r := range append(rooms[:], restarted) {
		eventually(t, "the gate is shut", func() bool { return r.Snapshot().Gate == GateShut })
		if got := report(t, r, Report{Node: b, Shares: true}); got.Gate != GateShut || got.Share != 0 {
			t.Errorf("shut: %+v", got)
		}
	}
	if diff := cmp.Diff([]fairness.Change{fairness.ChangeOpen, fairness.ChangeShut}, switchesOf(changes(t, restarted))); diff != "" {
		t.Errorf("switches (-want +got):\n%s", diff)
	}
	auditRoom(t, rooms[0])
}

// TestSwitchTogether has two servers switch at once: one does, and the other is
// refused, by the rules, without harm.
func TestSwitchTogether(t *testing.T) {
	t.Parallel()
	_, rooms := pair(t, quick("switch"))
	for _, change := range []fairness.Change{fairness.ChangeOpen, fairness.ChangeShut, fairness.ChangeOpen} {
		var all sync.WaitGroup
		var errs [2]error
		for i, r := range rooms {
			all.Go(func() {
				errs[i] = r.act(t.Context(), func(_ *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
					return []fairness.Entry{&fairness.Amend{Time: now, Change: change}}, nil
				})
			})
		}
		all.Wait()
		refused := (*fairness.Violation)(nil)
		if (errs[0] == nil) == (errs[1] == nil) || !errors.As(errors.Join(errs[0], errs[1]), &refused) {
			t.Fatalf("%s: %v and %v, want one refusal", change, errs[0], errs[1])
		}
	}
	for _, r := range rooms {
		if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
			t.Errorf("after a refusal: %v", err)
		}
		eventually(t, "both know the gate", func() bool { return r.Snapshot().Gate == GateOpen })
	}
	auditRoom(t, rooms[1])
}

// TestGateFillsRoom: who passed an open gate counts when people are called from
// the line, on either server and after a restart, until the session is over.
func TestGateFillsRoom(t *testing.T) {
	t.Parallel()
	c := quick("fills")
	c.Outflow.MaxActive, c.Session = 3, span(time.Hour)
	url, rooms := pair(t, c)
	passed := newIDs(2)
	n := openGate(t, rooms[0])
	if got := report(t, rooms[0], Report{Node: n, Shares: true, Started: passed}); got.Share != 1 {
		t.Errorf("with one place left the share is %d", got.Share)
	}
	rooms = [2]*Room{rooms[1], get(t, node(t, url, rooms[0].flow.master), "fills")}
	if got := present(rooms[1]); got != 2 {
		t.Errorf("a server that starts counts %d people", got)
	}
	eventually(t, "the other server has heard", func() bool { return present(rooms[0]) == 2 })
	for range 4 {
		if _, err := rooms[0].Join(t.Context(), newVisitor(rooms[0]).ticket); err != nil {
			t.Fatal(err)
		}
	}
	called := func(n uint64) {
		t.Helper()
		for _, r := range rooms {
			eventually(t, "people are called", func() bool { return r.Snapshot().Counts.Called >= n })
		}
		time.Sleep(600 * time.Millisecond)
		for _, r := range rooms {
			if got := r.Snapshot().Counts.Called; got != n {
				t.Errorf("%d people are called, want %d", got, n)
			}
		}
	}
	called(1)
	for _, r := range rooms {
		eventually(t, "the gate is shut", func() bool { return r.Snapshot().Gate == GateShut })
	}
	report(t, rooms[1], Report{Node: n, Shares: true, Ended: passed[:1]})
	called(2)
	report(t, rooms[0], Report{Node: n, Shares: true, Ended: passed})
	called(3)
	auditRoom(t, rooms[0])
}

// TestNextSwitch asks a room about moments that no test waits for.
func TestNextSwitch(t *testing.T) {
	t.Parallel()
	c := quick("next")
	c.Starts = at(time.Now().Add(time.Hour))
	c.Outflow = Outflow{PerMinute: 100, MaxActive: 50}
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), c)
	starts := r.policy.Starts
	quiet := pgroom.Free{Nodes: 3}
	open := passed{used: true, since: starts}
	for name, c := range map[string]struct {
		isOpen  bool
		passed  passed
		free    pgroom.Free
		hot     fairness.Time // after the start
		turned  bool
		age     fairness.Time // of the counts
		after   fairness.Time // the start
		pause   bool
		pull    bool
		want    fairness.Change
		isEarly bool
	}{
		"the first time":             {free: quiet, want: fairness.ChangeOpen},
		"not begun":                  {free: quiet, isEarly: true},
		"no connector":               {},
		"full already":               {free: pgroom.Free{Nodes: 1, Started: 100}},
		"counts are old":             {free: quiet, age: freeFresh + 1},
		"counts are not quite old":   {free: quiet, age: freeFresh, want: fairness.ChangeOpen},
		"in a pause":                 {free: quiet, pause: true},
		"open":                       {isOpen: true, passed: open, free: pgroom.Free{Nodes: 3, Started: 99, Active: 49}},
		"open, and the rate is used": {isOpen: true, passed: open, free: pgroom.Free{Nodes: 3, Started: 100}, want: fairness.ChangeShut},
		"open, and it is full":       {isOpen: true, passed: open, free: pgroom.Free{Nodes: 3, Active: 50}, want: fairness.ChangeShut},
		"turned away":                {isOpen: true, passed: open, free: pgroom.Free{Nodes: 3, Started: 98}, turned: true, want: fairness.ChangeShut},
		"open, in a pause":           {isOpen: true, passed: open, free: quiet, pause: true, want: fairness.ChangeShut},
		"a backend calls":            {free: quiet, pull: true},
		"open, and a backend calls":  {isOpen: true, passed: open, free: quiet, pull: true, want: fairness.ChangeShut},
		"shut a minute ago":          {passed: open, free: quiet, after: calmFor, want: fairness.ChangeOpen},
		"shut not quite so long":     {passed: open, free: quiet, after: calmFor - 1},
		"hot half a minute ago":      {passed: open, free: quiet, hot: 30_000, after: calmFor},
		"hot a minute ago":           {passed: open, free: quiet, hot: 30_000, after: 30_000 + calmFor, want: fairness.ChangeOpen},
		"somebody waited just now":   {passed: passed{used: true, since: starts, lined: starts + 1}, free: quiet, after: calmFor},
		"somebody waited before":     {passed: passed{used: true, since: starts, lined: starts + 1}, free: quiet, after: calmFor + 1, want: fairness.ChangeOpen},
	} {
		now := starts + c.after
		if c.isEarly {
			now = starts - 1
		}
		l := replay(t, r)
		apply := func(change fairness.Change) {
			if err := l.Apply(&fairness.Amend{Time: starts - 1, Change: change}, &l.outside); err != nil {
				t.Fatal(err)
			}
		}
		if c.isOpen {
			apply(fairness.ChangeOpen)
		}
		if c.pause {
			apply(fairness.ChangePause)
		}
		l.flow, l.passed = &flow{}, c.passed
		l.flow.pull.Store(c.pull)
		l.flow.guests.take(c.free, now-c.age, func(int) bool { return true })
		l.flow.guests.hot, l.flow.guests.turned = starts+c.hot, c.turned
		got, ok := l.nextSwitch(now)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: %q, %t, want %q", name, got, ok, c.want)
		}
	}
}

// TestHot: a gate that is much used does not open soon.
func TestHot(t *testing.T) {
	t.Parallel()
	c := quick("hot")
	c.Outflow = Outflow{PerMinute: 10, MaxActive: 5}
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), c)
	r.mu.RLock()
	defer r.mu.RUnlock()
	l := &live{State: r.live.State, flow: &flow{}}
	for _, c := range []struct {
		free pgroom.Free
		want bool
	}{
		{pgroom.Free{}, false}, {pgroom.Free{Started: 8, Active: 4}, false}, {pgroom.Free{Started: 9}, true}, {pgroom.Free{Active: 5}, true},
	} {
		l.flow.guests.take(c.free, 1, func(int) bool { return true })
		if got := l.isHot(c.free, l.Now()); got != c.want {
			t.Errorf("%+v: %t", c.free, got)
		}
	}
}

// TestOverfull: beyond what can be counted nobody may begin, and what is told of
// is not kept.
func TestOverfull(t *testing.T) {
	t.Parallel()
	l := replay(t, create(t, node(t, pgtest.URL(t), newMaster(t)), quick("overfull")))
	l.flow = nil // no limit but this one
	batch := []telling{{Report: &Report{Node: uuid.New(), Shares: true, Started: newIDs(2), Active: newIDs(1), Ended: newIDs(3), Turned: 1}}, {Report: &Report{Started: newIDs(4)}}}
	for f, want := range map[pgroom.Free]int{{}: 6, {Active: maxFree - 1}: 6, {Active: maxFree}: 0, {Started: maxFree + 1}: 0} {
		news, turned := newsOf(batch, f)
		if len(news.Started) != want || len(news.Nodes) != 1 || len(news.Active) != 1 || len(news.Ended) != 3 || !turned {
			t.Errorf("%+v: news %+v, %t", f, news, turned)
		}
		if left := l.left(f, l.Now()); (left > 0) != (want > 0) {
			t.Errorf("%+v: %d left", f, left)
		}
	}
}

// TestEarIsFull: what waits to be stored has a bound in sessions, and takes more
// once it is stored.
func TestEarIsFull(t *testing.T) {
	t.Parallel()
	e := ear{isAtWork: true} // by somebody who is slow
	gone, leave := context.WithCancel(t.Context())
	leave()
	large := &Report{Started: newIDs(MaxTold), Active: newIDs(MaxTold), Ended: newIDs(MaxTold)}
	told := 0
	for ; told <= waitMost; told += large.size() {
		if _, err := e.tell(gone, nil, large); errors.Is(err, ErrBusy) {
			break
		}
	}
	if told < waitMost || told > waitMost+large.size() {
		t.Errorf("%d sessions wait", told)
	}
	for stored := 0; stored < told; {
		for _, r := range e.next() {
			stored += r.size()
		}
	}
	if len(e.next()) != 0 || e.told != 0 {
		t.Errorf("%d sessions are left", e.told)
	}
}

// TestTurned: that a node leads visitors to the line shuts the gate when less than
// one session is left for each node, and not before.
func TestTurned(t *testing.T) {
	t.Parallel()
	c := quick("turned")
	c.Outflow.PerMinute = 10
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), c)
	nodes := []uuid.UUID{openGate(t, r), uuid.New(), uuid.New()}
	for _, n := range nodes {
		report(t, r, Report{Node: n, Shares: true})
	}
	if got := report(t, r, Report{Node: nodes[0], Shares: true, Started: newIDs(7), Turned: 1}); got.Share != 1 || got.Nodes != 3 {
		t.Errorf("with 3 of 10 left: %+v", got)
	}
	report(t, r, Report{Node: nodes[1], Shares: true, Started: newIDs(1)})
	time.Sleep(500 * time.Millisecond)
	if got := r.Snapshot().Gate; got != GateOpen {
		t.Errorf("with 2 of 10 left, and nobody turned away, the gate is %s", got)
	}
	report(t, r, Report{Node: nodes[2], Shares: true, Turned: 1})
	eventually(t, "the gate is shut", func() bool { return r.Snapshot().Gate == GateShut })
	auditRoom(t, r)
}

// TestPauseShutsGate: while calls are held nobody passes the line either.
func TestPauseShutsGate(t *testing.T) {
	t.Parallel()
	_, rooms := pair(t, quick("pause"))
	openGate(t, rooms[0])
	if err := rooms[1].Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms {
		eventually(t, "the gate is shut", func() bool { return r.Snapshot().Gate == GateShut })
	}
	auditRoom(t, rooms[0])
}

func failOpen(n int) []pgroom.FailOpen {
	now := time.Now().UnixMilli()
	list := make([]pgroom.FailOpen, n)
	for i := range list {
		list[i] = pgroom.FailOpen{ID: uuid.New(), From: now - 60_000 - int64(i), Until: now - 1_000, Requests: int64(10 + i)}
	}
	return list
}

// TestFailOpen has the same times reported to both servers many times at once:
// each is recorded once.
func TestFailOpen(t *testing.T) {
	t.Parallel()
	_, rooms := pair(t, quick("fail-open"))
	list := failOpen(5)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			for range 3 {
				if _, err := rooms[i%2].Report(t.Context(), Report{Node: uuid.New(), FailOpen: list[i%5:]}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := report(t, rooms[0], Report{Node: uuid.New(), FailOpen: list})
	want := make([]uuid.UUID, len(list))
	for i, u := range list {
		want[i] = u.ID
	}
	if diff := cmp.Diff(want, got.Recorded); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	entries := changes(t, rooms[1])
	for _, u := range list {
		n := 0
		for _, e := range entries {
			if e.Change == fairness.ChangeUnguarded && int64(e.From) == u.From && int64(e.Until) == u.Until && e.Requests == uint64(u.Requests) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%+v is recorded %d times", u, n)
		}
	}
	if len(entries) != len(list) {
		t.Errorf("%d entries for %d times", len(entries), len(list))
	}
	auditRoom(t, rooms[0])
}

// TestFailOpenMost: an hour has 60 entries, the last of which is for all the
// rest.
func TestFailOpenMost(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), quick("most"))
	list := failOpen(90)
	if got := report(t, r, Report{Node: uuid.New(), FailOpen: list}); len(got.Recorded) != len(list) {
		t.Errorf("%d are recorded of %d", len(got.Recorded), len(list))
	}
	entries := changes(t, r)
	var requests, want uint64
	for _, e := range entries {
		requests += e.Requests
	}
	for _, u := range list {
		want += uint64(u.Requests)
	}
	if len(entries) != failOpenMost || requests != want {
		t.Errorf("%d entries for %d requests, want %d for %d", len(entries), requests, failOpenMost, want)
	}
	late := failOpen(2)
	if got := report(t, r, Report{Node: uuid.New(), FailOpen: late}); len(got.Recorded) != 0 {
		t.Errorf("recorded beyond the most of an hour: %v", got.Recorded)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := report(t, r, Report{Node: uuid.New(), FailOpen: late}); len(got.Recorded) != len(late) {
		t.Errorf("after the end %v are kept", got.Recorded)
	}
	auditRoom(t, r)
}

// TestFailOpenAgain: a server stops between the entry and the note that it is
// there; another one finds it.
func TestFailOpenAgain(t *testing.T) {
	t.Parallel()
	url, rooms := pair(t, quick("again"))
	r, list := rooms[0], failOpen(3)
	if _, err := r.flow.store.AddFailOpen(t.Context(), r.ID, list); err != nil {
		t.Fatal(err)
	}
	claim, err := r.flow.store.ClaimFailOpen(t.Context(), r.ID, 2)
	if err != nil || len(claim.Reports) != 2 {
		t.Fatalf("claim %+v, %v", claim, err)
	}
	err = r.act(t.Context(), func(_ *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
		e := joined(claim.Reports)
		e.Time = now
		return []fairness.Entry{&e}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	superuser(t, url, `update room_fail_open set claimed_at = claimed_at - interval '61 seconds' where claim is not null`)
	if got := report(t, rooms[1], Report{Node: uuid.New(), FailOpen: list}); len(got.Recorded) != len(list) {
		t.Errorf("recorded %v", got.Recorded)
	}
	if entries := changes(t, rooms[1]); len(entries) != 2 {
		t.Errorf("%d entries, want one of the claim and one of the rest", len(entries))
	}
	auditRoom(t, r)
}

// TestTend records what waits though its connector is gone, and forgets sessions
// that are long over.
func TestTend(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	r := create(t, rs, quick("tend"))
	n := openGate(t, r)
	report(t, r, Report{Node: n, Shares: true, Started: newIDs(5)})
	superuser(t, url, `update room_free_sessions set until_ms = until_ms - 3600000 where session_id = (select session_id from room_free_sessions limit 1)`)
	list := failOpen(2)
	if _, err := r.flow.store.AddFailOpen(t.Context(), r.ID, list); err != nil {
		t.Fatal(err)
	}
	rs.tend(t.Context())
	if recorded, err := r.flow.store.AddFailOpen(t.Context(), r.ID, list); err != nil || len(recorded) != len(list) {
		t.Errorf("recorded %v, %v", recorded, err)
	}
	var left int
	if err := connect(t, url).QueryRow(t.Context(), `select count(*) from room_free_sessions`).Scan(&left); err != nil || left != 4 {
		t.Errorf("%d sessions are kept, %v", left, err)
	}
	auditRoom(t, r)
}

// TestReportLimits: a report says no more than it may, and who gives up waiting
// leaves nothing behind.
func TestReportLimits(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), quick("limits"))
	many := newIDs(MaxTold + 1)
	for name, in := range map[string]Report{
		"started": {Started: many}, "active": {Active: many}, "ended": {Ended: many}, "fail_open": {FailOpen: failOpen(MaxFailOpen + 1)},
	} {
		wrong := (*invalid.Error)(nil)
		if _, err := r.Report(t.Context(), in); !errors.As(err, &wrong) {
			t.Errorf("%s: %v, want *invalid.Error", name, err)
		}
	}
	n := openGate(t, r)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = r.Report(gone, Report{Node: n, Shares: true, Started: many[:3]})
	if got := report(t, r, Report{Node: n, Shares: true, Started: slices.Clone(many[:MaxTold])}); got.Gate != GateOpen {
		t.Errorf("gate %q", got.Gate)
	}
	if got := present(r); got != MaxTold {
		t.Errorf("%d people are there, want %d", got, MaxTold)
	}
}
