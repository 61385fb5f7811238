package fairness

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/table"
)

// Times of the room that most tests use: it opens at base with one window of a minute, and continues with
// windows of ten seconds until base+200s.
const (
	base   Time = 1_800_000_000_000
	second Time = 1000
	minute Time = 60 * second
)

func testPolicy() Policy {
	return Policy{
		Created: base - minute,
		Origin:  "queue.example.com/r/show",
		LogKey:  "queue.example.com/r/show+00112233+AQID",
		VRFKey:  [PublicKeySize]byte{2, 1, 2, 3},
		Lanes:   []LaneRule{{General, 1, nil}},
		Opens:   base,
		Starts:  base + minute,
		Closes:  base + 200*second,
		Windows: []WindowRule{{base, 60_000}, {base + minute, 10_000}},
		Notice:  MinNotice,
		Outflow: Outflow{PerMinute: 600, MaxActive: 100},
		Claim:   30_000,
		Grace:   MaxGrace,
		Session: 600_000,
	}
}

// lanesOf returns n lanes of weights 1 to n, the first of which is [General].
func lanesOf(n int) []LaneRule {
	lanes := []LaneRule{{General, 1, nil}}
	for i := 1; i < n; i++ {
		lanes = append(lanes, LaneRule{Lane(fmt.Sprintf("lane-%d", i)), uint32(i + 1), nil})
	}
	return lanes
}

// fakeOracle replaces log and VRF: the test sets the root, and each input has one valid proof, derived from
// the key and the input.
type fakeOracle struct {
	root        [HashSize]byte
	fakesRounds bool // rounds have signatures of [fakeRound], which take less time to verify
}

func (o *fakeOracle) Root() [HashSize]byte { return o.root }

func (o *fakeOracle) VerifyProof(key [PublicKeySize]byte, alpha []byte, proof [ProofSize]byte) ([BetaSize]byte, error) {
	if proof != fakeProof(key, alpha) {
		return [BetaSize]byte{}, errors.New("not a proof of this key")
	}
	return sha256.Sum256(proof[:]), nil
}

// VerifyCosignature accepts the output of [fakeCosignature].
func (o *fakeOracle) VerifyCosignature(witness string, size uint64, root [HashSize]byte, c Cosignature) (Time, error) {
	at := Time(binary.BigEndian.Uint64(c[4:]))
	if c != fakeCosignature(witness, size, root, at) {
		return 0, errors.New("not a cosignature of this")
	}
	return at, nil
}

func (o *fakeOracle) VerifyRound(b *Beacon, round uint64, signature []byte) error {
	if o.fakesRounds {
		return isFakeRound(round, signature)
	}
	return b.Verify(round, signature)
}

func (o *fakeOracle) VerifyCredential(v *credential.Verifier, s credential.Subject, c credential.Credential) error {
	return v.Verify(s, c)
}

func fakeCosignature(witness string, size uint64, root [HashSize]byte, at Time) (c Cosignature) {
	binary.BigEndian.PutUint64(c[4:], uint64(at))
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64([]byte(witness), size), append(root[:], c[4:12]...)...))
	copy(c[12:], sum[:])
	return c
}

func fakeProof(key [PublicKeySize]byte, alpha []byte) (proof [ProofSize]byte) {
	sum := sha256.Sum256(append(key[:], alpha...))
	copy(proof[:], sum[:])
	return proof
}

// script plays a room entry by entry. Every entry is encoded and parsed, and a twin state receives
// only accepted entries, which reveals refused entries that left a trace.
type script struct {
	testing.TB
	*State
	twin   State
	oracle fakeOracle
	texts  []string
	joined uint64 // tickets created
}

func newScript(t testing.TB, p Policy) *script {
	r := &script{TB: t, State: &State{}}
	r.must(&Room{Policy: p})
	return r
}

// must applies an entry that the rules allow.
func (r *script) must(e Entry) {
	r.Helper()
	text := AppendEntry(nil, e)
	parsed, err := ParseEntry(text)
	if err != nil {
		r.Fatalf("parse %q: %v", text, err)
	}
	if err := r.State.Apply(parsed, &r.oracle); err != nil {
		r.Fatalf("apply %q: %v", text, err)
	}
	if err := r.twin.Apply(e, &r.oracle); err != nil {
		r.Fatalf("apply %q without its text: %v", text, err)
	}
	r.texts = append(r.texts, string(text))
	r.oracle.root = sha256.Sum256(append(r.oracle.root[:], text...))
}

// refuse applies an entry that breaks a rule, and checks that nothing changes.
func (r *script) refuse(want Rule, e Entry) {
	r.Helper()
	err := r.State.Apply(e, &r.oracle)
	var v *Violation
	if !errors.As(err, &v) {
		r.Fatalf("apply %q: got %v, want a violation of rule %s", AppendEntry(nil, e), err, want)
	}
	if v.Rule != want || v.Detail == "" {
		r.Errorf("apply %q: got %v, want a violation of rule %s", AppendEntry(nil, e), v, want)
	}
	if diff := diffState(&r.twin, r.State); diff != "" {
		r.Fatalf("refused %q changed the state (-before +after):\n%s", AppendEntry(nil, e), diff)
	}
}

// diffState compares every field of two states, including unexported ones.
func diffState(a, b *State) string {
	if reflect.DeepEqual(a, b) { // much faster
		return ""
	}
	verifiers := cmp.Comparer(func(a, b *credential.Verifier) bool { return (a == nil) == (b == nil) })
	return cmp.Diff(a, b, cmp.Exporter(func(reflect.Type) bool { return true }), verifiers,
		cmp.Comparer(func(a, b table.Index) bool { return a.Equal(&b) }))
}

// numbered returns a ticket that has no secret, different for every n.
func numbered(n uint64) (t Ticket) {
	binary.BigEndian.PutUint64(t[8:], n)
	t[6], t[8] = 0x80, 0x80|t[8]&0x3f
	return t
}

// join joins n new tickets at a time, and returns them.
func (r *script) join(at Time, n int) []Ticket {
	r.Helper()
	r.over(at)
	tickets := make([]Ticket, n)
	for i := range tickets {
		tickets[i] = numbered(r.joined)
		r.joined++
		e, ok := r.NextArrive(at, tickets[i], General)
		if !ok {
			r.Fatalf("no window is open at base+%d", at-base)
		}
		r.must(&e)
	}
	return tickets
}

// over freezes the window that is over at a time.
func (r *script) over(at Time) {
	r.Helper()
	if due, ok := r.FreezeDue(); ok && due <= at {
		r.must(r.freeze(at))
	}
}

// freeze returns the entry that is due, with its proof.
func (r *script) freeze(at Time) *Freeze {
	r.Helper()
	e, alpha, ok := r.NextFreeze(at, r.oracle.root)
	if !ok {
		r.Fatalf("no freeze is due at base+%d", at-base)
	}
	e.Proof = fakeProof(r.policy.VRFKey, alpha)
	return e
}

// settleWindows appends all freezes, draws and assignments that are due.
func (r *script) settleWindows(at Time) {
	r.Helper()
	r.over(at)
	for r.windows.drawn < r.windows.frozen {
		e, ok := r.NextDraw(at, nil)
		if !ok {
			r.Fatal("no draw is due after a freeze")
		}
		r.must(e)
	}
	for e, ok := r.NextAssign(); ok; e, ok = r.NextAssign() {
		r.must(&e)
	}
}

// callLimit returns how far [State.NextCall] moves the pointer of the first lane.
func (s *State) callLimit(now Time, capacity uint64) (Position, bool) {
	e, _ := s.NextCall(now, capacity)
	if e == nil {
		return 0, false
	}
	return e.UpTo[0], true
}

// call moves the pointer up to a position; admit admits a ticket.
func (r *script) call(at Time, upTo Position) { r.Helper(); r.must(&Call{at, []Position{upTo}}) }

func (r *script) admission(at Time, t Ticket) *Admit {
	return &Admit{at, t, NewPassID(r.policy.Origin, t)}
}

// at returns the arrival that has a drawn place of a lane.
func (s *State) at(l *lane, p Position) *arrival {
	number, _ := l.holder(&s.arrivals, p)
	return s.arrivals.At(number)
}

// ticketAt returns the ticket at a drawn position.
func (r *script) ticketAt(p Position) Ticket { return r.at(&r.lanes.all[0], p).ticket }

// merit returns the entry of a credential, also where none may come.
func (s *State) merit(at Time, t Ticket, c credential.Credential) *Merit {
	e, ok := DoorOf(s).NextMerit(at, t, c)
	if !ok {
		e = Merit{Time: at, Ticket: t, Credential: c}
	}
	return &e
}
