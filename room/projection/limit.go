package projection

import (
	"sync"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
)

// Limit is what max_active means for the line: how many visitors may be called now, and how fast places at
// the site become free.
type Limit struct {
	Free      uint64    // visitors who may be called before max_active is reached
	First     time.Time // latest time at which one more place becomes free
	PerMinute float64   // minimum rate at which places become free from then on; above 0
}

// Limit returns the current limit, given the observed rate at which places become free. If the policy
// guarantees a higher rate, that counts: a place is kept for at most the time to claim plus a session, unless
// the session is touched.
func (p *Projection) Limit(observed float64) *Limit {
	most := uint64(p.InForce().Outflow.MaxActive)
	if most == 0 {
		return nil
	}
	now, policy := p.Now(), p.Policy()
	session := fairness.Time(policy.Session) + sessionLag
	longest := fairness.Time(policy.Claim) + session
	sure := float64(most) * 60_000 / float64(longest)
	limit := &Limit{Free: most - min(most, p.Active(now)), PerMinute: max(sure, observed)}
	first := now + longest
	if there := p.within(now, fairness.Time(policy.Session)); len(there) > 0 {
		first = there[0] + session
	}
	if observed >= sure {
		first = now // places become free continuously
	}
	limit.First = millis.Time(first)
	return limit
}

// Sampling of the places that become free.
const (
	sampleInterval fairness.Time = 10_000
	minSampleSpan  fairness.Time = 60_000 // shortest span that a rate is computed from
	maxSamples                   = 30
)

// Freed samples every ten seconds how many places at the site have become free, and keeps five minutes of samples.
// A node that has just started knows fewer, so the line seems slower there, never faster. The zero value is ready
// to use. It is safe for concurrent use.
type Freed struct {
	mu      sync.Mutex // guards samples
	samples []sample
}

// sample is the number of places that had become free by a time.
type sample struct {
	at     fairness.Time
	people int64
}

// Note takes a sample if one is due.
func (f *Freed) Note(now fairness.Time, p *Projection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.samples); n > 0 && now < f.samples[n-1].at+sampleInterval || p.InForce().Outflow.MaxActive == 0 {
		return
	}
	c := p.Counts()
	people := int64(c.Admitted+c.NoShows) - int64(p.queuedActive(now)-c.Waiting) //nolint:gosec // counts of people
	f.samples = append(f.samples, sample{now, people})
	f.samples = f.samples[max(0, len(f.samples)-maxSamples-1):]
}

// PerMinute returns the rate at which places became free; 0: unknown.
func (f *Freed) PerMinute() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.samples)
	if n == 0 {
		return 0
	}
	first, last := f.samples[0], f.samples[n-1]
	if last.at < first.at+minSampleSpan {
		return 0
	}
	return max(float64(last.people-first.people)*60_000/float64(last.at-first.at), 0)
}
