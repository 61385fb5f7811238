package projection

import (
	"runtime"
	"slices"
	"sync"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// Replay reads many entries that are already in the log.
type Replay struct {
	*Projection
	parsers []fairness.Parser
	entries []fairness.Entry
	ahead   [][]Verified // by entry: what has been verified; empty: nothing
}

// ReadRun applies entries; root is that of [Projection.Apply], and next is called after each entry. It parses all of
// them first, so that the state can foresee them, and all processors verify their credentials.
func (r *Replay) ReadRun(texts [][]byte, root func() audit.Hash, next func()) error {
	if more := len(texts) - len(r.parsers); more > 0 {
		r.parsers = append(r.parsers, make([]fairness.Parser, more)...)
	}
	r.entries = r.entries[:0]
	var malformed error
	for i, text := range texts {
		e, err := r.parsers[i].Parse(text)
		if malformed = err; err != nil {
			break
		}
		r.entries = append(r.entries, e)
	}
	r.Foresee(r.entries)
	r.verifyAhead()
	for i, e := range r.entries {
		if len(r.ahead) > 0 {
			r.Vouch(r.ahead[i])
		}
		if err := r.Apply(e, root); err != nil {
			return err
		}
		next()
	}
	return malformed
}

// verifyAhead verifies the credentials of the arrivals among the entries. The rules verify again what it cannot: a
// credential that is wrong, or of another round of work than the state has.
func (r *Replay) verifyAhead() {
	r.ahead = r.ahead[:0]
	if len(r.Policy().Methods) == 0 {
		return
	}
	r.ahead = append(r.ahead, make([][]Verified, len(r.entries))...)
	numbers := make([]int, 0, len(r.entries))
	for i, e := range r.entries {
		if arrive, ok := e.(*fairness.Arrive); ok && len(arrive.Credentials) > 0 {
			numbers = append(numbers, i)
		}
	}
	var work sync.WaitGroup
	for part := range slices.Chunk(numbers, len(numbers)/runtime.GOMAXPROCS(0)+1) {
		work.Go(func() {
			for _, i := range part {
				if arrive, ok := r.entries[i].(*fairness.Arrive); ok {
					r.ahead[i] = r.verified(arrive)
				}
			}
		})
	}
	work.Wait()
}

// verified returns those of an arrival's credentials that verify.
func (r *Replay) verified(e *fairness.Arrive) (list []Verified) {
	subject := r.Subject(e.Lane, e.Ticket)
	for _, c := range e.Credentials {
		if v := fairness.DoorOf(r.State).Verifier(c.Method); v != nil {
			if verified, err := Verify(v, subject, c); err == nil {
				list = append(list, verified)
			}
		}
	}
	return list
}
