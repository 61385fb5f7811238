package fairness

import "fmt"

// Rule names one rule of RULES.md.
type Rule string

// The rules, in the order in which RULES.md explains them.
const (
	RulePolicy     Rule = "policy"     // the policy comes first, once, and is valid
	RuleTime       Rule = "time"       // time never runs backwards or beyond 2^53-2
	RuleEnd        Rule = "end"        // nothing follows the end
	RuleArrival    Rule = "arrival"    // an arrival is numbered inside its own window
	RuleTicket     Rule = "ticket"     // no ticket joins twice
	RuleLane       Rule = "lane"       // the lane is open
	RuleCredential Rule = "credential" // credentials verify, and a lane's needs are shown
	RuleNullifier  Rule = "nullifier"  // no nullifier is used twice, and no method takes more than its limit
	RuleMerit      Rule = "merit"      // credentials come before the end of the window
	RuleFreeze     Rule = "freeze"     // windows freeze in order, whole, and name what they fix
	RuleProof      Rule = "proof"      // the VRF proof verifies under the room's key
	RuleDraw       Rule = "draw"       // windows are drawn in order, once
	RuleBeacon     Rule = "beacon"     // the signature is of the fixed round, which has appeared
	RuleWitness    Rule = "witness"    // cosignatures sign the freeze, by witnesses, between freeze and round
	RuleSeed       Rule = "seed"       // the seed follows from proof and beacon
	RuleAssign     Rule = "assign"     // every place follows from the shuffle
	RuleCall       Rule = "call"       // calls move up over drawn places, after the start
	RuleOutflow    Rule = "outflow"    // calls stay within the published outflow
	RuleSeats      Rule = "seats"      // calls stay within the seats
	RuleExtend     Rule = "extend"     // a called ticket is given more time once
	RuleRestore    Rule = "restore"    // a revoked ticket gets its place back once
	RuleAdmission  Rule = "admission"  // only called tickets are admitted, in time, once
	RuleSkip       Rule = "skip"       // skips have a valid reason
	RuleAmend      Rule = "amend"      // amendments change only what they may
)

// Violation describes which rule an entry breaks, and how.
type Violation struct {
	Rule   Rule
	Detail string
}

// Error returns "rule NAME: detail".
func (v *Violation) Error() string { return "rule " + string(v.Rule) + ": " + v.Detail }

func violation(r Rule, format string, args ...any) error {
	return &Violation{r, fmt.Sprintf(format, args...)}
}
