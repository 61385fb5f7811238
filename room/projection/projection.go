// Package projection keeps the state of a room's transcript in memory. From that, and from facts outside of the
// transcript such as live sessions, it decides which entries are due: calls, draws, gate switches and the end.
//
// It does no I/O. Package sequence applies entries to a projection under a lock; readers hold that lock, too.
package projection

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/vrf"
)

// Projection is the state of a room after some entries of its transcript.
type Projection struct {
	*fairness.State
	controls   *Controls
	evidence   Evidence
	parser     fairness.Parser
	oracle     oracle          // reused, to save an allocation per entry
	admissions []fairness.Time // admissions that may have a live session, oldest first; some may have ended
	noShows    fairness.Scan   // all claims before it are settled
	lastCall   fairness.Time
	cosigned   [][]uint32 // key hashes of the witnesses of each of the latest draws
	gate       gateHistory
	told       []fairness.Tell // latest statements about refused joins, oldest first
	merits     merits
	withdrawn  []string // latest withdrawn tickets, see [Projection.Withdrawn]
}

// Evidence provides the beacon rounds and cosignatures that draws need, and the round that work is done for.
type Evidence interface {
	// Of returns the evidence for a draw; ok reports whether the draw may go ahead.
	Of(p fairness.Pending, policy *fairness.Policy, now fairness.Time) (signature []byte,
		cosignatures []fairness.Cosignature, ok bool)
	// Round returns the verified signature of a round of the policy's beacon; nil: not known yet.
	Round(round uint64) []byte
}

// New returns the projection of an empty transcript. Without evidence, draws that need a beacon are not due.
// Without controls, sessions last as long as their passes, and no visitor is admitted without one.
func New(controls *Controls, evidence Evidence) *Projection {
	if controls == nil {
		controls = &Controls{}
		controls.Sessions.Set(0, fairness.Never-sessionLag)
	}
	return &Projection{State: &fairness.State{}, controls: controls, evidence: evidence}
}

// Apply applies one entry, unless the rules refuse it; root returns the root of the tree before it.
func (p *Projection) Apply(e fairness.Entry, root func() audit.Hash) error {
	p.oracle.root, p.oracle.state = root, p.State
	if err := p.State.Apply(e, &p.oracle); err != nil {
		return err
	}
	switch e := e.(type) {
	case *fairness.Admit:
		since := p.controls.Sessions.knownUntil(e.Time)
		p.admissions = append(p.within(since, fairness.Time(p.Policy().Session)), e.Time)
	case *fairness.Call:
		p.lastCall = e.Time
	case *fairness.Draw:
		p.noteCosigned(e)
	case *fairness.Merit:
		p.merits.note(e, p.Policy(), p.Size()-1)
	case *fairness.Skip:
		p.noteWithdrawn(e)
	case *fairness.Tell:
		p.noteTold(e)
	case *fairness.Restore:
		digits := e.Ticket.String()[:withdrawnDigits]
		p.withdrawn = slices.DeleteFunc(slices.Clone(p.withdrawn), func(other string) bool { return other == digits })
	case *fairness.Amend:
		if e.Change == fairness.ChangeOpen || e.Change == fairness.ChangeShut {
			p.controls.Unqueued.Expect()
		}
	}
	p.gate.note(e, p.State)
	return nil
}

// Read applies one entry that is already in the log; root is that of [Projection.Apply].
func (p *Projection) Read(text []byte, root func() audit.Hash) error {
	e, err := p.parser.Parse(text)
	if err != nil {
		return err
	}
	return p.Apply(e, root)
}

// within returns the admissions that are at most age old, oldest first.
func (p *Projection) within(now, age fairness.Time) []fairness.Time {
	first := sort.Search(len(p.admissions), func(i int) bool { return p.admissions[i]+age+sessionLag > now })
	return p.admissions[first:]
}

// maxDraws is the number of latest draws whose cosignatures are kept.
const maxDraws = 10

// Cosigned returns the key hashes of the witnesses that cosigned each of the latest draws, at most ten, oldest
// first. The caller must not change it.
func (p *Projection) Cosigned() [][]uint32 { return p.cosigned }

// noteCosigned records the witnesses that cosigned the freeze of a draw. It copies the list, because readers
// may hold the one before.
func (p *Projection) noteCosigned(e *fairness.Draw) {
	if len(p.Policy().Witnesses) == 0 {
		return
	}
	hashes := make([]uint32, 0, len(e.Cosignatures))
	for i := range e.Cosignatures {
		hashes = append(hashes, binary.BigEndian.Uint32(e.Cosignatures[i][:]))
	}
	kept := p.cosigned[max(0, len(p.cosigned)-(maxDraws-1)):]
	p.cosigned = append(slices.Clone(kept), hashes)
}

const (
	// maxWithdrawn is the number of latest withdrawn tickets that a room publishes.
	maxWithdrawn = 32
	// withdrawnDigits is the length of the published prefix of each: visitors rarely share one, and one who does only
	// makes an extra request.
	withdrawnDigits = 8
)

// Withdrawn returns the first eight digits of each of the latest tickets that the organizer withdrew, at most
// 32, oldest first.
func (p *Projection) Withdrawn() []string { return slices.Clone(p.withdrawn) }

// noteWithdrawn records a ticket that the organizer withdrew.
func (p *Projection) noteWithdrawn(e *fairness.Skip) {
	if !e.Reason.IsRevoked() {
		return
	}
	p.withdrawn = append(p.withdrawn, e.Ticket.String()[:withdrawnDigits])
	if len(p.withdrawn) > maxWithdrawn {
		p.withdrawn = p.withdrawn[1:]
	}
}

// Mark holds a projection's state before an append, which may fail.
type Mark struct {
	state      fairness.Mark
	admissions []fairness.Time
	noShows    fairness.Scan
	lastCall   fairness.Time
	cosigned   [][]uint32
	merits     int // number of them
	gate       gateHistory
	told       []fairness.Tell
}

// Mark returns the present state for [Projection.Undo].
func (p *Projection) Mark() *Mark {
	return &Mark{p.State.Mark(), p.admissions, p.noShows, p.lastCall, p.cosigned, len(p.merits.list), p.gate, p.told}
}

// Undo takes the projection back to a mark, the state that is stored. Reloading millions of entries instead would
// burden a database that is already in trouble.
func (p *Projection) Undo(m *Mark) {
	p.State.Undo(m.state)
	p.merits.undo(m.merits)
	p.admissions, p.noShows, p.lastCall = m.admissions, m.noShows, m.lastCall
	p.cosigned, p.gate, p.told = m.cosigned, m.gate, m.told
}

// Verified is a credential that verifies, with all that its verdict depends on.
type Verified struct {
	verifier   *credential.Verifier
	subject    credential.Subject
	credential credential.Credential
}

// Verify verifies a credential for [Projection.Vouch]. It takes no lock, and retains the credential. Errors are those
// of package credential.
func Verify(v *credential.Verifier, s credential.Subject, c credential.Credential) (Verified, error) {
	return Verified{v, s, c}, v.Verify(s, c)
}

// Method returns the method of the credential.
func (v Verified) Method() string { return v.credential.Method }

// Credentials returns the credentials themselves.
func Credentials(list []Verified) []credential.Credential {
	all := make([]credential.Credential, len(list))
	for i, v := range list {
		all[i] = v.credential
	}
	return all
}

// Vouch has the rules take these credentials as verified, until the next call.
func (p *Projection) Vouch(list []Verified) { p.oracle.verified = list }

// oracle takes the tree from the log, and verifies proofs.
type oracle struct {
	root     func() audit.Hash
	state    *fairness.State
	verified []Verified
}

// Root implements fairness.Oracle.
func (o *oracle) Root() [fairness.HashSize]byte { return o.root() }

// VerifyProof implements fairness.Oracle.
func (o *oracle) VerifyProof(key [fairness.PublicKeySize]byte, alpha []byte,
	proof [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	k, err := vrf.NewPublicKey(key[:])
	if err != nil {
		return [fairness.BetaSize]byte{}, err
	}
	return k.Verify(alpha, proof[:])
}

// VerifyCosignature implements fairness.Oracle.
func (o *oracle) VerifyCosignature(witness string, size uint64, root [fairness.HashSize]byte,
	c fairness.Cosignature) (fairness.Time, error) {
	seconds, err := audit.Checkpoint{Origin: o.state.Policy().Origin, Size: size, Root: root}.CosignedAt(witness,
		audit.Cosignature(c))
	return fairness.Time(seconds * 1000), err
}

// VerifyRound implements fairness.Oracle.
func (o *oracle) VerifyRound(b *fairness.Beacon, round uint64, signature []byte) error {
	return b.Verify(round, signature)
}

// VerifyCredential implements fairness.Oracle.
func (o *oracle) VerifyCredential(v *credential.Verifier, s credential.Subject, c credential.Credential) error {
	isSame := func(k Verified) bool {
		return k.verifier == v &&
			k.subject.Room == s.Room && k.subject.Lane == s.Lane && k.subject.Ticket == s.Ticket &&
			bytes.Equal(k.subject.Round, s.Round) && k.credential.Method == c.Method &&
			bytes.Equal(k.credential.Nullifier, c.Nullifier) && bytes.Equal(k.credential.Evidence, c.Evidence)
	}
	if slices.ContainsFunc(o.verified, isSame) {
		return nil
	}
	return v.Verify(s, c)
}
