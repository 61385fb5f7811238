package roomtest

import (
	"fmt"

	"github.com/proofline/proofline/fairness"
)

// Size says how large a generated room is.
type Size struct {
	Visitors int
	Windows  int // the visitors are spread evenly over so many; at least 1
}

// windowLength is long enough for a million visitors to arrive one by one.
const windowLength fairness.Millis = 60_000

// callStep is how many people one call calls.
const callStep = 500

// Generate writes a finished room with beacon and witnesses into a store: every
// visitor arrives, is assigned a place, is called and admitted, three entries
// each. While one window fills, the people of the window before it are drawn
// and let in.
func Generate(keys *Keys, store Store, size Size) error {
	policy := keys.Witnessed()
	policy.Starts = policy.Opens
	policy.Closes = policy.Opens + fairness.Time(size.Windows+1)*fairness.Time(windowLength)
	policy.Windows = []fairness.WindowRule{{From: policy.Opens, Length: windowLength}}
	policy.Outflow.PerMinute = fairness.MaxRate
	policy.Claim = fairness.MaxClaim

	r := &Room{keys: keys, log: NewLog(store)}
	r.Append(&fairness.Room{Policy: policy})
	for w := range size.Windows {
		from := policy.Opens + fairness.Time(w)*fairness.Time(windowLength)
		r.window(from, size.Visitors*(w+1)/size.Windows-size.Visitors*w/size.Windows)
	}
	end := policy.Closes
	if pending := r.state.Pending(); len(pending) > 0 {
		end = max(end, pending[0].Due)
	}
	r.drawDue(end)
	for r.letIn(end) {
	}
	r.End(end)
	if r.err != nil {
		return fmt.Errorf("generate room: %w", r.err)
	}
	return r.log.Close(keys)
}

// window writes one window: arrivals, mixed with the admission of the people
// who wait, then freeze, draw and places.
func (r *Room) window(from fairness.Time, people int) {
	for i := range people {
		now := from + fairness.Time(int64(i)*int64(windowLength)/int64(people))
		r.drawDue(now)
		r.Join(now, 1)
		if i%callStep == 0 {
			r.letIn(now)
		}
	}
	end := from + fairness.Time(windowLength)
	for r.letIn(end) {
	}
	if people > 0 {
		r.Freeze(end)
	}
}

// drawDue draws what is pending once its round has appeared.
func (r *Room) drawDue(now fairness.Time) {
	if pending := r.state.Pending(); len(pending) > 0 && now >= pending[0].Due {
		r.Draw(now)
		r.Assign(-1)
	}
}

// letIn calls and admits the next people who wait, and tells whether there
// were any.
func (r *Room) letIn(now fairness.Time) bool {
	called := fairness.Position(r.state.Counts().Called)
	upTo := min(called+callStep, fairness.Position(len(r.line)))
	if upTo == called || r.err != nil {
		return false
	}
	r.Call(now, upTo)
	for p := called + 1; p <= upTo; p++ {
		r.Admit(now, r.At(p))
	}
	return true
}
