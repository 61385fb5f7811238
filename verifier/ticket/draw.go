package ticket

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/vrf"
)

// draw checks the seed.
func (j *judge) draw(facts Facts) Reason {
	b, freeze := j.b, j.freeze
	if !j.roundIsRight(facts) {
		return OtherRound
	}
	alpha := fairness.Alpha(sha256.Sum256(b.Room.Entry), freeze)
	key, err := vrf.NewPublicKey(j.room.VRFKey[:])
	if err != nil {
		return BadProof
	}
	beta, err := key.Verify(alpha, freeze.Proof[:])
	if err != nil {
		return BadProof
	}
	if b.Draw == nil {
		return b.missing()
	}
	draw, ok := proven[*fairness.Draw](j.head, b.Draw)
	if !ok {
		return NoDraw
	}
	facts["seed"] = hex.EncodeToString(draw.Seed[:])
	switch {
	case draw.Window != freeze.Window:
		return OtherWindow
	case draw.Time < freeze.Time:
		return Early
	}
	reason := j.chance(draw, facts)
	if Verdicts[DrawLine][reason] == Red {
		return reason
	}
	// The seed depends on all entries before the freeze, so the draw cannot be one of them.
	if draw.Seed != fairness.NewSeed(alpha, beta, freeze.Round, draw.Signature) {
		return OtherSeed
	}
	j.seed = draw.Seed
	j.done++
	return reason
}

// roundIsRight reports whether the freeze has the round required by the policy. The group line has
// checked that the window ended before its freeze, so the freeze's time alone decides.
func (j *judge) roundIsRight(facts Facts) bool {
	at, chain := j.freeze.Time, j.room.Beacon
	if chain == nil {
		return j.freeze.Round == 0
	}
	hash := chain.Hash()
	facts["chain"] = hex.EncodeToString(hash[:])
	facts.number("round", j.freeze.Round)
	if j.freeze.Round != chain.Round(at) {
		return false
	}
	facts.number("appears", uint64(chain.Emitted(j.freeze.Round)))
	return true
}

// chance checks the external inputs of the draw: the beacon's round, and the witnesses that signed
// the freeze before it.
func (j *judge) chance(draw *fairness.Draw, facts Facts) Reason {
	room, round := j.room, j.freeze.Round
	appears := int64(0)
	if room.Beacon != nil {
		appears = room.Beacon.Emitted(round)
	}
	switch {
	case int64(draw.Time) < appears:
		return TooSoon
	case room.Beacon == nil && len(draw.Signature) > 0, room.Beacon != nil &&
		room.Beacon.Verify(round, draw.Signature) != nil:
		return BadBeacon
	}
	signers, ok := j.cosigners(draw.Cosignatures)
	switch {
	case !ok:
		return BadWitness
	case room.Beacon == nil:
		return NoBeacon
	}
	count := j.countCosigners(signers, facts)
	hash := room.Beacon.Hash()
	switch {
	case hash != beacon.Quicknet().Hash() && !slices.Contains(j.trust.Beacons, hash):
		return OwnBeacon
	case count >= room.Majority():
		return Witnessed
	}
	return Unpredictable
}

// cosigners returns the keys of the witnesses that cosigned the freeze. It returns false unless the
// cosignatures are by different witnesses of the room, in their order, and dated between the freeze and its round.
func (j *judge) cosigners(list []fairness.Cosignature) (signers []string, ok bool) {
	sealed := audit.Checkpoint{Origin: j.room.Origin, Size: uint64(j.b.Freeze.Index) + 1,
		Root: j.b.Freeze.rootEnding(j.head.Size)}
	rest := j.room.Witnesses
	for _, c := range list {
		by := slices.IndexFunc(rest, func(witness string) bool {
			at, err := sealed.CosignedAt(witness, audit.Cosignature(c))
			return err == nil && j.room.Beacon.CosignedInTime(fairness.Time(at*1000), j.freeze.Time, j.freeze.Round)
		})
		if by < 0 {
			return nil, false
		}
		signers, rest = append(signers, rest[by]), rest[by+1:]
	}
	return signers, true
}

// countCosigners returns how many signers count: all of the room's witnesses or, if
// the auditor named some as independent, only those.
func (j *judge) countCosigners(signers []string, facts Facts) int {
	if len(j.room.Witnesses) == 0 {
		return 0
	}
	names, known := make([]string, len(signers)), 0
	for i, vkey := range signers {
		names[i], _, _ = strings.Cut(vkey, "+")
		if slices.Contains(j.trust.Witnesses, vkey) {
			known++
		}
	}
	facts.number("witnesses", uint64(len(j.room.Witnesses)))
	facts.number("quorum", uint64(j.room.Quorum))
	facts.number("cosigned", uint64(len(signers)))
	facts["cosigners"] = strings.Join(names, " ")
	if len(j.trust.Witnesses) == 0 {
		return len(signers)
	}
	facts.number("known", uint64(known))
	return known
}

// rootEnding returns the root of the tree that ends with a proven entry, computed from the siblings
// on the left of its path.
func (p *Proven) rootEnding(size uint64) audit.Hash {
	rest := p.Path
	var over func(index, size uint64) audit.Hash
	over = func(index, size uint64) audit.Hash {
		if size == 1 {
			return audit.LeafHash(p.Entry)
		}
		k := split(size)
		sibling := rest[len(rest)-1] // the root's child comes last
		rest = rest[:len(rest)-1]
		if index < k {
			return over(index, k)
		}
		return tlog.NodeHash(sibling, over(index-k, size-k))
	}
	return over(uint64(p.Index), size)
}
