package room

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/proofline/proofline/audit/witness"
)

// errOutgrown is returned when a witness has a checkpoint that is larger than
// the log ever was.
var errOutgrown = errors.New("the witness has a checkpoint that the log never had")

// Fork is what a witness or a server holds against a room: it has seen another
// history than the one that the database has.
type Fork struct {
	Witness string    // its name
	Latest  time.Time // when it said so the last time, to this node
	Detail  string    // what it said
}

// forks are what the witnesses of a room hold against it. The zero value is
// ready.
type forks struct {
	mu        sync.Mutex // guards byWitness
	byWitness map[string]Fork
}

// note keeps the error of a witness if it tells of another history.
func (f *forks) note(name string, now time.Time, err error) {
	if !errors.Is(err, witness.ErrInconsistent) && !errors.Is(err, errOutgrown) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byWitness == nil {
		f.byWitness = map[string]Fork{}
	}
	f.byWitness[name] = Fork{name, now, err.Error()}
}

// Forks returns what witnesses have held against the room since this node loaded
// it, and what a server holds against its database, by name.
func (r *Room) Forks() []Fork {
	r.forks.mu.Lock()
	defer r.forks.mu.Unlock()
	list := make([]Fork, 0, len(r.forks.byWitness))
	if g := r.regression.Load(); g != nil && !g.ByWitness() {
		list = append(list, Fork{g.By, g.Since, g.Error()})
	}
	for _, f := range r.forks.byWitness {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b Fork) int { return cmp.Compare(a.Witness, b.Witness) })
	return list
}
