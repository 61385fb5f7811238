package room

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/internal/invalid"
)

// DefaultMargin is the minimum time between a freeze and its beacon round.
const DefaultMargin = 3 * time.Second

// cosignGrace is how long after its round a draw waits for cosignatures that are on their way.
const cosignGrace fairness.Millis = 2_000

// Rounds fetches the rounds of a drand chain.
type Rounds interface {
	// Wait returns the verified signature of a round, and waits for a round that is late.
	Wait(ctx context.Context, round uint64) ([]byte, error)
}

// Chain is a beacon that rooms may use, with access to its rounds.
type Chain struct {
	beacon.Chain
	Rounds Rounds
	Reach  Reach // nil: always reachable
}

// Reach reports whether the relays of a chain serve it at present.
type Reach interface {
	// Check queries the relays, unless they were queried a moment ago.
	Check(ctx context.Context) error
	// Err returns the result of the latest query; nil: the relays serve the chain.
	Err() error
}

// Name returns the chain's name in configurations, such as drand:quicknet.
func (c Chain) Name() string { return chainName(c.Chain) }

// Trouble returns why the relays of the chain are unreachable; nil if they can be reached.
func (c Chain) Trouble() error {
	if c.Reach == nil {
		return nil
	}
	return c.Reach.Err()
}

// BeaconTrouble returns the default chain's [Chain.Name] and [Chain.Trouble]; nil without chains.
func (o *Options) BeaconTrouble() (name string, err error) {
	if len(o.Chains) == 0 {
		return "", nil
	}
	return o.Chains[0].Name(), o.Chains[0].Trouble()
}

// askRelays checks the relays of the default chain if a new room would use that chain without naming it.
func (o *Options) askRelays(ctx context.Context, c Config) {
	if c.Beacon == "" && len(o.Chains) > 0 && o.Chains[0].Reach != nil {
		_ = o.Chains[0].Reach.Check(ctx) // [Options.others] reads the result
	}
}

// Cosigner submits checkpoints to one witness.
type Cosigner interface {
	// AddCheckpoint submits a signed checkpoint that continues the one of the old size, and returns the
	// witness's verified cosignature.
	AddCheckpoint(ctx context.Context, old uint64, proof []audit.Hash, signed []byte) (audit.Cosignature, error)
}

// Witness is a third party that cosigns checkpoints, with access to it.
type Witness struct {
	Key      audit.Witness
	Cosigner Cosigner
}

const chainPrefix = "drand:"

func chainName(c beacon.Chain) string { return chainPrefix + c.ID }

// others adds to the policy of a new room the beacon and witnesses that it relies on, and lists problems.
func (o *Options) others(c Config, p *fairness.Policy) invalid.List {
	refuse := func(field, detail string) invalid.List {
		return invalid.List{{Field: field, Detail: detail}}
	}
	if c.Beacon == fairness.NoBeacon || c.Beacon == "" && len(o.Chains) == 0 {
		switch {
		case c.Quorum != nil && *c.Quorum > 0:
			return refuse("quorum", "needs a beacon: witnesses show that a freeze came before its round")
		case c.Margin != nil:
			return refuse("margin", "needs a beacon")
		}
		return nil
	}
	if c.Beacon != "" && !strings.HasPrefix(c.Beacon, chainPrefix) {
		return nil // malformed, which Config.problems reports
	}
	at := slices.IndexFunc(o.Chains,
		func(known Chain) bool { return c.Beacon == "" || chainName(known.Chain) == c.Beacon })
	if at < 0 {
		var names []string
		for _, known := range o.Chains {
			names = append(names, chainName(known.Chain))
		}
		return refuse("beacon", "must be one that the server has relays of: "+strings.Join(append(names,
			fairness.NoBeacon), ", "))
	}
	if c.Beacon == "" && o.Chains[at].Trouble() != nil {
		name := o.Chains[at].Name()
		return refuse("beacon", fmt.Sprintf("must be given now, because this server cannot reach the relays of %s, the default. "+
			"%[1]q: the room is made, and each draw waits until a relay answers. "+
			"%q: draws do not wait, and nobody can check that you did not choose their outcome (level 1)", name, fairness.NoBeacon))
	}
	p.Beacon = &fairness.Beacon{Chain: o.Chains[at].Chain, Margin: fairness.Millis(DefaultMargin.Milliseconds())}
	if c.Margin != nil {
		p.Beacon.Margin = c.Margin.millis()
	}
	n := uint32(len(o.Witnesses)) //nolint:gosec // few
	if c.Quorum != nil && *c.Quorum > n {
		return refuse("quorum", fmt.Sprintf("must be at most %d: the server has so many witnesses", n))
	}
	switch {
	case c.Quorum != nil:
		p.Quorum = *c.Quorum
	case n > 0:
		p.Quorum = n/2 + 1
	}
	for _, w := range o.Witnesses {
		if p.Quorum > 0 {
			p.Witnesses = append(p.Witnesses, w.Key.String())
		}
	}
	return nil
}

// evidence holds what pending draws need, as far as this node has it: beacon rounds, and cosignatures of the
// freezes. Every node stores what it gets, and reads what others stored. The zero value, of a room without a
// beacon, is empty.
type evidence struct {
	store evidenceStore

	mu           sync.Mutex // guards all below
	rounds       map[uint64][]byte
	cosignatures map[uint64]map[string]fairness.Cosignature // by size, by witness
	looked       map[uint64]bool                            // by size: cosignatures stored by other nodes were read
	refused      map[uint64]bool                            // by size: the rules refused the cosignatures
}

// evidenceStore stores evidence for all nodes.
type evidenceStore interface {
	AddRound(ctx context.Context, chain [32]byte, round uint64, signature []byte) error
	Rounds(ctx context.Context, chain [32]byte, rounds []uint64) (map[uint64][]byte, error)
	AddCosignature(ctx context.Context, room uuid.UUID, size uint64, witness string, cosignature [76]byte) error
	Cosignatures(ctx context.Context, room uuid.UUID, sizes []uint64) (map[uint64]map[string][76]byte, error)
}

// of returns the evidence for a draw. ok reports whether the draw may go ahead: the round is known, and
// either the quorum is reached, or it is too late to wait for more and this node, which may have just
// started, has read the stored cosignatures.
func (e *evidence) of(p fairness.Pending, policy *fairness.Policy, now fairness.Time) (signature []byte,
	list []fairness.Cosignature, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range policy.Witnesses { // in the order that the rules ask for
		if c, ok := e.cosignatures[p.Size][w]; ok && inTime(c, p) && !e.refused[p.Size] {
			list = append(list, c)
		}
	}
	late := now >= p.Due+fairness.Time(cosignGrace) && e.looked[p.Size]
	enough := len(list) >= int(policy.Quorum) || late || e.refused[p.Size]
	signature = e.rounds[p.Round]
	return signature, list, signature != nil && enough
}

// inTime reports whether a cosignature was made before the round.
func inTime(c fairness.Cosignature, p fairness.Pending) bool {
	return audit.Cosignature(c).Time() <= (int64(p.Due)-1)/1000
}

// Awaited is a draw that waits for evidence.
type Awaited struct {
	Window   fairness.WindowIndex
	Round    uint64    // round of the beacon; 0: none
	Due      time.Time // when the round is published
	HasRound bool      // this node has the round
	Cosigned []string  // names of the witnesses that cosigned the freeze in time
}

// Awaited returns the draws that wait for evidence, the next one first.
func (r *Room) Awaited() []Awaited { return r.awaited(r.durablePending()) }

func (r *Room) awaited(pending []fairness.Pending) (list []Awaited) {
	for _, p := range pending {
		if p.Round == 0 {
			continue // without a beacon no draw waits
		}
		lacksRound, _ := r.evidence.lacks(p, r.policy)
		a := Awaited{Window: p.Window, Round: p.Round, Due: timeOf(p.Due), HasRound: !lacksRound}
		for _, w := range r.policy.Witnesses {
			if name, _, _ := strings.Cut(w, "+"); r.evidence.hasCosigned(p, w, true) {
				a.Cosigned = append(a.Cosigned, name)
			}
		}
		list = append(list, a)
	}
	return list
}

// lacks reports whether the round, and any of the cosignatures, is missing.
func (e *evidence) lacks(p fairness.Pending, policy *fairness.Policy) (round, cosignature bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rounds[p.Round] == nil, len(e.cosignatures[p.Size]) < len(policy.Witnesses)
}

// hasCosigned reports whether a witness has cosigned; mustCount leaves out cosignatures that came too late.
func (e *evidence) hasCosigned(p fairness.Pending, witness string, mustCount bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.cosignatures[p.Size][witness]
	return ok && (!mustCount || inTime(c, p))
}

// refuse notes that the rules refuse a draw because of its cosignatures: the witnesses cosigned another log,
// for example because the database has lost its last entries. The draw goes ahead without them.
func (e *evidence) refuse(p fairness.Pending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused == nil {
		e.refused = map[uint64]bool{}
	}
	e.refused[p.Size] = true
}

// round returns the signature of a round; nil: unknown.
func (e *evidence) round(round uint64) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rounds[round]
}

func (e *evidence) takeRound(round uint64, signature []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rounds == nil {
		e.rounds = map[uint64][]byte{}
	}
	e.rounds[round] = signature
}

func (e *evidence) takeCosignature(size uint64, witness string, c fairness.Cosignature) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cosignatures == nil {
		e.cosignatures = map[uint64]map[string]fairness.Cosignature{}
	}
	if e.cosignatures[size] == nil {
		e.cosignatures[size] = map[string]fairness.Cosignature{}
	}
	known, ok := e.cosignatures[size][witness]
	if !ok || audit.Cosignature(c).Time() < audit.Cosignature(known).Time() {
		e.cosignatures[size][witness] = c
	}
}

// take adds stored cosignatures.
func (e *evidence) take(by map[uint64]map[string][76]byte) {
	for size, cosignatures := range by {
		for w, c := range cosignatures {
			e.takeCosignature(size, w, c)
		}
	}
}

// look notes that the stored cosignatures of these draws were read.
func (e *evidence) look(pending []fairness.Pending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.looked == nil {
		e.looked = map[uint64]bool{}
	}
	for _, p := range pending {
		e.looked[p.Size] = true
	}
}

// forget drops evidence that no pending draw needs.
func (e *evidence) forget(pending []fairness.Pending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.rounds, func(round uint64, _ []byte) bool {
		return !slices.ContainsFunc(pending, func(p fairness.Pending) bool { return p.Round == round })
	})
	over := func(size uint64) bool {
		return !slices.ContainsFunc(pending, func(p fairness.Pending) bool { return p.Size == size })
	}
	maps.DeleteFunc(e.cosignatures, func(size uint64, _ map[string]fairness.Cosignature) bool { return over(size) })
	maps.DeleteFunc(e.looked, func(size uint64, _ bool) bool { return over(size) })
	maps.DeleteFunc(e.refused, func(size uint64, _ bool) bool { return over(size) })
}

// nextDraw returns the draw that is due, with its evidence.
func (l *live) nextDraw(now fairness.Time) (*fairness.Draw, bool) {
	if l.Policy().Beacon == nil {
		return l.NextDraw(now, nil)
	}
	pending := l.Pending()
	if len(pending) == 0 || now < pending[0].Due {
		return nil, false
	}
	signature, cosignatures, ok := l.evidence.of(pending[0], l.Policy(), now)
	if !ok {
		return nil, false
	}
	return l.NextDraw(now, signature, cosignatures...)
}
