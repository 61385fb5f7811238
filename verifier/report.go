package verifier

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/credential"
)

// Report is the outcome of an audit.
type Report struct {
	OK          bool     `json:"ok"`          // every check passed; the append-only check may be skipped
	Level       int      `json:"level"`       // assurance, [LevelNone] to [LevelWitnessed]
	Origin      string   `json:"origin"`      // origin of the log, from its checkpoint
	Entries     uint64   `json:"entries"`     // number of entries, from its checkpoint
	Arrivals    uint64   `json:"arrivals"`    // this and the following numbers come from the replay
	Windows     uint64   `json:"windows"`     // windows with arrivals
	Assignments uint64   `json:"assignments"` // published places
	Admissions  uint64   `json:"admissions"`
	Lanes       []Lane   `json:"lanes"`
	Methods     []Method `json:"methods"`   // ways to show something about a ticket's holder, from the policy
	Beacon      string   `json:"beacon"`    // hash of the drand chain; "": no beacon
	Witnesses   []string `json:"witnesses"` // keys from the policy
	Quorum      uint32   `json:"quorum"`    // required cosignatures per freeze, from the policy
	Draws       uint64   `json:"draws"`
	// draws whose freeze a quorum of the policy's witnesses had cosigned between the freeze and its round
	Witnessed uint64 `json:"witnessed"`
	// draws whose freeze more than half of all the policy's witnesses had, counting only those that the auditor knows
	Vouched uint64 `json:"vouched"`
	// witnesses of the policy, known to the auditor, that cosigned the checkpoint itself
	Cosigned  uint64   `json:"cosigned"`
	Checks    []Check  `json:"checks"`     // all checks, always in the same order
	NotProven []string `json:"not_proven"` // conclusions that the report does not support
	Seconds   float64  `json:"seconds"`    // set by the caller, who has a clock
}

// Lane is a lane of the policy.
type Lane struct {
	Name  fairness.Lane `json:"name"`
	Needs []string      `json:"needs,omitempty"` // methods that every arrival has shown
}

// Method is a method of the policy, and how many tickets have shown it.
type Method struct {
	credential.Method
	Shown uint32 `json:"shown"`
}

// Assurance levels: what a reader may conclude without trusting the operator. Each includes those
// below.
const (
	LevelNone       = iota // nothing: a check failed
	LevelConsistent        // the history is intact and follows the published policy
	// and every draw uses a round, of a beacon that the auditor trusts, that was fixed before it existed, if the
	// freeze came first
	LevelUnpredictable
	// and more than half of the policy's witnesses, all of them known to the auditor, cosigned every freeze before
	// its round: it did come first, and no other freeze of that window has as many
	LevelWitnessed
)

// Check is one check of a report.
type Check struct {
	ID     string `json:"id"`
	Title  string `json:"title"` // statement that a pass proves
	Status Status `json:"status"`
	Detail string `json:"detail"` // what was checked, or which entry fails the check and why
}

// Status is the outcome of one check.
type Status string

// The outcomes of a check.
const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Skipped Status = "skipped" // not decided; the detail says why
)

const notReached = "not reached because an earlier check failed"

// Checks that do not correspond to a [fairness.Rule].
const (
	checkHistory   = "history"
	checkSignature = "signature"
	checkIdentity  = "identity"
	checkKept      = "append-only"
	checkForm      = "form"
	checkSeeds     = "seed-once"
	checkFIFO      = "fifo"
)

const ofLog fairness.Kind = "log" // marks checks that are not about entries

// checks lists the checks of every report, with the kind of entry they are about (empty: all
// kinds). The check of a rule has the rule's name as its id.
var checks = []struct {
	id, title string
	kind      fairness.Kind
}{
	{checkHistory, "History intact: all entries hash to the signed root", ofLog},
	{checkSignature, "The checkpoint is signed by the room's key", ofLog},
	{checkIdentity, "Log and room entry name the same room and key", ofLog},
	{checkKept, "Append-only: nothing was rewritten since the earlier audit", ofLog},
	{string(fairness.RulePolicy), "The policy comes first, once, and is complete", fairness.KindRoom},
	{checkForm, "Every entry is in its one canonical form", ""},
	{string(fairness.RuleTime), "Time never runs backwards", ""},
	{string(fairness.RuleArrival), "Arrivals are inside their windows, numbered without gaps", fairness.KindArrive},
	{string(fairness.RuleTicket), "No ticket joins twice", fairness.KindArrive},
	{string(fairness.RuleLane), "No lane that the policy does not give", ""},
	{string(fairness.RuleCredential), "Arrivals show what their lane needs, by credentials that verify", ""},
	{string(fairness.RuleNullifier), "No nullifier is used twice, and no method goes over its limit", ""},
	{string(fairness.RuleMerit), "Later credentials come before the end of their window", fairness.KindMerit},
	{string(fairness.RuleFreeze), "Windows freeze in order and completely, and each freeze names size and root",
		fairness.KindFreeze},
	{string(fairness.RuleProof), "Each freeze carries a proof by the room's VRF key", fairness.KindFreeze},
	{string(fairness.RuleDraw), "Windows are drawn once, in order, after their freeze", fairness.KindDraw},
	{string(fairness.RuleSeed), "Each draw's seed follows from the freeze and its proof", fairness.KindDraw},
	{string(fairness.RuleBeacon), "Draws use the beacon as the policy says", fairness.KindDraw},
	{string(fairness.RuleWitness), "Cosignatures in draws are by the witnesses, of the freeze, between it and its round",
		fairness.KindDraw},
	{checkSeeds, "No seed is used twice", fairness.KindDraw},
	{string(fairness.RuleAssign), "Each place is the one the shuffle gives", fairness.KindAssign},
	{checkFIFO, "In each lane earlier windows stand before later ones, without gaps", fairness.KindAssign},
	{string(fairness.RuleCall), "Calls go up in order, by the shares of the lanes, over drawn places, from the start on",
		fairness.KindCall},
	{string(fairness.RuleOutflow), "Calls keep to the published outflow", fairness.KindCall},
	{string(fairness.RuleSeats), "Never more seats are called than there are", fairness.KindCall},
	{string(fairness.RuleExtend), "Each called ticket is given more time at most once, while it may be claimed", fairness.KindExtend},
	{string(fairness.RuleRestore), "Only revoked tickets get their place back, once", fairness.KindRestore},
	{string(fairness.RuleAdmission), "Only called tickets are admitted, in time, once", fairness.KindAdmit},
	{string(fairness.RuleSkip), "Tickets are skipped only for a stated reason that holds", fairness.KindSkip},
	{string(fairness.RuleAmend), "Amendments change only what may change", fairness.KindAmend},
	{string(fairness.RuleEnd), "Nothing follows the end", fairness.KindEnd},
}

func newReport() *Report {
	r := &Report{}
	for _, c := range checks {
		r.Checks = append(r.Checks, Check{ID: c.id, Title: c.title})
	}
	return r
}

func (r *Report) set(id string, s Status, format string, args ...any) {
	c := r.check(id)
	c.Status, c.Detail = s, fmt.Sprintf(format, args...)
}

func (r *Report) check(id string) *Check {
	return &r.Checks[slices.IndexFunc(r.Checks, func(c Check) bool { return c.ID == id })]
}

// passing reports whether no check has failed so far. Only the comparison with an earlier audit may
// be skipped.
func (r *Report) passing() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool {
		return c.Status == Fail || c.Status == Skipped && c.ID != checkKept
	})
}

// finish decides the checks that no entry has failed: they pass if all entries follow all rules.
// Then it fills in the totals.
func (a *auditor) finish() *Report {
	r, n := a.report, a.state.Counts()
	whole := a.state.Size() > 0 && a.state.Size() == a.head.Size
	for i, c := range checks {
		switch {
		case r.Checks[i].Status != "":
		case whole && c.kind != ofLog:
			r.set(c.id, Pass, "%d entries", a.seen[c.kind])
		default:
			r.set(c.id, Skipped, notReached)
		}
	}
	r.Origin, r.Entries = a.head.Origin, a.head.Size
	r.Arrivals, r.Windows, r.Assignments, r.Admissions = n.Arrivals, n.Windows, n.Assigned, n.Admitted
	r.Draws, r.Witnesses, r.Quorum = a.seen[fairness.KindDraw], a.state.Policy().Witnesses, a.state.Policy().Quorum
	r.Cosigned = a.cosigned()
	for _, l := range a.state.Policy().Lanes {
		r.Lanes = append(r.Lanes, Lane{l.Name, l.Needs})
	}
	for i, n := range a.state.Shown() {
		r.Methods = append(r.Methods, Method{a.state.Policy().Methods[i], n})
	}
	trusted := a.checkBeacon()
	switch r.OK = r.passing(); {
	case !r.OK:
	case !trusted || r.Draws == 0:
		r.Level = LevelConsistent
	case r.Vouched < r.Draws:
		r.Level = LevelUnpredictable
	default:
		r.Level = LevelWitnessed
	}
	r.NotProven = a.notProven()
	return r
}

// checkBeacon records the beacon and reports whether the auditor trusts it.
func (a *auditor) checkBeacon() bool {
	b := a.state.Policy().Beacon
	if b == nil {
		return false
	}
	hash := b.Hash()
	a.report.Beacon = hex.EncodeToString(hash[:])
	return hash == beacon.Quicknet().Hash() || slices.Contains(a.trust.Beacons, hash)
}

// notProven lists in plain words what the report does not prove.
func (a *auditor) notProven() []string {
	list := []string{
		"That every arrival is a different person: fake arrivals push all others back alike, and give their holder its share. Half of a window's tickets get half of its places, at the front as well as at the end.",
		"That no visitor was turned away: a refused join leaves no receipt.",
		"That each person holds only one ticket.",
		"That no visitor got into the site without waiting: the transcript does not show how the site is protected, only when it was open, as stated by the operator.",
		"That visitors were called as fast as the policy allows.",
		"That the times are true: they are the operator's claims.",
	}
	add := func(yes bool, format string, args ...any) {
		if yes {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(a.trust.VKey == "", "That the log is the operator's: its key was taken from the transcript itself. Get the key from another source.")
	add(a.trust.Kept == nil, "That nothing was rewritten before this audit: no earlier checkpoint was given.")
	s, n, p, r := &a.state, a.state.Counts(), a.state.Policy(), a.report
	add(p.Beacon == nil, "That the draws were unpredictable: without a beacon the operator could have tried out outcomes before each freeze.")
	add(p.Beacon != nil && !a.checkBeacon(),
		"That the draws were unpredictable: the operator of the beacon %.16s knows its rounds in advance, and it is not one that you trust.", r.Beacon)
	add(r.Draws > r.Vouched && p.Beacon != nil,
		"That each freeze came before its beacon round: for %d of %d draws too few witnesses that you know had cosigned it, so its time is only the operator's claim.", r.Draws-r.Vouched, r.Draws)
	add(r.Cosigned < uint64(p.Majority()),
		"That others are shown the same history, up to its end: too few witnesses that you know have cosigned this checkpoint. Compare checkpoints with other people.")
	add(r.Level >= LevelUnpredictable,
		"That beacon and witnesses are independent of the operator, and of each other: only you can judge that.")
	add(n.Amends > 0, "That the policy stayed the same: it was amended, and the findings list each change with its time and effect.")
	add(n.Left > 0, "That those who left (%d) did so themselves: leaving needs no proof.", n.Left)
	add(n.Revoked > 0, "Why the organizer took places away (%d).", n.Revoked)
	add(s.InForce().Outflow.MaxActive > 0,
		"That never more than %d visitors were at the site at once: visits end outside of the transcript.",
		s.InForce().Outflow.MaxActive)
	add(s.Ended() && n.Ready > 0, "Why the room ended before %d visitors with a place were called.", n.Ready)
	add(!s.Ended(), "How the room continues: it has not ended at this checkpoint.")
	add(n.Arrivals > n.Drawn, "Which places %d arrivals will get: their windows are not drawn at this checkpoint.",
		n.Arrivals-n.Drawn)
	add(n.Drawn > n.Assigned, "That every drawn place is published: %d follow only from the seeds.", n.Drawn-n.Assigned)
	return list
}
