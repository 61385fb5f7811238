package room

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/projection"
)

// fillRoom has many visitors join at once.
func fillRoom(t *testing.T, r *Room, n int) map[fairness.Ticket]visitor {
	t.Helper()
	visitors := map[fairness.Ticket]visitor{}
	var all sync.WaitGroup
	for range n {
		v := newVisitor(r)
		visitors[v.ticket] = v
		all.Go(func() {
			if err := joinOnceOpen(t, r, v); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return visitors
}

// joinOnceOpen joins a room that opens about now. The database's clock decides when, and a node only estimates it.
func joinOnceOpen(t *testing.T, r *Room, v visitor) error {
	for {
		_, err := r.Join(t.Context(), v.ticket)
		early, ok := errors.AsType[*EarlyError](err)
		if !ok {
			return err
		}
		time.Sleep(early.Wait)
	}
}

// inLine returns the tickets by position, once all are drawn.
func inLine(t *testing.T, r *Room, visitors map[fairness.Ticket]visitor) []visitor {
	t.Helper()
	eventually(t, "all visitors are drawn", func() bool { return r.Snapshot().Counts.Drawn == uint64(len(visitors)) })
	line := make([]visitor, len(visitors))
	for _, v := range visitors {
		st, ok := r.Standing(v.ticket)
		if !ok || st.Position == 0 {
			t.Fatalf("standing %+v", st)
		}
		line[st.Position-1] = v
	}
	return line
}

// transcript returns all entries of a room.
func transcript(t *testing.T, r *Room) (entries []fairness.Entry) {
	t.Helper()
	err := r.store.Open(r.ID, r.Origin, r.keys.Log).Tail(t.Context(), func(text []byte) error {
		e, err := fairness.ParseEntry(text)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestOutflow lets three of ten visitors not come: in the long run admissions still follow the outflow, and
// calls keep their distance.
func TestOutflow(t *testing.T) {
	t.Parallel()
	steadily(t, outflow)
}

func outflow(t *testing.T) (wrong string) {
	const perSecond, seconds = 100, 5
	rs := node(t, pgtest.URL(t), newMaster(t))
	opens := time.Now().Add(8 * time.Second) // time for a busy machine to create the room
	r := create(t, rs, Config{
		Slug: "outflow", Opens: &opens, Starts: at(opens.Add(time.Second)), Outflow: Outflow{PerMinute: 60 * perSecond},
		Windows: []WindowRule{{Length: Duration(time.Second)}}, Claim: span(time.Second),
	})
	time.Sleep(time.Until(opens))
	line := inLine(t, r, fillRoom(t, r, 2*perSecond*(seconds+2)))
	var claims sync.WaitGroup
	claimed := 0
	for end := r.Snapshot().Starts.Add((seconds + 1) * time.Second); r.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for called := int(r.Snapshot().Counts.Called); claimed < called; claimed++ {
			if v := line[claimed]; claimed%10 >= 3 {
				claims.Go(func() {
					if _, err := waitClaim(t, r, v); err != nil && !errors.Is(err, ErrExpired) {
						t.Error(err)
					}
				})
			}
		}
	}
	claims.Wait()
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	auditRoom(t, r)
	admitted, lastCall := 0, fairness.Time(0)
	steady := millis.Of(r.Snapshot().Starts) + 1500 // the first no-shows are known
	for _, e := range transcript(t, r) {
		switch e := e.(type) {
		case *fairness.Admit:
			if e.Time >= steady && e.Time < steady+1000*(seconds-1) {
				admitted++
			}
		case *fairness.Call:
			if e.Time < lastCall+projection.CallInterval {
				t.Errorf("calls at %d and %d", lastCall, e.Time)
			}
			lastCall = e.Time
		}
	}
	if want := perSecond * (seconds - 1); admitted < want*85/100 || admitted > want*115/100 {
		return fmt.Sprintf("%d admitted in %d seconds, want about %d", admitted, seconds-1, want)
	}
	return ""
}

// TestMaxActive limits how many visitors are in at once: called ones count until they claim or miss their
// turn, and admitted ones until their session is over.
func TestMaxActive(t *testing.T) {
	t.Parallel()
	const most, people = 5, 18
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{
		Slug: "active", Outflow: Outflow{PerMinute: 600_000, MaxActive: most}, Claim: span(time.Second), Session: span(time.Second),
		Windows: []WindowRule{{Length: Duration(300 * time.Millisecond)}},
	})
	var all sync.WaitGroup
	for i := range people {
		v := newVisitor(r)
		all.Go(func() {
			if _, err := r.Join(t.Context(), v.ticket); err != nil {
				t.Error(err)
			} else if i%3 != 0 {
				if _, err := waitClaim(t, r, v); err != nil && !errors.Is(err, ErrExpired) {
					t.Error(err)
				}
			}
		})
	}
	eventually(t, "all visitors are called", func() bool { return r.Snapshot().Counts.Called == people })
	all.Wait()
	auditRoom(t, r)
	p, log, fullest := projection.New(nil, nil), r.store.Open(r.ID, r.Origin, r.keys.Log), uint64(0)
	err := log.Tail(t.Context(), func(text []byte) error {
		if err := p.Read(text, log.Root); err != nil {
			return err
		}
		if e, err := fairness.ParseEntry(text); err != nil || fairness.KindOf(e) != fairness.KindCall {
			return err
		}
		active := p.Active(p.Now())
		if active > most {
			t.Errorf("%d visitors are active after a call, want at most %d", active, most)
		}
		fullest = max(fullest, active)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if fullest != most {
		t.Errorf("at most %d visitors were active, want %d", fullest, most)
	}
}

// TestAssignments assigns the places of 20,000 tickets while visitors join: joins are stored in between.
func TestAssignments(t *testing.T) {
	t.Parallel()
	const people = 20_000
	d := newDial(t)
	rs := node(t, d.url, newMaster(t))
	opens := time.Now().Add(time.Hour)
	r := create(t, rs, Config{Slug: "assign", Opens: &opens, Starts: at(opens.Add(9 * time.Hour)), Windows: []WindowRule{{Length: Duration(time.Hour)}}})
	d.pass(65*time.Minute, rs)
	fillRoom(t, r, people)
	over := make(chan struct{})
	var late sync.WaitGroup
	var waits []time.Duration
	late.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			began := time.Now()
			if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
				t.Error(err)
			}
			waits = append(waits, time.Since(began))
		}
	})
	d.pass(time.Hour, rs)
	eventually(t, "all places are stated", func() bool { return r.Snapshot().Counts.Assigned >= people })
	close(over)
	late.Wait()
	if slowest := slices.Max(waits); slowest > 30*time.Second {
		t.Errorf("the slowest of %d joins took %v", len(waits), slowest)
	}
	first, last, between := 0, 0, 0
	entries := transcript(t, r)
	for i, e := range entries {
		if _, ok := e.(*fairness.Assign); ok {
			if first == 0 {
				first = i
			}
			last = i
		}
	}
	for _, e := range entries[first:last] {
		if _, ok := e.(*fairness.Arrive); ok {
			between++
		}
	}
	if between == 0 {
		t.Error("no join got in between")
	}
	auditRoom(t, r)
}
