package room

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/revocation"
)

// ticketsOf returns the tickets of visitors.
func ticketsOf(visitors []visitor) (list []fairness.Ticket) {
	for _, v := range visitors {
		list = append(list, v.ticket)
	}
	return list
}

// TestRevokeList revokes a list, all or none of it, restores exactly that, and does so through another node.
func TestRevokeList(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	r := create(t, node(t, url, master), Config{Slug: "list", Windows: []WindowRule{{Length: Duration(24 * time.Hour)}}})
	other := get(t, node(t, url, master), "list")
	people := joinMany(t, r, 6)
	earlier, stays := people[0].ticket, people[5]
	if err := r.Revoke(t.Context(), earlier, fairness.RevokedRequest); err != nil {
		t.Fatal(err)
	}
	if err := r.Leave(t.Context(), people[1].ticket, people[1].secret); err != nil {
		t.Fatal(err)
	}
	unknown := newVisitor(r).ticket
	list := revocation.Selection{Tickets: append(ticketsOf(people[:5]), people[2].ticket, unknown)}
	size := r.Snapshot().Size
	_, err := other.Lists.Revoke(t.Context(), list, fairness.RevokedBot)
	if problems := invalid.Problems(err); len(problems) != 1 || problems[0].Field != "tickets[6]" || !strings.Contains(problems[0].Detail, unknown.String()) {
		t.Errorf("a list with an unknown ticket: %v", err)
	}
	for name, s := range map[string]revocation.Selection{
		"empty": {}, "method": {Method: "club"}, "long": {Tickets: slices.Repeat(list.Tickets, revocation.Most)},
	} {
		if _, err := other.Lists.Revoke(t.Context(), s, fairness.RevokedBot); invalid.Problems(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := other.Lists.Revoke(t.Context(), list, fairness.NoShow); invalid.Problems(err) == nil {
		t.Errorf("for another reason: %v", err)
	}
	if err := r.ReadLatest(t.Context()); err != nil || r.Snapshot().Size != size {
		t.Fatalf("%d entries and %v after refused lists, want %d", r.Snapshot().Size, err, size)
	}

	list.SkipUnknown = true
	want := revocation.Tally{Waiting: 3, Gone: 1, Revoked: 1, Unknown: 1, Repeated: 1}
	if tally, err := r.Lists.Check(t.Context(), list, 0); err != nil || tally != want {
		t.Errorf("checked: %+v, %v", tally, err)
	}
	done, err := other.Lists.Revoke(t.Context(), list, fairness.RevokedBot)
	if err != nil || done.Tally != want || done.First != size || done.Length != 3 {
		t.Fatalf("revoked: %+v, %v", done, err)
	}
	if again, err := r.Lists.Revoke(t.Context(), list, fairness.RevokedFraud); err != nil || again.Length != 0 || again.Revoked != 4 {
		t.Errorf("revoked again: %+v, %v", again, err)
	}
	for i, v := range people[2:5] {
		if st, _ := r.Standing(v.ticket); st.Reason != fairness.RevokedBot || uint64(st.SettledIndex) != size+uint64(i) {
			t.Errorf("ticket %d: %+v", i, st)
		}
	}

	if tally, err := r.Lists.Check(t.Context(), list, done.First); err != nil || tally.Revoked != 3 || tally.Passed != 0 {
		t.Errorf("checked before it is undone: %+v, %v", tally, err)
	}
	undone, err := r.Lists.Restore(t.Context(), list, done.First)
	if err != nil || undone.Length != 3 || undone.Called != 0 || undone.Later != 0 {
		t.Errorf("undone: %+v, %v", undone, err)
	}
	if st, _ := r.Standing(earlier); st.Reason != fairness.RevokedRequest {
		t.Errorf("what was revoked before is now %+v", st)
	}
	if again, err := r.Lists.Revoke(t.Context(), list, fairness.RevokedBot); err != nil || again.Length != 3 {
		t.Errorf("revoked for the second time: %+v, %v", again, err)
	}
	if again, err := r.Lists.Restore(t.Context(), list, 0); err != nil || again.Again != 3 || again.Length != 1 {
		t.Errorf("restored a second time: %+v, %v", again, err)
	}
	if st, _ := r.Standing(stays.ticket); st.Status != fairness.StatusWaiting {
		t.Errorf("a ticket that no list had: %+v", st)
	}
	auditRoom(t, r)
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lists.Revoke(t.Context(), list, fairness.RevokedBot); !errors.Is(err, ErrEnded) {
		t.Errorf("revoked after the end: %v", err)
	}
	if _, err := r.Lists.Restore(t.Context(), list, 0); !errors.Is(err, ErrEnded) {
		t.Errorf("restored after the end: %v", err)
	}
	if _, err := r.Lists.Check(t.Context(), list, 0); err != nil {
		t.Errorf("checked after the end: %v", err)
	}
}

// TestRevokeWithdrawn revokes the tickets whose credentials failed later: those with nullifiers that the issuer
// withdraws, shown at the join or after it, and all of a method.
func TestRevokeWithdrawn(t *testing.T) {
	t.Parallel()
	nodes, _ := doorNodes(t, 1)
	c := doorConfig("withdrawn")
	c.Lots = []string{"club"}
	r := create(t, nodes[0], c)
	waitForWork(t, r)
	var people []visitor
	for account := range 4 {
		v := newVisitor(r)
		lane, methods := fairness.Lane("members"), []string{"club"}
		if account == 2 {
			lane, methods = "board", []string{"club", "phone"}
		}
		if account == 3 { // shows it later
			lane, methods = "general", []string{"task"}
		}
		if _, err := r.JoinLane(t.Context(), v.ticket, lane, 1, show(r, v.ticket, lane, account, methods...)...); err != nil {
			t.Fatal(err)
		}
		people = append(people, v)
	}
	if _, err := r.Show(t.Context(), people[3].ticket, people[3].secret, show(r, people[3].ticket, "general", 3, "club")[0]); err != nil {
		t.Fatal(err)
	}
	nullifier := func(account int) revocation.Nullifier {
		return revocation.Nullifier(show(r, people[0].ticket, "members", account, "club")[0].Nullifier)
	}
	for name, s := range map[string]revocation.Selection{
		"unknown method":         {Method: "fans", Nullifiers: []revocation.Nullifier{nullifier(0)}},
		"method without any":     {Method: "phone", Nullifiers: []revocation.Nullifier{nullifier(0)}},
		"empty list of a method": {Method: "club", Nullifiers: []revocation.Nullifier{}},
	} {
		if _, err := r.Lists.Revoke(t.Context(), s, fairness.RevokedFraud); invalid.Problems(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	withdrawn := revocation.Selection{Method: "club", Nullifiers: []revocation.Nullifier{nullifier(0), nullifier(3), nullifier(9)}}
	done, err := r.Lists.Revoke(t.Context(), withdrawn, fairness.RevokedFraud)
	if err != nil || done.Length != 2 || done.Unknown != 1 {
		t.Fatalf("withdrawn: %+v, %v", done, err)
	}
	for i, want := range []fairness.Status{fairness.StatusSkipped, fairness.StatusWaiting, fairness.StatusWaiting, fairness.StatusSkipped} {
		if st, _ := r.Standing(people[i].ticket); st.Status != want {
			t.Errorf("ticket %d is %s, want %s", i, st.Status, want)
		}
	}
	if all, err := r.Lists.Revoke(t.Context(), revocation.Selection{Method: "phone"}, fairness.RevokedFraud); err != nil || all.Length != 1 || all.Next != 0 {
		t.Errorf("all of phone: %+v, %v", all, err)
	}
	if rest, err := r.Lists.Check(t.Context(), revocation.Selection{Method: "club", From: 1}, 0); err != nil || rest.Waiting != 1 || rest.Revoked != 2 {
		t.Errorf("those of club but the first: %+v, %v", rest, err)
	}
	if undone, err := r.Lists.Restore(t.Context(), withdrawn, 0); err != nil || undone.Length != 2 {
		t.Errorf("undone: %+v, %v", undone, err)
	}
	auditRoom(t, r)
}

// TestRestorePassed: those whose places the line has passed are called at once, in the order of their places, as far as
// the outflow has credit, and the rest later.
func TestRestorePassed(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "passed", Windows: []WindowRule{{Length: Duration(time.Second)}},
		Outflow: Outflow{PerMinute: 6_000}})
	people := joinMany(t, r, 300)
	eventually(t, "all are drawn", isDrawn(r, 300))
	list := revocation.Selection{Tickets: ticketsOf(people)}
	eventually(t, "some are called", func() bool { return r.Snapshot().Counts.Called >= 150 })
	done, err := r.Lists.Revoke(t.Context(), list, fairness.RevokedBot)
	if err != nil || done.Length != 300 || done.Called < 150 {
		t.Fatalf("revoked: %+v, %v", done, err)
	}
	newcomer := joinMany(t, r, 1)
	eventually(t, "the line goes on", func() bool { st, _ := r.Standing(newcomer[0].ticket); return st.Status == fairness.StatusCalled })
	if err := r.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if paused, err := r.Lists.Restore(t.Context(), list, 0); err != nil || paused.Length != 0 || paused.Later != 300 {
		t.Errorf("in a pause: %+v, %v", paused, err)
	}
	if err := r.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	restored := 0
	eventually(t, "all have their places back", func() bool {
		back, err := r.Lists.Restore(t.Context(), list, 0)
		if err != nil || back.Called != back.Length || back.Passed != 300-restored {
			t.Fatalf("restored: %+v, %v", back, err)
		}
		restored += back.Length
		return restored == 300
	})
	auditRoom(t, r)
}

// TestRevokeMost revokes as many tickets as one request may name while others join, and says how long that takes.
func TestRevokeMost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "most", Windows: []WindowRule{{Length: Duration(24 * time.Hour)}}})
	list := revocation.Selection{Tickets: make([]fairness.Ticket, revocation.Most)}
	var wg sync.WaitGroup
	for i := range list.Tickets {
		list.Tickets[i] = newVisitor(r).ticket
		wg.Go(func() {
			if _, err := r.Join(t.Context(), list.Tickets[i]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	began := time.Now()
	if tally, err := r.Lists.Check(t.Context(), list, 0); err != nil || tally.Waiting != revocation.Most {
		t.Fatalf("checked: %+v, %v", tally, err)
	}
	checked := time.Since(began)
	var slowest time.Duration
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			joined := time.Now()
			if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
				t.Error(err)
				return
			}
			slowest = max(slowest, time.Since(joined))
		}
	})
	began = time.Now()
	done, err := r.Lists.Revoke(t.Context(), list, fairness.RevokedBot)
	took := time.Since(began)
	close(stop)
	wg.Wait()
	if err != nil || done.Length != revocation.Most {
		t.Fatalf("revoked: %+v, %v", done, err)
	}
	t.Logf("%d tickets: checked in %v, revoked in %v, while a join took %v at most", revocation.Most, checked, took, slowest)
	if slowest > 20*time.Second { // a quarter of a second if the machine is not busy
		t.Errorf("a join took %v", slowest)
	}
	auditRoom(t, r)
}

// TestAppeal checks which contacts a room takes.
func TestAppeal(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "appeal", Settings: Settings{Appeal: "help@example.com"}})
	for contact, ok := range map[string]bool{
		"https://example.com/appeal?from=line": true, "": true, "help+line@example.com": true, "http://example.com": false,
		"help": false, "Help <help@example.com>": false, "javascript:alert(1)": false, "mailto:help@example.com": false,
		"help@example.com\r\nBcc: x@example.com": false, "https://user:pw@example.com": false, "a@" + strings.Repeat("b", 500) + ".com": false,
	} {
		err := r.Amend(t.Context(), Amendment{SettingsChange: SettingsChange{Appeal: &contact}})
		if (err == nil) != ok || err == nil && r.Config().Appeal != contact {
			t.Errorf("%q: %v, now %q", contact, err, r.Config().Appeal)
		}
	}
}
