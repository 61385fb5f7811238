// Package roomtest creates rooms without a server for tests and benchmarks. A [Room] writes a
// scripted transcript through [fairness.State.Apply], with a real VRF and signed checkpoints;
// [Files] is the published log in memory. [Generate] writes rooms with millions of entries.
//
// Everything is deterministic, including keys and tickets, and therefore unsuitable for real rooms.
package roomtest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/vrf"
)

// Opens is the opening time of the rooms in this package, 2026-01-01T00:00:00Z.
const Opens fairness.Time = 1_767_225_600_000

// Keys are the keys of a room's operator.
type Keys struct {
	Origin string
	Signer note.Signer // signs checkpoints
	VKey   string      // verifier key of Signer
	VRF    *vrf.PrivateKey
	// Chain is a beacon with all rounds known. Witnesses are those of [Keys.Witnessed].
	Chain     *local.Beacon
	Witnesses []Witness
}

// Witness is a witness with its signing key.
type Witness struct {
	audit.Witness
	Private ed25519.PrivateKey
}

// NewKeys derives an operator's keys from a name.
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
	k := &Keys{Origin: origin, Signer: signer, VKey: vkey, VRF: private}
	return k, k.addOthers(operator)
}

// addOthers adds the beacon and the witnesses.
func (k *Keys) addOthers(operator string) (err error) {
	secret, err := local.ParseKey(fmt.Sprintf("%x", sha256.Sum256([]byte("beacon key of "+operator))))
	if err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	k.Chain, err = local.New(secret, local.Config{
		ID: "roomtest", Genesis: int64(Opens)/1000 - 86_400, Period: 3,
		// late enough for every round to have appeared
		Now: func() time.Time { return time.UnixMilli(int64(Opens)).AddDate(100, 0, 0) },
	})
	if err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	for i := range 3 {
		seed := sha256.Sum256(fmt.Appendf(nil, "key of witness %d of %s", i, operator))
		private := ed25519.NewKeyFromSeed(seed[:])
		w, err := audit.NewWitness(fmt.Sprintf("witness%d.example.org", i), private.Public().(ed25519.PublicKey))
		if err != nil {
			return fmt.Errorf("make keys: %w", err)
		}
		k.Witnesses = append(k.Witnesses, Witness{w, private})
	}
	return nil
}

// Witnessed returns the policy of [Keys.Policy] with beacon and witnesses, of which two must
// cosign.
func (k *Keys) Witnessed() fairness.Policy {
	p := k.Policy()
	p.Beacon, p.Quorum = &fairness.Beacon{Chain: k.Chain.Chain(), Margin: 5000}, 2
	for _, w := range k.Witnesses {
		p.Witnesses = append(p.Witnesses, w.String())
	}
	return p
}

// Policy returns a small policy with these keys: a first window of one minute, then windows of ten
// seconds until an hour after the opening.
func (k *Keys) Policy() fairness.Policy {
	return fairness.Policy{
		Created: Opens - 3_600_000,
		Origin:  k.Origin,
		LogKey:  k.VKey,
		VRFKey:  [fairness.PublicKeySize]byte(k.VRF.PublicKey().Bytes()),
		Lanes:   []fairness.LaneRule{{Name: fairness.General, Weight: 1}},
		Opens:   Opens,
		Starts:  Opens + 60_000,
		Closes:  Opens + 3_600_000,
		Windows: []fairness.WindowRule{{From: Opens, Length: 60_000}, {From: Opens + 60_000, Length: 10_000}},
		Notice:  fairness.MinNotice,
		Outflow: fairness.Outflow{PerMinute: 600, MaxActive: 0},
		Claim:   30_000,
		Grace:   fairness.MaxGrace,
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

// Room writes a transcript entry by entry. After an error, all further calls do nothing and Err
// returns it. It is not safe for concurrent use.
type Room struct {
	keys  *Keys
	state fairness.State
	log   *Log
	keep  bool
	all   [][]byte
	text  []byte
	next  uint64            // number of the next ticket
	line  []fairness.Ticket // tickets by position in the first lane, from 1
	err   error

	issuer *issuertest.Issuer    // of [Generate]; nil: none
	sealed map[uint64]audit.Hash // roots that end with a freeze, by size
}

// Open creates a room in memory with its room entry.
func Open(keys *Keys, policy fairness.Policy) *Room {
	r := &Room{keys: keys, log: NewLog(Files{}), keep: true}
	r.Append(&fairness.Room{Policy: policy})
	return r
}

// Err returns the first error, or nil.
func (r *Room) Err() error { return r.err }

// State returns the state of the room. Callers must not modify it.
func (r *Room) State() *fairness.State { return &r.state }

// Entries returns the texts of all entries.
func (r *Room) Entries() [][]byte { return r.all }

// Publish returns the log at its present size. Later entries do not change it.
func (r *Room) Publish() (Files, error) {
	if r.err != nil {
		return nil, r.err
	}
	return Publish(r.keys, r.all)
}

// Append writes any entry that the rules accept.
func (r *Room) Append(e fairness.Entry) {
	if r.err != nil {
		return
	}
	if err := r.state.Apply(e, r); err != nil {
		r.err = fmt.Errorf("entry %d: %w", r.state.Size(), err)
		return
	}
	r.text = fairness.AppendEntry(r.text[:0], e)
	if r.keep {
		r.all = append(r.all, append([]byte(nil), r.text...))
	}
	r.err = r.log.Append(r.text)
}

// Join writes the arrivals of n new tickets in the first lane at a time, and returns them.
func (r *Room) Join(now fairness.Time, n int) []fairness.Ticket {
	return r.JoinLane(now, r.state.Policy().Lanes[0].Name, n)
}

// JoinLane writes the arrivals of n new tickets in a lane at a time, and returns them.
func (r *Room) JoinLane(now fairness.Time, lane fairness.Lane, n int) []fairness.Ticket {
	var tickets []fairness.Ticket
	for range n {
		tickets = append(tickets, r.JoinWith(now, lane))
	}
	return tickets
}

// JoinWith joins a new ticket to a lane, with credentials.
func (r *Room) JoinWith(now fairness.Time, lane fairness.Lane, shown ...credential.Credential) fairness.Ticket {
	t := Ticket(r.keys.Origin, r.next)
	r.next++
	e, ok := r.state.NextArrive(now, t, lane)
	if !ok {
		r.fail("join at %d: no window is open", now)
		return t
	}
	e.Credentials = shown
	r.Append(&e)
	return t
}

// Freeze writes the freeze that is due at a time.
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
	if r.sealed == nil {
		r.sealed = map[uint64]audit.Hash{}
	}
	r.sealed[r.state.Size()] = r.Root()
}

// Draw writes the pending draw at now or, if later, when its round appears. In a room with
// witnesses, all of them cosign three seconds earlier.
func (r *Room) Draw(now fairness.Time) { r.DrawBy(now, r.keys.Witnesses...) }

// DrawBy writes the pending draw with the cosignatures of these witnesses only.
func (r *Room) DrawBy(now fairness.Time, witnesses ...Witness) {
	pending := r.state.Pending()
	if len(pending) == 0 || r.err != nil {
		r.fail("draw at %d: none is pending", now)
		return
	}
	p := pending[0]
	var signature []byte
	if p.Round > 0 {
		signature, r.err = r.keys.Chain.Sign(p.Round)
	}
	var cosignatures []fairness.Cosignature
	if r.state.Policy().Quorum > 0 {
		cosignatures = r.cosign(p, witnesses)
	}
	e, due := r.state.NextDraw(max(now, p.Due), signature, cosignatures...)
	if !due {
		r.fail("draw at %d: none is due", now)
		return
	}
	r.Append(e)
}

func (r *Room) cosign(p fairness.Pending, witnesses []Witness) (list []fairness.Cosignature) {
	text := audit.Checkpoint{Origin: r.keys.Origin, Size: p.Size, Root: r.sealed[p.Size]}.Marshal()
	for _, w := range witnesses {
		list = append(list, fairness.Cosignature(w.Cosign(w.Private, text, int64(p.Due)/1000-3)))
	}
	return list
}

// Assign writes at most n of the due assignments, or all if n < 0.
func (r *Room) Assign(n int) {
	for ; n != 0 && r.err == nil; n-- {
		e, due := r.state.NextAssign()
		if !due {
			return
		}
		r.Append(&e)
		if e.Lane == r.state.Policy().Lanes[0].Name {
			r.line = append(r.line, e.Ticket)
		}
	}
}

// At returns the ticket at an assigned position of the first lane.
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

// Call writes a call, with the serving pointer of each lane.
func (r *Room) Call(now fairness.Time, upTo ...fairness.Position) {
	r.Append(&fairness.Call{Time: now, UpTo: upTo})
}

// Admit writes the admission of a called ticket.
func (r *Room) Admit(now fairness.Time, t fairness.Ticket) {
	r.Append(&fairness.Admit{Time: now, Ticket: t, Pass: fairness.NewPassID(r.keys.Origin, t)})
}

// Skip writes the skip of a ticket.
func (r *Room) Skip(now fairness.Time, t fairness.Ticket, why fairness.Reason) {
	r.Append(&fairness.Skip{Time: now, Ticket: t, Reason: why})
}

// End writes the end entry.
func (r *Room) End(now fairness.Time) { r.Append(&fairness.End{Time: now}) }

// Root implements [fairness.Oracle].
func (r *Room) Root() [fairness.HashSize]byte { return r.log.Root() }

// VerifyProof implements [fairness.Oracle].
func (r *Room) VerifyProof(_ [fairness.PublicKeySize]byte, alpha []byte,
	proof [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	return r.keys.VRF.PublicKey().Verify(alpha, proof[:])
}

// VerifyCosignature implements [fairness.Oracle].
func (r *Room) VerifyCosignature(witness string, size uint64, root [fairness.HashSize]byte,
	c fairness.Cosignature) (fairness.Time, error) {
	seconds, err := audit.Checkpoint{Origin: r.keys.Origin, Size: size, Root: root}.CosignedAt(witness,
		audit.Cosignature(c))
	return fairness.Time(seconds * 1000), err
}

// VerifyRound implements [fairness.Oracle].
func (r *Room) VerifyRound(b *fairness.Beacon, round uint64, signature []byte) error {
	return b.Verify(round, signature)
}

// VerifyCredential implements [fairness.Oracle]. Those of [Generate], which are valid, it does not verify again.
func (r *Room) VerifyCredential(v *credential.Verifier, s credential.Subject, c credential.Credential) error {
	if r.issuer != nil {
		return nil
	}
	return v.Verify(s, c)
}

func (r *Room) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}
