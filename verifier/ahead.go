package verifier

import (
	"context"
	"crypto/sha256"
	"iter"
	"slices"
	"sync"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/vrf"
)

// Bundles are read in this order: up to readAhead are fetched and hashed, then groupSize of them form a group
// whose proofs are verified while the previous group is replayed. A bundle has about 20 KB, at most 16 MB.
const (
	readAhead = 32
	groupSize = 32
)

// group is a run of bundles whose VRF proofs, beacon signatures and credentials are verified together, which is faster
// than one by one, and on other cores than the replay. The replay uses the results when the rules need them. What the
// group lacks, or what did not verify, is verified again by the replay, so the verdict and its wording do not depend
// on the grouping.
type group struct {
	blocks []*block
	work   sync.WaitGroup
	proofs map[proof][fairness.BetaSize]byte // outputs of the proofs that verify
	rounds map[beacon.Signed]struct{}        // nil unless all verify
	mu     sync.Mutex                        // for shown, until work is done
	shown  map[shown]struct{}                // credentials that verify
}

// shown is a credential with all that its verdict depends on.
type shown struct{ message, round, evidence string }

func newShown(s credential.Subject, c credential.Credential) shown {
	return shown{string(s.AppendMessage(nil, c.Method, c.Nullifier)), string(s.Round), string(c.Evidence)}
}

// showing is a credential that is to be verified.
type showing struct {
	subject    credential.Subject
	credential credential.Credential
}

// perTask is the number of credentials that one task verifies.
const perTask = 256

// proof is a VRF proof with its input.
type proof struct {
	alpha string
	proof [fairness.ProofSize]byte
}

// scanner finds the proofs in the entries of a transcript, before they are applied.
type scanner struct {
	parser   fairness.Parser
	roomHash [fairness.HashSize]byte
	policy   *fairness.Policy // nil: the room entry is malformed
	kinds    []string         // beginnings of the entries that have something to verify
	round    []byte           // signature of the round that work is done for
	methods  map[string]*credential.Verifier
	frozen   map[fairness.WindowIndex]uint64 // rounds of windows that are not drawn yet
}

// maxFrozen limits the undrawn windows that a scanner remembers. Draws of others are verified by the
// replay.
const maxFrozen = 1 << 16

// groups yields the bundles of a log in order, in groups whose proofs are being verified.
func groups(ctx context.Context, src Source, size uint64, each OnBundle) iter.Seq[*group] {
	return func(yield func(*group) bool) {
		s := scanner{frozen: map[fairness.WindowIndex]uint64{}, methods: map[string]*credential.Verifier{}}
		var before *group // group being verified
		defer func() {
			if before != nil {
				before.work.Wait()
			}
		}()
		next := &group{}
		for b := range blocks(ctx, src, size, each) {
			next.blocks = append(next.blocks, b)
			if b.err != nil || b.fault != nil {
				break // the audit ends there
			}
			if len(next.blocks) < groupSize {
				continue
			}
			s.verify(next)
			if before != nil && !yield(before) {
				next.work.Wait()
				return
			}
			before, next = next, &group{}
		}
		s.verify(next)
		if before == nil || yield(before) {
			yield(next)
		}
		next.work.Wait()
	}
}

// verify starts to verify the proofs of a group.
func (s *scanner) verify(g *group) {
	var freezes []*fairness.Freeze
	var rounds []beacon.Signed
	var showings []showing
	for _, b := range g.blocks {
		for i, text := range b.entries {
			if b.tile.Index == 0 && i == 0 {
				s.room(text)
			}
			switch e := s.parse(text).(type) {
			case *fairness.Freeze:
				freezes = append(freezes, e)
				s.remember(e)
			case *fairness.Draw:
				rounds = s.appendRound(rounds, e)
			case *fairness.Beat:
				s.round = append(s.round, e.Signature...)
			case *fairness.Arrive:
				showings = s.appendShowings(showings, e.Lane, e.Ticket, e.Credentials...)
			case *fairness.Merit: // with several lanes, the replay may have to verify it
				showings = s.appendShowings(showings, s.policy.Lanes[0].Name, e.Ticket, e.Credential)
			}
		}
	}
	for task := range slices.Chunk(showings, perTask) {
		g.work.Go(func() { s.verifyShown(g, task) })
	}
	if len(freezes) > 0 {
		g.work.Go(func() { g.proofs = s.verifyProofs(freezes) })
	}
	if len(rounds) > 0 {
		g.work.Go(func() { g.rounds = s.verifyRounds(rounds) })
	}
}

// room reads the room entry, which has the keys.
func (s *scanner) room(text []byte) {
	e, _ := fairness.ParseEntry(text)
	r, ok := e.(*fairness.Room)
	if !ok || len(r.Problems()) > 0 {
		return
	}
	s.policy, s.roomHash, s.kinds = &r.Policy, sha256.Sum256(text), []string{"freeze ", "draw "}
	if len(r.Methods) > 0 {
		s.kinds = append(s.kinds, "arrive ", "merit ", "beat ")
	}
	for _, m := range r.Methods {
		s.methods[m.Name], _ = credential.NewVerifier(m) // the policy is valid
	}
}

// parse reads an entry that has something to verify; nil: another one.
func (s *scanner) parse(text []byte) fairness.Entry {
	for _, kind := range s.kinds {
		if len(text) > len(kind) && string(text[:len(kind)]) == kind {
			e, _ := s.parser.Parse(text)
			return e
		}
	}
	return nil
}

func (s *scanner) appendShowings(list []showing, lane fairness.Lane, t fairness.Ticket,
	credentials ...credential.Credential) []showing {
	for _, c := range credentials {
		subject := credential.Subject{Room: s.roomHash, Lane: string(lane), Ticket: t, Round: s.round}
		list = append(list, showing{subject, c})
	}
	return list
}

// verifyShown adds the credentials that verify to a group.
func (s *scanner) verifyShown(g *group, list []showing) {
	verified := make([]shown, 0, len(list))
	for _, one := range list {
		v := s.methods[one.credential.Method]
		if v != nil && v.Verify(one.subject, one.credential) == nil {
			verified = append(verified, newShown(one.subject, one.credential))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shown == nil {
		g.shown = map[shown]struct{}{}
	}
	for _, one := range verified {
		g.shown[one] = struct{}{}
	}
}

func (s *scanner) remember(f *fairness.Freeze) {
	if len(s.frozen) < maxFrozen {
		s.frozen[f.Window] = f.Round
	}
}

// appendRound appends the round and signature of a draw, if it can be verified beforehand.
func (s *scanner) appendRound(list []beacon.Signed, d *fairness.Draw) []beacon.Signed {
	round, ok := s.frozen[d.Window]
	delete(s.frozen, d.Window)
	if !ok || s.policy.Beacon == nil || len(d.Signature) != beacon.SignatureSize {
		return list
	}
	return append(list, beacon.Signed{Round: round, Signature: [beacon.SignatureSize]byte(d.Signature)})
}

// verifyProofs returns the outputs of the VRF proofs that verify.
func (s *scanner) verifyProofs(freezes []*fairness.Freeze) map[proof][fairness.BetaSize]byte {
	key, err := vrf.NewPublicKey(s.policy.VRFKey[:])
	if err != nil {
		return nil
	}
	outputs := make(map[proof][fairness.BetaSize]byte, len(freezes))
	for _, f := range freezes {
		alpha := fairness.Alpha(s.roomHash, f)
		if beta, err := key.Verify(alpha, f.Proof[:]); err == nil {
			outputs[proof{string(alpha), f.Proof}] = beta
		}
	}
	return outputs
}

// verifyRounds returns the rounds if the signatures of all of them verify.
func (s *scanner) verifyRounds(rounds []beacon.Signed) map[beacon.Signed]struct{} {
	if s.policy.Beacon.VerifyAll(rounds) != nil {
		return nil
	}
	verified := make(map[beacon.Signed]struct{}, len(rounds))
	for _, r := range rounds {
		verified[r] = struct{}{}
	}
	return verified
}

// VerifyProof implements [fairness.Oracle].
func (a *auditor) VerifyProof(key [fairness.PublicKeySize]byte, alpha []byte,
	given [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	a.group.work.Wait()
	if beta, ok := a.group.proofs[proof{string(alpha), given}]; ok {
		return beta, nil
	}
	public, err := vrf.NewPublicKey(key[:])
	if err != nil {
		return [fairness.BetaSize]byte{}, err
	}
	return public.Verify(alpha, given[:])
}

// VerifyRound implements [fairness.Oracle].
func (a *auditor) VerifyRound(b *fairness.Beacon, round uint64, signature []byte) error {
	a.group.work.Wait()
	if len(signature) == beacon.SignatureSize {
		s := beacon.Signed{Round: round, Signature: [beacon.SignatureSize]byte(signature)}
		if _, ok := a.group.rounds[s]; ok {
			return nil
		}
	}
	return b.Verify(round, signature)
}

// VerifyCredential implements [fairness.Oracle].
func (a *auditor) VerifyCredential(v *credential.Verifier, s credential.Subject, c credential.Credential) error {
	a.group.work.Wait()
	if _, ok := a.group.shown[newShown(s, c)]; ok {
		return nil
	}
	return v.Verify(s, c)
}
