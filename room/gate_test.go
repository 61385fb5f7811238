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
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/safetynet"
)

func newIDs(n int) []uuid.UUID {
	list := make([]uuid.UUID, n)
	for i := range list {
		list[i] = uuid.New()
	}
	return list
}

// report sends a report of a node.
func report(t *testing.T, r *Room, in safetynet.Report) safetynet.Reported {
	t.Helper()
	out, err := r.SafetyNet.Report(t.Context(), in)
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
		eventually(t, "the gate is open", func() bool { return report(t, r, safetynet.Report{Node: node, Shares: true}).Gate == GateOpen })
	}
	return node
}

// changes returns the switches and fail-open intervals of a room's transcript.
func changes(t *testing.T, r *Room) (list []fairness.Amend) {
	t.Helper()
	err := r.Transcript.ReadEntries(t.Context(), func(e fairness.Entry) error {
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

// told returns the statements in a room's transcript.
func told(t *testing.T, r *Room) (list []fairness.Tell) {
	t.Helper()
	err := r.Transcript.ReadEntries(t.Context(), func(e fairness.Entry) error {
		if statement, ok := e.(*fairness.Tell); ok {
			list = append(list, *statement)
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

// TestGate opens a gate with the first report, divides the share among nodes that report to two servers, and
// shuts the gate when the rate is used up.
func TestGate(t *testing.T) {
	t.Parallel()
	c := quick("gate")
	c.Outflow.PerMinute, c.Session = 10, span(time.Hour)
	url, rooms := pair(t, c)
	if s := rooms[0].Snapshot(); s.Gate != GateNone {
		t.Errorf("before any report the gate is %q", s.Gate)
	}
	a, b := openGate(t, rooms[0], rooms[1]), uuid.New()
	want := safetynet.Reported{Gate: GateOpen, Share: 5, Outflow: fairness.Outflow{PerMinute: 10}, Nodes: 2, Session: time.Hour}
	if diff := cmp.Diff(want, report(t, rooms[1], safetynet.Report{Node: b, Shares: true})); diff != "" {
		t.Errorf("the second node (-want +got):\n%s", diff)
	}
	first, second := newIDs(4), newIDs(3)
	if got := report(t, rooms[0], safetynet.Report{Node: a, Shares: true, Started: first}); got.Share != 3 {
		t.Errorf("with 6 of 10 left the share is %d", got.Share)
	}
	if got := report(t, rooms[1], safetynet.Report{Node: b, Shares: true, Started: append(second, first[0])}); got.Share != 2 {
		t.Errorf("with 3 of 10 left the share is %d", got.Share)
	}
	if got := report(t, rooms[0], safetynet.Report{Node: a, Started: newIDs(1)}); got.Share != 0 || got.Gate != GateOpen {
		t.Errorf("a node that takes no part: %+v", got)
	}
	restarted := get(t, node(t, url, masterOf(t, url)), "gate")
	if got := present(restarted); got != 8 {
		t.Errorf("a server that starts counts %d visitors, want 8", got)
	}
	if got := report(t, restarted, safetynet.Report{Node: a, Shares: true}); got.Share != 1 || got.Gate != GateOpen {
		t.Errorf("by a server that starts: %+v", got)
	}
	var all sync.WaitGroup
	for _, r := range append(rooms[:], restarted) {
		all.Go(func() {
			_, _ = r.SafetyNet.Report(t.Context(), safetynet.Report{Node: a, Shares: true, Started: newIDs(5)})
		})
	}
	all.Wait()
	for _, r := range append(rooms[:], restarted) {
		eventually(t, "the gate is shut", func() bool { return r.Snapshot().Gate == GateShut })
		if got := report(t, r, safetynet.Report{Node: b, Shares: true}); got.Gate != GateShut || got.Share != 0 {
			t.Errorf("shut: %+v", got)
		}
	}
	if diff := cmp.Diff([]fairness.Change{fairness.ChangeOpen, fairness.ChangeShut}, switchesOf(changes(t, restarted))); diff != "" {
		t.Errorf("switches (-want +got):\n%s", diff)
	}
	auditRoom(t, rooms[0])
}

// TestSwitchTogether lets two servers switch at once: one succeeds, and the other is refused by the rules,
// without harm.
func TestSwitchTogether(t *testing.T) {
	t.Parallel()
	_, rooms := pair(t, quick("switch"))
	for _, change := range []fairness.Change{fairness.ChangeOpen, fairness.ChangeShut, fairness.ChangeOpen} {
		var all sync.WaitGroup
		var errs [2]error
		for i, r := range rooms {
			all.Go(func() {
				errs[i] = r.sequencer.Do(t.Context(), func(_ *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
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

// TestGateFillsRoom: visitors who passed an open gate count when visitors are called from the line, on both
// servers and after a restart, until their session is over.
func TestGateFillsRoom(t *testing.T) {
	t.Parallel()
	c := quick("fills")
	c.Outflow.MaxActive, c.Session = 3, span(time.Hour)
	url, rooms := pair(t, c)
	passed := newIDs(2)
	n := openGate(t, rooms[0])
	if got := report(t, rooms[0], safetynet.Report{Node: n, Shares: true, Started: passed}); got.Share != 1 {
		t.Errorf("with one place left the share is %d", got.Share)
	}
	rooms = [2]*Room{rooms[1], get(t, node(t, url, masterOf(t, url)), "fills")}
	if got := present(rooms[1]); got != 2 {
		t.Errorf("a server that starts counts %d visitors", got)
	}
	eventually(t, "the other server knows of the sessions", func() bool { return present(rooms[0]) == 2 })
	for range 4 {
		if _, err := rooms[0].Join(t.Context(), newVisitor(rooms[0]).ticket); err != nil {
			t.Fatal(err)
		}
	}
	called := func(n uint64) {
		t.Helper()
		for _, r := range rooms {
			eventually(t, "visitors are called", func() bool { return r.Snapshot().Counts.Called >= n })
		}
		time.Sleep(600 * time.Millisecond)
		for _, r := range rooms {
			if got := r.Snapshot().Counts.Called; got != n {
				t.Errorf("%d visitors are called, want %d", got, n)
			}
		}
	}
	called(1)
	for _, r := range rooms {
		eventually(t, "the gate is shut", func() bool { return r.Snapshot().Gate == GateShut })
	}
	report(t, rooms[1], safetynet.Report{Node: n, Shares: true, Ended: passed[:1]})
	called(2)
	report(t, rooms[0], safetynet.Report{Node: n, Shares: true, Ended: passed})
	called(3)
	auditRoom(t, rooms[0])
}

// TestTurned: the gate shuts when a node sent visitors to the line and less than one session per node is
// left, and not before.
func TestTurned(t *testing.T) {
	t.Parallel()
	c := quick("turned")
	c.Outflow.PerMinute = 10
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), c)
	nodes := []uuid.UUID{openGate(t, r), uuid.New(), uuid.New()}
	for _, n := range nodes {
		report(t, r, safetynet.Report{Node: n, Shares: true})
	}
	if got := report(t, r, safetynet.Report{Node: nodes[0], Shares: true, Started: newIDs(7), TurnedAway: 1}); got.Share != 1 || got.Nodes != 3 {
		t.Errorf("with 3 of 10 left: %+v", got)
	}
	report(t, r, safetynet.Report{Node: nodes[1], Shares: true, Started: newIDs(1)})
	time.Sleep(500 * time.Millisecond)
	if got := r.Snapshot().Gate; got != GateOpen {
		t.Errorf("with 2 of 10 left, and no visitor turned away, the gate is %s", got)
	}
	report(t, r, safetynet.Report{Node: nodes[2], Shares: true, TurnedAway: 1})
	eventually(t, "the gate is shut", func() bool { return r.Snapshot().Gate == GateShut })
	auditRoom(t, r)
}

// TestPauseShutsGate: in a pause no visitor bypasses the line either.
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

// TestFailOpen reports the same intervals to both servers many times at once: each is recorded once.
func TestFailOpen(t *testing.T) {
	t.Parallel()
	_, rooms := pair(t, quick("fail-open"))
	list := failOpen(5)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			for range 3 {
				if _, err := rooms[i%2].SafetyNet.Report(t.Context(), safetynet.Report{Node: uuid.New(), FailOpen: list[i%5:]}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := report(t, rooms[0], safetynet.Report{Node: uuid.New(), FailOpen: list})
	want := make([]uuid.UUID, len(list))
	for i, u := range list {
		want[i] = u.ID
	}
	if diff := cmp.Diff(want, got.Recorded); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	entries := told(t, rooms[1])
	for _, u := range list {
		n := 0
		for _, e := range entries {
			if e.Subject == fairness.TellUnguarded && int64(e.From) == u.From && int64(e.Until) == u.Until && e.Count == uint64(u.Requests) {
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

// TestFailOpenMost: an hour has at most 60 such entries, the last of which covers all further intervals.
func TestFailOpenMost(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), quick("most"))
	list := failOpen(90)
	if got := report(t, r, safetynet.Report{Node: uuid.New(), FailOpen: list}); len(got.Recorded) != len(list) {
		t.Errorf("%d are recorded of %d", len(got.Recorded), len(list))
	}
	entries := told(t, r)
	var requests, want uint64
	for _, e := range entries {
		requests += e.Count
	}
	for _, u := range list {
		want += uint64(u.Requests)
	}
	if len(entries) != projection.MaxFailOpen || requests != want {
		t.Errorf("%d entries for %d requests, want %d for %d", len(entries), requests, projection.MaxFailOpen, want)
	}
	late := failOpen(2)
	if got := report(t, r, safetynet.Report{Node: uuid.New(), FailOpen: late}); len(got.Recorded) != 0 {
		t.Errorf("recorded beyond the most of an hour: %v", got.Recorded)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := report(t, r, safetynet.Report{Node: uuid.New(), FailOpen: late}); len(got.Recorded) != len(late) {
		t.Errorf("after the end %v are kept", got.Recorded)
	}
	auditRoom(t, r)
}

// TestFailOpenAgain: a server stops between the entry and the record of it; another server finds the entry.
func TestFailOpenAgain(t *testing.T) {
	t.Parallel()
	url, rooms := pair(t, quick("again"))
	r, list := rooms[0], failOpen(3)
	stored := pgroom.NewStore(connect(t, url)).Connectors
	if _, err := stored.AddFailOpen(t.Context(), r.ID, list); err != nil {
		t.Fatal(err)
	}
	claim, err := stored.ClaimFailOpen(t.Context(), r.ID, 2)
	if err != nil || len(claim.Reports) != 2 {
		t.Fatalf("claim %+v, %v", claim, err)
	}
	err = r.sequencer.Do(t.Context(), func(_ *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		from := min(claim.Reports[0].From, claim.Reports[1].From)
		until := max(claim.Reports[0].Until, claim.Reports[1].Until)
		return []fairness.Entry{&fairness.Tell{Time: now, Subject: fairness.TellUnguarded, From: fairness.Time(from),
			Until: fairness.Time(until), Count: uint64(claim.Reports[0].Requests + claim.Reports[1].Requests)}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	superuser(t, url, `update room_fail_open set claimed_at = claimed_at - interval '61 seconds' where claim is not null`)
	if got := report(t, rooms[1], safetynet.Report{Node: uuid.New(), FailOpen: list}); len(got.Recorded) != len(list) {
		t.Errorf("recorded %v", got.Recorded)
	}
	if entries := told(t, rooms[1]); len(entries) != 2 {
		t.Errorf("%d entries, want one of the claim and one of the rest", len(entries))
	}
	auditRoom(t, r)
}

// TestCleanUp records pending intervals of connectors that are gone, and forgets sessions that are long over.
func TestCleanUp(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	r := create(t, rs, quick("tend"))
	n := openGate(t, r)
	report(t, r, safetynet.Report{Node: n, Shares: true, Started: newIDs(5)})
	superuser(t, url, `update room_free_sessions set until_ms = until_ms - 3600000 where session_id = (select session_id from room_free_sessions limit 1)`)
	list := failOpen(2)
	if _, err := rs.Store.Connectors.AddFailOpen(t.Context(), r.ID, list); err != nil {
		t.Fatal(err)
	}
	rs.cleanUp(t.Context())
	if recorded, err := rs.Store.Connectors.AddFailOpen(t.Context(), r.ID, list); err != nil || len(recorded) != len(list) {
		t.Errorf("recorded %v, %v", recorded, err)
	}
	var left int
	if err := connect(t, url).QueryRow(t.Context(), `select count(*) from room_free_sessions`).Scan(&left); err != nil || left != 4 {
		t.Errorf("%d sessions are kept, %v", left, err)
	}
	auditRoom(t, r)
}

// TestReportLimits: a report larger than allowed is refused, and a cancelled one leaves nothing behind.
func TestReportLimits(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), quick("limits"))
	many := newIDs(safetynet.MaxSessions + 1)
	for name, in := range map[string]safetynet.Report{
		"started": {Started: many}, "active": {Active: many}, "ended": {Ended: many}, "fail_open": {FailOpen: failOpen(safetynet.MaxFailOpen + 1)},
	} {
		wrong := (*invalid.Error)(nil)
		if _, err := r.SafetyNet.Report(t.Context(), in); !errors.As(err, &wrong) {
			t.Errorf("%s: %v, want *invalid.Error", name, err)
		}
	}
	n := openGate(t, r)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = r.SafetyNet.Report(gone, safetynet.Report{Node: n, Shares: true, Started: many[:3]})
	if got := report(t, r, safetynet.Report{Node: n, Shares: true, Started: slices.Clone(many[:safetynet.MaxSessions])}); got.Gate != GateOpen {
		t.Errorf("gate %q", got.Gate)
	}
	if got := present(r); got != safetynet.MaxSessions {
		t.Errorf("%d sessions are active, want %d", got, safetynet.MaxSessions)
	}
}
