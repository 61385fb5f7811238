package ticket

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

// honest is the result if everything is right.
var honest = [4]Reason{Included, Closed, NoBeacon, Exact}

// testCase is a file with its expected lines.
type testCase struct {
	name   string
	bundle *Bundle
	want   [4]Reason
}

// stage is the room of most cases, and its visitor: seq 4 of window 1, with a receipt for the tree up to that
// arrival.
type stage struct {
	testing.TB
	keys    *roomtest.Keys
	log     *tree
	entries []fairness.Entry

	mine, freezeAt, drawAt, firstAt, placeAt uint64
	arrive                                   *fairness.Arrive
	freeze                                   *fairness.Freeze
	position                                 fairness.Position
	receipt                                  []byte
}

func newStage(t testing.TB) *stage {
	t.Helper()
	keys := newKeys(t, "honest")
	return stageOf(t, keys, scripted(t, keys))
}

// stageOf returns a room with a visitor as seq 4 of window 1.
func stageOf(t testing.TB, keys *roomtest.Keys, room *roomtest.Room) *stage {
	t.Helper()
	log := newTree(keys, room.Entries())
	s := &stage{TB: t, keys: keys, log: log, entries: log.parsed(t)}
	index := func(is func(fairness.Entry) bool) uint64 { return uint64(slices.IndexFunc(s.entries, is)) }
	s.mine = index(func(e fairness.Entry) bool {
		a, ok := e.(*fairness.Arrive)
		return ok && a.Window == 1 && a.Seq == 4
	})
	s.arrive = s.entries[s.mine].(*fairness.Arrive)
	s.freezeAt = must(find(s.entries, 0, fairness.KindFreeze, 1))
	s.freeze = s.entries[s.freezeAt].(*fairness.Freeze)
	s.drawAt = must(find(s.entries, 0, fairness.KindDraw, 1))
	s.firstAt = must(find(s.entries, 0, fairness.KindAssign, 1))
	s.placeAt = index(func(e fairness.Entry) bool {
		a, ok := e.(*fairness.Assign)
		return ok && a.Ticket == s.arrive.Ticket
	})
	s.position = s.entries[s.placeAt].(*fairness.Assign).Position
	s.receipt = log.receipt(t, s.mine, s.mine+1)
	return s
}

func (s *stage) bundle() *Bundle { return s.log.gather(s, s.receipt, s.arrive.Ticket, s.mine) }

// with returns a changed file.
func (s *stage) with(change func(*Bundle)) *Bundle {
	b := s.bundle()
	change(b)
	return b
}

// tampered returns the file of a room whose operator changed the entries.
func (s *stage) tampered(change func([]fairness.Entry) []fairness.Entry) *Bundle {
	return s.log.rewritten(s, change).gather(s, s.receipt, s.arrive.Ticket, s.mine)
}

// entry returns a tampered file in which one entry is replaced.
func entry[E fairness.Entry](s *stage, index uint64, change func(E)) *Bundle {
	return s.tampered(func(all []fairness.Entry) []fairness.Entry {
		change(all[index].(E))
		return all
	})
}

// refrozen returns the file of a room with a wrong freeze whose proof is valid.
func (s *stage) refrozen(change func(*fairness.Freeze)) *Bundle {
	return entry(s, s.freezeAt, func(f *fairness.Freeze) {
		change(f)
		proof, _ := s.keys.VRF.Prove(fairness.Alpha(hashOf(s.log.entries[0]), f))
		f.Proof = [fairness.ProofSize]byte(proof)
	})
}

func (s *stage) without(from, to uint64) *Bundle {
	return s.tampered(func(all []fairness.Entry) []fairness.Entry { return slices.Delete(all, int(from), int(to)) })
}

// cut returns the file that a visitor gets while the log has that size.
func (s *stage) cut(size uint64) *Bundle {
	return s.tampered(func(all []fairness.Entry) []fairness.Entry { return all[:size] })
}

func flip(p *Proven) { p.Path[len(p.Path)-1][0] ^= 1 }

func text(s string) *Text { t := Text(s); return &t }

func number(n uint64) *Number { v := Number(n); return &v }

func (s *stage) cases() []testCase {
	return slices.Concat(s.goodCases(), s.waitingCases(), s.recordCases(), s.groupCases(), s.drawCases(), chanceCases(s), s.placeCases(), s.laneCases(), s.lotCases())
}

func (s *stage) goodCases() []testCase {
	all := []testCase{
		{"four good lines", s.bundle(), honest},
		{"the position that is shown", s.with(func(b *Bundle) { b.Shown = number(uint64(s.position)) }), honest},
		{"without a key from outside", s.with(func(b *Bundle) { b.VKey = nil }), honest},
		{"with the freeze of the group before", s.with(func(b *Bundle) {
			b.Earlier = List[Proven]{*s.log.prove(must(find(s.entries, 0, fairness.KindFreeze, 0)))}
		}), honest},
		{"with an amendment that changes no schedule", s.with(func(b *Bundle) { b.Amends = List[Proven]{*s.log.prove(8)} }), honest},
	}
	for _, index := range []uint64{1, must(find(s.entries, s.freezeAt, fairness.KindArrive, 0)) - 4} {
		arrive := s.entries[index].(*fairness.Arrive)
		all = append(all, testCase{"a visitor of another group, seq " + strconv.Itoa(int(arrive.Seq)),
			s.log.gather(s, s.log.receipt(s, index, index+2), arrive.Ticket, index), honest})
	}
	small := roomtest.Small(s.keys, s.keys.Policy())
	log := newTree(s.keys, small.Entries())
	entries := log.parsed(s)
	amendAt := uint64(slices.IndexFunc(entries, func(e fairness.Entry) bool {
		a, ok := e.(*fairness.Amend)
		return ok && a.Change == fairness.ChangeWindows
	}))
	index := must(find(entries, amendAt, fairness.KindArrive, 0))
	late := log.gather(s, log.receipt(s, index, index+1), entries[index].(*fairness.Arrive).Ticket, index)
	amended := late.clone(s)
	amended.Amends = List[Proven]{*log.prove(amendAt)}
	broken := amended.clone(s)
	flip(&broken.Amends[0])
	unknown := honest
	unknown[1] = OffSchedule
	created := s.keys.Policy().Created
	return append(all,
		testCase{"an amendment before opening", s.amendedAt(created), [4]Reason{Included, OffSchedule, OtherSeed, Unchecked}},
		testCase{"an amendment before the room", s.amendedAt(created - 1), [4]Reason{Included, Closed, OtherSeed, Unchecked}},
		testCase{"an amended schedule", amended, honest},
		testCase{"an unknown amendment", late, unknown},
		testCase{"an amendment that is not in the record", broken, unknown})
}

// amendedAt returns the file of the first visitor of a small room, in which an amendment of the whole
// schedule replaces another one.
func (s *stage) amendedAt(now fairness.Time) *Bundle {
	entries := newTree(s.keys, roomtest.Small(s.keys, s.keys.Policy()).Entries()).parsed(s)
	entries[1] = &fairness.Amend{Time: now, Change: fairness.ChangeWindows, Closes: fairness.Never,
		Windows: []fairness.WindowRule{{From: roomtest.Opens, Length: 1000}}}
	freeze := entries[must(find(entries, 0, fairness.KindFreeze, 0))].(*fairness.Freeze)
	var log *tree
	for range 2 { // the second time, with the root of the first
		var texts [][]byte
		for _, e := range entries {
			texts = append(texts, fairness.AppendEntry(nil, e))
		}
		log = newTree(s.keys, texts)
		freeze.Root = log.node(0, freeze.Size)
		proof, _ := s.keys.VRF.Prove(fairness.Alpha(hashOf(log.entries[0]), freeze))
		freeze.Proof = [fairness.ProofSize]byte(proof)
	}
	b := log.gather(s, log.receipt(s, 2, 3), entries[2].(*fairness.Arrive).Ticket, 2)
	b.Amends = List[Proven]{*log.prove(1)}
	return b
}

func (s *stage) waitingCases() []testCase {
	malformed := func(b *Bundle) *Bundle { b.Malformed = text("a tile"); return b }
	gaveUp := func(b *Bundle) *Bundle { b.GaveUp = true; return b }
	return []testCase{
		{"before my arrival is published", s.cut(s.mine), [4]Reason{Behind, Unchecked, Unchecked, Unchecked}},
		{"a receipt for a later tree", s.log.rewritten(s, func(all []fairness.Entry) []fairness.Entry { return all[:s.mine+1] }).
			gather(s, s.log.receipt(s, s.mine, s.mine+5), s.arrive.Ticket, s.mine), [4]Reason{Behind, Pending, Unchecked, Unchecked}},
		{"not closed yet", s.cut(s.freezeAt), [4]Reason{Included, Pending, Unchecked, Unchecked}},
		{"closed, not drawn yet", s.cut(s.drawAt), [4]Reason{Included, Closed, Pending, Unchecked}},
		{"drawn, no places yet", s.cut(s.firstAt), [4]Reason{Included, Closed, NoBeacon, Pending}},
		{"drawn, mine not yet", s.cut(s.placeAt), [4]Reason{Included, Closed, NoBeacon, Pending}},
		{"no freeze found", gaveUp(s.cut(s.freezeAt)), [4]Reason{Included, NotFound, Unchecked, Unchecked}},
		{"no draw found", gaveUp(s.cut(s.drawAt)), [4]Reason{Included, Closed, NotFound, Unchecked}},
		{"no place found", gaveUp(s.cut(s.firstAt)), [4]Reason{Included, Closed, NoBeacon, NotFound}},
		{"a malformed file instead of the room", malformed(s.with(func(b *Bundle) { b.Room = nil })), [4]Reason{Malformed, Unchecked, Unchecked, Unchecked}},
		{"a malformed file instead of the arrival", malformed(s.with(func(b *Bundle) { b.Arrive = nil })), [4]Reason{Malformed, Unchecked, Unchecked, Unchecked}},
		{"a malformed file instead of the growth", malformed(s.with(func(b *Bundle) { b.Growth = nil })), [4]Reason{Malformed, Closed, NoBeacon, Exact}},
		{"a malformed file instead of the freeze", malformed(s.cut(s.freezeAt)), [4]Reason{Included, Malformed, Unchecked, Unchecked}},
		{"a malformed file instead of the freeze's tree", malformed(s.with(func(b *Bundle) { b.Frozen = nil })), [4]Reason{Included, Malformed, Unchecked, Unchecked}},
		{"a malformed file instead of the draw", malformed(s.cut(s.drawAt)), [4]Reason{Included, Closed, Malformed, Unchecked}},
		{"a malformed file instead of the place", malformed(s.cut(s.placeAt)), [4]Reason{Included, Closed, NoBeacon, Malformed}},
		{"a malformed file that nothing needs", malformed(s.bundle()), honest},
	}
}

func (s *stage) recordCases() []testCase {
	rival := newTree(newKeys(s, "rival"), scripted(s, newKeys(s, "rival")).Entries())
	only := func(r Reason) [4]Reason { return [4]Reason{r, Unchecked, Unchecked, Unchecked} }
	but := func(r Reason) [4]Reason { return [4]Reason{r, Closed, NoBeacon, Exact} }
	return []testCase{
		{"no key", s.with(func(b *Bundle) { b.VKey = text("") }), only(WrongKey)},
		{"a key with an upper-case id", s.with(func(b *Bundle) { b.VKey = text(upperID(s.keys.VKey)) }), only(WrongKey)},
		{"another room", s.with(func(b *Bundle) { b.Origin = "queue.example.com/r/other" }), only(WrongKey)},
		{"another room, without a key", s.with(func(b *Bundle) { b.VKey, b.Origin = nil, "queue.example.com/r/other" }), only(NoRoom)},
		{"a checkpoint of another operator", s.with(func(b *Bundle) { b.Checkpoint = rival.checkpoint(s, rival.size) }), only(NoCheckpoint)},
		{"an invalid checkpoint", s.with(func(b *Bundle) { b.Checkpoint = []byte("\xff\x00<\u2028>\x7f") }), only(NoCheckpoint)},
		{"a checkpoint that is signed again wrongly", s.signed(s.line(func(b []byte) { b[20] ^= 1 })), only(NoCheckpoint)},
		{"a checkpoint that is signed twice", s.signed(s.line(func([]byte) {})), only(NoCheckpoint)},
		{"a checkpoint with a signature of an unknown key", s.signed("— witness.example AAAAAAA=\n"), honest},
		{"a checkpoint with loose base64", s.signed("— witness.example AAAAAAB=\n"), only(NoCheckpoint)},
		{"a checkpoint with a signature of three words", s.signed("— witness.example AAAA AAA=\n"), only(NoCheckpoint)},
		{"a checkpoint with a signature too short", s.signed("— witness.example AAAA\n"), only(NoCheckpoint)},
		{"a checkpoint with 100 signatures", s.signed(strings.Repeat("— witness.example AAAAAAA=\n", 99)), honest},
		{"a checkpoint with 101 signatures", s.signed(strings.Repeat("— witness.example AAAAAAA=\n", 100)), only(NoCheckpoint)},
		{"a checkpoint of an earlier size", s.with(func(b *Bundle) { b.Checkpoint = s.log.checkpoint(s, s.mine+1) }), only(NoRoom)},
		{"no first entry", s.with(func(b *Bundle) { b.Room = nil }), only(NoRoom)},
		{"no first entry and no key", s.with(func(b *Bundle) { b.Room, b.VKey = nil, nil }), only(NoRoom)},
		{"another log key", entry(s, 0, func(r *fairness.Room) { r.LogKey = rival.keys.VKey }), only(NoRoom)},
		{"a policy against the rules", entry(s, 0, func(r *fairness.Room) { r.Claim = 1 }), only(NoRoom)},
		{"an arrival for a policy", s.with(func(b *Bundle) { b.Room = s.log.prove(1) }), only(NoRoom)},
		{"no receipt", s.with(func(b *Bundle) { b.Receipt = nil }), but(BadReceipt)},
		{"a receipt of another operator", s.with(func(b *Bundle) { b.Receipt = rival.receipt(s, s.mine, s.mine+1) }), but(BadReceipt)},
		{"a receipt of another arrival", s.with(func(b *Bundle) { b.Receipt = s.log.receipt(s, s.mine+1, s.mine+2) }), but(NoArrival)},
		{"no arrival", s.with(func(b *Bundle) { b.Arrive = nil }), only(NoArrival)},
		{"an arrival without proof", s.with(func(b *Bundle) { flip(b.Arrive) }), only(NoArrival)},
		{"no growth", s.with(func(b *Bundle) { b.Growth = nil }), but(OtherHistory)},
		{"wrong growth", s.with(func(b *Bundle) { b.Growth[0][0] ^= 1 }), but(OtherHistory)},
		{"an earlier arrival of another visitor", entry(s, 2, func(a *fairness.Arrive) { a.Ticket = s.arrive.Ticket }), [4]Reason{OtherHistory, OtherRoot, Unchecked, Unchecked}},
		{"my arrival given to another", entry(s, s.mine, func(a *fairness.Arrive) { a.Ticket[0] ^= 1 }), only(OtherHistory)},
		{"my arrival left out", s.without(s.mine, s.mine+1), only(OtherHistory)},
		{"another VRF key", entry(s, 0, func(r *fairness.Room) { r.VRFKey[5] ^= 1 }), [4]Reason{OtherHistory, OtherRoot, Unchecked, Unchecked}},
		{"a receipt with another path", s.with(func(b *Bundle) { b.Receipt = s.wrongPath() }), but(OtherReceipt)},
		{"another visitor's ticket", s.with(func(b *Bundle) { b.Ticket = Text(roomtest.Ticket(origin, 0).String()) }), only(OtherTicket)},
	}
}

// signed returns a file whose checkpoint has more signature lines.
func (s *stage) signed(lines string) *Bundle {
	return s.with(func(b *Bundle) { b.Checkpoint = append(b.Checkpoint, lines...) })
}

// line returns the checkpoint's signature line, changed.
func (s *stage) line(change func(signature []byte)) string {
	lines := strings.Split(string(s.log.checkpoint(s, s.log.size)), "\n")
	line := lines[len(lines)-2]
	at := strings.LastIndex(line, " ") + 1
	signature, err := base64.StdEncoding.DecodeString(line[at:])
	if err != nil {
		s.Fatal(err)
	}
	change(signature)
	return line[:at] + base64.StdEncoding.EncodeToString(signature) + "\n"
}

func (s *stage) wrongPath() []byte {
	p, err := audit.ParseProof(s.receipt)
	if err != nil {
		s.Fatal(err)
	}
	p.Path[0][0] ^= 1
	return p.Marshal()
}

func (s *stage) groupCases() []testCase {
	only := func(r Reason) [4]Reason { return [4]Reason{Included, r, Unchecked, Unchecked} }
	other := s.entries[must(find(s.entries, 0, fairness.KindFreeze, 0))].(*fairness.Freeze)
	return []testCase{
		{"a freeze without proof", s.with(func(b *Bundle) { flip(b.Freeze) }), only(NoFreeze)},
		{"a draw for a freeze", s.with(func(b *Bundle) { b.Freeze = b.Draw }), only(NoFreeze)},
		{"no freeze", s.without(s.freezeAt, s.freezeAt+1), only(OtherWindow)},
		{"the freeze of a later window", entry(s, s.freezeAt, func(f *fairness.Freeze) { f.Window = 2 }), only(OtherWindow)},
		{"a freeze earlier than my arrival", s.refrozen(func(f *fairness.Freeze) { f.Time = s.arrive.Time - 1 }), only(Early)},
		{"a freeze of another size", s.refrozen(func(f *fairness.Freeze) { f.Size-- }), only(OtherSize)},
		{"an arrival slipped in after mine", s.tampered(func(all []fairness.Entry) []fairness.Entry {
			return slices.Insert(all, int(s.mine)+1, all[s.mine])
		}), only(OtherSize)},
		{"a freeze of fewer visitors than the arrival's seq", s.refrozen(func(f *fairness.Freeze) { f.Lots[0] = s.arrive.Seq }), only(OtherLots)},
		{"a freeze of more visitors than entries", s.refrozen(func(f *fairness.Freeze) { f.Lots[0] = uint32(f.Size) }), only(OtherLots)},
		{"a freeze of another history", s.refrozen(func(f *fairness.Freeze) { f.Root = other.Root }), only(OtherRoot)},
		{"no proof of the freeze's root", s.with(func(b *Bundle) { b.Frozen = nil }), only(OtherRoot)},
		{"an arrival after mine given to another", entry(s, s.mine+1, func(a *fairness.Arrive) { a.Ticket[0] ^= 1 }), only(OtherRoot)},
		{"a freeze before the window is over", s.refrozen(func(f *fairness.Freeze) { f.Time -= 500 }), [4]Reason{Included, OffSchedule, NoBeacon, Exact}},
	}
}

func (s *stage) drawCases() []testCase {
	only := func(r Reason) [4]Reason { return [4]Reason{Included, Closed, r, Unchecked} }
	return []testCase{
		{"a freeze of one more, drawn as before", entry(s, s.freezeAt, func(f *fairness.Freeze) { f.Lots[0]++ }), only(BadProof)},
		{"a proof with a flipped bit", entry(s, s.freezeAt, func(f *fairness.Freeze) { f.Proof[80] ^= 1 }), only(BadProof)},
		{"a freeze with a beacon round", entry(s, s.freezeAt, func(f *fairness.Freeze) { f.Round = 3 }), only(OtherRound)},
		{"a freeze of one more, with its proof", s.refrozen(func(f *fairness.Freeze) { f.Lots[0]++ }), only(OtherSeed)},
		{"a draw without proof", s.with(func(b *Bundle) { flip(b.Draw) }), only(NoDraw)},
		{"no draw", s.without(s.drawAt, s.drawAt+1), only(NoDraw)},
		{"the draw of a later window", entry(s, s.drawAt, func(d *fairness.Draw) { d.Window = 2 }), only(OtherWindow)},
		{"a draw earlier than the freeze", entry(s, s.drawAt, func(d *fairness.Draw) { d.Time = s.freeze.Time - 1 }), only(Early)},
		{"a beacon signature", entry(s, s.drawAt, func(d *fairness.Draw) { d.Signature = []byte{1} }), only(BadBeacon)},
		{"a cosignature where there are no witnesses", entry(s, s.drawAt, func(d *fairness.Draw) { d.Cosignatures = make([]fairness.Cosignature, 1) }), only(BadWitness)},
		{"another seed", entry(s, s.drawAt, func(d *fairness.Draw) { d.Seed[31] ^= 1 }), only(OtherSeed)},
	}
}

func (s *stage) placeCases() []testCase {
	only := func(r Reason) [4]Reason { return [4]Reason{Included, Closed, NoBeacon, r} }
	firstFreeze := s.log.prove(must(find(s.entries, 0, fairness.KindFreeze, 0)))
	shifted := func(by fairness.Position) *Bundle {
		return s.tampered(func(all []fairness.Entry) []fairness.Entry {
			for _, e := range all {
				if a, ok := e.(*fairness.Assign); ok && a.Window == 1 {
					a.Position += by
				}
			}
			return all
		})
	}
	later := shifted(1)
	later.Earlier = List[Proven]{*shiftedFreeze(s, later, firstFreeze)}
	return []testCase{
		{"a group too large to draw again", s.huge(), only(TooLarge)},
		{"places without proof", s.with(func(b *Bundle) { b.FirstPlace.Proof[0][0] ^= 1 }), only(NoPlaces)},
		{"places from later on", s.with(func(b *Bundle) { b.FirstPlace = s.log.run(s.drawAt+2, s.firstAt+1) }), only(NoPlaces)},
		{"no places in the run", s.with(func(b *Bundle) { b.FirstPlace = s.log.run(s.drawAt+1, s.firstAt) }), only(NoPlaces)},
		{"an empty run", s.with(func(b *Bundle) { b.FirstPlace = &Run{First: Number(s.drawAt + 1)} }), only(NoPlaces)},
		{"one place too many in the run", s.with(func(b *Bundle) { b.FirstPlace = s.log.run(s.drawAt+1, s.firstAt+2) }), only(NoPlaces)},
		{"the first place of a later window", entry(s, s.firstAt, func(a *fairness.Assign) { a.Window = 2 }), only(NoPlaces)},
		{"the first place of another lane", entry(s, s.firstAt, func(a *fairness.Assign) { a.Lane = "vip" }), only(OtherTicket)},
		{"a group that begins far too late", shifted(100), only(OtherFirst)},
		{"a group that begins one later, and the freeze before", later, only(OtherFirst)},
		{"a freeze too many before", s.with(func(b *Bundle) { b.Earlier = List[Proven]{*firstFreeze, *firstFreeze} }), only(OtherFirst)},
		{"no freeze before", s.with(func(b *Bundle) { b.Earlier = List[Proven]{} }), only(OtherFirst)},
		{"a place without proof", s.with(func(b *Bundle) { flip(b.Place) }), only(NoPlace)},
		{"my place given to another", entry(s, s.placeAt, func(a *fairness.Assign) { a.Ticket[0] ^= 1 }), only(OtherTicket)},
		{"my place left out", s.without(s.placeAt, s.placeAt+1), only(OtherPosition)},
		{"my place of another lane", entry(s, s.placeAt, func(a *fairness.Assign) { a.Lane = "vip" }), only(OtherPosition)},
		{"another's place", s.with(func(b *Bundle) { b.Place = s.log.prove(s.placeAt - 1) }), only(OtherPosition)},
		{"another place is shown", s.with(func(b *Bundle) { b.Shown = number(uint64(s.position) + 1) }), only(OtherShown)},
	}
}

// shiftedFreeze proves the first freeze in the tree of a tampered file.
func shiftedFreeze(s *stage, b *Bundle, was *Proven) *Proven {
	log := s.log.rewritten(s, func(all []fairness.Entry) []fairness.Entry {
		for _, e := range all {
			if a, ok := e.(*fairness.Assign); ok && a.Window == 1 {
				a.Position++
			}
		}
		return all
	})
	if string(log.checkpoint(s, log.size)) != string(b.Checkpoint) {
		s.Fatal("not the same tree")
	}
	return log.prove(uint64(was.Index))
}

// huge returns the file of a log with more people in the group than can be shuffled, most of whose entries do
// not exist.
func (s *stage) huge() *Bundle {
	const size, freezeAt = 1 << 26, 1 << 25
	arrive := *s.arrive
	arrive.Seq = 0
	log := &tree{s.keys, size, map[uint64][]byte{0: s.log.entries[0], 3: fairness.AppendEntry(nil, &arrive)}, map[[2]uint64]audit.Hash{}}
	f := &fairness.Freeze{Time: s.freeze.Time, Window: 1, Lots: []uint32{MaxLots + 1}, Size: freezeAt, Root: log.node(0, freezeAt)}
	alpha := fairness.Alpha(hashOf(s.log.entries[0]), f)
	proof, beta := s.keys.VRF.Prove(alpha)
	f.Proof = [fairness.ProofSize]byte(proof)
	d := &fairness.Draw{Time: f.Time, Window: 1, Seed: fairness.NewSeed(alpha, beta, 0, nil)}
	log.entries[freezeAt], log.entries[freezeAt+1] = fairness.AppendEntry(nil, f), fairness.AppendEntry(nil, d)
	clear(log.known)
	b := s.bundle()
	b.Receipt, b.Checkpoint, b.Growth = log.receipt(s, 3, size), log.checkpoint(s, size), Hashes{}
	b.Room, b.Arrive, b.Freeze, b.Draw = log.prove(0), log.prove(3), log.prove(freezeAt), log.prove(freezeAt+1)
	b.Frozen = log.growth(freezeAt)
	b.FirstPlace, b.Place = nil, nil
	return b
}

func upperID(vkey string) string {
	name, rest, _ := strings.Cut(vkey, "+")
	id, key, _ := strings.Cut(rest, "+")
	return name + "+" + strings.ToUpper(id) + "+" + key
}
