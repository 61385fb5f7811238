package room

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/findings"
)

// refusedBy adds up the refused joins that a transcript states, by reason, and counts the statements.
func refusedBy(t *testing.T, r *Room) (sums map[fairness.Lane]uint64, statements int) {
	t.Helper()
	sums = map[fairness.Lane]uint64{}
	for _, e := range told(t, r) {
		if e.Subject != fairness.TellRefused || e.From >= e.Until || e.Until > e.Time {
			t.Errorf("%+v", e)
		}
		sums[e.Name] += e.Count
		statements++
	}
	return sums, statements
}

// TestRefused: each minute in which joins were refused is one statement per reason. Joins that fail for other reasons
// do not count, and no minute without refusals is stated.
func TestRefused(t *testing.T) {
	t.Parallel()
	d := newDial(t)
	rs := node(t, d.url, newMaster(t))
	opens := time.Now().Add(time.Hour)
	r := create(t, rs, Config{Slug: "refused", Opens: &opens, Windows: []WindowRule{{Length: Duration(24 * time.Hour)}},
		Settings: Settings{MaxWaiting: 3}})
	refuse := func(n int, want error) {
		t.Helper()
		for range n {
			if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, want) {
				t.Fatalf("%v, want %v", err, want)
			}
		}
	}
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); err == nil {
		t.Fatal("joined before the room opens")
	}
	r.Refused.ByNetwork()
	d.pass(61*time.Minute, rs)
	first := newVisitor(r).ticket
	for _, ticket := range []fairness.Ticket{first, newVisitor(r).ticket, newVisitor(r).ticket} {
		if _, err := r.Join(t.Context(), ticket); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Join(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := r.JoinLane(t.Context(), newVisitor(r).ticket, "no-lane", 1); err == nil {
		t.Fatal("joined a lane that is not there")
	}
	size := r.Snapshot().Size
	refuse(40, ErrFull)
	r.Refused.ByNetwork()
	r.Refused.ByNetwork()
	if grown := r.Snapshot().Size - size; grown > 0 {
		t.Errorf("%d entries within the minute", grown)
	}
	d.pass(61*time.Second, rs)
	eventually(t, "the minute is stated", func() bool { return r.Snapshot().Size == size+2 })
	if sums, _ := refusedBy(t, r); sums["full"] != 40 || sums["network-limit"] != 2 {
		t.Errorf("stated are %v", sums)
	}
	d.pass(5*time.Minute, rs)
	time.Sleep(500 * time.Millisecond)
	if grown := r.Snapshot().Size - size; grown != 2 {
		t.Errorf("%d entries, of which 2 state the minute", grown)
	}
	refuse(5, ErrFull)
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	refuse(3, ErrClosed)
	r.Refused.ByNetwork()
	d.pass(2*time.Minute, rs)
	if sums, n := refusedBy(t, r); sums["full"] != 45 || sums["network-limit"] != 2 || n != 3 {
		t.Errorf("stated are %v in %d statements", sums, n)
	}
	auditRoom(t, r)
	var finder findings.Finder
	if _, err := verifier.Audit(t.Context(), r.Transcript, verifier.Trust{VKey: r.VKey, OnEntry: finder.Add}); err != nil {
		t.Fatal(err)
	}
	list := finder.Findings()
	found := findings.Of(list, findings.Told)
	if found == nil || !strings.Contains(found.Text, "Refused joins by reason: network-limit 2, full 45.") &&
		!strings.Contains(found.Text, "Refused joins by reason: full 45, network-limit 2.") {
		t.Errorf("the report says %+v", found)
	}
	if contrary := findings.Of(list, findings.Contrary); contrary != nil {
		t.Errorf("%+v", contrary)
	}
}

// TestRefusedByMethod: joins count that show a method whose limit is reached, but not those whose credentials fail.
func TestRefusedByMethod(t *testing.T) {
	t.Parallel()
	nodes, _ := doorNodes(t, 1)
	r := create(t, nodes[0], doorConfig("limits"))
	waitForWork(t, r)
	join := func(account int) error {
		ticket := newVisitor(r).ticket
		_, err := r.JoinLane(t.Context(), ticket, "members", 1, show(r, ticket, "members", account, "club")...)
		return err
	}
	for account := range 5 {
		if err := join(account); err != nil {
			t.Fatal(err)
		}
	}
	for account := range 9 {
		full := (*door.FullError)(nil)
		if err := join(account); !errors.As(err, &full) {
			t.Fatal(err)
		}
	}
	if _, err := r.JoinLane(t.Context(), newVisitor(r).ticket, "members", 1); err == nil {
		t.Fatal("joined without a credential")
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sums, n := refusedBy(t, r); sums["method-full"] != 9 || n != 1 {
		t.Errorf("stated are %v", sums)
	}
}

// TestRefusedAtStop: a server that ends states what it has counted, also if its database was away meanwhile.
func TestRefusedAtStop(t *testing.T) {
	t.Parallel()
	server, master := pgtest.Start(t), newMaster(t)
	one, two := node(t, server.URL(), master), node(t, server.URL(), master)
	rooms := share(t, [2]*Rooms{one, two}, Config{Slug: "stop", Windows: []WindowRule{{Length: Duration(time.Hour)}},
		Settings: Settings{MaxWaiting: 1}})
	if _, err := rooms[1].Join(t.Context(), newVisitor(rooms[1]).ticket); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both nodes are full", func() bool { return rooms[0].IsFull() && rooms[1].IsFull() })
	for i := range 30 {
		if _, err := rooms[i%3%2].Join(t.Context(), newVisitor(rooms[0]).ticket); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
	}
	server.KillHard()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- two.Close(ctx) }()
	time.Sleep(time.Second)
	server.Restart()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node reads the rest", func() bool { sums, _ := refusedBy(t, rooms[0]); return sums["full"] == 10 })
	if err := rooms[0].End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sums, n := refusedBy(t, rooms[0]); sums["full"] != 30 || n != 2 {
		t.Errorf("stated are %v in %d statements", sums, n)
	}
	auditRoom(t, rooms[0])
}
