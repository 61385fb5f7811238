package verifier_test

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// knowing returns the trust of an auditor who knows the room's beacon and witnesses.
func knowing(k *roomtest.Keys) verifier.Trust {
	t := verifier.Trust{VKey: k.VKey, Beacons: [][32]byte{k.Chain.Chain().Hash()}}
	for _, w := range k.Witnesses {
		t.Witnesses = append(t.Witnesses, w.String())
	}
	return t
}

// caught plays an operator who signs again, against an auditor who knows all keys.
func caught(t *testing.T, keys *roomtest.Keys, tampered [][]byte, checks ...string) {
	t.Helper()
	wantFailed(t, auditOf(t, publish(t, keys, tampered), knowing(keys)), checks...)
}

// wantCaveat audits a valid room, and checks its level and a sentence of the report.
func wantCaveat(t *testing.T, r *verifier.Report, level int, sentence string) {
	t.Helper()
	if !r.OK || r.Level != level || !strings.Contains(strings.Join(r.NotProven, "\n"), sentence) {
		t.Errorf("ok %v, level %d, want %d; not proven:\n%s\nwant %q", r.OK, r.Level, level, strings.Join(r.NotProven, "\n"), sentence)
	}
}

// threats plays the rows of THREATS.md.
var threats = map[string]func(*testing.T){
	"grinding":                  grinding,
	"lane over its share":       laneOverShare,
	"lane that saved up":        laneThatSaved,
	"call beyond the seats":     beyondTheSeats,
	"party larger than allowed": partyTooLarge,
	"party that blocks":         partyThatBlocks,
	"another round":             anotherRound,
	"backdated freeze":          backdatedFreeze,
	"window frozen twice":       frozenTwice,
	"dropped after the receipt": droppedAfterReceipt,
	"written before the freeze": writtenBeforeFreeze,
	"revoked before the draw":   revokedBeforeDraw,
	"own window for a friend":   ownWindow,
	"slipped in late":           slippedIn,
	"promoted friend":           promotedFriend,
	"split view":                splitView,
	"two audiences":             twoAudiences,
	"tail of its own":           ownTail,
	"rollback":                  rollback,
	"forgotten entries":         forgottenEntries,
	"swapped keys":              swappedKeys,
	"own beacon":                ownBeacon,
	"own witnesses":             ownWitnesses,
	"forged beacon":             forgedBeacon,
	"forged cosignature":        forgedCosignature,
	"missing cosignatures":      missingCosignatures,
	"out of order":              outOfOrder,
	"faster than published":     tooFast,
	"silent change of windows":  silentChange,
	"no-show too early":         earlyNoShow,
	"lots on the side":          sideLots,
	"slot re-roll":              slotReroll,
	"slot of its own":           loneSlot,
	"second nullifier":          secondNullifier,
	"foreign issuer":            foreignIssuer,
	"borrowed credential":       borrowedCredential,
	"two spellings":             twoSpellings,
	"merit after the end":       lateMerit,
	"more than the limit":       overLimit,
	"past the door":             pastTheDoor,
	"work in advance":           workInAdvance,
	"changed copy":              changedCopy,
	"another room":              anotherRoom,
	"fake arrivals":             fakeArrivals,
	"refused joins":             alwaysCaveat("leaves no receipt"),
	"many tickets":              alwaysCaveat("holds only one ticket"),
	"quiet amendments":          quietAmendments,
	"frozen claims":             frozenClaims,
	"gone before the draw":      goneBeforeDraw,
	"late draw":                 lateDraw,
	"late freeze":               lateFreeze,
	"freeze dated ahead":        freezeAhead,
	"claim lost in an outage":   lostInOutage,
	"window of one":             windowOfOne,
	"hasty claim":               hastyClaim,
	"end instead of a draw":     endInsteadOfDraw,
	"restored twice":            restoredTwice,
	"restored friends":          restoredFriends,
	"extended twice":            extendedTwice,
	"stock that rises":          stockThatRises,
	"open gate":                 openGate,
	"seats for a friend":        seatsForAFriend,
	"thrown-away room":          thrownAway,
	"one party's tickets":       stuffed,
}

func TestThreats(t *testing.T) {
	doc, err := os.ReadFile("THREATS.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(.*?)` \\|").FindAllStringSubmatch(string(doc), -1) {
		rows = append(rows, m[1])
	}
	for name, play := range threats {
		if !slices.Contains(rows, name) {
			t.Errorf("THREATS.md has no row %q", name)
		}
		t.Run(name, play)
	}
	if len(rows) != len(threats) {
		t.Errorf("THREATS.md has %d rows, and %d are played", len(rows), len(threats))
	}
}

// ground is a room of 20 visitors whose operator tries out messages until a favourite, who came first, is in
// front, if the operator can predict the draw. It returns the favourite's place.
func ground(t *testing.T, keys *roomtest.Keys, policy fairness.Policy) (entries [][]byte, place fairness.Position) {
	t.Helper()
	for try := range byte(200) {
		room := roomtest.Open(keys, policy)
		favourite := room.Join(roomtest.Opens, 20)[0]
		room.Append(&fairness.Amend{Time: roomtest.Opens + 1000, Change: fairness.ChangeMessage, Message: [fairness.HashSize]byte{try}})
		freeze, alpha, _ := room.State().NextFreeze(roomtest.Opens+60_000, room.Root())
		_, beta := keys.VRF.Prove(alpha)
		guess := fairness.NewSeed(alpha, beta, freeze.Round, nil) // all that the operator can know
		if fairness.Shuffle(guess, fairness.General, 20)[0] != 0 {
			continue
		}
		room.Settle(roomtest.Opens + 60_000)
		room.End(roomtest.Opens + 100_000)
		if err := room.Err(); err != nil {
			t.Fatal(err)
		}
		st, _ := room.State().Standing(favourite, room.State().Size(), roomtest.Opens+100_000)
		return room.Entries(), st.Position
	}
	t.Fatal("no try pleases")
	return nil, 0
}

func grinding(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	entries, place := ground(t, keys, keys.Policy())
	if place != 1 {
		t.Errorf("without a beacon the favourite has place %d", place)
	}
	wantCaveat(t, auditOf(t, publish(t, keys, entries), knowing(keys)), verifier.LevelConsistent, "could have tried out outcomes")
	first := 0
	for i := range 20 {
		keys := newKeys(t, origin, strings.Repeat("x", i+1))
		entries, place := ground(t, keys, keys.Witnessed())
		if place == 1 {
			first++
		}
		if r := auditOf(t, publish(t, keys, entries), knowing(keys)); r.Level != verifier.LevelWitnessed {
			t.Fatalf("%+v", r)
		}
	}
	if first > 4 { // one of twenty by chance; five or more have probability 0.003, and the keys are always the same
		t.Errorf("with a beacon the favourite is first in %d of 20 rooms", first)
	}
}

func anotherRound(t *testing.T) {
	keys, room := witnessed(t, all)
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindFreeze, 0)
	caught(t, keys, tr.add(i, 6, -2), "freeze")
}

func backdatedFreeze(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	open := func() (*roomtest.Room, fairness.Pending) {
		room := roomtest.Open(keys, keys.Witnessed())
		room.Join(roomtest.Opens, 5)
		room.Freeze(roomtest.Opens + 60_000) // the time that the entry claims; it is really a minute later
		return room, room.State().Pending()[0]
	}
	room, pending := open()
	text := audit.Checkpoint{Origin: origin, Size: pending.Size, Root: room.Root()}.Marshal()
	signature, err := keys.Chain.Sign(pending.Round)
	if err != nil {
		t.Fatal(err)
	}
	now := roomtest.Opens + 120_000
	var late []fairness.Cosignature
	for _, w := range keys.Witnesses {
		late = append(late, fairness.Cosignature(w.Cosign(w.Private, text, int64(now)/1000)))
	}
	draw, _ := room.State().NextDraw(now, signature, late...)
	caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, draw)), "witness")
	room, _ = open()
	room.DrawBy(now)
	wantCaveat(t, auditOf(t, publish(t, keys, room.Entries()), knowing(keys)), verifier.LevelUnpredictable, "its time is only the operator's claim")
}

func frozenTwice(t *testing.T) {
	keys, room := witnessed(t, all)
	tr := transcript(room.Entries())
	freeze, draw := tr.index(fairness.KindFreeze, 0), tr.index(fairness.KindDraw, 0)
	caught(t, keys, tr.insert(freeze+1, string(tr[freeze])), "freeze")
	caught(t, keys, tr.insert(draw+1, string(tr[draw])), "draw", "seed-once")
}

func droppedAfterReceipt(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Witnessed())
	room.Join(roomtest.Opens, 4)
	receipt := publish(t, keys, room.Entries())[roomtest.CheckpointPath] // the checkpoint in the fourth visitor's receipt
	without := roomtest.Open(keys, keys.Witnessed())
	without.Join(roomtest.Opens, 3)
	without.Settle(roomtest.Opens + 60_000)
	files := publish(t, keys, without.Entries())
	trust := knowing(keys)
	if r := auditOf(t, files, trust); r.Level != verifier.LevelWitnessed { // only the witnesses can detect it
		t.Errorf("%+v", r)
	}
	trust.Kept = receipt
	wantFailed(t, auditOf(t, files, trust), "append-only")
}

func slippedIn(t *testing.T) {
	keys, room := witnessed(t, all)
	tr := transcript(room.Entries())
	last := tr.index(fairness.KindArrive, 4)
	caught(t, keys, tr.insert(last+1, string(tr.add(last, 3, 1).set(last, 4, stranger())[last])), "freeze")
	freeze := tr.index(fairness.KindFreeze, 0)
	caught(t, keys, tr.insert(freeze+1, string(tr.add(last, 3, 1).set(last, 4, stranger()).set(last, 1, tr.field(freeze, 1))[last])), "arrival")
}

func promotedFriend(t *testing.T) {
	keys, room := witnessed(t, all)
	tr := transcript(room.Entries())
	i, j := tr.index(fairness.KindAssign, 0), tr.index(fairness.KindAssign, 4)
	caught(t, keys, tr.set(i, 4, tr.field(j, 4)).set(j, 4, tr.field(i, 4)), "assign")
}

// cosignedBy returns the pending draw of a room, cosigned by some witnesses at a time.
func cosignedBy(t *testing.T, keys *roomtest.Keys, room *roomtest.Room, at fairness.Time, by ...roomtest.Witness) *fairness.Draw {
	t.Helper()
	pending := room.State().Pending()[0]
	text := audit.Checkpoint{Origin: origin, Size: pending.Size, Root: room.Root()}.Marshal()
	signature, err := keys.Chain.Sign(pending.Round)
	if err != nil {
		t.Fatal(err)
	}
	var list []fairness.Cosignature
	for _, w := range by {
		list = append(list, fairness.Cosignature(w.Cosign(w.Private, text, int64(at)/1000)))
	}
	draw, _ := room.State().NextDraw(pending.Due, signature, list...)
	return draw
}

// freezeAhead dates a freeze a minute ahead, so that another round decides, and has it signed now.
func freezeAhead(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Join(after(0), 5)
	room.Freeze(after(120_000))
	if err := room.Err(); err != nil {
		t.Fatal(err)
	}
	ahead := func(at fairness.Time) [][]byte {
		draw := cosignedBy(t, keys, room, at, keys.Witnesses...)
		return append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, draw))
	}
	for _, at := range []fairness.Time{after(6000), after(60_000), after(117_000)} {
		caught(t, keys, ahead(at), "witness")
	}
	if r := auditOf(t, publish(t, keys, ahead(after(118_000))), knowing(keys)); r.Level != verifier.LevelWitnessed {
		t.Errorf("level %d with a clock that is two seconds slow", r.Level) // as a fast clock of the operator's
	}
	room.Append(cosignedBy(t, keys, room, after(60_000)))
	wantCaveat(t, auditOf(t, publish(t, keys, room.Entries()), knowing(keys)), verifier.LevelUnpredictable, "for 1 of 1 draws too few witnesses")
}

// splitView has a freeze of one window cosigned by each witness, and publishes the one that pleases.
func splitView(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	trust := knowing(keys)
	one := func(by ...roomtest.Witness) *roomtest.Room {
		room := roomtest.Open(keys, patient(keys))
		room.Join(after(0), 5)
		room.Freeze(after(60_000))
		room.Append(cosignedBy(t, keys, room, after(60_000), by...))
		return room
	}
	wantCaveat(t, auditOf(t, publish(t, keys, one(keys.Witnesses[0]).Entries()), trust), verifier.LevelUnpredictable, "for 1 of 1 draws too few witnesses")
	policy := patient(keys)
	policy.Quorum = 1
	if err := roomtest.Open(keys, policy).Err(); err == nil || !strings.Contains(err.Error(), "more than half") {
		t.Errorf("a quorum of one of three: %v", err)
	}
	// Witnesses of the operator's own do not help: half of the policy's witnesses are not more than half.
	trust.Witnesses = trust.Witnesses[:1]
	wantCaveat(t, auditOf(t, publish(t, keys, one(keys.Witnesses...).Entries()), trust), verifier.LevelUnpredictable, "for 1 of 1 draws too few witnesses")
	renamed, err := audit.NewWitness("other.example.org", keys.Witnesses[0].Key[:])
	if err != nil {
		t.Fatal(err)
	}
	trust.Witnesses = []string{renamed.String(), keys.Witnesses[1].String()} // a key counts, whatever its name
	if r := auditOf(t, publish(t, keys, one(keys.Witnesses...).Entries()), trust); r.Level != verifier.LevelWitnessed {
		t.Errorf("level %d with two of three known, one by another name", r.Level)
	}
}

// ownTail shows a part of the visitors another history after the last draw, which all witnesses cosigned in time.
func ownTail(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, patient(keys))
	room.Join(after(0), 5)
	room.Settle(after(60_000))
	room.Call(after(80_000), 2)
	files := publish(t, keys, room.Entries())
	const sentence = "That others are shown the same history, up to its end"
	wantCaveat(t, auditOf(t, files, knowing(keys)), verifier.LevelWitnessed, sentence)
	text := string(files[roomtest.CheckpointPath])
	text = text[:strings.Index(text, "\n\n")+1]
	cosigned := func(n int, name string) roomtest.Files {
		with := files.Clone()
		for _, w := range keys.Witnesses[:n] {
			line := w.Cosign(w.Private, text, int64(after(81_000))/1000).Line(cmp.Or(name, w.Name()))
			with[roomtest.CheckpointPath] = append(slices.Clone(with[roomtest.CheckpointPath]), line...)
		}
		return with
	}
	wantCaveat(t, auditOf(t, cosigned(1, ""), knowing(keys)), verifier.LevelWitnessed, sentence)
	wantCaveat(t, auditOf(t, cosigned(3, "stranger.example.org"), knowing(keys)), verifier.LevelWitnessed, sentence)
	r := auditOf(t, cosigned(2, ""), knowing(keys))
	if r.Cosigned != 2 || strings.Contains(strings.Join(r.NotProven, "\n"), sentence) {
		t.Errorf("cosigned by two of three: %d; %q", r.Cosigned, r.NotProven)
	}
}

// twoAudiences shows two histories with one beginning. A real witness signs
// the one that it sees first.
func twoAudiences(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	history := func(friends int) *roomtest.Room {
		room := roomtest.Open(keys, keys.Witnessed())
		room.Join(roomtest.Opens, 3)
		room.Join(roomtest.Opens+1000, friends)
		room.Freeze(roomtest.Opens + 60_000)
		return room
	}
	w := newWitness(t, keys)
	one, two := history(1), history(2)
	files := publish(t, keys, one.Entries())
	if _, err := w.AddCheckpoint(t.Context(), witness.Request{Checkpoint: files[roomtest.CheckpointPath]}); err != nil {
		t.Fatal(err)
	}
	other := publish(t, keys, two.Entries())
	for _, old := range []uint64{0, uint64(len(one.Entries()))} {
		_, err := w.AddCheckpoint(t.Context(), witness.Request{Old: old, Checkpoint: other[roomtest.CheckpointPath]})
		var conflict *witness.ConflictError
		if !errors.Is(err, witness.ErrInconsistent) && !errors.As(err, &conflict) {
			t.Errorf("the witness says of the other history: %v", err)
		}
	}
	two.DrawBy(roomtest.Opens + 60_000) // without a cosignature
	wantCaveat(t, auditOf(t, publish(t, keys, two.Entries()), knowing(keys)), verifier.LevelUnpredictable, "That others are shown the same history")
	trust := knowing(keys)
	trust.Kept = files[roomtest.CheckpointPath]
	wantFailed(t, auditOf(t, publish(t, keys, two.Entries()), trust), "append-only")
}

func rollback(t *testing.T) {
	keys, room := witnessed(t, all)
	trust := knowing(keys)
	trust.Kept = publish(t, keys, room.Entries())[roomtest.CheckpointPath]
	wantFailed(t, auditOf(t, publish(t, keys, room.Entries()[:9]), trust), "append-only")
}

// forgottenEntries lets a server without marks continue from a backup, until its log is longer than the one
// that was shown.
func forgottenEntries(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	backup := func() *roomtest.Room {
		room := roomtest.Open(keys, keys.Witnessed())
		room.Join(roomtest.Opens, 5)
		return room
	}
	room := backup()
	room.Join(roomtest.Opens+1000, 3)
	shown := publish(t, keys, room.Entries())[roomtest.CheckpointPath] // in the receipt of the last visitor
	w := newWitness(t, keys)
	if _, err := w.AddCheckpoint(t.Context(), witness.Request{Checkpoint: shown}); err != nil {
		t.Fatal(err)
	}
	restored := backup()
	conflict := (*witness.ConflictError)(nil)
	size := uint64(len(restored.Entries()))
	request := witness.Request{Old: size, Checkpoint: publish(t, keys, restored.Entries())[roomtest.CheckpointPath]}
	if _, err := w.AddCheckpoint(t.Context(), request); !errors.As(err, &conflict) || conflict.Size != size+3 {
		t.Errorf("the witness answers the server with %v", err)
	}
	restored.Join(roomtest.Opens+30_000, 9)
	restored.Settle(roomtest.Opens + 60_000)
	restored.End(roomtest.Opens + 100_000)
	if err := restored.Err(); err != nil {
		t.Fatal(err)
	}
	files, trust := publish(t, keys, restored.Entries()), knowing(keys)
	if r := auditOf(t, files, trust); r.Level != verifier.LevelWitnessed { // as if the witnesses had lost it, too
		t.Errorf("%+v", r)
	}
	trust.Kept = shown
	wantFailed(t, auditOf(t, files, trust), "append-only")
}

// newWitness returns a witness that follows the log of keys.
func newWitness(t *testing.T, keys *roomtest.Keys) *witness.Witness {
	t.Helper()
	store, err := witness.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	key, err := witness.NewKey("witness.example.org", bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	logs, err := witness.NewLogs(keys.VKey)
	if err != nil {
		t.Fatal(err)
	}
	w := witness.New(key, store, func() time.Time { return time.UnixMilli(int64(roomtest.Opens) + 61_000) }, slog.New(slog.DiscardHandler))
	w.Follow(logs)
	return w
}

func swappedKeys(t *testing.T) {
	keys, room := witnessed(t, all)
	other := newKeys(t, origin, "successor")
	files := publish(t, other, room.Entries())
	wantFailed(t, auditOf(t, files, knowing(keys)), "signature") // of the log
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindFreeze, 1)
	freeze, err := fairness.ParseEntry(tr[i])
	if err != nil {
		t.Fatal(err)
	}
	f, _ := freeze.(*fairness.Freeze)
	proof, _ := other.VRF.Prove([]byte("alpha"))
	f.Proof = [fairness.ProofSize]byte(proof)
	caught(t, keys, tr.replace(i, string(fairness.AppendEntry(nil, f))), "proof")
}

func ownBeacon(t *testing.T) {
	keys, room := witnessed(t, all)
	trust := knowing(keys)
	trust.Beacons = nil
	wantCaveat(t, auditOf(t, publish(t, keys, room.Entries()), trust), verifier.LevelConsistent, "the operator of the beacon")
}

func ownWitnesses(t *testing.T) {
	keys, room := witnessed(t, all)
	trust := knowing(keys)
	trust.Witnesses = nil
	wantCaveat(t, auditOf(t, publish(t, keys, room.Entries()), trust), verifier.LevelUnpredictable, "for 2 of 2 draws too few witnesses that you know")
}

func forgedBeacon(t *testing.T) {
	keys, room := witnessed(t, all)
	tr := transcript(room.Entries())
	i, j := tr.index(fairness.KindDraw, 0), tr.index(fairness.KindDraw, 1)
	caught(t, keys, tr.set(i, 3, tr.field(j, 3)), "beacon")
}

func forgedCosignature(t *testing.T) {
	keys, room := witnessed(t, all)
	tr := transcript(room.Entries())
	i, j := tr.index(fairness.KindDraw, 0), tr.index(fairness.KindDraw, 1)
	caught(t, keys, tr.set(i, 5, tr.field(j, 5)), "witness")
}

func missingCosignatures(t *testing.T) {
	keys, room := witnessed(t, func(*roomtest.Keys) []roomtest.Witness { return nil })
	wantCaveat(t, auditOf(t, publish(t, keys, room.Entries()), knowing(keys)), verifier.LevelUnpredictable, "for 1 of 2 draws too few witnesses")
}

func outOfOrder(t *testing.T) {
	keys, room := small(t)
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindAdmit, 0)
	last := tr.field(tr.index(fairness.KindAssign, 9), 4) // the last place, called much later
	caught(t, keys, tr.insert(i, "admit "+tr.field(i, 1)+" "+last+" "+passOf(last)), "admission")
	j := tr.index(fairness.KindCall, 0)
	caught(t, keys, tr.set(j, 2, "99"), "call")
}

func tooFast(t *testing.T) {
	keys, room := small(t)
	tr := transcript(room.Entries())
	caught(t, keys, tr.replace(0, strings.Replace(string(tr[0]), "outflow 600", "outflow 1", 1)), "freeze") // the encryption fails first
	policy := keys.Policy()
	policy.Outflow.PerMinute = 1
	slow := roomtest.Open(keys, policy)
	slow.Join(roomtest.Opens, 5)
	slow.Settle(roomtest.Opens + 60_000)
	call := &fairness.Call{Time: roomtest.Opens + 60_000, UpTo: []fairness.Position{5}}
	caught(t, keys, append(slices.Clone(slow.Entries()), fairness.AppendEntry(nil, call)), "outflow")
}

func silentChange(t *testing.T) {
	keys, room := small(t)
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindArrive, 8) // the first one of the second window
	caught(t, keys, tr.set(i, 2, "7"), "arrival")
}

func earlyNoShow(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Policy())
	room.Join(roomtest.Opens, 2)
	room.Settle(roomtest.Opens + 60_000)
	room.Call(roomtest.Opens+60_000, 1)
	skip := &fairness.Skip{Time: roomtest.Opens + 89_999, Ticket: room.At(1), Reason: fairness.NoShow} // a millisecond of the 30 s is left
	caught(t, keys, append(slices.Clone(room.Entries()), fairness.AppendEntry(nil, skip)), "skip")
}

func sideLots(t *testing.T) {
	keys, room := small(t)
	tr := transcript(room.Entries())
	i := tr.index(fairness.KindArrive, 0)
	caught(t, keys, tr.insert(i+1, "merit "+tr.field(i, 1)+" "+tr.field(i, 4)+" 1 friend - 00"), "credential")
	caught(t, keys, tr.set(i, 5, "vip"), "lane")
}

func changedCopy(t *testing.T) {
	keys, room := witnessed(t, all)
	files := publish(t, keys, room.Entries())
	path := audit.Tile{Level: -1, Width: len(room.Entries())}.Path()
	copied := bytes.Clone(files[path])
	copied[len(copied)-20] ^= 1
	files[path] = copied
	r := auditOf(t, files, knowing(keys))
	if check(t, r, "history").Status != verifier.Fail || r.Level != verifier.LevelNone {
		t.Errorf("%+v", r)
	}
}

func anotherRoom(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	other := newKeys(t, origin, "rival")
	imitation := roomtest.Open(other, other.Witnessed())
	imitation.Join(roomtest.Opens, 3)
	files := publish(t, other, imitation.Entries())
	if r := auditOf(t, files, knowing(keys)); r.OK || check(t, r, "signature").Status != verifier.Fail {
		t.Errorf("%+v", r)
	}
	wantCaveat(t, auditOf(t, files, verifier.Trust{}), verifier.LevelConsistent, "its key was taken from the transcript itself")
}

// fakeArrivals: no check fails, and every report states this limit.
func fakeArrivals(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Witnessed())
	room.Join(roomtest.Opens, 1)
	room.Join(roomtest.Opens+1, 99) // a fake arrival
	room.Settle(roomtest.Opens + 60_000)
	wantCaveat(t, auditOf(t, publish(t, keys, room.Entries()), knowing(keys)), verifier.LevelWitnessed, "fake arrivals push all others back alike")
}

func alwaysCaveat(sentence string) func(*testing.T) {
	return func(t *testing.T) {
		keys, room := witnessed(t, all)
		wantCaveat(t, auditOf(t, publish(t, keys, room.Entries()), knowing(keys)), verifier.LevelWitnessed, sentence)
	}
}
