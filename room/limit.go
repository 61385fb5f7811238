package room

import (
	"sync"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Limit is what max_active means for the line: so many people may be called at
// once, and others as places at the site become free.
type Limit struct {
	Free      uint64    // people who may be called before max_active is reached
	First     time.Time // when the next place becomes free after that, at the latest
	PerMinute float64   // places that become free a minute from then on, at least; above 0
}

// limit returns what max_active means now, when places were seen to become free
// at that rate a minute. Where that says less it goes by the policy: nobody
// keeps a place for longer than a claim and a session, unless it is touched.
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
		first = now // they become free all the time
	}
	limit.First = timeOf(first)
	return limit
}

// How long, and how often, the places that become free are looked at.
const (
	freedEvery fairness.Time = 10_000
	freedLeast fairness.Time = 60_000 // a rate says something after that
	freedMost                = 30
)

// freed remembers how many places at the site had become free, every ten seconds
// of the last five minutes. Another node, or one that has just started, may know
// less: then the line seems slower there, and never faster. The zero value is
// ready.
type freed struct {
	mu    sync.Mutex // guards looks
	looks []freedLook
}

type freedLook struct {
	at     fairness.Time
	people int64
}

// note takes what a room is like now, if it is time.
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

// perMinute returns at which rate places became free, 0 when that is not known.
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
