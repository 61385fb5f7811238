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

func restoredTwice(t *testing.T) {
	keys, room, at := turnsRoom(t)
	friend := room.At(6)
	room.Skip(at, friend, fairness.Revoked)
	room.Append(&fairness.Restore{Time: at, Ticket: friend})
	caught(t, keys, with(room, &fairness.Restore{Time: at, Ticket: friend}), "restore")
	room.Skip(at, friend, fairness.Revoked)
	caught(t, keys, with(room, &fairness.Restore{Time: at, Ticket: friend}), "restore")
	other := room.At(7)
	room.Skip(at, other, fairness.Left)
	caught(t, keys, with(room, &fairness.Restore{Time: at, Ticket: other}), "restore")
}

// restoredFriends: friends are revoked for show. One had been called, one waits, and one was passed meanwhile.
func restoredFriends(t *testing.T) {
	keys, room, at := turnsRoom(t)
	was, waits, passed := room.At(1), room.At(8), room.At(5)
	for _, friend := range []fairness.Ticket{was, waits} {
		room.Skip(at, friend, fairness.Revoked)
	}
	room.Skip(at, passed, fairness.RevokedFraud)
	at += 1000
	e, _ := room.State().NextCall(at, 1)
	if e == nil {
		t.Fatal("the sixth visitor is not called")
	}
	room.Append(e)
	restore := func(at fairness.Time, friend fairness.Ticket) *fairness.Restore {
		return &fairness.Restore{Time: at, Ticket: friend}
	}
	paused := append(with(room, &fairness.Amend{Time: at, Change: fairness.ChangePause}), fairness.AppendEntry(nil, restore(at, passed)))
	caught(t, keys, paused, "restore")
	room.Append(&fairness.Amend{Time: at, Change: fairness.ChangeOutflow, Outflow: fairness.Outflow{PerMinute: 1}}) // leaves credit for one call
	room.Append(restore(at, passed))
	caught(t, keys, with(room, restore(at, was)), "outflow")
	room.Append(&fairness.Beat{Time: at + 20_000})
	room.Append(&fairness.Beat{Time: at + 40_000})
	room.Append(&fairness.Amend{Time: at + 40_000, Change: fairness.ChangeOutflow, Outflow: fairness.Outflow{PerMinute: 600}})
	room.Append(restore(at+41_000, waits))
	room.Append(restore(at+41_000, was))
	room.Append(&fairness.Beat{Time: at + 61_000})
	room.Append(&fairness.Beat{Time: at + 81_000})
	late := &fairness.Admit{Time: at + 101_000, Ticket: was, Pass: fairness.NewPassID(origin, was)} // the 60 s began before it was revoked
	caught(t, keys, with(room, late), "admission")
	if room.State().Counts().Waiting != 6 {
		t.Errorf("%+v", room.State().Counts())
	}
	list := found(t, keys, room)
	wantFound(t, list, findings.Restored, 3, 0, "3 tickets got back a place", "2 were called at once",
		"got its place back, 1 s after it was revoked for fraud. Its turn had come, so it was called at once.", "got its place back, 42 s after it was revoked without a reason.", "They had been revoked without a reason (2), for fraud (1).")
}
