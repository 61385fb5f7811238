package evidence

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/room/regression"
)

// errNeverThatLarge is returned when a witness has a checkpoint larger than the log ever was.
var errNeverThatLarge = errors.New("the witness has a checkpoint that the log never had")

// Fork is a report of a witness or a server that it has seen another history of a room than the database has.
type Fork struct {
	Witness string    // name of the witness or server
	Latest  time.Time // when this node last got the report
	Detail  string    // the error's text
}

// Forks holds the fork reports of a room's witnesses. The zero value is ready to use. It is safe for concurrent
// use.
type Forks struct {
	mu        sync.Mutex // guards byWitness
	byWitness map[string]Fork
}

// note keeps a witness's error if that reports another history.
func (f *Forks) note(name string, now time.Time, err error) {
	if !errors.Is(err, witness.ErrInconsistent) && !errors.Is(err, errNeverThatLarge) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byWitness == nil {
		f.byWitness = map[string]Fork{}
	}
	f.byWitness[name] = Fork{name, now, err.Error()}
}

// List returns the fork reports of witnesses since this node loaded the room, and that of the server that has seen
// the regression g (nil: none), sorted by name.
func (f *Forks) List(g *regression.Regression) []Fork {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]Fork, 0, len(f.byWitness))
	if g != nil && !g.ByWitness() {
		list = append(list, Fork{g.By, g.Since, g.Error()})
	}
	for _, fork := range f.byWitness {
		list = append(list, fork)
	}
	slices.SortFunc(list, func(a, b Fork) int { return cmp.Compare(a.Witness, b.Witness) })
	return list
}
