package room

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/session"
)

// twoNodes runs two servers on one database.
func twoNodes(t *testing.T) [2]*Rooms {
	t.Helper()
	url, master := pgtest.URL(t), newMaster(t)
	return [2]*Rooms{node(t, url, master), node(t, url, master)}
}

// share runs one room on both servers.
func share(t *testing.T, nodes [2]*Rooms, c Config) [2]*Room {
	t.Helper()
	return [2]*Room{create(t, nodes[0], c), get(t, nodes[1], c.Slug)}
}

// TestTwoNodesJoin sends every ticket through both nodes at the same moment: there is one arrival, and both
// nodes report the same one.
func TestTwoNodesJoin(t *testing.T) {
	t.Parallel()
	rooms := share(t, twoNodes(t), Config{Slug: "join", Windows: []WindowRule{{Length: Duration(time.Hour)}}})
	const visitors = 200
	var all sync.WaitGroup
	for range visitors {
		v := newVisitor(rooms[0])
		all.Go(func() {
			var answers [2]Joined
			var both sync.WaitGroup
			for n, r := range rooms {
				both.Go(func() {
					var err error
					if answers[n], err = r.Join(t.Context(), v.ticket); err != nil {
						t.Error(err)
						return
					}
					checkReceipt(t, r, answers[n])
				})
			}
			both.Wait()
			a, b := answers[0], answers[1]
			if a.Index != b.Index || a.Seq != b.Seq || a.Window != b.Window || a.Joined != b.Joined || a.Again == b.Again {
				t.Errorf("one ticket, two answers: %+v and %+v", a, b)
			}
		})
	}
	all.Wait()
	for _, r := range rooms {
		eventually(t, "the node knows all arrivals", func() bool { return r.Snapshot().Counts.Arrivals == visitors })
		if report := auditRoom(t, r); report.Arrivals != visitors {
			t.Errorf("%d arrivals of %d", report.Arrivals, visitors)
		}
	}
}

// TestTwoNodesLife runs a whole room on two nodes, both of which try to freeze, call and skip, and claims
// every ticket through both at once.
func TestTwoNodesLife(t *testing.T) {
	t.Parallel()
	nodes := twoNodes(t)
	opens := time.Now() // it closes when even a busy machine has created it
	rooms := share(t, nodes, Config{
		Slug: "life", Closes: at(opens.Add(10 * time.Second)), Windows: []WindowRule{{Length: Duration(200 * time.Millisecond)}},
		Outflow: Outflow{PerMinute: 6000}, Claim: span(1500 * time.Millisecond),
	})
	var all sync.WaitGroup
	var joined, admitted atomic.Uint64
	for i, began := 0, time.Now(); time.Since(began) < 1800*time.Millisecond; i++ {
		v, r, claims := newVisitor(rooms[0]), rooms[i%2], i%3 != 0
		time.Sleep(10 * time.Millisecond)
		all.Go(func() {
			if _, err := r.Join(t.Context(), v.ticket); errors.Is(err, ErrClosed) {
				return
			} else if err != nil {
				t.Error(err)
				return
			}
			joined.Add(1)
			if claims && claimTwice(t, rooms, v) {
				admitted.Add(1)
			}
		})
	}
	all.Wait()
	for _, r := range rooms {
		eventually(t, "the room ends by itself", func() bool { return r.Snapshot().Ended })
		auditRoom(t, r)
		if c := r.Snapshot().Counts; c.Arrivals != joined.Load() || c.Admitted != admitted.Load() || c.Admitted+c.NoShows != c.Arrivals || c.Called != c.Arrivals {
			t.Errorf("counts %+v, want %d arrivals and %d admissions", c, joined.Load(), admitted.Load())
		}
	}
}

// claimTwice claims a ticket through both nodes at once, until it is called: both return the same pass. It
// returns false if the claim time is over.
func claimTwice(t *testing.T, rooms [2]*Room, v visitor) bool {
	var passes [2]session.Pass
	var errs [2]error
	for {
		var both sync.WaitGroup
		for n, r := range rooms {
			both.Go(func() { passes[n], errs[n] = r.Claim(t.Context(), v.ticket, v.secret) })
		}
		both.Wait()
		for n, r := range rooms {
			if errors.Is(errs[n], ErrNotCalled) || errors.Is(errs[n], ErrTicketUnknown) { // it may not know of the call yet
				passes[n], errs[n] = waitClaim(t, r, v)
			}
		}
		if errors.Is(errs[0], ErrExpired) && errors.Is(errs[1], ErrExpired) {
			return false
		}
		if errors.Is(errs[0], ErrBusy) || errors.Is(errs[1], ErrBusy) {
			continue
		}
		if errs[0] != nil || errs[1] != nil || passes[0] != passes[1] {
			t.Errorf("one ticket, two claims: %v and %v, the same pass: %t", errs[0], errs[1], passes[0] == passes[1])
		}
		return true
	}
}

// waitClaim claims as soon as the ticket is called.
func waitClaim(t *testing.T, r *Room, v visitor) (session.Pass, error) {
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		p, err := r.Claim(t.Context(), v.ticket, v.secret)
		if !errors.Is(err, ErrNotCalled) && !errors.Is(err, ErrTicketUnknown) && !errors.Is(err, ErrBusy) || time.Now().After(end) {
			return p, err
		}
	}
}

// TestCreateTogether creates one room on two nodes at once, while clients keep requesting it: one creation
// succeeds, and its room is kept.
func TestCreateTogether(t *testing.T) {
	t.Parallel()
	nodes := twoNodes(t)
	for _, slug := range []string{"a", "b", "c"} {
		var all sync.WaitGroup
		var made atomic.Int32
		done := make(chan struct{})
		for _, rs := range nodes {
			all.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if _, err := rs.Get(t.Context(), slug); err != nil && !errors.Is(err, ErrNotFound) {
						t.Error(err)
					}
				}
			})
		}
		var makers sync.WaitGroup
		for i := range 6 {
			makers.Go(func() {
				r, err := nodes[i%2].Create(t.Context(), Config{Slug: slug})
				switch {
				case err == nil:
					made.Add(1)
					if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
						t.Error(err)
					}
				case !errors.Is(err, ErrExists):
					t.Errorf("create: %v, want ErrExists", err)
				}
			})
		}
		makers.Wait()
		close(done)
		all.Wait()
		if made.Load() != 1 {
			t.Errorf("room %s was made %d times", slug, made.Load())
		}
		auditRoom(t, get(t, nodes[0], slug))
		auditRoom(t, get(t, nodes[1], slug))
	}
}

// TestCreateWhileAsked creates a room that a client requested too early, while that request is still pending.
func TestCreateWhileAsked(t *testing.T) {
	t.Parallel()
	rs := node(t, pgtest.URL(t), newMaster(t))
	answer := make(chan struct{})
	defer close(answer)
	early := rs.group.DoChan("late", func() (any, error) { <-answer; return nil, ErrNotFound })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := rs.Create(ctx, Config{Slug: "late"}); err != nil {
		t.Errorf("create: %v", err)
	}
	if len(early) != 0 {
		t.Error("the early question was answered")
	}
}

// TestTitleOnOtherNode changes settings that are not in the transcript.
func TestTitleOnOtherNode(t *testing.T) {
	t.Parallel()
	rooms := share(t, twoNodes(t), Config{Slug: "title"})
	title := "Winter sale"
	if err := rooms[0].Amend(t.Context(), Amendment{Title: &title, Message: said("Soon")}); err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms {
		eventually(t, "both nodes show title and message", func() bool {
			s := r.Snapshot()
			return s.Title == title && says(r, "Soon") && r.Config().Title == title
		})
	}
}

// TestOneSequencer checks that a node has one room per slug, however many clients request it.
func TestOneSequencer(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	create(t, node(t, url, master), Config{Slug: "one"})
	other := node(t, url, master)
	var all sync.WaitGroup
	var rooms sync.Map
	for range 50 {
		all.Go(func() {
			r, err := other.Get(t.Context(), "one")
			if err != nil {
				t.Error(err)
			}
			rooms.Store(r, true)
			other.group.Forget("one")
		})
	}
	all.Wait()
	n := 0
	rooms.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d rooms for one slug", n)
	}
}
