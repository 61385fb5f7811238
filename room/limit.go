package room

import (
	"sync"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Limit is what max_active means for the line: how many visitors may be called now, and how fast places at
// the site become free.
type Limit struct {
	Free      uint64    // visitors who may be called before max_active is reached
	First     time.Time // latest time at which the next place after these becomes free
	PerMinute float64   // minimum rate at which places become free from then on; above 0
}

// limit returns the current limit, given the observed rate at which places become free. If the policy
// guarantees a higher rate, that counts: a place is kept for at most the time to claim plus a session, unless
// the session is touched.
func (l *live) limit(seen float64) *Limit {
	most := uint64(l.Outflow().MaxActive)
	if most == 0 {
		return nil
	}
	now, p := l.Now(), l.Policy()
	session := fairness.Time(p.Session) + sessionLag
	longest := fairness.Time(p.Claim) + session
	sure := float64(most) * 60_000 / float64(longest)
	limit := &Limit{Free: most - min(most, l.active(now)), PerMinute: max(sure, seen)}
	first := now + longest
	if there := l.within(now, fairness.Time(p.Session)); len(there) > 0 {
		first = there[0] + session
	}
	if seen >= sure {
		first = now // places become free continuously
	}
	limit.First = timeOf(first)
	return limit
}

// Sampling of the places that become free.
const (
	freedEvery fairness.Time = 10_000
	freedLeast fairness.Time = 60_000 // minimum span of a rate
	freedMost                = 30
)

// freed samples how many places at the site have become free, every ten seconds for the last five minutes. A
// node that has just started knows less; the line then seems slower there, never faster. The zero value is
// ready to use.
type freed struct {
	mu    sync.Mutex // guards looks
	looks []freedLook
}

type freedLook struct {
	at     fairness.Time
	people int64
}

// note takes a sample if one is due.
func (f *freed) note(now fairness.Time, l *live) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.looks); n > 0 && now < f.looks[n-1].at+freedEvery || l.Outflow().MaxActive == 0 {
		return
	}
	c := l.Counts()
	people := int64(c.Admitted+c.NoShows) - int64(l.called(now)-c.Waiting) //nolint:gosec // counts of people
	f.looks = append(f.looks, freedLook{now, people})
	f.looks = f.looks[max(0, len(f.looks)-freedMost-1):]
}

// perMinute returns the rate at which places became free; 0: unknown.
func (f *freed) perMinute() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.looks)
	if n == 0 {
		return 0
	}
	first, last := f.looks[0], f.looks[n-1]
	if last.at < first.at+freedLeast {
		return 0
	}
	return max(float64(last.people-first.people)*60_000/float64(last.at-first.at), 0)
}
