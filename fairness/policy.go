package fairness

import (
	"fmt"
	"strings"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/credential"
)

// PublicKeySize is the length of a room's VRF public key in bytes
// (compressed P-256 point).
const PublicKeySize = 33

// VRFSuite names the only verifiable random function of these rules, suite 0x02 of RFC 9381.
const VRFSuite = "ECVRF-P256-SHA256-SSWU"

// NoBeacon in a policy means that draws use no public randomness.
const NoBeacon = "none"

// Policy is the set of rules that a room publishes before visitors can join.
type Policy struct {
	Created Time                // time of the room entry
	Origin  string              // name of the log: host and path, no scheme
	LogKey  string              // verifier key of the log's signatures, C2SP signed-note form
	VRFKey  [PublicKeySize]byte // public key that proves the draws
	Beacon  *Beacon             // public randomness; nil: none
	Methods []credential.Method // what tickets may show, in the order of credentials
	Lanes   []LaneRule          // the lanes, in the order that decides ties
	Lots    []string            // methods that give a ticket one more lot, in their order
	Party   uint32              // seats that an arrival may be for at most; 0: one
	Seats   uint32              // seats called and not given back at most; 0: any number
	Opens   Time                // start of the first window
	Starts  Time                // no calls before this time
	Closes  Time                // end of the last window; [Never]: no end
	Windows []WindowRule        // ascending; the first begins at Opens
	Slots   Millis              // length of the slots that cut the first window; 0: none
	Notice  Millis              // windows that begin sooner than this cannot be amended
	Outflow Outflow
	Claim   Millis // time a called ticket has to be claimed
	Extend  Millis // more time that a visitor may ask for, once; 0: none
	Grace   Millis // the claim clock advances at most this long from one entry to the next
	Session Millis // time an admitted visitor counts as active
	// Witnesses are the verifier keys (C2SP tlog-cosignature form) of the witnesses that cosign each
	// freeze. Quorum is the number of cosignatures each freeze should have.
	Witnesses []string
	Quorum    uint32
}

// Beacon is the public randomness of a room's draws.
type Beacon struct {
	beacon.Chain
	// minimum time between a freeze and its round: allows for clock differences, and for witnesses to cosign
	Margin Millis
}

// Round returns the round that decides the draw of a window that is frozen at a time.
func (b *Beacon) Round(frozen Time) uint64 { return b.After(int64(frozen) + int64(b.Margin)) }

// CosignedInTime reports whether a cosignature dated at, in whole seconds, shows that a freeze came before its
// round: it is neither before the freeze nor after the round, with [Slack] for the witness's clock. A
// cosignature dated before its freeze would allow an operator to date a freeze ahead.
func (b *Beacon) CosignedInTime(at, frozen Time, round uint64) bool {
	latest := int64(at) + 1000 // the time is truncated to seconds
	return latest > int64(frozen)-int64(Slack) && latest <= b.Emitted(round)-int64(Slack)
}

// Majority returns the number of witnesses that is more than half of all, so that two freezes of one window
// cannot both have it unless a witness signs both.
func (p *Policy) Majority() int { return len(p.Witnesses)/2 + 1 }

// HasGaps reports whether places may be nobody's: those of empty lots, and of further lots of a ticket.
func (p *Policy) HasGaps() bool { return p.Slots > 0 || len(p.Lots) > 0 }

// Outflow limits how fast visitors are admitted.
type Outflow struct {
	PerMinute uint32 // calls that end in an admission, per minute; 1 to [MaxRate]
	MaxActive uint32 // admitted and called visitors at once; 0: no limit
}

// Problem is one error in a policy.
type Problem struct {
	Field  string // as in the room's JSON: "windows[2].length"
	Detail string // what the field must be
}

// Problems returns all errors in the policy; nil if it is valid. It does not change p.
func (p *Policy) Problems() []Problem {
	var c complaints
	c.check(isToken(p.Origin) && len(p.Origin) <= 255 && !strings.Contains(p.Origin, "+"),
		"origin", "must be 1 to 255 printable ASCII characters without space or '+'")
	c.check(isToken(p.LogKey) && len(p.LogKey) <= 1024 && strings.HasPrefix(p.LogKey, p.Origin+"+"),
		"log_key", "must be a signed-note verifier key whose name is the origin")
	c.check(p.VRFKey[0] == 2 || p.VRFKey[0] == 3, "vrf_key", "must be a compressed P-256 point")
	if b := p.Beacon; b != nil {
		c.check(b.Valid() == nil && isToken(b.ID), "beacon", "must be the parameters of a drand chain")
		c.check(b.Margin >= MinMargin && b.Margin <= MaxMargin, "beacon.margin", "must be between 5 seconds and 1 hour")
	}
	c.witnesses(p)
	c.methods(p)
	c.lanes(p)
	c.lots(p)
	c.check(p.Party != 1 && p.Party <= MaxParty, "party", fmt.Sprintf("must be between 2 and %d, or missing", MaxParty))
	c.check(p.Created >= 0 && p.Created <= p.Opens, "opens", "must not be in the past, before the room is created")
	c.check(p.Opens < Never, "opens", "must be a time before the year 287396")
	c.check(p.Starts >= p.Opens && p.Starts < Never, "starts", "must not be before the room opens")
	c.check(p.Closes > p.Opens && p.Closes <= Never, "closes", "must be after the room opens")
	c.check(len(p.Windows) == 0 || p.Windows[0].From == p.Opens, "windows[0].from",
		"must be the time at which the room opens")
	c.windows(p.Windows, p.Closes)
	c.check(len(p.Windows) > 0, "windows", "must have at least one rule")
	if p.Slots != 0 && len(c) == 0 {
		n := p.SlotsIn(0)
		c.check(n >= 2 && n <= MaxSlots, "slots", fmt.Sprintf("must cut the first window into 2 to %d", MaxSlots))
	}
	c.check(p.Notice >= MinNotice && p.Notice <= MaxNotice, "notice", "must be between 10 seconds and 1 day")
	c.outflow(p.Outflow)
	c.check(p.Claim >= MinClaim && p.Claim <= MaxClaim, "claim", "must be between 1 second and 1 day")
	c.check(p.Extend == 0 || p.Extend >= MinClaim && p.Extend <= MaxClaim, "extend", "must be 1 second to 1 day")
	c.check(p.Grace >= MinGrace && p.Grace <= MaxGrace, "grace", "must be between 1 second and 1 day")
	c.check(p.Session >= MinSession && p.Session <= MaxSession, "session", "must be between 1 second and 7 days")
	return c
}

type complaints []Problem

func (c *complaints) check(ok bool, field, detail string) {
	if !ok {
		*c = append(*c, Problem{field, detail})
	}
}

// violation returns the first complaint as a violation of rule r; nil if there is none.
func (c complaints) violation(r Rule) error {
	if len(c) == 0 {
		return nil
	}
	return violation(r, "%s %s", c[0].Field, c[0].Detail)
}

func (c *complaints) witnesses(p *Policy) {
	keys := map[string]bool{} // one key under two names is one witness
	for i, w := range p.Witnesses {
		parts := strings.SplitN(w, "+", 3) // name, hash, key
		key := parts[len(parts)-1]
		c.check(isToken(w) && len(w) <= 1024 && len(parts) == 3 && !keys[key],
			fmt.Sprintf("witnesses[%d]", i), "must be the verifier key of another witness")
		keys[key] = true
	}
	n := len(p.Witnesses)
	c.check(n <= MaxWitnesses && (n == 0 || p.Beacon != nil),
		"witnesses", fmt.Sprintf("must be at most %d, and need a beacon", MaxWitnesses))
	c.check(n == 0 && p.Quorum == 0 || n > 0 && int64(p.Quorum) >= int64(p.Majority()) && int64(p.Quorum) <= int64(n),
		"quorum", "must be more than half of the witnesses, or 0 without any")
}

func (c *complaints) methods(p *Policy) {
	names := map[string]bool{"-": true} // would read as no needs of a lane
	for i, m := range p.Methods {
		at := fmt.Sprintf("methods[%d]", i)
		field, detail := m.Problem()
		c.check(field == "", at+"."+field, detail)
		c.check(!names[m.Name], at+".name", "must not be '-', and differ from those of other methods")
		c.check(m.Kind != credential.Work || p.Beacon != nil, at+".kind", "must not be work in a room without a beacon")
		names[m.Name] = true
	}
	c.check(len(p.Methods) <= MaxMethods, "methods", fmt.Sprintf("must be at most %d", MaxMethods))
}

func (c *complaints) lanes(p *Policy) {
	names, lanes := map[Lane]bool{}, p.Lanes
	for i, l := range lanes {
		at := fmt.Sprintf("lanes[%d]", i)
		c.check(IsLane(string(l.Name)) && !names[l.Name], at+".name",
			"must be 1 to 32 of a-z, 0-9 and '-', and differ from those of other lanes")
		c.check(l.Weight >= 1 && l.Weight <= MaxWeight, at+".weight",
			fmt.Sprintf("must be between 1 and %d", MaxWeight))
		_, ok := p.methodSet(l.Needs)
		c.check(ok, at+".needs", "must be methods of the policy, in its order")
		names[l.Name] = true
	}
	c.check(len(lanes) >= 1 && len(lanes) <= MaxLanes, "lanes", fmt.Sprintf("must be 1 to %d", MaxLanes))
}

func (c *complaints) lots(p *Policy) {
	set, ok := p.methodSet(p.Lots)
	for i, m := range p.Methods {
		ok = ok && (set&(1<<i) == 0 || m.Kind != credential.Work) // it would sell lots to those with many computers
	}
	c.check(ok && len(p.Lots) <= MaxLots, "lots",
		fmt.Sprintf("must be at most %d methods of the policy, in its order, and not of work", MaxLots))
}

func (c *complaints) windows(rules []WindowRule, closes Time) {
	c.check(len(rules) <= MaxRules, "windows", fmt.Sprintf("must be at most %d rules", MaxRules))
	for i, r := range rules {
		at := fmt.Sprintf("windows[%d]", i)
		c.check(r.Length >= MinWindow && r.Length <= MaxWindow, at+".length", "must be between 100 ms and 31 days")
		c.check(r.From >= 0 && r.From < closes, at+".from", "must be before the room closes")
		c.check(i == 0 || r.From > rules[i-1].From, at+".from", "must be after the rule before it")
	}
}

func (c *complaints) outflow(o Outflow) {
	c.check(o.PerMinute >= 1 && o.PerMinute <= MaxRate,
		"outflow.per_minute", fmt.Sprintf("must be between 1 and %d", MaxRate))
}

// IsLane reports whether s can be the name of a lane.
func IsLane(s string) bool {
	for _, c := range []byte(s) {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 32
}

// isToken reports whether s is non-empty printable ASCII without spaces.
func isToken(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}
