package ticket

import (
	"cmp"
	"slices"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// group checks the freeze of the visitor's window.
func (j *judge) group(facts Facts) Reason {
	b, head, arrive := j.b, j.head, j.arrive
	facts.number("window", uint64(arrive.Window))
	if b.Freeze == nil {
		return b.missing()
	}
	f, ok := proven[*fairness.Freeze](head, b.Freeze)
	if !ok {
		return NoFreeze
	}
	facts.number("window", uint64(f.Window))
	drums, _ := j.drumsOf(f)
	facts.number("lots", sum(drums))
	if len(j.room.Lots) > 0 {
		facts.number("most", uint64(1+len(j.room.Lots)))
	}
	facts.number("closed", uint64(f.Time))
	own, whole := j.ownOf(f)
	before := audit.Checkpoint{Origin: head.Origin, Size: f.Size, Root: f.Root}
	switch {
	case f.Window != arrive.Window:
		return OtherWindow
	case b.Freeze.Index <= b.Arrive.Index, f.Time < arrive.Time:
		return Early
	case f.Size != uint64(b.Freeze.Index):
		return OtherSize
	// All earlier entries except the first can be arrivals.
	case !whole, f.Total() > j.mostLots(f.Size):
		return OtherLots
	case b.Frozen == nil && b.Malformed != nil:
		return Malformed
	case b.Frozen == nil, audit.VerifyConsistency(before, head, b.Frozen) != nil:
		return OtherRoot
	}
	j.freeze, j.own = f, own
	j.done++
	schedule, ok := j.schedule()
	if !ok {
		return OffSchedule
	}
	if w, open := schedule.At(arrive.Time); !open || w.Index != arrive.Window || f.Time < w.To {
		return OffSchedule
	}
	return Closed
}

// schedule returns the windows of the policy after the amendments in the file; false if one of the
// amendments is not in the record. An amendment that breaks the rules has no effect.
func (j *judge) schedule() (*fairness.Schedule, bool) {
	var state fairness.State // knows the rules for amendments
	if state.Apply(j.room, nil) != nil {
		return nil, false
	}
	amends := slices.Clone(j.b.Amends)
	slices.SortStableFunc(amends, func(a, b Proven) int { return cmp.Compare(a.Index, b.Index) })
	for i := range amends {
		amend, ok := proven[*fairness.Amend](j.head, &amends[i])
		if !ok {
			return nil, false
		}
		if amend.Change == fairness.ChangeWindows {
			_ = state.Apply(amend, nil)
		}
	}
	return state.Schedule(), true
}
