package roomtest

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
)

// Size is the size of a generated room.
type Size struct {
	Visitors int
	Windows  int                // number of windows over which the visitors are spread evenly; at least 1
	Issuer   *issuertest.Issuer // of the credential that every visitor shows; nil: they show none
}

// windowLength is enough for a million visitors to arrive one at a time.
const windowLength fairness.Millis = 60_000

// callStep is the number of places per call.
const callStep = 500

// Generate writes a finished room with beacon and witnesses to a store. Every visitor has three
// entries: arrival, assignment and admission. While one window fills, the visitors of the previous
// one are drawn, called and admitted.
func Generate(keys *Keys, store Store, size Size) error {
	policy := keys.Witnessed()
	policy.Starts = policy.Opens
	policy.Closes = policy.Opens + fairness.Time(size.Windows+1)*fairness.Time(windowLength)
	policy.Windows = []fairness.WindowRule{{From: policy.Opens, Length: windowLength}}
	policy.Outflow.PerMinute = fairness.MaxRate
	policy.Claim = fairness.MaxClaim
	r := &Room{keys: keys, log: NewLog(store), issuer: size.Issuer}
	if r.issuer != nil {
		policy.Methods = []credential.Method{r.issuer.Method}
		policy.Lanes[0].Needs = []string{r.issuer.Method.Name}
	}
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

// window writes one window: arrivals mixed with admissions from earlier windows, then freeze, draw
// and assignments.
func (r *Room) window(from fairness.Time, people int) {
	lane := r.state.Policy().Lanes[0].Name
	credentials := r.issue(lane, people)
	for i := range people {
		now := from + fairness.Time(int64(i)*int64(windowLength)/int64(people))
		r.drawDue(now)
		r.JoinWith(now, lane, credentials[i]...)
		if i%callStep == 0 {
			r.letIn(now)
		}
	}
	end := from + fairness.Time(windowLength)
	if people > 0 {
		r.Freeze(end)
	}
	for r.letIn(end) {
	}
}

// issue returns what the next n tickets show, by ticket: a credential of the issuer for an account each, if there is
// an issuer. All processors sign.
func (r *Room) issue(lane fairness.Lane, n int) [][]credential.Credential {
	list := make([][]credential.Credential, n)
	if r.issuer == nil {
		return list
	}
	var work sync.WaitGroup
	signers := runtime.GOMAXPROCS(0)
	for first := range signers {
		work.Go(func() {
			for i := first; i < n; i += signers {
				number := r.next + uint64(i)
				subject := r.state.Subject(lane, Ticket(r.keys.Origin, number))
				list[i] = []credential.Credential{r.issuer.Show(subject, int(number))} //nolint:gosec // few tickets
			}
		})
	}
	work.Wait()
	return list
}

// drawDue draws the pending window once its round has appeared.
func (r *Room) drawDue(now fairness.Time) {
	if pending := r.state.Pending(); len(pending) > 0 && now >= pending[0].Due {
		r.Draw(now)
		r.Assign(-1)
	}
}

// letIn calls and admits the next waiting visitors, and reports whether there were any.
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
