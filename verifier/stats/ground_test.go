package stats

import (
	"crypto/sha256"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// operator runs a room without a beacon, knows each draw in advance, and tries out messages to visitors until
// its friends are in front.
type operator struct {
	*roomtest.Room
	keys *roomtest.Keys
	hash [fairness.HashSize]byte // of the room entry
	tree audit.Tree              // of all entries
}

// message returns an inconspicuous amendment.
func message(at fairness.Time, try int) *fairness.Amend {
	return &fairness.Amend{Time: at, Change: fairness.ChangeMessage, Message: sha256.Sum256(fmt.Appendf(nil, "doors open soon %d", try))}
}

// foresee returns the order that a message would lead to.
func (o *operator) foresee(w fairness.Window, lots int, m *fairness.Amend) []uint32 {
	for _, e := range o.Entries()[o.tree.Size():] {
		o.tree.Append(audit.LeafHash(e))
	}
	tree := o.tree.Clone()
	tree.Append(audit.LeafHash(fairness.AppendEntry(nil, m)))
	alpha := fairness.Alpha(o.hash, &fairness.Freeze{Window: w.Index, Lots: []uint32{uint32(lots)}, Size: tree.Size(), Root: tree.Root()})
	_, beta := o.keys.VRF.Prove(alpha)
	return fairness.Shuffle(fairness.NewSeed(alpha, beta, 0, nil), fairness.General, uint32(lots))
}

// grind closes a window with the best of several tries for every tenth arrival.
func (o *operator) grind(t *testing.T, w fairness.Window, lots, tries int) {
	best, least := 0, math.MaxInt
	var foreseen []uint32
	for try := range tries {
		order, sum := o.foresee(w, lots, message(w.To-1, try)), 0
		for place, seq := range order {
			if seq%10 == 0 {
				sum += place
			}
		}
		if sum < least {
			best, least, foreseen = try, sum, order
		}
	}
	o.Append(message(w.To-1, best))
	first := fairness.Position(o.State().Counts().Drawn)
	o.Settle(w.To)
	for _, p := range []int{0, lots - 1} {
		if got, want := o.At(first+1+fairness.Position(p)), roomtest.Ticket(origin, uint64(first)+uint64(foreseen[p])); o.Err() != nil || got != want {
			t.Fatalf("place %d of window %d went to %v, foreseen was %v; %v", p, w.Index, got, want, o.Err())
		}
	}
}

// An operator without a beacon who tries out draws for friends passes the audit, at level 1. The statistics
// detect it with a list.
func TestGroundRoomPassesItsAuditAndIsFound(t *testing.T) {
	const windows, arrivals, tries = 8, 60, 60
	keys, err := roomtest.NewKeys(origin, "greedy")
	if err != nil {
		t.Fatal(err)
	}
	policy := keys.Policy()
	policy.Windows = []fairness.WindowRule{{From: policy.Opens, Length: 10_000}}
	play := func(tries int) (roomtest.Files, [][]byte, []fairness.Ticket) {
		var friends []fairness.Ticket
		o := &operator{Room: roomtest.Open(keys, policy), keys: keys}
		o.hash = sha256.Sum256(o.Entries()[0])
		for w := range windows {
			from := policy.Opens + fairness.Time(w)*10_000
			for i, ticket := range o.Join(from, arrivals) {
				if i%10 == 0 {
					friends = append(friends, ticket)
				}
			}
			o.grind(t, fairness.Window{Index: fairness.WindowIndex(w), From: from, To: from + 10_000}, arrivals, tries)
		}
		files, err := o.Publish()
		if err != nil {
			t.Fatal(err)
		}
		return files, o.Entries(), friends
	}

	files, entries, friends := play(tries)
	report, err := verifier.Audit(t.Context(), files, verifier.Trust{VKey: keys.VKey})
	if err != nil || !report.OK || report.Level != verifier.LevelConsistent {
		t.Fatalf("%+v, %v", report, err)
	}
	r := collect(t, Lists{Group: friends}, entries)
	if diff := cmp.Diff([]string{testGroup}, r.unusual()); diff != "" || r.Verdict != Unusual {
		t.Errorf("verdict %q, unusual (-want +got):\n%s", r.Verdict, diff)
	}
	if r.Room.Amends != windows {
		t.Errorf("%d amendments, and each window had one", r.Room.Amends)
	}
	if r := collect(t, Lists{}, entries); r.Verdict != Usual {
		t.Errorf("without a list: %q by %v", r.Verdict, r.unusual())
	}
	_, entries, friends = play(1)
	if r := collect(t, Lists{Group: friends}, entries); r.Verdict != Usual {
		t.Errorf("with one draw each: %q by %v", r.Verdict, r.unusual())
	}
}
