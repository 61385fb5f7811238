package webhook

import (
	"time"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
)

// retries are the delays after failed attempts. After the last one the delivery is given up.
var retries = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute,
	time.Hour, 3 * time.Hour, 8 * time.Hour, 24 * time.Hour,
}

// jitterShare is the largest deviation from a delay, as a share of it, so that failed deliveries
// are not all retried at once.
const jitterShare = 0.1

// retry decides when failed deliveries are tried again.
type retry struct {
	now    func() time.Time
	jitter func() float64 // returns a value in [0, 1)
}

// next returns the time of the next attempt; nil if there is none.
func (rs retry) next(t *pgwebhook.Taken, r result) *time.Time {
	if r.failure == "" || r.isFinal || t.Tries > len(retries) || t.Tries < 1 {
		return nil
	}
	wait := retries[t.Tries-1]
	due := rs.now().Add(time.Duration(float64(wait) * (1 - jitterShare + 2*jitterShare*rs.jitter())))
	return &due
}

// An endpoint is disabled when no attempt has succeeded for minFailing and at least minFailures have
// failed. The minimum protects endpoints with few events.
const (
	minFailing  = 3 * 24 * time.Hour
	minFailures = 10
)
