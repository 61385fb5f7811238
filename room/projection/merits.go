package projection

import (
	"slices"

	"github.com/proofline/proofline/fairness"
)

// Merit is a credential that a ticket has shown after its arrival.
type Merit struct {
	Method string
	Index  uint64 // index of the merit entry
}

// merits finds the merit entries of tickets.
type merits struct {
	list   []shown
	latest map[fairness.Ticket]int // number in list, from 1
}

type shown struct {
	Merit
	ticket fairness.Ticket
	before int // number of the one that the ticket has shown before, from 1; 0: none
}

func (m *merits) note(e *fairness.Merit, policy *fairness.Policy, index uint64) {
	if m.latest == nil {
		m.latest = map[fairness.Ticket]int{}
	}
	at := 0
	for i := range policy.Methods { // the policy's string, which all merits share
		if policy.Methods[i].Name == e.Credential.Method {
			at = i
		}
	}
	m.list = append(m.list, shown{Merit{policy.Methods[at].Name, index}, e.Ticket, m.latest[e.Ticket]})
	m.latest[e.Ticket] = len(m.list)
}

// undo forgets all but the first n merits.
func (m *merits) undo(n int) {
	for len(m.list) > n {
		last := m.list[len(m.list)-1]
		m.latest[last.ticket] = last.before
		if last.before == 0 {
			delete(m.latest, last.ticket)
		}
		m.list = m.list[:len(m.list)-1]
	}
}

// Merits returns what a ticket has shown after its arrival in the first size entries, oldest first.
func (p *Projection) Merits(t fairness.Ticket, size uint64) (list []Merit) {
	for i := p.merits.latest[t]; i > 0; i = p.merits.list[i-1].before {
		if one := p.merits.list[i-1]; one.Index < size {
			list = append(list, one.Merit)
		}
	}
	slices.Reverse(list)
	return list
}
