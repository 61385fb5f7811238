// Package roomtest makes whole rooms without a server, for tests and
// benchmarks: a [Room] writes a scripted transcript through
// [fairness.State.Apply], with a real VRF and signed checkpoints, and [Files]
// is the published log in memory or below a directory. [Generate] writes rooms
// of millions of entries.
//
// Everything is deterministic, keys and tickets included, so none of it is
// fit for a room with real people.
package roomtest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/vrf"
)

// Opens is when the rooms of this package open, 2026-01-01T00:00:00Z.
const Opens fairness.Time = 1_767_225_600_000

// Keys are the secrets of a room's operator.
type Keys struct {
	Origin string
	Signer note.Signer // of checkpoints
	VKey   string      // the signer's public side
	VRF    *vrf.PrivateKey
}

// NewKeys derives the keys of an operator from a name: other names, other
// keys.
func NewKeys(origin, operator string) (*Keys, error) {
	seed := sha256.Sum256([]byte("log key of " + operator))
	signer, vkey, err := audit.NewSigner(origin, seed[:])
	if err != nil {
		return nil, fmt.Errorf("make keys: %w", err)
	}
	secret := sha256.Sum256([]byte("vrf key of " + operator))
	private, err := vrf.NewPrivateKey(secret[:])
	if err != nil {
		return nil, fmt.Errorf("make keys: %w", err)
	}
	return &Keys{Origin: origin, Signer: signer, VKey: vkey, VRF: private}, nil
}

// Policy returns a small policy with these keys: a first window of a minute,
// then windows of ten seconds, until an hour after the opening.
func (k *Keys) Policy() fairness.Policy {
	return fairness.Policy{
		Created: Opens - 3_600_000,
		Origin:  k.Origin,
		LogKey:  k.VKey,
		VRFKey:  [fairness.PublicKeySize]byte(k.VRF.PublicKey().Bytes()),
		Beacon:  fairness.NoBeacon,
		Lanes:   []fairness.Lane{fairness.General},
		Opens:   Opens,
		Starts:  Opens + 60_000,
		Closes:  Opens + 3_600_000,
		Windows: []fairness.WindowRule{{From: Opens, Length: 60_000}, {From: Opens + 60_000, Length: 10_000}},
		Outflow: fairness.Outflow{PerMinute: 600, MaxActive: 0},
		Claim:   30_000,
		Session: 60_000,
	}
}

// Ticket returns ticket number n of a room.
func Ticket(origin string, n uint64) fairness.Ticket {
	return fairness.NewTicket(origin, Secret(n))
}

// Secret returns the secret of ticket number n.
func Secret(n uint64) [fairness.SecretSize]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte("visitor "), n))
}

// Room writes a transcript, entry by entry. After the first error every
// further call does nothing; Err tells it. Not safe for concurrent use.
type Room struct {
	keys  *Keys
	state fairness.State
	log   *Log
	keep  bool
	all   [][]byte
	text  []byte
	next  uint64            // number of the next ticket
	line  []fairness.Ticket // by place, from 1
	err   error
}

// Open begins a room in memory with its room entry.
func Open(keys *Keys, policy fairness.Policy) *Room {
	r := &Room{keys: keys, log: NewLog(Files{}), keep: true}
	r.Append(&fairness.Room{Policy: policy})
	return r
}

// Err returns the first error, nil for none.
func (r *Room) Err() error { return r.err }

// State returns what the entries made of the room; to read only.
func (r *Room) State() *fairness.State { return &r.state }

// Entries returns the texts of all entries so far.
func (r *Room) Entries() [][]byte { return r.all }

// Publish returns the log at its present size. The room may go on: what was
// published stays.
func (r *Room) Publish() (Files, error) {
	if r.err != nil {
		return nil, r.err
	}
	return Publish(r.keys, r.all)
}

// Append writes any entry the rules accept.
func (r *Room) Append(e fairness.Entry) {
	if r.err != nil {
		return
	}
	if err := r.state.Apply(e, r); err != nil {
		r.err = fmt.Errorf("entry %d: %w", r.state.Size(), err)
		return
	}
	r.text = e.AppendEntry(r.text[:0])
	if r.keep {
		r.all = append(r.all, append([]byte(nil), r.text...))
	}
	r.err = r.log.Append(r.text)
}

// Join writes the arrival of n new tickets at a moment and returns them.
func (r *Room) Join(now fairness.Time, n int) []fairness.Ticket {
	var tickets []fairness.Ticket
	for range n {
		t := Ticket(r.keys.Origin, r.next)
		r.next++
		e, ok := r.state.NextArrive(now, t)
		if !ok {
			r.fail("join at %d: no window is open", now)
			return tickets
		}
		r.Append(&e)
		tickets = append(tickets, t)
	}
	return tickets
}

// Freeze writes the freeze that is due at a moment.
func (r *Room) Freeze(now fairness.Time) {
	if r.err != nil {
		return
	}
	e, alpha, due := r.state.NextFreeze(now, r.Root())
	if !due {
		r.fail("freeze at %d: none is due", now)
		return
	}
	proof, _ := r.keys.VRF.Prove(alpha)
	e.Proof = [fairness.ProofSize]byte(proof)
	r.Append(e)
}

// Draw writes the draw that is due.
func (r *Room) Draw(now fairness.Time) {
	if e, due := r.state.NextDraw(now); due && r.err == nil {
		r.Append(e)
		return
	}
	r.fail("draw at %d: none is due", now)
}

// Assign writes at most n of the places that are due, all for n < 0.
func (r *Room) Assign(n int) {
	for ; n != 0 && r.err == nil; n-- {
		e, due := r.state.NextAssign()
		if !due {
			return
		}
		r.Append(&e)
		r.line = append(r.line, e.Ticket)
	}
}

// At returns the ticket at an assigned position.
func (r *Room) At(p fairness.Position) fairness.Ticket {
	if p < 1 || p > fairness.Position(len(r.line)) {
		r.fail("position %d is not assigned", p)
		return fairness.Ticket{}
	}
	return r.line[p-1]
}

// Settle freezes, draws and assigns one window.
func (r *Room) Settle(now fairness.Time) {
	r.Freeze(now)
	r.Draw(now)
	r.Assign(-1)
}

// Call moves the serving pointer.
func (r *Room) Call(now fairness.Time, upTo fairness.Position) {
	r.Append(&fairness.Call{Time: now, Lane: fairness.General, UpTo: upTo})
}

// Admit gives a called ticket its pass.
func (r *Room) Admit(now fairness.Time, t fairness.Ticket) {
	r.Append(&fairness.Admit{Time: now, Ticket: t, Pass: fairness.NewPassID(r.keys.Origin, t)})
}

// Skip passes a ticket over.
func (r *Room) Skip(now fairness.Time, t fairness.Ticket, why fairness.Reason) {
	r.Append(&fairness.Skip{Time: now, Ticket: t, Reason: why})
}

// End writes the last entry.
func (r *Room) End(now fairness.Time) { r.Append(&fairness.End{Time: now}) }

// Root implements [fairness.Outside].
func (r *Room) Root() [fairness.HashSize]byte { return r.log.Root() }

// VerifyProof implements [fairness.Outside].
func (r *Room) VerifyProof(_ [fairness.PublicKeySize]byte, alpha []byte, proof [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	return r.keys.VRF.PublicKey().Verify(alpha, proof[:])
}

func (r *Room) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}
