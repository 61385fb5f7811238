package room

import (
	"cmp"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
)

// TestLanes runs a room with two lanes.
func TestLanes(t *testing.T) {
	t.Parallel()
	d := newDial(t)
	rs := node(t, d.url, newMaster(t))
	r, err := rs.Create(t.Context(), Config{
		Slug: "lanes", Windows: []WindowRule{{Length: Duration(time.Minute)}}, Closes: at(time.Now().Add(2 * time.Minute)),
		Outflow: Outflow{PerMinute: 600}, Lanes: []LaneRule{{Name: "general", Weight: 7}, {Name: "members", Weight: 3}},
		Grace: span(24 * time.Hour), // hours pass without entries
	})
	if err != nil {
		t.Fatal(err)
	}
	var wrong *invalid.Error
	if _, err := r.JoinLane(t.Context(), newVisitor(r).ticket, "vip", 1); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "general, members") {
		t.Errorf("join of a lane that does not exist: %v", err)
	}
	for range 20 {
		for _, lane := range []fairness.Lane{"", "members"} {
			joined, err := r.JoinLane(t.Context(), newVisitor(r).ticket, lane, 1)
			if err != nil || joined.Lane != cmp.Or(lane, "general") {
				t.Fatalf("join: %+v, %v", joined, err)
			}
		}
	}
	d.pass(2*time.Minute, rs)
	eventually(t, "some are called", func() bool { return r.Snapshot().Counts.Called > 0 })
	eventually(t, "both lanes are called", func() bool {
		s := r.Snapshot()
		return s.Lane("members").Counts.Called > 0 && s.Lane("general").Counts.Called > 0
	})
	d.pass(time.Hour, rs)
	eventually(t, "the room ends by itself", func() bool { return r.Snapshot().Ended })
	if c := r.Snapshot().Lane("members").Counts; c.Arrivals != 20 || c.Assigned != 20 || c.Called != 20 || c.NoShows != 20 {
		t.Errorf("members: %+v", c)
	}
	auditRoom(t, r)
}

// TestLife runs a room from its creation to its end on one node.
func TestLife(t *testing.T) {
	t.Parallel()
	d := newDial(t)
	rs := node(t, d.url, newMaster(t))
	opens := time.Now().Add(time.Hour)
	r, err := rs.Create(t.Context(), Config{
		Slug: "life", Opens: &opens, Closes: at(opens.Add(3 * time.Hour)),
		Windows: []WindowRule{{Length: Duration(time.Hour)}},
		Outflow: Outflow{PerMinute: 6000}, Claim: span(time.Hour), Grace: span(24 * time.Hour), // hours pass without entries
	})
	if err != nil {
		t.Fatal(err)
	}
	var early *EarlyError
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.As(err, &early) {
		t.Fatalf("join before opening: %v, want EarlyError", err)
	}
	d.pass(65*time.Minute, rs)
	visitors := joinMany(t, r, 100)
	again, err := r.Join(t.Context(), visitors[0].ticket)
	if err != nil || !again.Again || again.Status != fairness.StatusWaiting {
		t.Fatalf("join again: %+v, %v", again, err)
	}
	checkReceipt(t, r, again)
	if _, err := r.Claim(t.Context(), visitors[0].ticket, visitors[0].secret); !errors.Is(err, ErrNotCalled) {
		t.Errorf("claim before the draw: %v, want ErrNotCalled", err)
	}
	d.pass(time.Hour, rs)
	eventually(t, "all visitors are called", func() bool { return r.Snapshot().Counts.Called == 100 })
	claimHalf(t, r, visitors)
	d.pass(2*time.Hour, rs)
	eventually(t, "the room ends by itself", func() bool { return r.Snapshot().Ended })
	c := r.Snapshot().Counts
	if c.Admitted != 50 || c.NoShows != 50 || c.Assigned != 100 {
		t.Errorf("counts %+v, want 50 admitted, 50 no-shows, 100 assigned", c)
	}
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, ErrClosed) {
		t.Errorf("join after the end: %v, want ErrClosed", err)
	}
	if report := auditRoom(t, r); report.Admissions != 50 || report.Assignments != 100 {
		t.Errorf("audited %+v", report)
	}
}

func joinMany(t *testing.T, r *Room, n int) []visitor {
	t.Helper()
	visitors := make([]visitor, n)
	var wg sync.WaitGroup
	for i := range visitors {
		visitors[i] = newVisitor(r)
		wg.Go(func() {
			j, err := r.Join(t.Context(), visitors[i].ticket)
			if err != nil {
				t.Error(err)
				return
			}
			checkReceipt(t, r, j)
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return visitors
}

// checkReceipt verifies the receipt of a join with these credentials independently.
func checkReceipt(t *testing.T, r *Room, j Joined, shown ...credential.Credential) {
	t.Helper()
	text, err := j.AppendReceipt(t.Context(), nil)
	if err != nil {
		t.Error(err)
		return
	}
	proof, err := audit.ParseProof(text)
	if err != nil {
		t.Error(err)
		return
	}
	verifier, err := note.NewVerifier(r.VKey)
	if err != nil {
		t.Error(err)
		return
	}
	arrive := &fairness.Arrive{Time: j.Joined, Window: j.Window.Index, Seq: j.Seq, Ticket: j.Ticket, Lane: j.Lane,
		Credentials: shown}
	if _, err := proof.Verify(audit.LeafHash(fairness.AppendEntry(nil, arrive)), verifier); err != nil || proof.Index != uint64(j.Index) {
		t.Errorf("receipt of %v: %v, index %d", j.Ticket, err, proof.Index)
	}
}

func claimHalf(t *testing.T, r *Room, visitors []visitor) {
	t.Helper()
	for i, v := range visitors {
		if i%2 == 1 {
			continue
		}
		if _, err := r.Claim(t.Context(), v.ticket, newVisitor(r).secret); !errors.Is(err, ErrSecret) {
			t.Errorf("claim with another secret: %v, want ErrSecret", err)
		}
		first, err := r.Claim(t.Context(), v.ticket, v.secret)
		if err != nil {
			t.Fatal(err)
		}
		second, err := r.Claim(t.Context(), v.ticket, v.secret)
		if err != nil || second.Token != first.Token {
			t.Errorf("second claim: %v, the same pass: %t", err, second.Token == first.Token)
		}
		token, err := jwt.Parse(first.Token, func(*jwt.Token) (any, error) { return r.keys.Pass.Public(), nil },
			jwt.WithAudience(r.Origin), jwt.WithIssuer(r.URL), jwt.WithSubject(v.ticket.String()), jwt.WithTimeFunc(r.Now))
		if err != nil || !token.Valid {
			t.Errorf("pass: %v", err)
		}
	}
}

// TestParties runs a room with seats: those who find none left are skipped, and the room ends.
func TestParties(t *testing.T) {
	t.Parallel()
	d := newDial(t)
	rs := node(t, d.url, newMaster(t))
	r, err := rs.Create(t.Context(), Config{
		Slug: "parties", Windows: []WindowRule{{Length: Duration(time.Minute)}}, Closes: at(time.Now().Add(2 * time.Minute)),
		Outflow: Outflow{PerMinute: 6000}, Party: 3, Seats: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, seats := range []uint32{0, 4} {
		if _, err := r.JoinLane(t.Context(), newVisitor(r).ticket, "", seats); err == nil {
			t.Errorf("a party of %d joins", seats)
		}
	}
	for range 3 {
		if joined, err := r.JoinLane(t.Context(), newVisitor(r).ticket, "", 3); err != nil || joined.Seats != 3 {
			t.Fatalf("join: %+v, %v", joined, err)
		}
	}
	if err := r.Amend(t.Context(), Amendment{Seats: new(uint32(3))}); err != nil {
		t.Fatal(err)
	}
	if s := r.Snapshot(); s.Seats != 3 || r.Config().Seats != 3 {
		t.Errorf("%d seats, want 3", s.Seats)
	}
	d.pass(time.Hour, rs) // the first is called, misses the turn, and so on
	eventually(t, "the room ends by itself", func() bool {
		d.pass(time.Hour, rs)
		return r.Snapshot().Ended
	})
	if c := r.Snapshot().Counts; c.NoShows != 3 || c.Seats != 9 || c.Held != 0 {
		t.Errorf("counts %+v", c)
	}
	auditRoom(t, r)
}
