package verifier_test

import (
	"slices"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier/findings"
)

// This file plays attacks on the turns of called visitors.

// turnsRoom is a room in which the first four of eight visitors are called at a time.
func turnsRoom(t *testing.T) (keys *roomtest.Keys, room *roomtest.Room, at fairness.Time) {
	t.Helper()
	keys = newKeys(t, origin, "honest")
	policy := patient(keys)
	policy.Extend = 30_000
	room = roomtest.Open(keys, policy)
	room.Join(after(0), 8)
	room.Settle(after(60_000))
	at = max(room.State().Now(), policy.Starts) + 1000
	for room.State().Counts().Called < 4 {
		e, _ := room.State().NextCall(at, 4-room.State().Counts().Called)
		if e == nil {
			at += 1000
			continue
		}
		room.Append(e)
	}
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	return keys, room, at
}

// with returns the entries of a room with one more.
func with(room *roomtest.Room, e fairness.Entry) [][]byte {
	return append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, e))
}

func extendedTwice(t *testing.T) {
	keys, room, at := turnsRoom(t)
	first, second := room.At(1), room.At(2)
	room.Append(&fairness.Extend{Time: at, Ticket: first})
	caught(t, keys, with(room, &fairness.Extend{Time: at + 1000, Ticket: first}), "extend")
	caught(t, keys, with(room, &fairness.Extend{Time: at, Ticket: room.At(5)}), "extend") // not called
	room.Append(&fairness.Beat{Time: at + 30_000})
	room.Append(&fairness.Beat{Time: at + 60_000})
	caught(t, keys, with(room, &fairness.Extend{Time: at + 60_000, Ticket: second}), "extend") // too late
	room.Append(&fairness.Admit{Time: at + 80_000, Ticket: first, Pass: fairness.NewPassID(origin, first)})
	caught(t, keys, with(room, &fairness.Extend{Time: at + 80_000, Ticket: first}), "extend")
	wantFound(t, found(t, keys, room), findings.Extended, 1, 0, "1 called ticket was given more time", "A ticket of window 0 was given 30 s more to go in.")
}
