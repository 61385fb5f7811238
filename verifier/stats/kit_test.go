package stats

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

const origin = "queue.example.com/r/sale"

// arrange changes the order that the shuffle gave to a window. Tickets are those of the window, by seq.
type arrange func(w int, tickets []fairness.Ticket, order []uint32) []uint32

func fair(_ int, _ []fairness.Ticket, order []uint32) []uint32 { return order }

// room is a simulated room with windows of ten seconds, real shuffles, and entries without proofs.
type room struct {
	name   string // another name gives other seeds
	sizes  []int  // arrivals of each window
	cheat  arrange
	lists  Lists
	policy fairness.Policy
}

func newRoom(name string, windows, arrivals int, cheat arrange) room {
	return room{name: name, sizes: slices.Repeat([]int{arrivals}, windows), cheat: cheat, policy: policy}
}

var policy = func() fairness.Policy {
	keys, err := roomtest.NewKeys(origin, "honest")
	if err != nil {
		panic(err)
	}
	p := keys.Policy()
	p.Closes = fairness.Never
	p.Windows = []fairness.WindowRule{{From: p.Opens, Length: 10_000}}
	return p
}()

// ticket returns a ticket without a secret.
func (r room) ticket(w, seq int) fairness.Ticket {
	return roomtest.Ticket(r.name, uint64(w)<<32|uint64(seq))
}

// seed returns the seed of a window, for a given try.
func (r room) seed(w, try int) fairness.Seed {
	return sha256.Sum256(fmt.Appendf(nil, "%s window %d try %d", r.name, w, try))
}

// play yields the entries of the room.
func (r room) play(yield func(fairness.Entry)) {
	yield(&fairness.Room{Policy: r.policy})
	next := fairness.Position(1)
	for w, n := range r.sizes {
		if n == 0 {
			continue
		}
		from := r.policy.Opens + fairness.Time(w)*10_000
		var tickets []fairness.Ticket
		for seq := range n {
			tickets = append(tickets, r.ticket(w, seq))
			yield(&fairness.Arrive{Time: from + fairness.Time(seq*10_000/n), Window: fairness.WindowIndex(w), Seq: uint32(seq), Ticket: tickets[seq], Lane: fairness.General})
		}
		yield(&fairness.Freeze{Time: from + 10_000, Window: fairness.WindowIndex(w), Lots: []uint32{uint32(n)}})
		seed := r.seed(w, 0)
		yield(&fairness.Draw{Time: from + 10_000, Window: fairness.WindowIndex(w), Seed: seed})
		for _, seq := range r.cheat(w, tickets, fairness.Shuffle(seed, fairness.General, uint32(n))) {
			yield(&fairness.Assign{Window: fairness.WindowIndex(w), Lane: fairness.General, Position: next, Ticket: tickets[seq]})
			next++
		}
	}
}

func (r room) result(t testing.TB) *Result {
	t.Helper()
	c := New(r.lists)
	r.play(func(e fairness.Entry) {
		if err := c.Add(e); err != nil {
			t.Fatal(err)
		}
	})
	result, err := c.Result()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (r *Result) test(t testing.TB, id string) Test {
	t.Helper()
	i := slices.IndexFunc(r.Tests, func(test Test) bool { return test.ID == id })
	if i < 0 {
		t.Fatalf("there is no test %q", id)
	}
	return r.Tests[i]
}

// unusual returns the ids of the unusual tests.
func (r *Result) unusual() (ids []string) {
	for _, test := range r.Tests {
		if test.Unusual {
			ids = append(ids, test.ID)
		}
	}
	return ids
}
