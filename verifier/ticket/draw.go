package ticket

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/vrf"
)

// draw judges the seed.
func (j *judge) draw(facts Facts) Reason {
	b, freeze := j.b, j.freeze
	if freeze.Round != 0 {
		return ForeignBeacon
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
	case len(draw.Signature) > 0:
		return ForeignBeacon
	// The seed depends on all entries before the freeze, so the draw cannot be one of them.
	case draw.Seed != fairness.NewSeed(alpha, beta, freeze.Round, draw.Signature):
		return OtherSeed
	}
	j.seed = draw.Seed
	j.done++
	return NoBeacon
}
