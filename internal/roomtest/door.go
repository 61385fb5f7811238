package roomtest

import (
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
)

// Issuers makes the credentials of the methods of [Keys.Door].
type Issuers struct{ Task, Club, Phone *issuertest.Issuer }

// Show returns the credentials of an account for a subject, by the names of their methods.
func (i Issuers) Show(s credential.Subject, account int, methods ...string) (list []credential.Credential) {
	for _, name := range methods {
		issuer := map[string]*issuertest.Issuer{"task": i.Task, "club": i.Club, "phone": i.Phone}[name]
		list = append(list, issuer.Show(s, account))
	}
	return list
}

// Door returns the policy of [Keys.Policy] with a beacon and three methods: work of which the lane general needs 6
// bits, signatures of a club that takes 12, which the lane members needs, and blind signatures.
func (k *Keys) Door() (fairness.Policy, Issuers) {
	p := k.Policy()
	i := Issuers{issuertest.Work("task", 6), issuertest.Signed("club", 12), issuertest.Blind("phone", 0)}
	p.Beacon = &fairness.Beacon{Chain: k.Chain.Chain(), Margin: 5000}
	p.Methods = []credential.Method{i.Task.Method, i.Club.Method, i.Phone.Method}
	p.Lanes = []fairness.LaneRule{
		{Name: fairness.General, Weight: 3, Needs: []string{"task"}},
		{Name: "members", Weight: 1, Needs: []string{"club"}},
	}
	return p, i
}

// WorkRound returns the beat with the round that work is done for, when it appears.
func (k *Keys) WorkRound(p *fairness.Policy) (*fairness.Beat, error) {
	round, _ := p.WorkRound()
	signature, err := k.Chain.Sign(round)
	return &fairness.Beat{Time: fairness.Time(p.Beacon.Emitted(round)), Signature: signature}, err
}

// WorkRound writes the beat with the round that work is done for.
func (r *Room) WorkRound() {
	e, err := r.keys.WorkRound(r.state.Policy())
	if err != nil {
		r.fail("work round: %v", err)
		return
	}
	r.Append(e)
}

// JoinShowing joins a new ticket to a lane, with credentials of an account.
func (r *Room) JoinShowing(now fairness.Time, lane fairness.Lane, i Issuers, account int,
	methods ...string) fairness.Ticket {
	subject := r.state.Subject(lane, Ticket(r.keys.Origin, r.next))
	return r.JoinWith(now, lane, i.Show(subject, account, methods...)...)
}
