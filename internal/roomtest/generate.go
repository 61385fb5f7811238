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

// Generate writes a finished room into a store: every visitor arrives, is
// assigned a place, is called and admitted, three entries each. While one
// window fills, the people of the window before it are let in.
func Generate(keys *Keys, store Store, size Size) error {
	policy := keys.Policy()
	policy.Starts = policy.Opens
	policy.Closes = policy.Opens + fairness.Time(size.Windows+1)*fairness.Time(windowLength)
	policy.Windows = []fairness.WindowRule{{From: policy.Opens, Length: windowLength}}
	policy.Outflow.PerMinute = fairness.MaxRate
	policy.Claim = fairness.MaxClaim

	r := &Room{keys: keys, log: NewLog(store)}
	r.Append(&fairness.Room{Policy: policy})
	var waiting []fairness.Ticket // drawn, in the order of their places
	for w := range size.Windows {
		from := policy.Opens + fairness.Time(w)*fairness.Time(windowLength)
		people := size.Visitors*(w+1)/size.Windows - size.Visitors*w/size.Windows
		waiting = r.window(from, people, waiting)
	}
	closed := policy.Closes
	for len(waiting) > 0 && r.err == nil {
		waiting = r.letIn(closed, waiting)
	}
	r.End(closed)
	if r.err != nil {
		return fmt.Errorf("generate room: %w", r.err)
	}
	return r.log.Close(keys)
}

// window writes one window: arrivals, mixed with the admission of the people
// waiting, then freeze, draw and places. It returns who waits then.
func (r *Room) window(from fairness.Time, people int, waiting []fairness.Ticket) []fairness.Ticket {
	for i := range people {
		now := from + fairness.Time(int64(i)*int64(windowLength)/int64(people))
		r.Join(now, 1)
		if i%callStep == 0 && len(waiting) > 0 {
			waiting = r.letIn(now, waiting)
		}
	}
	end := from + fairness.Time(windowLength)
	for len(waiting) > 0 && r.err == nil {
		waiting = r.letIn(end, waiting)
	}
	if people == 0 {
		return nil
	}
	r.Freeze(end)
	r.Draw(end)
	for r.err == nil {
		e, due := r.state.NextAssign()
		if !due {
			break
		}
		r.Append(&e)
		waiting = append(waiting, e.Ticket)
	}
	return waiting
}

// letIn calls and admits the first of the people waiting.
func (r *Room) letIn(now fairness.Time, waiting []fairness.Ticket) []fairness.Ticket {
	n := min(callStep, len(waiting))
	r.Call(now, fairness.Position(r.state.Counts().Called)+fairness.Position(n))
	for _, t := range waiting[:n] {
		r.Admit(now, t)
	}
	return waiting[n:]
}
