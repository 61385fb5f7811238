package verifier_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// laned returns a room with three lanes, one of which is empty in the first window.
func laned(t testing.TB) (*roomtest.Keys, *roomtest.Room) {
	t.Helper()
	keys := newKeys(t, origin, "honest")
	policy := keys.Policy()
	policy.Lanes = []fairness.LaneRule{{Name: "members", Weight: 3}, {Name: "general", Weight: 7}, {Name: "hall", Weight: 1}}
	r := roomtest.Open(keys, policy)
	at := func(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }
	r.JoinLane(at(1), "general", 6)
	r.JoinLane(at(2), "members", 5)
	r.JoinLane(at(3), "general", 9)
	r.Settle(at(60))
	r.Call(at(60), 1, 0, 0)
	r.Call(at(61), 3, 5, 0)
	r.Admit(at(61), r.At(1))
	r.Skip(at(62), r.At(4), fairness.Left)
	r.JoinLane(at(63), "hall", 3)
	r.JoinLane(at(64), "members", 1)
	r.Settle(at(70))
	r.Call(at(71), 5, 9, 1)
	r.Call(at(73), 6, 15, 3)
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return keys, r
}

// laneOverShare: two members are called where the shares give a turn to everybody else.
func laneOverShare(t *testing.T) {
	keys, room := laned(t)
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindCall, 1)
	caught(t, keys, tr.replace(i, fmt.Sprintf("call %s 4 4 0", tr.field(i, 1))), "call")
	caught(t, keys, tr.replace(i, fmt.Sprintf("call %s 4 0 0", tr.field(i, 1))), "call")
}

// laneThatSaved: the lane that was empty until then is called for all the turns it did not use.
func laneThatSaved(t *testing.T) {
	keys, room := laned(t)
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindCall, 2)
	caught(t, keys, tr.replace(i, fmt.Sprintf("call %s 3 5 3", tr.field(i, 1))), "call")
}

// beyondTheSeats: five seats are called where four are left.
func beyondTheSeats(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	policy := keys.Policy()
	policy.Party, policy.Seats = 3, 4
	room := roomtest.Open(keys, policy)
	room.Join(roomtest.Opens, 5)
	room.Settle(roomtest.Opens + 60_000)
	call := &fairness.Call{Time: roomtest.Opens + 70_000, UpTo: []fairness.Position{5}}
	caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, call)), "seats")
}

// partyTooLarge: a friend joins for more seats than the policy allows.
func partyTooLarge(t *testing.T) {
	keys, room := small(t)
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindArrive, 0)
	caught(t, keys, tr.replace(i, string(tr[i])+" 2"), "arrival")
}

// partyThatBlocks: an operator passes over a party that is not too large, or lets one that is too large hold up the line for ever.
func partyThatBlocks(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	policy := keys.Policy()
	policy.Party, policy.Seats = 3, 2
	room := roomtest.Open(keys, policy)
	e, _ := room.State().NextArrive(roomtest.Opens, roomtest.Ticket(origin, 0), fairness.General)
	e.Seats = 3
	room.Append(&e)
	room.Settle(roomtest.Opens + 60_000)
	e, _ = room.State().NextArrive(roomtest.Opens+60_000, roomtest.Ticket(origin, 1), fairness.General)
	room.Append(&e)
	room.Settle(roomtest.Opens + 70_000)
	now := roomtest.Opens + 71_000
	for _, ticket := range []uint64{1} { // it fits
		skip := &fairness.Skip{Time: now, Ticket: roomtest.Ticket(origin, ticket), Reason: fairness.TooLarge}
		caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, skip)), "skip")
	}
	room.Skip(now, roomtest.Ticket(origin, 0), fairness.TooLarge)
	room.Call(now, 2)
	if room.Err() != nil {
		t.Fatal(room.Err())
	}
	if r := auditOf(t, publish(t, keys, room.Entries()), knowing(keys)); !r.OK {
		t.Errorf("%+v", r)
	}
}

// lanedRooms are the room with lanes, cut after each entry, and some mechanical changes of it.
func lanedRooms(t *testing.T) (rooms []published) {
	keys, room := laned(t)
	honest := transcript(room.Entries())
	trust := verifier.Trust{VKey: keys.VKey}
	for n := range honest {
		rooms = append(rooms, published{fmt.Sprintf("%d entries of a room with lanes", n+1), publish(t, keys, honest[:n+1]), trust})
	}
	_, other := small(t)
	change, n := mutations(transcript(other.Entries())), 0
	for i := range honest {
		for _, m := range change {
			if n++; n%15 == 0 {
				name := fmt.Sprintf("%s: entry %d of a room with lanes, %s", m.name, i, honest.field(i, 0))
				rooms = append(rooms, published{name, publish(t, keys, m.make(honest, i)), trust})
			}
		}
	}
	return rooms
}

func TestLanedRoomIsVerified(t *testing.T) {
	keys, room := laned(t)
	r := auditOf(t, publish(t, keys, room.Entries()), verifier.Trust{VKey: keys.VKey})
	if !r.OK || r.Arrivals != 24 || r.Assignments != 24 {
		t.Errorf("%+v", r)
	}
	if counts := room.State().LaneCounts(); counts[2].Called != 3 || counts[0].Ready != 0 || slices.ContainsFunc(counts, func(n fairness.Counts) bool { return n.Assigned != n.Drawn }) {
		t.Errorf("counts %+v", counts)
	}
}
