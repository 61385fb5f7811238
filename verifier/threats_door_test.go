package verifier_test

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// doorRoom is an open room with methods in which ticket 0 is a member, account 1, and ticket 1 has done work.
func doorRoom(t *testing.T) (*roomtest.Keys, *roomtest.Room, roomtest.Issuers) {
	t.Helper()
	keys := newKeys(t, origin, "honest")
	policy, issuers := keys.Door()
	room := roomtest.Open(keys, policy)
	room.WorkRound()
	room.JoinShowing(room.State().Now(), "members", issuers, 1, "club")
	room.JoinShowing(room.State().Now(), fairness.General, issuers, 0, "task")
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	return keys, room, issuers
}

// arrives writes an arrival that the rules may not allow, and wants a check to fail.
func arrives(t *testing.T, keys *roomtest.Keys, room *roomtest.Room, lane fairness.Lane, check string,
	show func(s credential.Subject) []credential.Credential) {
	t.Helper()
	ticket := roomtest.Ticket(origin, 77)
	e, _ := room.State().NextArrive(room.State().Now(), ticket, lane)
	e.Credentials = show(room.State().Subject(lane, ticket))
	caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, &e)), check)
}

func secondNullifier(t *testing.T) {
	keys, room, issuers := doorRoom(t)
	again := func(s credential.Subject) []credential.Credential { return issuers.Show(s, 1, "club") }
	arrives(t, keys, room, "members", "nullifier", again)
	room.Skip(room.State().Now(), roomtest.Ticket(origin, 0), fairness.Left)
	arrives(t, keys, room, "members", "nullifier", again)
}

func foreignIssuer(t *testing.T) {
	keys, room, _ := doorRoom(t)
	for _, foreign := range []*issuertest.Issuer{issuertest.Signed("fans", 0), issuertest.Blind("fans", 0)} {
		foreign.Method.Name = "club"
		arrives(t, keys, room, "members", "credential", func(s credential.Subject) []credential.Credential {
			return []credential.Credential{foreign.Show(s, 2)}
		})
	}
}

func borrowedCredential(t *testing.T) {
	keys, room, issuers := doorRoom(t)
	for _, change := range []func(s *credential.Subject){
		func(s *credential.Subject) { s.Room[0] ^= 1 },
		func(s *credential.Subject) { s.Lane = string(fairness.General) },
		func(s *credential.Subject) { s.Ticket = roomtest.Ticket(origin, 78) },
	} {
		arrives(t, keys, room, "members", "credential", func(s credential.Subject) []credential.Credential {
			change(&s)
			return issuers.Show(s, 2, "club")
		})
	}
	arrives(t, keys, room, "members", "credential", func(s credential.Subject) []credential.Credential {
		list := issuers.Show(s, 2, "phone") // of another method
		list[0].Method = "club"
		return list
	})
}

func twoSpellings(t *testing.T) {
	keys, room, issuers := doorRoom(t)
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	arrives(t, keys, room, "members", "credential", func(s credential.Subject) []credential.Credential {
		list := issuers.Show(s, 2, "club")
		scalar := slices.Clone(list[0].Evidence[32:])
		slices.Reverse(scalar)
		scalar = new(big.Int).Add(new(big.Int).SetBytes(scalar), order).FillBytes(make([]byte, 32)) // S + L
		slices.Reverse(scalar)
		copy(list[0].Evidence[32:], scalar)
		return list
	})
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindArrive, 0)
	caught(t, keys, tr.set(i, 8, strings.ToUpper(tr.field(i, 8))), "form")
}

func lateMerit(t *testing.T) {
	keys, room, issuers := doorRoom(t)
	ticket := roomtest.Ticket(origin, 1)
	merit := func() []byte {
		c := issuers.Show(room.State().Subject(fairness.General, ticket), 2, "club")[0]
		e, _ := fairness.DoorOf(room.State()).NextMerit(roomtest.Opens, ticket, c)
		e.Time = room.State().Now()
		return fairness.AppendEntry(nil, &e)
	}
	if r := auditOf(t, publish(t, keys, append(slices.Clone(room.Entries()), merit())), verifier.Trust{}); !r.OK {
		t.Errorf("in time: %+v", r)
	}
	room.Settle(roomtest.Opens + 60_000)
	caught(t, keys, append(slices.Clone(room.Entries()), merit()), "merit")
}

func overLimit(t *testing.T) {
	keys, room, issuers := doorRoom(t)
	for account := range 11 {
		room.JoinShowing(room.State().Now(), "members", issuers, 2+account, "club")
	}
	arrives(t, keys, room, "members", "nullifier", func(s credential.Subject) []credential.Credential {
		return issuers.Show(s, 99, "club")
	})
}

func pastTheDoor(t *testing.T) {
	keys, room, issuers := doorRoom(t)
	for _, methods := range [][]string{{}, {"task"}, {"phone"}} {
		arrives(t, keys, room, "members", "credential", func(s credential.Subject) []credential.Credential {
			return issuers.Show(s, 2, methods...)
		})
	}
}

func workInAdvance(t *testing.T) {
	keys, room, issuers := doorRoom(t)
	arrives(t, keys, room, fairness.General, "credential", func(s credential.Subject) []credential.Credential {
		s.Round = nil
		return issuers.Show(s, 0, "task")
	})
	tr := transcript(room.Entries())
	beat := slices.IndexFunc(tr, func(text []byte) bool { return bytes.HasPrefix(text, []byte("beat ")) })
	caught(t, keys, tr.drop(beat), "credential")
	caught(t, keys, tr.set(beat, 1, fmt.Sprint(roomtest.Opens)), "beacon")
}

// TestDoorOfManyArrivals: credentials are verified ahead of the replay, in several groups, and each counts.
func TestDoorOfManyArrivals(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	policy, issuers := keys.Door()
	policy.Methods[1].Limit = 0
	issuers.Club.Method.Limit = 0
	room := roomtest.Open(keys, policy)
	room.WorkRound()
	const members = 3000
	for account := range members {
		room.JoinShowing(room.State().Now(), "members", issuers, account, "club")
	}
	last := room.JoinShowing(room.State().Now(), fairness.General, issuers, 0, "task", "phone")
	shown := issuers.Show(room.State().Subject(fairness.General, last), members, "club")[0]
	merit, _ := fairness.DoorOf(room.State()).NextMerit(room.State().Now(), last, shown)
	room.Append(&merit)
	files, err := room.Publish()
	if err != nil {
		t.Fatal(err)
	}
	r := auditOf(t, files, verifier.Trust{})
	if !r.OK || r.Methods[0].Shown != 1 || r.Methods[1].Shown != members+1 || r.Methods[2].Shown != 1 {
		t.Errorf("%+v", r)
	}
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindArrive, members/2)
	caught(t, keys, tr.set(i, 8, flipped(tr.field(i, 8))), "credential")
}
