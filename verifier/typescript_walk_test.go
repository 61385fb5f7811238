package verifier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/roomtest"
)

// deciding reports the rule by which the second program refuses each entry: a line for each room.
const deciding = `
import { createInterface } from "node:readline";
import { Room } from "./src/audit/room.ts";
import { Refused } from "./src/audit/rule.ts";

const encoder = new TextEncoder();
for await (const line of createInterface({ input: process.stdin })) {
  let room;
  const answers = JSON.parse(line).map((text) => {
    try {
      if (room) room.take(encoder.encode(text));
      else room = new Room(encoder.encode(text));
      return "";
    } catch (failure) {
      if (failure instanceof Refused) return failure.rule;
      throw failure;
    }
  });
  process.stdout.write(JSON.stringify(answers) + "\n");
}
`

// walk is a room that tries random entries.
type walk struct {
	keys    *roomtest.Keys
	state   fairness.State
	tree    audit.Tree
	random  *rand.Rand
	now     fairness.Time
	entries []string // tried
	rules   []fairness.Rule
	joined  []fairness.Ticket
	line    []fairness.Ticket                  // assigned
	revoked []fairness.Ticket                  // at some time
	issuers roomtest.Issuers                   // of the methods, if there are any
	sealed  map[uint64][fairness.HashSize]byte // roots that end with a freeze, by size
	counts  map[string]int                     // what happened, by mechanism
}

// decide gives rooms to the second program, one after the other, and its answers to each.
func decide(t *testing.T, rooms iter.Seq[[]string], each func(i int, answers []fairness.Rule)) {
	t.Helper()
	node := exec.CommandContext(t.Context(), "node", build(t, deciding))
	var stderr bytes.Buffer
	node.Stderr = &stderr
	in, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	asked := make(chan int, 1)
	go func() {
		n, to := 0, json.NewEncoder(in)
		for room := range rooms {
			if to.Encode(room) != nil {
				break // it has ended, which the reader sees
			}
			n++
		}
		_ = in.Close()
		asked <- n
	}()
	from, n := json.NewDecoder(out), 0
	for ; ; n++ {
		var answers []fairness.Rule
		if from.Decode(&answers) != nil {
			break
		}
		each(n, answers)
	}
	err = node.Wait()
	t.Logf("the second program took %v of a processor", node.ProcessState.UserTime())
	if err != nil {
		t.Fatalf("node: %v: %s", err, &stderr)
	}
	if of := <-asked; n != of {
		t.Fatalf("%d answers to %d rooms", n, of)
	}
}

func (w *walk) Root() [fairness.HashSize]byte { return w.tree.Root() }

func (w *walk) VerifyProof(_ [fairness.PublicKeySize]byte, alpha []byte, proof [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	return w.keys.VRF.PublicKey().Verify(alpha, proof[:])
}

func (w *walk) VerifyCosignature(witness string, size uint64, root [fairness.HashSize]byte, c fairness.Cosignature) (fairness.Time, error) {
	seconds, err := audit.Checkpoint{Origin: origin, Size: size, Root: root}.CosignedAt(witness, audit.Cosignature(c))
	return fairness.Time(seconds * 1000), err
}

func (w *walk) VerifyRound(b *fairness.Beacon, round uint64, signature []byte) error {
	return b.Verify(round, signature)
}

func (w *walk) VerifyCredential(v *credential.Verifier, s credential.Subject, c credential.Credential) error {
	return v.Verify(s, c)
}

// try applies an entry and records the rule that refuses it, if any.
func (w *walk) try(e fairness.Entry) bool {
	text := fairness.AppendEntry(nil, e)
	err := w.state.Apply(e, w)
	var v *fairness.Violation
	rule := fairness.Rule("")
	if errors.As(err, &v) {
		rule = v.Rule
	}
	w.entries, w.rules = append(w.entries, string(text)), append(w.rules, rule)
	if err != nil {
		return false
	}
	w.tree.Append(audit.LeafHash(text))
	w.counts[string(fairness.KindOf(e))]++
	return true
}

func (w *walk) pick(from []fairness.Ticket) fairness.Ticket {
	if len(from) == 0 || w.random.IntN(30) == 0 {
		return roomtest.Ticket(origin, 1_000_000)
	}
	return from[w.random.IntN(len(from))]
}

// wait lets some time pass, usually little, and sometimes exactly until the start.
func (w *walk) wait() {
	steps := []fairness.Time{0, 0, 0, 0, 1, 1, 99, 100, 100, 100, 500, 500, 999, 1000, 1001, 2000, 5000, 5000, 29_999, 30_000}
	w.now += steps[w.random.IntN(len(steps))]
	if starts := w.state.Policy().Starts; w.now < starts && w.now > starts-30_000 && w.random.IntN(6) == 0 {
		w.now = starts
	}
}

// step tries one entry, valid or not.
func (w *walk) step() {
	now := w.now
	if w.random.IntN(20) == 0 {
		now -= fairness.Time(w.random.IntN(3))
	}
	if due, over := w.state.FreezeDue(); over && now >= due && w.random.IntN(4) > 0 {
		w.freeze(now)
		return
	}
	switch w.random.IntN(20) {
	case 19:
		w.merit(now)
	case 18:
		w.try(&fairness.Restore{Time: now, Ticket: w.pick(w.revoked)})
	case 17:
		w.try(&fairness.Extend{Time: now, Ticket: w.pick(w.line[:min(len(w.line), int(w.state.Counts().Called)+1)])})
	case 16:
		w.beat(now)
	case 0, 1, 2, 3:
		for range 1 + w.random.IntN(5) {
			w.join(now)
		}
		if w.random.IntN(3) == 0 {
			w.merit(now)
		}
	case 4:
		w.freeze(now)
	case 5:
		if e, due := w.state.NextDraw(now, w.signature(), w.cosign()...); due && w.try(e) {
			for e, due := w.state.NextAssign(); due && w.random.IntN(60) > 0; e, due = w.state.NextAssign() {
				w.line = append(w.line, e.Ticket)
				w.try(&e)
			}
		}
	case 6:
		if e, due := w.state.NextAssign(); due {
			w.line = append(w.line, e.Ticket)
			w.try(&e)
		}
	case 7, 8, 9:
		w.call(now)
	case 10, 11:
		ticket := w.pick(w.line[:min(len(w.line), int(w.state.Counts().Called)+1)])
		w.try(&fairness.Admit{Time: now, Ticket: ticket, Pass: fairness.NewPassID(origin, ticket)})
	case 12:
		if ticket, ok := w.state.TooLarge(); ok {
			w.try(&fairness.Skip{Time: now, Ticket: ticket, Reason: fairness.TooLarge})
			return
		}
		reasons := []fairness.Reason{fairness.NoShow, fairness.NoShow, fairness.Left, fairness.Revoked, fairness.TooLarge}
		from := w.joined
		why := reasons[w.random.IntN(len(reasons))]
		if why == fairness.NoShow {
			from = w.line[:min(len(w.line), int(w.state.Counts().Called)+1)]
		}
		e := &fairness.Skip{Time: now, Ticket: w.pick(from), Reason: why}
		if w.try(e) && why == fairness.Revoked {
			w.revoked = append(w.revoked, e.Ticket)
		}
	default:
		w.amend(now)
	}
}

// lane picks a lane, which now and then the policy does not have.
func (w *walk) lane() fairness.Lane {
	lanes := w.state.Policy().Lanes
	if w.random.IntN(60) == 0 {
		return "vip"
	}
	return lanes[w.random.IntN(len(lanes))].Name
}

// call tries a call that the rules propose, or one that is near it.
func (w *walk) call(now fairness.Time) {
	e, _ := w.state.NextCall(now, uint64(w.random.IntN(6)))
	if e == nil {
		e = &fairness.Call{Time: now, UpTo: make([]fairness.Position, len(w.state.Policy().Lanes))}
		for i, n := range w.state.LaneCounts() {
			e.UpTo[i] = fairness.Position(n.Called)
		}
	}
	if w.random.IntN(3) == 0 {
		e.UpTo[w.random.IntN(len(e.UpTo))] += fairness.Position(w.random.IntN(3))
	}
	if w.random.IntN(40) == 0 {
		e.UpTo = append(e.UpTo, 0)
	}
	w.try(e)
}

func (w *walk) join(now fairness.Time) {
	ticket := roomtest.Ticket(origin, uint64(len(w.joined)))
	if w.random.IntN(20) == 0 {
		ticket = w.pick(w.joined)
	}
	lane := w.lane()
	e, open := w.state.NextArrive(now, ticket, lane)
	if !open {
		e = fairness.Arrive{Time: now, Ticket: ticket, Lane: lane}
		if w.random.IntN(8) > 0 {
			return
		}
	}
	if party := int(w.state.Policy().Party); party > 0 || w.random.IntN(40) == 0 {
		e.Seats = uint32(w.random.IntN(party + 2))
		if e.Seats == 1 && w.random.IntN(10) > 0 {
			e.Seats = 0
		}
	}
	e.Seq += uint32(w.random.IntN(20) / 19)
	e.Credentials = w.show(lane, ticket)
	if w.try(&e) {
		w.joined = append(w.joined, ticket)
	}
}

// show returns the credentials that a lane needs, and now and then others.
func (w *walk) show(lane fairness.Lane, t fairness.Ticket) []credential.Credential {
	policy := w.state.Policy()
	if policy.Methods == nil {
		return nil
	}
	subject := w.state.Subject(lane, t)
	if w.random.IntN(20) == 0 {
		subject.Ticket[0] ^= 1
	}
	i := slices.IndexFunc(policy.Lanes, func(l fairness.LaneRule) bool { return l.Name == lane })
	var chosen []string
	for _, m := range policy.Methods {
		if i >= 0 && slices.Contains(policy.Lanes[i].Needs, m.Name) || w.random.IntN(4) == 0 {
			chosen = append(chosen, m.Name)
		}
	}
	if w.random.IntN(6) == 0 { // in another order, twice, or too few
		for range w.random.IntN(3) {
			chosen = append(chosen, policy.Methods[w.random.IntN(len(policy.Methods))].Name)
		}
		w.random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:len(chosen)-min(len(chosen), w.random.IntN(2))]
	}
	return w.issuers.Show(subject, w.random.IntN(60), chosen...)
}

// beat tries a beat, also with the signature that work waits for, or that of another round.
func (w *walk) beat(now fairness.Time) {
	e := &fairness.Beat{Time: now}
	round, _ := w.state.Policy().WorkRound()
	if b := w.state.Policy().Beacon; b != nil && w.random.IntN(4) == 0 {
		e.Signature, _ = w.keys.Chain.Sign(round + uint64(w.random.IntN(4)/3))
	}
	w.try(e)
}

// merit tries a credential of a ticket that has joined, mostly one of the latest.
func (w *walk) merit(now fairness.Time) {
	methods := w.state.Policy().Methods
	if len(methods) == 0 || len(w.joined) == 0 {
		w.try(&fairness.Merit{Time: now, Ticket: w.pick(w.joined), Credential: credential.Credential{Method: "club", Evidence: []byte{1}}})
		return
	}
	ticket := w.joined[max(0, len(w.joined)-1-w.random.IntN(4))]
	lane := w.lane()
	if st, ok := w.state.Standing(ticket, w.state.Size(), w.state.Now()); ok && w.random.IntN(10) > 0 {
		lane = st.Lane
	}
	method := methods[w.random.IntN(len(methods))].Name
	shown := w.issuers.Show(w.state.Subject(lane, ticket), w.random.IntN(60), method)[0]
	e, ok := fairness.DoorOf(&w.state).NextMerit(now, ticket, shown)
	if !ok {
		e = fairness.Merit{Time: now, Ticket: ticket, Credential: shown}
	}
	e.Seq += uint32(w.random.IntN(20) / 19)
	if w.try(&e) && slices.Contains(w.state.Policy().Lots, method) {
		w.counts["further lots"]++
	}
}

// cosign returns cosignatures of the freeze of the next draw, some of which are not valid.
func (w *walk) cosign() (list []fairness.Cosignature) {
	pending := w.state.Pending()
	if len(w.state.Policy().Witnesses) == 0 || len(pending) == 0 {
		return nil
	}
	p := pending[0]
	text := audit.Checkpoint{Origin: origin, Size: p.Size, Root: w.sealed[p.Size]}.Marshal()
	for _, by := range w.keys.Witnesses {
		at := int64(p.Due)/1000 - 3
		switch w.random.IntN(12) {
		case 0, 1:
			continue
		case 2:
			at += []int64{1, 2, 3, -10, -100}[w.random.IntN(5)]
		}
		list = append(list, fairness.Cosignature(by.Cosign(by.Private, text, at)))
	}
	if len(list) > 1 && w.random.IntN(12) == 0 {
		list[0], list[1] = list[1], list[0]
	}
	return list
}

// signature returns the signature of the round of the next draw.
func (w *walk) signature() []byte {
	pending := w.state.Pending()
	if w.state.Policy().Beacon == nil || len(pending) == 0 {
		return nil
	}
	signature, _ := w.keys.Chain.Sign(pending[0].Round)
	return signature
}

// freeze tries a freeze now, and sometimes just before it is due and when it is.
func (w *walk) freeze(now fairness.Time) {
	at, _ := w.state.FreezeDue()
	e, alpha, due := w.state.NextFreeze(max(now, at), w.Root())
	if !due {
		return
	}
	proof, _ := w.keys.VRF.Prove(alpha)
	e.Proof = [fairness.ProofSize]byte(proof)
	times := []fairness.Time{now}
	if w.random.IntN(2) == 0 && now < at {
		times, w.now = []fairness.Time{at - 1, at}, at
	}
	for _, e.Time = range times {
		if w.try(e) {
			w.sealed[w.state.Size()] = w.Root()
		}
	}
}

func (w *walk) amend(now fairness.Time) {
	e := &fairness.Amend{Time: now}
	switch w.random.IntN(10) {
	case 9:
		n := w.state.Counts()
		e.Change, e.Seats = fairness.ChangeSeats, uint32(n.Held+n.Sold)+uint32(w.random.IntN(6))-min(2, uint32(n.Held))
	case 6:
		e.Change = fairness.ChangeOpen
	case 7:
		e.Change = fairness.ChangeShut
	case 8:
		w.tell(now)
		return
	case 0:
		e.Change, e.Claims = fairness.ChangePause, w.random.IntN(2) == 0
	case 1, 2:
		e.Change = fairness.ChangeResume
	case 3:
		rates := []uint32{0, 1, 5, 6, 7, 60, 61, 600, 10_000_000, 10_000_001}
		e.Change, e.Outflow.PerMinute = fairness.ChangeOutflow, rates[w.random.IntN(len(rates))]
	case 4:
		e.Change = fairness.ChangeMessage
	case 5:
		w.reschedule(e)
	}
	w.try(e)
}

// tell tries a statement. All are allowed.
func (w *walk) tell(now fairness.Time) {
	subjects := []fairness.Subject{fairness.TellStock, fairness.TellPrice, fairness.TellRefused, fairness.TellUnguarded, fairness.TellAuto}
	w.try(&fairness.Tell{Time: now, Subject: subjects[w.random.IntN(len(subjects))], Name: "stalls", From: now - fairness.Time(w.random.IntN(3)),
		Until: now + 1 - fairness.Time(w.random.IntN(3)), Count: w.random.Uint64() >> 1, Min: w.random.Uint64N(3), Max: 1, Currency: "EUR"})
}

// reschedule moves windows around the end of the last one that begins within the notice.
func (w *walk) reschedule(e *fairness.Amend) {
	e.Change = fairness.ChangeWindows
	near := func() fairness.Time {
		to := e.Time + fairness.Time(fairness.MinNotice) - 1
		if a, open := w.state.NextArrive(to, roomtest.Ticket(origin, 2_000_000), w.state.Policy().Lanes[0].Name); open {
			to = w.endOf(a)
		}
		steps := []fairness.Time{-1, 0, 0, 0, 1, 100, 5000, 10_000, 60_000}
		return to + steps[w.random.IntN(len(steps))]
	}
	lengths := []fairness.Millis{99, 100, 1000, 7777, 10_000, 60_000}
	for range w.random.IntN(3) {
		from := near()
		if n := len(e.Windows); n > 0 {
			from = e.Windows[n-1].From + fairness.Time(w.random.IntN(20_000))
		}
		e.Windows = append(e.Windows, fairness.WindowRule{From: from, Length: lengths[w.random.IntN(len(lengths))]})
	}
	closes := []fairness.Time{near(), near() + 100_000, near() + 3_600_000, fairness.Never, fairness.Never}
	e.Closes = closes[w.random.IntN(len(closes))]
}

// endOf finds the end of an arrival's window: the first time that is in another window, or in none.
func (w *walk) endOf(a fairness.Arrive) fairness.Time {
	low, high := a.Time, a.Time+120_000
	for low+1 < high {
		middle := (low + high) / 2
		if next, open := w.state.NextArrive(middle, a.Ticket, a.Lane); open && next.Window == a.Window {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// newWalk returns a room with a random choice of everything that a policy may have.
func newWalk(keys *roomtest.Keys, door *fairness.Policy, issuers roomtest.Issuers, seed uint64) *walk {
	w := &walk{keys: keys, issuers: issuers, random: rand.New(rand.NewPCG(seed, 4)),
		sealed: map[uint64][fairness.HashSize]byte{}, counts: map[string]int{}}
	one := func(of ...int64) int64 { return of[w.random.IntN(len(of))] }
	policy := keys.Policy()
	policy.Outflow.PerMinute = uint32(one(3, 60, 600, 60_000))
	policy.Closes = fairness.Time(one(int64(roomtest.Opens)+3_600_000, int64(roomtest.Opens)+75_000, int64(fairness.Never), int64(fairness.Never)))
	policy.Grace = fairness.Millis(one(int64(fairness.MinGrace), 20_000, int64(fairness.MaxGrace)))
	policy.Starts += fairness.Time(one(0, 0, 0, 600_000))
	policy.Extend = fairness.Millis(one(0, int64(fairness.MinClaim), 15_000))
	policy.Party, policy.Seats = uint32(one(0, 4, 2)), uint32(one(0, 0, 2, 6, 60))
	policy.Slots = fairness.Millis(one(0, 0, 20_000, 29_999, 7_000, 1_000))
	if w.random.IntN(2) == 0 {
		policy.Lanes = []fairness.LaneRule{{Name: "members", Weight: 3}, {Name: "general", Weight: uint32(1 + seed%100)}, {Name: "late", Weight: 100}}
	}
	switch w.random.IntN(6) {
	case 0: // with work
		policy.Beacon, policy.Methods, policy.Lanes = door.Beacon, door.Methods, door.Lanes
	case 1, 2:
		policy.Methods = door.Methods[1:]
		policy.Lanes[0].Needs = [][]string{nil, {"club"}, {"phone"}}[w.random.IntN(3)]
	case 3:
		policy.Beacon = keys.Witnessed().Beacon
	}
	if policy.Beacon != nil && w.random.IntN(2) == 0 {
		policy.Witnesses, policy.Quorum = keys.Witnessed().Witnesses, keys.Witnessed().Quorum
	}
	if policy.Methods != nil {
		policy.Lots = [][]string{nil, {"club"}, {"phone"}, {"club", "phone"}}[w.random.IntN(4)]
	}
	w.now = policy.Created + fairness.Time(one(3_500_000, 3_595_000, 3_599_500, 3_600_000))
	if !w.try(&fairness.Room{Policy: policy}) {
		panic("the policy is refused: " + w.entries[0])
	}
	for name, has := range map[string]bool{
		"lanes": len(policy.Lanes) > 1, "parties": policy.Party > 0, "seats": policy.Seats > 0, "credentials": policy.Methods != nil,
		"lots": policy.Lots != nil, "slots": policy.Slots > 0, "extensions": policy.Extend > 0, "a beacon": policy.Beacon != nil, "witnesses": policy.Witnesses != nil,
	} {
		if has {
			w.counts["rooms with "+name]++
		}
	}
	if round, works := policy.WorkRound(); works && w.random.IntN(2) == 0 { // others have it later, or never
		w.try(&fairness.Beat{Time: fairness.Time(policy.Beacon.Emitted(round)) - 1})
		w.now = fairness.Time(policy.Beacon.Emitted(round))
		signature, _ := keys.Chain.Sign(round)
		w.try(&fairness.Beat{Time: w.now, Signature: signature})
	}
	return w
}

// TestSecondProgramDecides takes random walks through rooms, and asks both programs about every step: they
// must accept the same entries, and refuse the others by the same rule. With PROOFLINE_ROOMS=N there are N rooms.
func TestSecondProgramDecides(t *testing.T) {
	rooms := 80
	if n, err := strconv.Atoi(os.Getenv("PROOFLINE_ROOMS")); err == nil {
		rooms = n
	}
	keys := newKeys(t, origin, "honest")
	door, issuers := keys.Door()
	made := make(chan *walk, 100)
	walks := func(yield func([]string) bool) {
		defer close(made)
		for seed := range uint64(rooms) {
			w := newWalk(keys, &door, issuers, seed)
			for steps := 50 + w.random.IntN(250); len(w.entries) < steps; {
				w.wait()
				w.step()
			}
			made <- w
			if !yield(w.entries) {
				return
			}
		}
	}
	seen, counts, longest, agreed := map[fairness.Rule]int{}, map[string]int{}, 0, 0
	decide(t, walks, func(i int, answers []fairness.Rule) {
		w := <-made
		longest = max(longest, len(w.line))
		for name, n := range w.counts {
			counts[name] += n
		}
		for n := range w.entries {
			seen[w.rules[n]]++
			if answers[n] != w.rules[n] {
				t.Errorf("room %d, step %d, %s: %q here, %q by the second program", i, n, w.entries[n], w.rules[n], answers[n])
				return
			}
		}
		if agreed++; agreed%100 == 0 {
			t.Logf("%d rooms", agreed)
		}
	})
	t.Logf("the programs agree about %d of %d rooms", agreed, rooms)
	t.Logf("steps by rule: %v", seen)
	t.Logf("entries and mechanisms: %v", counts)
	for _, rule := range []fairness.Rule{
		"", fairness.RuleCredential, fairness.RuleNullifier, fairness.RuleMerit, fairness.RuleBeacon, fairness.RuleTime, fairness.RuleArrival, fairness.RuleTicket, fairness.RuleFreeze, fairness.RuleCall,
		fairness.RuleOutflow, fairness.RuleExtend, fairness.RuleRestore, fairness.RuleSeats, fairness.RuleAdmission, fairness.RuleSkip, fairness.RuleAmend,
	} {
		if seen[rule] < 8 {
			t.Errorf("only %d steps by rule %q", seen[rule], rule)
		}
	}
	for _, name := range []string{
		"draw", "assign", "call", "admit", "extend", "restore", "skip", "amend", "tell", "merit", "further lots",
		"rooms with lots", "rooms with slots", "rooms with witnesses", "rooms with seats", "rooms with parties",
	} {
		if counts[name] < 5 {
			t.Errorf("only %d times %s", counts[name], name)
		}
	}
	if longest <= 30 {
		t.Error("no room has a long line")
	}
}

// TestSecondProgramDecidesPolicies asks both programs about policies that differ from a valid one by a number
// or a line.
func TestSecondProgramDecidesPolicies(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	var asked [][]string
	door, _ := keys.Door()
	lots, slots := door, keys.Policy()
	lots.Lots, slots.Slots = []string{"club", "phone"}, 20_000
	for _, policy := range []fairness.Policy{keys.Policy(), keys.Witnessed(), door, lots, slots} {
		text := string(fairness.AppendEntry(nil, &fairness.Room{Policy: policy}))
		for _, other := range otherPolicies(text) {
			asked = append(asked, []string{other})
		}
	}
	seen := map[fairness.Rule]int{}
	decide(t, slices.Values(asked), func(i int, answers []fairness.Rule) {
		want := decidePolicy(asked[i][0])
		seen[want]++
		if answers[0] != want {
			t.Errorf("%q here, %q by the second program:\n%s", want, answers[0], asked[i][0])
		}
	})
	t.Logf("policies by rule: %v", seen)
	for _, rule := range []fairness.Rule{"", "form", fairness.RulePolicy} {
		if seen[rule] < 20 {
			t.Errorf("only %d policies by rule %q", seen[rule], rule)
		}
	}
}

func decidePolicy(text string) fairness.Rule {
	e, err := fairness.ParseEntry([]byte(text))
	if err != nil {
		return "form"
	}
	var v *fairness.Violation
	if errors.As(new(fairness.State).Apply(e, &walk{}), &v) {
		return v.Rule
	}
	return ""
}

// otherPolicies replaces every number by its neighbours and by limits of the rules, and removes, doubles and
// swaps lines.
func otherPolicies(text string) (all []string) {
	limits := []int64{
		0, 1, 2, 99, 100, 999, 1000, 4999, 5000, 9999, 10_000, 3_600_000, 3_600_001, 2_678_400, 2_678_401, 10_000_000, 10_000_001, 86_400_000, 86_400_001,
		604_800_000, 604_800_001, 2_678_400_000, 2_678_400_001, 1<<32 - 1, 1 << 32, 1 << 42, 1<<42 + 1, 1<<53 - 2, 1<<53 - 1, 1<<63 - 1,
	}
	for _, at := range regexp.MustCompile(`(?m)\b[0-9]+( |$)`).FindAllStringIndex(text, -1) {
		number := strings.TrimRight(text[at[0]:at[1]], " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue // a hash
		}
		for _, value := range append([]int64{n - 1, n + 1}, limits...) {
			all = append(all, text[:at[0]]+strconv.FormatInt(value, 10)+text[at[0]+len(number):])
		}
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		less := slices.Delete(slices.Clone(lines), i, i+1)
		more := slices.Insert(slices.Clone(lines), i, lines[i])
		swapped := slices.Clone(lines)
		swapped[i], swapped[max(i-1, 0)] = swapped[max(i-1, 0)], swapped[i]
		for _, other := range [][]string{less, more, swapped} {
			all = append(all, strings.Join(other, "\n"))
		}
	}
	return append(all, regexp.MustCompile(`closes [0-9]+`).ReplaceAllString(text, "closes never"), text)
}
