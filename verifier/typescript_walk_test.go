package verifier_test

import (
	"errors"
	"math/rand/v2"
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

// deciding reports the rule by which the second program refuses each entry, for one room after the other.
const deciding = `
import { readFileSync } from "node:fs";
import { Room } from "./src/audit/room.ts";
import { Refused } from "./src/audit/rule.ts";

const encoder = new TextEncoder();
const answers = JSON.parse(readFileSync(0, "utf8")).map((entries) => {
  let room;
  return entries.map((text) => {
    try {
      if (room) room.take(encoder.encode(text));
      else room = new Room(encoder.encode(text));
      return "";
    } catch (failure) {
      if (failure instanceof Refused) return failure.rule;
      throw failure;
    }
  });
});
process.stdout.write(JSON.stringify(answers));
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
	line    []fairness.Ticket // assigned
	revoked []fairness.Ticket // at some time
	issuers roomtest.Issuers  // of the methods, if there are any
}

func (w *walk) Root() [fairness.HashSize]byte { return w.tree.Root() }

func (w *walk) VerifyProof(_ [fairness.PublicKeySize]byte, alpha []byte, proof [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	return w.keys.VRF.PublicKey().Verify(alpha, proof[:])
}

func (w *walk) VerifyCosignature(string, uint64, [fairness.HashSize]byte, fairness.Cosignature) (fairness.Time, error) {
	return 0, errors.New("there are no witnesses")
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
	if err == nil {
		w.tree.Append(audit.LeafHash(text))
	}
	return err == nil
}

func (w *walk) pick(from []fairness.Ticket) fairness.Ticket {
	if len(from) == 0 || w.random.IntN(30) == 0 {
		return roomtest.Ticket(origin, 1_000_000)
	}
	return from[w.random.IntN(len(from))]
}

// wait lets some time pass, usually little, and sometimes exactly until the start.
func (w *walk) wait() {
	steps := []fairness.Time{0, 0, 0, 1, 1, 99, 100, 500, 999, 1000, 1001, 5000, 29_999, 30_000}
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
	switch w.random.IntN(19) {
	case 18:
		w.try(&fairness.Restore{Time: now, Ticket: w.pick(w.revoked)})
	case 17:
		w.try(&fairness.Extend{Time: now, Ticket: w.pick(w.line[:min(len(w.line), int(w.state.Counts().Called)+1)])})
	case 16:
		w.beat(now)
	case 0, 1, 2, 3:
		w.join(now)
	case 4:
		w.freeze(now)
	case 5:
		if e, due := w.state.NextDraw(now, w.signature()); due && w.try(e) {
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
	}
	if party := int(w.state.Policy().Party); party > 0 || w.random.IntN(40) == 0 {
		e.Seats = uint32(w.random.IntN(party + 2))
	}
	e.Seq += uint32(w.random.IntN(20) / 19)
	e.Credentials = w.show(lane, ticket)
	if w.try(&e) {
		w.joined = append(w.joined, ticket)
	}
}

// show returns the credentials that a lane needs, and now and then others.
func (w *walk) show(lane fairness.Lane, t fairness.Ticket) []credential.Credential {
	if w.state.Policy().Methods == nil {
		return nil
	}
	subject := w.state.Subject(lane, t)
	if w.random.IntN(20) == 0 {
		subject.Ticket[0] ^= 1
	}
	methods := [][]string{{"task"}, {"task", "club"}, {"task", "phone"}, {"club", "task"}, {"task", "task"}, {"task", "club", "phone"}, {}}
	if lane == "members" {
		methods = [][]string{{"club"}, {"task", "club"}, {"club", "phone"}, {"club", "club"}, {"phone"}, {}}
	}
	chosen := 0
	if w.random.IntN(3) == 0 {
		chosen = w.random.IntN(len(methods))
	}
	return w.issuers.Show(subject, w.random.IntN(20), methods[chosen]...)
}

// beat tries a beat, also with the signature that work waits for, or that of another round. A merit stands for it
// when there is a ticket that can show something.
func (w *walk) beat(now fairness.Time) {
	e := &fairness.Beat{Time: now}
	round, works := w.state.Policy().WorkRound()
	switch w.random.IntN(4) {
	case 0:
		if b := w.state.Policy().Beacon; b != nil {
			e.Signature, _ = w.keys.Chain.Sign(round + uint64(w.random.IntN(4)/3))
		}
	case 1, 2:
		if works && len(w.joined) > 0 {
			w.merit(now)
			return
		}
	}
	w.try(e)
}

func (w *walk) merit(now fairness.Time) {
	ticket := w.joined[max(0, len(w.joined)-1-w.random.IntN(5))]
	method := []string{"club", "phone", "phone", "task"}[w.random.IntN(4)]
	for _, lane := range []fairness.Lane{fairness.General, "members"} { // one of them is the ticket's
		list := w.issuers.Show(w.state.Subject(lane, ticket), w.random.IntN(20), method)
		w.try(&fairness.Merit{Time: now, Ticket: ticket, Credential: list[0]})
	}
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
		w.try(e)
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
	closes := []fairness.Time{near(), near() + 100_000, near() + 3_600_000, fairness.Never}
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

func withDoor(keys *roomtest.Keys) (*fairness.Beacon, []credential.Method, []fairness.LaneRule, roomtest.Issuers) {
	p, i := keys.Door()
	return p.Beacon, p.Methods, p.Lanes, i
}

// TestSecondProgramDecides takes random walks through rooms, and asks both programs about every step: they
// must accept the same entries, and refuse the others by the same rule.
func TestSecondProgramDecides(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	var walks []*walk
	var asked [][]string
	for seed := range uint64(60) {
		w := &walk{keys: keys, random: rand.New(rand.NewPCG(seed, 4))}
		policy := keys.Policy()
		policy.Outflow.PerMinute = []uint32{3, 60, 600, 60_000}[seed%4]
		policy.Closes = []fairness.Time{roomtest.Opens + 3_600_000, roomtest.Opens + 75_000, fairness.Never}[seed%3]
		policy.Grace = []fairness.Millis{fairness.MinGrace, 20_000, fairness.MaxGrace}[seed/2%3]
		policy.Starts += []fairness.Time{0, 600_000}[seed/4%2]
		policy.Extend = []fairness.Millis{0, fairness.MinClaim, 15_000}[seed%3]
		policy.Party, policy.Seats = []uint32{0, 4, 2}[seed%3], []uint32{0, 2, 6, 60}[seed/2%4]
		if seed%2 == 0 {
			policy.Lanes = []fairness.LaneRule{{Name: "members", Weight: 3}, {Name: "general", Weight: uint32(1 + seed)}, {Name: "late", Weight: 100}}
		}
		if seed%4 == 2 {
			policy.Beacon, policy.Methods, policy.Lanes, w.issuers = withDoor(keys)
		}
		w.now = policy.Created + 3_500_000
		if !w.try(&fairness.Room{Policy: policy}) {
			t.Fatal("the policy is refused")
		}
		if round, works := policy.WorkRound(); works && seed%8 == 2 { // others have it later, or never
			w.try(&fairness.Beat{Time: fairness.Time(policy.Beacon.Emitted(round)) - 1})
			w.now = fairness.Time(policy.Beacon.Emitted(round))
			signature, _ := keys.Chain.Sign(round)
			w.try(&fairness.Beat{Time: w.now, Signature: signature})
		}
		for len(w.entries) < 500 {
			w.wait()
			w.step()
		}
		walks, asked = append(walks, w), append(asked, w.entries)
	}
	var answers [][]fairness.Rule
	ask(t, deciding, asked, &answers)
	if len(answers) != len(walks) {
		t.Fatalf("%d answers to %d walks", len(answers), len(walks))
	}
	seen := map[fairness.Rule]int{}
	for i, w := range walks {
		for n := range w.entries {
			seen[w.rules[n]]++
			if answers[i][n] != w.rules[n] {
				t.Errorf("walk %d, step %d, %s: %q here, %q by the second program", i, n, w.entries[n], w.rules[n], answers[i][n])
				break
			}
		}
	}
	t.Logf("steps by rule: %v", seen)
	for _, rule := range []fairness.Rule{
		"", fairness.RuleCredential, fairness.RuleNullifier, fairness.RuleMerit, fairness.RuleBeacon, fairness.RuleTime, fairness.RuleArrival, fairness.RuleTicket, fairness.RuleFreeze, fairness.RuleCall,
		fairness.RuleOutflow, fairness.RuleExtend, fairness.RuleRestore, fairness.RuleSeats, fairness.RuleAdmission, fairness.RuleSkip, fairness.RuleAmend,
	} {
		if seen[rule] < 20 {
			t.Errorf("only %d steps by rule %q", seen[rule], rule)
		}
	}
	if !slices.ContainsFunc(walks, func(w *walk) bool { return len(w.line) > 30 }) {
		t.Error("no walk has a long line")
	}
}

// TestSecondProgramDecidesPolicies asks both programs about policies that differ from a valid one by a number
// or a line.
func TestSecondProgramDecidesPolicies(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	var asked [][]string
	door, _ := keys.Door()
	for _, policy := range []fairness.Policy{keys.Policy(), keys.Witnessed(), door} {
		text := string(fairness.AppendEntry(nil, &fairness.Room{Policy: policy}))
		for _, other := range otherPolicies(text) {
			asked = append(asked, []string{other})
		}
	}
	var answers [][]fairness.Rule
	ask(t, deciding, asked, &answers)
	if len(answers) != len(asked) {
		t.Fatalf("%d answers to %d policies", len(answers), len(asked))
	}
	seen := map[fairness.Rule]int{}
	for i := range asked {
		want := decidePolicy(asked[i][0])
		seen[want]++
		if answers[i][0] != want {
			t.Errorf("%q here, %q by the second program:\n%s", want, answers[i][0], asked[i][0])
		}
	}
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
