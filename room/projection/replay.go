package projection

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// Replay reads many entries that are already in the log.
type Replay struct {
	*Projection
	ahead   []ahead
	entries []fairness.Entry // of a run, up to a malformed one
}

// ahead is an entry before it is applied.
type ahead struct {
	parser   fairness.Parser
	entry    fairness.Entry
	err      error
	verified []Verified // its credentials, as far as they verify
}

// ReadRun applies entries; root is that of [Projection.Apply], and next is called after each entry. It parses all of
// them first, so that the state can foresee them. In a room with methods, all processors parse entries and verify
// their credentials.
func (r *Replay) ReadRun(texts [][]byte, root func() audit.Hash, next func()) error {
	if more := len(texts) - len(r.ahead); more > 0 {
		r.ahead = append(r.ahead, make([]ahead, more)...)
	}
	run := r.ahead[:len(texts)]
	r.prepare(run, texts)
	r.entries = r.entries[:0]
	var malformed error
	for i := range run {
		if malformed = run[i].err; malformed != nil {
			break
		}
		r.entries = append(r.entries, run[i].entry)
	}
	r.Foresee(r.entries)
	for i, e := range r.entries {
		r.Vouch(run[i].verified)
		if err := r.Apply(e, root); err != nil {
			return err
		}
		next()
	}
	return malformed
}

// prepare parses the entries of a run and verifies the credentials of arrivals among them. The rules verify again what
// it cannot: a credential that is wrong, or of another round of work than the state has.
func (r *Replay) prepare(run []ahead, texts [][]byte) {
	var taken atomic.Int64 // entries; each processor takes the next one, because others may be busy with other work
	take := func() {
		for i := taken.Add(1) - 1; i < int64(len(run)); i = taken.Add(1) - 1 {
			a := &run[i]
			a.verified = nil
			a.entry, a.err = a.parser.Parse(texts[i])
			if arrive, ok := a.entry.(*fairness.Arrive); ok {
				a.verified = r.verified(arrive)
			}
		}
	}
	var work sync.WaitGroup
	if len(r.Policy().Methods) > 0 {
		for range runtime.GOMAXPROCS(0) - 1 {
			work.Go(take)
		}
	}
	take()
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
