package fairness

import "fmt"

// Rule names one rule of RULES.md.
type Rule string

// The rules, in the order in which RULES.md explains them.
const (
	RulePolicy    Rule = "policy"    // the policy comes first, once, and has no problems
	RuleTime      Rule = "time"      // time never runs backwards, nor past what a reader can hold
	RuleEnd       Rule = "end"       // nothing follows the end
	RuleArrival   Rule = "arrival"   // an arrival is numbered inside its own window
	RuleTicket    Rule = "ticket"    // no ticket joins twice
	RuleLane      Rule = "lane"      // the lane is open
	RuleMerit     Rule = "merit"     // extra lots follow the policy
	RuleFreeze    Rule = "freeze"    // windows freeze in order, whole, and name what they fix
	RuleProof     Rule = "proof"     // the VRF proof is the room's key's
	RuleDraw      Rule = "draw"      // windows are drawn in order, once
	RuleBeacon    Rule = "beacon"    // the beacon's round is the one that was fixed, and has come
	RuleWitness   Rule = "witness"   // cosignatures are of the freeze, by witnesses, before the round
	RuleSeed      Rule = "seed"      // the seed recomputes
	RuleAssign    Rule = "assign"    // every place is what the shuffle gives
	RuleCall      Rule = "call"      // calls go up, over drawn places, from the start on
	RuleOutflow   Rule = "outflow"   // calls keep to the published outflow
	RuleAdmission Rule = "admission" // only called tickets are admitted, in time, once
	RuleSkip      Rule = "skip"      // only for a reason that holds
	RuleAmend     Rule = "amend"     // only what may change
)

// Violation says which rule an entry breaks, and how.
type Violation struct {
	Rule   Rule
	Detail string
}

// Error returns "rule NAME: detail".
func (v *Violation) Error() string { return "rule " + string(v.Rule) + ": " + v.Detail }

func violation(r Rule, format string, args ...any) error {
	return &Violation{r, fmt.Sprintf(format, args...)}
}
