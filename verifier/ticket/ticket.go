// Package ticket checks the place of one visitor offline, from the file that the room's page saves
// ("Save my proof"):
//
//	file ─► Parse ─► Bundle ─► Check ─► four lines: record, group, draw, place
//
// The page computes the same four lines in the browser, with an independent program in another
// language; the vectors in testdata make sure that both agree. BUNDLE.md in this folder specifies
// the file.
//
// Nothing in a file is trusted. The operator or the person who shows it may have forged it, so only
// facts that follow from the room's key are green. The package is pure: no clock, no network, no
// randomness.
package ticket

import (
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// Trust holds what the checker knows independently of the file.
type Trust struct {
	VKey      string     // key of the log, signed-note form; "": the key in the file
	Beacons   [][32]byte // hashes of drand chains that the operator does not run, besides [beacon.Quicknet]
	Witnesses []string   // keys of witnesses that are independent of the operator and each other; nil: the room's
}

// Sources of the log's key, in [Facts] "key_from".
const (
	KeyGiven   = "given"   // from [Trust]
	KeyVisitor = "visitor" // from the file, as given to the visitor
	KeyLog     = "log"     // from the first entry of the log
)

// Line is one line of the result.
type Line struct {
	ID     LineID `json:"id"`
	Status Status `json:"status"`
	Reason Reason `json:"reason"`
	Facts  Facts  `json:"facts,omitempty"`
}

// Facts are the known and proven facts of a line, by name; numbers are decimal.
//
//	key_from               where the log's key comes from
//	size, index, window    of what is published, of the arrival, its window
//	closed, lots           time of the freeze (ms since the Unix epoch), lots in the group (of the visitor's lane)
//	own, most              of these, the ticket's; of any ticket at most, where that is more than one
//	chain, round, appears  hash of the room's beacon, its round for the group, when that appears (ms)
//	witnesses, quorum      of the room, and how many of them should sign
//	cosigned, cosigners    how many have signed the freeze before the round, their names; known: how many of [Trust]
//	seed                   hexadecimal
//	rank, first, position  in the group from 0, of the group's first place, the visitor's
//	stated                 the position in the record where that is another
type Facts map[string]string

func (f Facts) number(name string, n uint64) { f[name] = fmt.Sprint(n) }

// Check checks a place. A line that depends on a line that could not be checked is neutral, so that
// red marks the cause.
func Check(b *Bundle, trust Trust) [4]Line {
	j := &judge{b: b, trust: trust}
	steps := [4]func(Facts) Reason{j.record, j.group, j.draw, j.place}
	var lines [4]Line
	for i, id := range Lines {
		reason, facts := Unchecked, Facts{}
		if j.done == i {
			reason = steps[i](facts)
		}
		lines[i] = Line{id, Verdicts[id][reason], reason, facts}
	}
	return lines
}

// judge is the state of one check. Each step that establishes what the next one needs increments
// done.
type judge struct {
	b     *Bundle
	trust Trust
	done  int

	key    note.Verifier
	head   audit.Checkpoint
	room   *fairness.Room
	arrive *fairness.Arrive // the visitor's arrival
	freeze *fairness.Freeze
	own    own
	seed   fairness.Seed
}

// proven returns the entry as type E if the proof shows that it is in the tree.
func proven[E fairness.Entry](head audit.Checkpoint, p *Proven) (entry E, ok bool) {
	if p == nil || !included(head, p) {
		return entry, false
	}
	e, err := fairness.ParseEntry(p.Entry)
	if err != nil {
		return entry, false
	}
	entry, ok = e.(E)
	return entry, ok
}

func included(head audit.Checkpoint, p *Proven) bool {
	return audit.VerifyInclusion(head, uint64(p.Index), audit.LeafHash(p.Entry), p.Path) == nil
}

// missing returns the reason why a part of the evidence is missing.
func (b *Bundle) missing() Reason {
	switch {
	case b.Malformed != nil:
		return Malformed
	case b.GaveUp:
		return NotFound
	}
	return Pending
}
