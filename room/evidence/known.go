// Package evidence collects what draws need besides the transcript: rounds of the beacon, and witnesses'
// cosignatures of the freezes. It also learns from witnesses whether they have seen another history of a room.
//
//	relays ────► Collector ──► Known ──► draws (package projection)
//	witnesses ◄─► submitter ─────┘  └──► database ──► other nodes
//
// Every node stores what it gets and reads what others have stored, so any of them can make the draw.
package evidence

import (
	"maps"
	"slices"
	"sync"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// cosignGrace is how long after its round a draw waits for cosignatures that are on their way.
const cosignGrace fairness.Millis = 2_000

// Known holds what pending draws need, as far as this node has it: beacon rounds, and cosignatures of the
// freezes. The zero value is empty. It is safe for concurrent use.
type Known struct {
	mu           sync.Mutex // guards the fields below
	rounds       map[uint64][]byte
	cosignatures map[uint64]map[string]fairness.Cosignature // by size, by witness
	read         map[uint64]bool                            // by size: other nodes' cosignatures have been read
	refused      map[uint64]bool                            // by size: the rules refused the cosignatures
}

// Of returns the evidence for a draw. ok reports whether the draw may go ahead: the round is known, and
// either the quorum is reached, or it is too late to wait for more and this node, which may have just
// started, has read the stored cosignatures.
func (k *Known) Of(p fairness.Pending, policy *fairness.Policy, now fairness.Time) (signature []byte,
	list []fairness.Cosignature, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range policy.Witnesses { // in the order that the rules require
		if c, ok := k.cosignatures[p.Size][w]; ok && inTime(c, p, policy.Beacon) && !k.refused[p.Size] {
			list = append(list, c)
		}
	}
	late := now >= p.Due+fairness.Time(cosignGrace) && k.read[p.Size]
	enough := len(list) >= int(policy.Quorum) || late || k.refused[p.Size]
	signature = k.rounds[p.Round]
	return signature, list, signature != nil && enough
}

// inTime reports whether the rules count a cosignature of a freeze.
func inTime(c fairness.Cosignature, p fairness.Pending, b *fairness.Beacon) bool {
	at := min(audit.Cosignature(c).Time(), int64(fairness.Never)/1000)
	return b.CosignedInTime(fairness.Time(1000*at), p.Frozen, p.Round)
}

// lacks reports whether any of the cosignatures of a freeze is missing.
func (k *Known) lacks(p fairness.Pending, policy *fairness.Policy) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.cosignatures[p.Size]) < len(policy.Witnesses)
}

// hasCosigned reports whether a witness has cosigned, in time or not.
func (k *Known) hasCosigned(p fairness.Pending, witness string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.cosignatures[p.Size][witness]
	return ok
}

// hasCosignedInTime reports whether a witness has cosigned between the freeze and its round.
func (k *Known) hasCosignedInTime(p fairness.Pending, b *fairness.Beacon, witness string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.cosignatures[p.Size][witness]
	return ok && inTime(c, p, b)
}

// Refuse notes that the rules refuse a draw because of its cosignatures: the witnesses cosigned another log,
// for example because the database has lost its last entries. The draw goes ahead without them.
func (k *Known) Refuse(p fairness.Pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refused == nil {
		k.refused = map[uint64]bool{}
	}
	k.refused[p.Size] = true
}

// Round returns the signature of a round; nil: unknown.
func (k *Known) Round(round uint64) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rounds[round]
}

func (k *Known) takeRound(round uint64, signature []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rounds == nil {
		k.rounds = map[uint64][]byte{}
	}
	k.rounds[round] = signature
}

func (k *Known) takeCosignature(size uint64, witness string, c fairness.Cosignature) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cosignatures == nil {
		k.cosignatures = map[uint64]map[string]fairness.Cosignature{}
	}
	if k.cosignatures[size] == nil {
		k.cosignatures[size] = map[string]fairness.Cosignature{}
	}
	known, ok := k.cosignatures[size][witness]
	if !ok || audit.Cosignature(c).Time() < audit.Cosignature(known).Time() {
		k.cosignatures[size][witness] = c
	}
}

// take adds stored cosignatures.
func (k *Known) take(by map[uint64]map[string][76]byte) {
	for size, cosignatures := range by {
		for w, c := range cosignatures {
			k.takeCosignature(size, w, c)
		}
	}
}

// noteRead notes that the stored cosignatures of these draws were read.
func (k *Known) noteRead(pending []fairness.Pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read == nil {
		k.read = map[uint64]bool{}
	}
	for _, p := range pending {
		k.read[p.Size] = true
	}
}

// forget drops the rounds that are not wanted, and cosignatures that no pending draw needs.
func (k *Known) forget(pending []fairness.Pending, wanted []uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.rounds, func(round uint64, _ []byte) bool { return !slices.Contains(wanted, round) })
	isOver := func(size uint64) bool {
		return !slices.ContainsFunc(pending, func(p fairness.Pending) bool { return p.Size == size })
	}
	maps.DeleteFunc(k.cosignatures, func(size uint64, _ map[string]fairness.Cosignature) bool { return isOver(size) })
	maps.DeleteFunc(k.read, func(size uint64, _ bool) bool { return isOver(size) })
	maps.DeleteFunc(k.refused, func(size uint64, _ bool) bool { return isOver(size) })
}
