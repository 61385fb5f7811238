package verifier

import (
	"fmt"
	"slices"

	"github.com/proofline/proofline/fairness"
)

// Report is the outcome of an audit.
type Report struct {
	OK          bool     `json:"ok"`          // no check failed
	Level       int      `json:"level"`       // assurance, [LevelNone] to [LevelConsistent]
	Origin      string   `json:"origin"`      // of the log, as its checkpoint says
	Entries     uint64   `json:"entries"`     // as its checkpoint says
	Arrivals    uint64   `json:"arrivals"`    // this and the following as replayed
	Windows     uint64   `json:"windows"`     // with arrivals
	Assignments uint64   `json:"assignments"` // places stated
	Admissions  uint64   `json:"admissions"`
	Checks      []Check  `json:"checks"`     // all of them, always in the same order
	NotProven   []string `json:"not_proven"` // what nobody may conclude
	Seconds     float64  `json:"seconds"`    // for the caller, who has a clock, to set
}

// Assurance levels: what a stranger may conclude. Each includes those below.
const (
	LevelNone       = iota // nothing: a check failed
	LevelConsistent        // the history is intact and follows the published policy
)

// Check is one check of a report.
type Check struct {
	ID     string `json:"id"`
	Title  string `json:"title"` // what holds when it passes
	Status Status `json:"status"`
	Detail string `json:"detail"` // what was seen, or which entry fails it and why
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

// The checks that are not a rule of package fairness.
const (
	checkHistory   = "history"
	checkSignature = "signature"
	checkIdentity  = "identity"
	checkKept      = "append-only"
	checkPolicy    = "policy"
	checkForm      = "form"
	checkSeeds     = "seed-once"
	checkFIFO      = "fifo"
)

// checks are those of every report: id, title, the entries they are about and
// the rules they stand for.
var checks = []struct {
	id, title string
	kind      fairness.Kind
	rules     []fairness.Rule
}{
	{checkHistory, "History intact: all entries hash to the signed root", "", nil},
	{checkSignature, "The checkpoint is signed by the room's key", "", nil},
	{checkIdentity, "Log and room entry name the same room and key", "", nil},
	{checkKept, "Append-only: nothing was rewritten since the earlier audit", "", nil},
	{checkPolicy, "The policy comes first, once, and is complete", fairness.KindRoom, []fairness.Rule{fairness.RulePolicy}},
	{checkForm, "Every entry is in its one canonical form", "", nil},
	{"time", "Time never runs backwards", "", []fairness.Rule{fairness.RuleTime}},
	{"arrival", "Arrivals are inside their windows, numbered without gaps", fairness.KindArrive, []fairness.Rule{fairness.RuleArrival}},
	{"ticket", "No ticket joins twice", fairness.KindArrive, []fairness.Rule{fairness.RuleTicket}},
	{"lane", "No lane and no extra lot that the policy does not give", "", []fairness.Rule{fairness.RuleLane, fairness.RuleMerit}},
	{"freeze", "Windows freeze in order, whole, naming size and root", fairness.KindFreeze, []fairness.Rule{fairness.RuleFreeze}},
	{"proof", "Each freeze carries a proof by the room's VRF key", fairness.KindFreeze, []fairness.Rule{fairness.RuleProof}},
	{"draw", "Windows are drawn once, in order, after their freeze", fairness.KindDraw, []fairness.Rule{fairness.RuleDraw}},
	{"seed", "Each draw's seed follows from the freeze and its proof", fairness.KindDraw, []fairness.Rule{fairness.RuleSeed}},
	{checkSeeds, "No seed is used twice", fairness.KindDraw, nil},
	{"assign", "Each place is the one the shuffle gives", fairness.KindAssign, []fairness.Rule{fairness.RuleAssign}},
	{checkFIFO, "Earlier windows stand before later ones, without gaps", fairness.KindAssign, nil},
	{"call", "Calls go up in order, over drawn places, from the start on", fairness.KindCall, []fairness.Rule{fairness.RuleCall}},
	{"outflow", "Calls keep to the published outflow", fairness.KindCall, []fairness.Rule{fairness.RuleOutflow}},
	{"admission", "Only called tickets are admitted, in time, once", fairness.KindAdmit, []fairness.Rule{fairness.RuleAdmission}},
	{"skip", "Tickets are skipped only for a stated reason that holds", fairness.KindSkip, []fairness.Rule{fairness.RuleSkip}},
	{"amend", "Amendments change only what may change", fairness.KindAmend, []fairness.Rule{fairness.RuleAmend}},
	{"end", "Nothing follows the end", fairness.KindEnd, []fairness.Rule{fairness.RuleEnd}},
}

// checkOf returns the check that stands for a rule.
func checkOf(r fairness.Rule) string {
	for _, c := range checks {
		if slices.Contains(c.rules, r) {
			return c.id
		}
	}
	return checkForm
}

func newReport() *Report {
	r := &Report{Checks: make([]Check, len(checks))}
	for i, c := range checks {
		r.Checks[i] = Check{ID: c.id, Title: c.title}
	}
	return r
}

func (r *Report) set(id string, s Status, detail string) {
	c := r.check(id)
	c.Status, c.Detail = s, detail
}

func (r *Report) check(id string) *Check {
	return &r.Checks[slices.IndexFunc(r.Checks, func(c Check) bool { return c.ID == id })]
}

func (r *Report) passed(id string) bool { return r.check(id).Status == Pass }

// passing tells whether no check has failed so far.
func (r *Report) passing() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Status == Fail })
}

// checkRules gives the verdict on the rules that no entry broke.
func (a *auditor) checkRules() {
	if a.head.Size == 0 {
		a.report.set(checkPolicy, Fail, "there are no entries")
	}
	whole := a.state.Size() == a.head.Size && a.head.Size > 0
	for i, c := range checks {
		switch n := a.seen[c.kind]; {
		case a.report.Checks[i].Status != "":
		case !whole:
			a.report.set(c.id, Skipped, fmt.Sprintf("%s; %d entries keep to it", notReached, a.state.Size()))
		case c.kind == "":
			a.report.set(c.id, Pass, fmt.Sprintf("%d entries", a.head.Size))
		default:
			a.report.set(c.id, Pass, fmt.Sprintf("%d %s entries", n, c.kind))
		}
	}
}

// finish settles the verdict, and says what remains open.
func (r *Report) finish(s *fairness.State, trust Trust) *Report {
	for i := range r.Checks {
		if r.Checks[i].Status == "" {
			r.Checks[i].Status, r.Checks[i].Detail = Skipped, notReached
		}
	}
	if r.OK = r.passing(); r.OK {
		r.Level = LevelConsistent
	}
	n := s.Counts()
	r.Arrivals, r.Windows, r.Assignments, r.Admissions = n.Arrivals, n.Windows, n.Assigned, n.Admitted
	r.NotProven = notProven(s, trust)
	return r
}

// notProven says in plain words what the report does not show.
func notProven(s *fairness.State, trust Trust) []string {
	list := []string{
		"That every arrival is a person of its own: fake arrivals before a freeze dilute everybody's chance evenly.",
		"That nobody was turned away: refusing a join leaves no receipt.",
		"That nobody holds several tickets.",
		"That people were called as fast as the policy allows.",
		"That the draws could not be foreseen: without a beacon the operator could have tried out outcomes before each freeze.",
		"That others are shown the same history: no witness has signed it. Compare checkpoints with other people.",
	}
	add := func(yes bool, format string, args ...any) {
		if yes {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(trust.VKey == "", "That the log is the operator's: its key was taken from the transcript itself. Get the key elsewhere.")
	add(trust.Kept == nil, "That nothing was rewritten before now: no checkpoint of an earlier audit was given.")
	if s.Size() == 0 {
		return list
	}
	n := s.Counts()
	due, waiting := s.FreezeDue()
	add(!s.Ended(), "How the room goes on: it has not ended at this checkpoint.")
	add(n.Arrivals > n.Drawn, "Where %d arrivals will stand: their windows are not drawn at this checkpoint.", n.Arrivals-n.Drawn)
	add(waiting && due < s.Now(), "That windows freeze at once: one was over %d ms before the latest entry, and is not frozen.", s.Now()-due)
	add(n.Drawn > n.Assigned, "That every place drawn is written down: %d follow from the seeds alone.", n.Drawn-n.Assigned)
	return list
}
