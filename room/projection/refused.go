package projection

import (
	"slices"
	"sync/atomic"

	"github.com/proofline/proofline/fairness"
)

// Refusal is why a room refuses a join that it would otherwise take. RULES.md says what counts.
type Refusal uint8

// The reasons for refusals.
const (
	RefusedNetwork Refusal = iota // the visitor's network has used up its limit
	RefusedFull                   // the line has reached max_waiting
	RefusedMethod                 // a method has taken as many credentials as its limit
	RefusedBusy                   // too many joins wait for the database
	RefusedRoom                   // the room has reached joins_per_minute
	RefusedServer                 // the server has reached its limit of joins
	RefusedVerdict                // a bot tool in front refuses the visitor
	refusals
)

// refusalNames are the reasons in the transcript, named like the problems that visitors are answered with.
var refusalNames = [refusals]fairness.Lane{"network-limit", "full", "method-full", "busy", "room-limit",
	"server-limit", "verdict"}

// String returns the reason as in the transcript.
func (r Refusal) String() string { return string(refusalNames[r]) }

// toldInterval is the time after which refusals are stated in the transcript, in milliseconds.
const toldInterval = fairness.Time(60_000)

// Refusals counts the joins that this node refuses, until the transcript states them. The zero value has none. It is
// safe for concurrent use, except for what a projection calls.
type Refusals struct {
	counts [refusals]atomic.Uint64
	since  [refusals]atomic.Int64 // time of the first one that counts has; 0: none
	taken  []fairness.Tell        // statements that may or may not be stored
}

// Add counts a refused join.
func (r *Refusals) Add(why Refusal, now fairness.Time) {
	if r.counts[why].Add(1) == 1 {
		r.since[why].Store(int64(now))
	}
}

// isDue reports whether a count is a minute old.
func (r *Refusals) isDue(now fairness.Time) bool {
	for i := range r.since {
		if since := r.since[i].Load(); since > 0 && now >= fairness.Time(since)+toldInterval {
			return true
		}
	}
	return false
}

// IsNone reports whether no refusal has still to be stated.
func (r *Refusals) IsNone() bool {
	for i := range r.since {
		if r.since[i].Load() > 0 {
			return false
		}
	}
	return true
}

// take makes statements of the counts that are a minute old, or of all.
func (r *Refusals) take(now fairness.Time, all bool) {
	for i := range r.since {
		since := fairness.Time(r.since[i].Load())
		if since == 0 || !all && now < since+toldInterval {
			continue
		}
		r.since[i].Store(0) // before the count: the first refusal after it sets the time again
		r.taken = append(r.taken, fairness.Tell{Subject: fairness.TellRefused, Name: refusalNames[i],
			From: min(since, now-1), Until: now, Count: r.counts[i].Swap(0)})
	}
}

// NextRefused returns the statements about refused joins that are due, or with all of them those that are not due yet.
func (p *Projection) NextRefused(now fairness.Time, all bool) (list []fairness.Tell) {
	if p.Ended() {
		return nil
	}
	r := &p.controls.Refusals
	r.take(now, all)
	for _, e := range r.taken {
		if e.Time = now; !p.hasTold(e) {
			list = append(list, e)
		}
	}
	return list
}

// ToldRefused notes that the entries of the projection are stored.
func (p *Projection) ToldRefused() {
	r := &p.controls.Refusals
	r.taken = slices.DeleteFunc(r.taken, p.hasTold)
}

// keptTold is the number of latest statements about refused joins that a projection keeps, to find one that was stored
// although its append seemed to fail.
const keptTold = 64

// noteTold keeps a statement about refused joins.
func (p *Projection) noteTold(e *fairness.Tell) {
	if e.Subject == fairness.TellRefused {
		p.told = keep(p.told, keptTold, *e)
	}
}

// hasTold reports whether a recent entry states the same refusals.
func (p *Projection) hasTold(e fairness.Tell) bool {
	return slices.ContainsFunc(p.told, func(o fairness.Tell) bool {
		return o.Name == e.Name && o.From == e.From && o.Until == e.Until && o.Count == e.Count
	})
}
