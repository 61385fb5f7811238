package verifier_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/evidence"
	"github.com/proofline/proofline/verifier/findings"
)

// This file plays actions that the rules allow: no check fails, and the report lists them with their number
// and duration.

// found audits a valid room, and returns its findings.
func found(t *testing.T, keys *roomtest.Keys, room *roomtest.Room) []findings.Finding {
	t.Helper()
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	var finder findings.Finder
	trust := knowing(keys)
	trust.OnEntry = finder.Add
	if r := auditOf(t, publish(t, keys, room.Entries()), trust); !r.OK {
		t.Fatalf("%+v", r.Checks)
	}
	return finder.Findings()
}

// wantFound expects a finding with a number of cases of a given length, and sentences in its text or its
// cases.
func wantFound(t *testing.T, list []findings.Finding, id findings.ID, count uint64, longest fairness.Millis, sentences ...string) {
	t.Helper()
	f := findings.Of(list, id)
	if f == nil {
		t.Fatalf("no finding %s in %+v", id, list)
	}
	text := f.Title + "\n" + f.Text
	for _, item := range f.Items {
		text += "\n" + item.Text
	}
	if f.Count != count || f.Longest != longest {
		t.Errorf("%s: %d cases, longest %d ms, want %d and %d ms", id, f.Count, f.Longest, count, longest)
	}
	for _, sentence := range sentences {
		if !strings.Contains(text, sentence) {
			t.Errorf("%s lacks %q:\n%s", id, sentence, text)
		}
	}
}

// patient is a policy without findings.
func patient(keys *roomtest.Keys) fairness.Policy {
	p := keys.Witnessed()
	p.Claim = 60_000
	return p
}

// after returns a time of a room, in milliseconds after its opening.
func after(ms fairness.Time) fairness.Time { return roomtest.Opens + ms }

// TestNothingFound: a well-run room has no findings.
func TestNothingFound(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Join(after(0), 5)
	room.Settle(after(60_000))
	room.Call(room.State().Now(), 1)
	room.Admit(room.State().Now(), room.At(1))
	room.Skip(room.State().Now(), room.At(2), fairness.Left) // after the draw
	room.End(after(200_000))
	if list := found(t, keys, room); len(list) > 0 {
		t.Errorf("%+v", list)
	}
}

func quietAmendments(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Append(&fairness.Amend{Time: after(1000), Change: fairness.ChangeOutflow, Outflow: fairness.Outflow{PerMinute: 30, MaxActive: 7}})
	room.Append(&fairness.Amend{Time: after(2000), Change: fairness.ChangePause})
	room.Append(&fairness.Amend{Time: after(5000), Change: fairness.ChangePause, Claims: true})
	room.Append(&fairness.Amend{Time: after(9000), Change: fairness.ChangeResume})
	room.Append(&fairness.Amend{Time: after(9000), Change: fairness.ChangeMessage, Message: [32]byte{1}})
	room.Append(&fairness.Amend{Time: after(9000), Change: fairness.ChangeWindows, Closes: fairness.Never})
	room.Append(&fairness.Amend{Time: after(10_000), Change: fairness.ChangePause})
	room.End(after(70_000))
	list := found(t, keys, room)
	wantFound(t, list, findings.Amendments, 7, 0,
		"7 changes of the published rules: 1 change of the pace, 1 change of the schedule, 2 pauses, 1 freeze of claims, 1 resumption, 1 message.",
		"Visitors were called more slowly: at most 30 a minute instead of 600; at the site at once: at most 7 instead of any number.",
		"No visitors were called; called visitors could go in, for 3 s. Called visitors lost no time to claim.",
		"No visitors were called, and called visitors could not go in, for 4 s. Called visitors lost no time to claim.",
		"Visitors could join for longer: without an end instead of until ",
		"No visitors were called; called visitors could go in, for 1 min up to the end of the room.")
	if item := list[0].Items[2]; item.Kind != "freeze-claims" || item.Time != after(5000) || item.Entry != 3 {
		t.Errorf("%+v", item)
	}
}

// frozenClaims: while claims are frozen, an operator admits only a friend.
func frozenClaims(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Join(after(0), 2)
	room.Settle(after(60_000))
	room.Call(after(80_000), 2)
	room.Append(&fairness.Amend{Time: after(81_000), Change: fairness.ChangePause, Claims: true})
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	friend := room.At(2)
	admit := &fairness.Admit{Time: after(82_000), Ticket: friend, Pass: fairness.NewPassID(origin, friend)}
	caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, admit)), "admission")
}

func goneBeforeDraw(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	tickets := room.Join(after(0), 6)
	room.Freeze(after(60_000))
	due := room.State().Pending()[0].Due
	room.Skip(due-1, tickets[0], fairness.Left) // the outcome is still unknown
	room.Skip(due, tickets[1], fairness.Left)
	room.Append(&fairness.Amend{Time: due + 1500, Change: fairness.ChangePause})
	room.Join(due+1600, 2)
	room.Draw(due + 2000)
	room.Skip(due+3000, tickets[3], fairness.Left)
	wantFound(t, found(t, keys, room), findings.Between, 2, 0,
		"2 entries were written after the operator could know the outcome of a draw and before it was published: 1 ticket that left, 1 change by the operator; and 2 other entries",
		"A ticket of window 0 left, 0 ms after the outcome of window 0", "A change by the operator (pause), 1.5 s after the outcome of window 0")

	without := roomtest.Open(keys, keys.Policy()) // known from the freeze on
	tickets = without.Join(after(0), 2)
	without.Freeze(after(60_000))
	without.Skip(after(60_001), tickets[0], fairness.Left)
	wantFound(t, found(t, keys, without), findings.Between, 1, 0, "1 entry was written after", "1 ticket that left. None of it")
}

// revokedBeforeDraw revokes a ticket between the freeze of its window and the draw.
func revokedBeforeDraw(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	ticket := room.Join(after(0), 6)[3]
	room.Freeze(after(60_000))
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	revoked := &fairness.Skip{Time: room.State().Pending()[0].Due, Ticket: ticket, Reason: fairness.RevokedBot}
	caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, revoked)), "skip")
}

// ownWindow opens a window of a moment for a friend, less than the notice before it begins.
func ownWindow(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	policy := patient(keys)
	policy.Notice = 30_000
	room := roomtest.Open(keys, policy)
	room.Join(after(0), 3)
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	open := func(at fairness.Time) [][]byte {
		e := &fairness.Amend{Time: at, Change: fairness.ChangeWindows, Closes: fairness.Never,
			Windows: []fairness.WindowRule{{From: after(60_000), Length: 100}, {From: after(60_100), Length: 10_000}}}
		return append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, e))
	}
	if r := auditOf(t, publish(t, keys, open(after(30_000))), knowing(keys)); !r.OK {
		t.Errorf("with enough notice: %+v", r.Checks)
	}
	caught(t, keys, open(after(30_001)), "amend")
	caught(t, keys, open(after(59_999)), "amend")
}

// writtenBeforeFreeze writes other entries at the end of a window than its freeze.
func writtenBeforeFreeze(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Join(after(0), 3)
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	later, _ := room.State().NextArrive(after(60_000), roomtest.Ticket(origin, 99), fairness.General)
	for _, e := range []fairness.Entry{&later, &fairness.Amend{Time: after(61_000), Change: fairness.ChangeMessage}} {
		caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, e)), "freeze")
	}
}

func lateDraw(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Join(after(0), 3)
	room.Freeze(after(60_000))
	room.Join(after(60_000), 4)
	first := room.State().Pending()[0].Due
	room.Freeze(after(70_000))
	room.Draw(first + 10_000) // not late
	room.Draw(room.State().Pending()[0].Due + 95_000)
	wantFound(t, found(t, keys, room), findings.LateDraw, 1, 95_000, "1 draw came more than 10 s after the outcome could be known, the longest 1 min 35 s", "Window 1, 4 people")
}

func lateFreeze(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Join(after(0), 3)
	room.Freeze(after(62_000)) // two seconds are not late
	room.Join(after(63_000), 4)
	room.Draw(room.State().Pending()[0].Due)
	room.Freeze(after(150_000))
	room.Draw(room.State().Pending()[0].Due)
	wantFound(t, found(t, keys, room), findings.LateFreeze, 1, 80_000, "1 group was closed more than 2 s after its end, the longest 1 min 20 s", "Window 1 was closed 1 min 20 s after")
}

// lostInOutage takes the server down for longer than the time to claim.
func lostInOutage(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	policy := patient(keys)
	policy.Grace = 20_000
	room := roomtest.Open(keys, policy)
	room.Join(after(0), 5)
	room.Settle(after(60_000))
	room.Call(after(80_000), 1)
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	back := after(80_000 + 600_000)
	lost := &fairness.Skip{Time: back, Ticket: room.At(1), Reason: fairness.NoShow}
	caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, lost)), "skip")
	room.Append(&fairness.Beat{Time: back})
	room.Admit(back+39_999, room.At(1))
	wantFound(t, found(t, keys, room), findings.Gap, 2, 600_000, "2 gaps of 10 min 39 s in all, the longest 10 min, nobody lost a turn.",
		"while 1 called visitor could claim. Their time to claim ran for 20 s of it", "Nothing was written for 10 min")
}

// TestLostToGrace takes the server down while a called visitor has less than the grace left, and another one more. One who
// never comes after that is not lost to the outage.
func TestLostToGrace(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	policy := patient(keys)
	policy.Grace, policy.Claim = 20_000, 60_000
	room := roomtest.Open(keys, policy)
	room.Join(after(0), 3)
	room.Settle(after(60_000))
	room.Call(after(80_000), 1)
	room.Append(&fairness.Beat{Time: after(100_000)})
	room.Call(after(119_999), 2) // the first has 20.001 s left
	room.Append(&fairness.Beat{Time: after(120_000)})
	back := after(720_000)
	room.Append(&fairness.Skip{Time: back, Ticket: room.At(1), Reason: fairness.NoShow})
	for at := back + 20_000; at < back+40_000; at += 20_000 {
		room.Append(&fairness.Beat{Time: at})
	}
	room.Append(&fairness.Skip{Time: back + 39_999, Ticket: room.At(2), Reason: fairness.NoShow})
	wantFound(t, found(t, keys, room), findings.Gap, 1, 600_000, "1 gap of 10 min, in which 1 called visitor lost a turn: no more than the grace was left to each.",
		"while 2 called visitors could claim")
}

func windowOfOne(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Join(after(0), 1)
	room.Freeze(after(60_000))
	room.Join(after(60_000), 2)
	room.Draw(after(60_000))
	room.Settle(after(120_000))
	wantFound(t, found(t, keys, room), findings.Single, 1, 0, "1 group had one arrival. There is nothing to draw", "Window 0 had one arrival.")
}

func hastyClaim(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	policy := patient(keys)
	policy.Claim = 59_999
	wantFound(t, found(t, keys, roomtest.Open(keys, policy)), findings.ShortClaim, 1, 0, "Called visitors have 59.999 s to go in.")
}

func endInsteadOfDraw(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Join(after(0), 3)
	room.Freeze(after(60_000))
	room.Join(after(60_000), 4)
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	known := room.State().Pending()[0].Due
	room.Freeze(after(119_000))
	room.Join(after(120_000), 5)
	end := after(121_000)
	if end <= known {
		t.Fatalf("the round of window 0 appears at %d", known)
	}
	room.End(end)
	wantFound(t, found(t, keys, room), findings.Undrawn, 3, 0, "3 groups were never drawn",
		fmt.Sprintf("Window 0, 3 people: closed but not drawn, although its outcome could be known for %d", (end-known)/1000),
		"Window 1, 4 people: closed but not drawn; its round had not appeared.", "Window 7, 5 people: not closed and not drawn.")
}

func stockThatRises(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	policy := patient(keys)
	policy.Seats = 100
	room := roomtest.Open(keys, policy)
	tell := func(at fairness.Time, e fairness.Tell) {
		e.Time = after(at)
		room.Append(&e)
	}
	stock := func(at fairness.Time, left uint64) {
		tell(at, fairness.Tell{Subject: fairness.TellStock, Name: "stalls", Count: left})
	}
	seats := func(at fairness.Time, n uint32) {
		room.Append(&fairness.Amend{Time: after(at), Change: fairness.ChangeSeats, Seats: n})
	}
	auto := func(at fairness.Time) {
		tell(at, fairness.Tell{Subject: fairness.TellAuto, Name: "slow-site"})
	}
	slower := &fairness.Amend{Time: after(8000), Change: fairness.ChangeOutflow, Outflow: fairness.Outflow{PerMinute: 30}}
	stock(1000, 40)
	stock(2000, 12)
	stock(3000, 12)
	stock(4000, 30) // rises
	seats(5000, 90)
	stock(5000, 31) // rises although the seats became fewer
	seats(6000, 120)
	stock(6000, 60)
	tell(6000, fairness.Tell{Subject: fairness.TellStock, Name: "balcony", Count: 500})
	stock(7000, 61) // rises, for the seats were raised before the statement before
	tell(7000, fairness.Tell{Subject: fairness.TellPrice, Name: "stalls", Min: 9000, Max: 9000, Currency: "EUR"})
	tell(7000, fairness.Tell{Subject: fairness.TellPrice, Name: "stalls", Min: 9001, Max: 9000, Currency: "EUR"})
	tell(7000, fairness.Tell{Subject: fairness.TellRefused, Name: "rate", From: after(0), Until: after(7000), Count: 20})
	tell(7000, fairness.Tell{Subject: fairness.TellRefused, Name: "rate", From: after(6000), Until: after(7000), Count: 5})
	tell(7000, fairness.Tell{Subject: fairness.TellRefused, Name: "rate", From: after(6000), Until: after(7001), Count: 5})
	tell(7000, fairness.Tell{Subject: fairness.TellUnguarded, From: after(6000), Until: after(6000), Count: 5})
	auto(8000)
	room.Append(slower)
	auto(9000)
	auto(9000) // instead of the change
	room.Join(after(9500), 1)
	room.Append(&fairness.Amend{Time: after(10_000), Change: fairness.ChangeOutflow, Outflow: fairness.Outflow{PerMinute: 20}})
	auto(11_000)
	seats(11_000, 121) // instead of the change
	auto(12_000)
	list := found(t, keys, room)
	wantFound(t, list, findings.Contrary, 8, 0, "8 statements contradict",
		"Of stalls, 30 were left, after 12 at entry 3.", "Of stalls, 31 were left, after 30", "Of stalls, 61 were left, after 60",
		"The lowest price of stalls is above the highest.", "is empty, or was not over", "(slow-site) was announced")
	wantFound(t, list, findings.Told, 19, 0, "19 statements", "Refused joins by reason: rate 25.", "stalls 61, balcony 500.", "Prices were stated 2 times.",
		"5 changes of the pace were announced as those of a program.")
	if findings.Of(list, findings.FailOpen) != nil {
		t.Error("an interval that is empty counts as one in which the site was open")
	}
	wantFound(t, list, findings.Amendments, 5, 0, "A program made this change: slow-site.")
}

func openGate(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Append(&fairness.Amend{Time: after(1000), Change: fairness.ChangeOpen})
	room.Append(&fairness.Amend{Time: after(21_000), Change: fairness.ChangeShut})
	room.Append(&fairness.Tell{Time: after(22_000), Subject: fairness.TellUnguarded, From: after(2000), Until: after(5000), Count: 1234})
	room.Append(&fairness.Amend{Time: after(30_000), Change: fairness.ChangeOpen})
	room.Join(after(40_000), 1)
	list := found(t, keys, room)
	wantFound(t, list, findings.Gate, 2, 20_000, "For 30 s in all, 2 times, the longest 20 s.", "for 20 s.", "for 10 s up to the latest entry.")
	wantFound(t, list, findings.FailOpen, 1, 3000, "admitted 1,234 requests without a pass")
	if list[0].ID != findings.Gate || list[1].ID != findings.FailOpen {
		t.Errorf("on top are %s and %s", list[0].ID, list[1].ID)
	}
}

// stuffed: one party holds 80 of 100 tickets, in each of 50 rooms. Its share of the first ten places is its
// share of the tickets.
func stuffed(t *testing.T) {
	theirs := 0
	for i := range 50 {
		keys := newKeys(t, origin, fmt.Sprintf("stuffed %d", i))
		room := roomtest.Open(keys, keys.Policy())
		party := room.Join(after(0), 80)
		room.Join(after(1), 20)
		room.Settle(after(60_000))
		for p := 1; p <= 10; p++ {
			if slices.Contains(party, room.At(fairness.Position(p))) {
				theirs++
			}
		}
		if i == 0 {
			wantCaveat(t, auditOf(t, publish(t, keys, room.Entries()), knowing(keys)), verifier.LevelConsistent, "give their holder its share. Half of a window's tickets get half of its places")
		}
	}
	if theirs < 365 || theirs > 435 { // 400 of 500 are expected, with a standard deviation of 8.6
		t.Errorf("the party has %d of 500 places", theirs)
	}
}

// thrownAway: an operator creates a room, dislikes its draw, and starts another. All keys are its own, also that of its
// log of rooms.
func thrownAway(t *testing.T) {
	log := newKeys(t, "example.com/rooms", "honest")
	create := func(name string) roomlog.Entry {
		keys := newKeys(t, "example.com/r/"+name, "honest")
		room := roomtest.Open(keys, patient(keys))
		return roomlog.Entry{Kind: roomlog.Room, VKey: keys.VKey, Root: audit.LeafHash(room.Entries()[0])}
	}
	read := func(entries ...roomlog.Entry) (*roomlog.Published, roomtest.Files, error) {
		var texts [][]byte
		for i, e := range append([]roomlog.Entry{{Kind: roomlog.Begin, VKey: log.VKey}}, entries...) {
			e.Time = int64(after(fairness.Time(i)))
			texts = append(texts, e.Append(nil))
		}
		files, err := roomtest.Publish(log, texts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := roomlog.Read(t.Context(), files.Tile, files[roomtest.CheckpointPath], log.VKey)
		return p, files, err
	}
	unwanted, other, again := create("sale"), create("tour"), create("sale-2")
	before, files, err := read(unwanted, other)
	if err != nil {
		t.Fatal(err)
	}
	kept := files[roomtest.CheckpointPath]
	honest, _, err := read(unwanted, other, again)
	if err != nil {
		t.Fatal(err)
	}
	const origin = "example.com/r/sale-2"
	if alike := honest.Alike(origin); honest.Of(origin) == nil || len(alike) != 1 || alike[0].Origin != "example.com/r/sale" || alike[0].Ended != 0 {
		t.Errorf("%+v of %+v", alike, honest)
	}
	for name, entries := range map[string][]roomlog.Entry{
		"dropped": {other, again}, "moved": {other, unwanted, again}, "replaced": {again, other},
	} {
		p, files, err := read(entries...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := audit.ProveConsistency(t.Context(), files.Tile, before.Head, p.Head); !errors.Is(err, audit.ErrConsistency) {
			t.Errorf("%s: %v", name, err)
		}
		found, err := evidence.Contradict(t.Context(), files.Tile, log.VKey, kept, files[roomtest.CheckpointPath])
		if err != nil || found == nil || found.Kind != evidence.Fork {
			t.Errorf("%s: no evidence: %+v, %v", name, found, err)
		}
	}
	if _, _, err := read(unwanted, unwanted); !errors.Is(err, roomlog.ErrEntry) {
		t.Errorf("the same address again: %v", err)
	}
	if p, _, err := read(unwanted, other); err != nil || p.Of(origin) != nil {
		t.Errorf("past the log: %v", err)
	}
}

// seatsForAFriend: an operator passes over the parties ahead of a friend, by taking seats away for a moment, or by adding
// most of them later.
func seatsForAFriend(t *testing.T) {
	const parties = 3
	keys := newKeys(t, origin, "honest")
	for name, first := range map[string]uint32{"was passed over with 1 seat in all; before, there had been 100.": 100,
		"There were 100 seats in all from here on, after 3 parties had been passed over with 1.": 1} {
		policy := patient(keys)
		policy.Party, policy.Seats = 2, first
		room := roomtest.Open(keys, policy)
		for i := range uint64(parties) {
			e, _ := room.State().NextArrive(after(0), roomtest.Ticket(origin, i), fairness.General)
			e.Seats = 2
			room.Append(&e)
		}
		room.Settle(after(60_000))
		friend, _ := room.State().NextArrive(room.State().Now(), roomtest.Ticket(origin, parties), fairness.General)
		room.Append(&friend)
		room.Settle(after(80_000))
		now := room.State().Now()
		seats := func(n uint32) { room.Append(&fairness.Amend{Time: now, Change: fairness.ChangeSeats, Seats: n}) }
		amends, cases := uint64(1), uint64(1)
		if first > 1 {
			seats(1)
			amends, cases = 2, parties
		}
		for p := range fairness.Position(parties) {
			room.Skip(now, room.At(p+1), fairness.TooLarge)
		}
		seats(100)
		room.Call(now, parties+1)
		list := found(t, keys, room)
		wantFound(t, list, findings.PassedOver, cases, 0, "3 parties were passed over for want of seats", name)
		wantFound(t, list, findings.Amendments, amends, 0, "of the published rules: ", "of the seats. Each is")
	}
}
