// Package visitor models the synthetic visitors that the demo, load tests and rehearsals send to a room. A visitor
// joins, polls its place as often as the room asks, leaves when it runs out of patience, claims when it is called,
// and releases its pass when it leaves the site. The model decides which request comes next, and when; the caller
// sends the requests, over HTTP or to a room in its own process.
package visitor

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/proofline/proofline/console/simulate"
)

// jitter is the maximum share by which visitors lengthen a pause at random, like pages, so that they
// do not all ask at once.
const jitter = 0.3

// Request is a kind of request.
type Request uint8

// Requests of a visitor.
const (
	Join Request = iota
	Look         // asks for the place in line
	Leave
	Claim
	Release
	None // the visitor is done
)

// Outcome is what an answer means for the visitor.
type Outcome uint8

// Outcomes of a request.
const (
	Done   Outcome = iota // the visitor has joined, left, been admitted or released its pass
	Again                 // not yet, or not now: ask again after the pause
	Called                // it is the visitor's turn
	Over                  // the room is closed to the visitor
)

// Answer is the answer to a request. The pause is how long the room asks the visitor to wait before
// the next look or a repeated request.
type Answer struct {
	Outcome Outcome
	Pause   time.Duration
}

// Visitor is a visitor with its next request. The zero value joins at the start of the run.
type Visitor struct {
	Due  time.Duration // when to send the next request, since the start of the run
	Next Request

	leaves time.Duration // when the visitor gives up, since the start of the run
}

// Take takes the answer to the latest request, at the time now since the start of the run, and
// chooses the next one. The guest's behaviour must be the same in every call.
func (v *Visitor) Take(a Answer, g *simulate.Guest, now time.Duration) {
	v.Due = now
	switch {
	case a.Outcome == Over:
		v.Next = None
	case a.Outcome == Called && g.Claims != simulate.Forever:
		v.Next, v.Due = Claim, now+time.Duration(g.Claims)
	case a.Outcome != Done:
		v.repeat(a, now)
	case v.Next == Join:
		v.Next, v.leaves = Look, now+time.Duration(g.Patience)
		v.pause(a.Pause)
	case v.Next == Claim && g.Stay != simulate.Forever:
		v.Next, v.Due = Release, now+time.Duration(g.Stay)
	default:
		v.Next = None
	}
}

// repeat repeats a request. Between two looks at its place, an impatient visitor leaves, unless it
// has been called.
func (v *Visitor) repeat(a Answer, now time.Duration) {
	switch {
	case v.Next == Look && a.Outcome == Again && now >= v.leaves:
		v.Next = Leave
		return
	case v.Next == Leave:
		v.Next = Look
	}
	v.pause(a.Pause)
}

// pause delays the next request.
func (v *Visitor) pause(d time.Duration) {
	v.Due += d + time.Duration(rand.Float64()*jitter*float64(d)) //nolint:gosec // no secret
}

// Run sends a visitor's requests from now on, until it is done, send fails or ctx ends.
func Run(
	ctx context.Context, g *simulate.Guest, arrives time.Duration, send func(context.Context, Request) (Answer, error),
) error {
	start, v := time.Now(), Visitor{Due: arrives}
	for v.Next != None {
		if err := Sleep(ctx, v.Due-time.Since(start)); err != nil {
			return err
		}
		a, err := send(ctx, v.Next)
		if err != nil {
			return err
		}
		v.Take(a, g, time.Since(start))
	}
	return nil
}

// Sleep waits for d, or returns the error of ctx if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
