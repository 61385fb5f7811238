package projection

import (
	"sync"
	"sync/atomic"

	"github.com/proofline/proofline/fairness"
)

// sessionLag is how long a session keeps its place after it ends, in milliseconds: all nodes must read a touch
// made at the last moment before the place goes to another visitor.
const sessionLag = fairness.Time(500)

// RedeemWithin is how long after the admission a pass can be redeemed, in milliseconds, unless the policy's
// session is shorter. After that the place goes to the next visitor.
const RedeemWithin = fairness.Time(5 * 60_000)

// PassLife returns how long the passes of a room are valid.
func PassLife(p *fairness.Policy) fairness.Time { return min(fairness.Time(p.Session), RedeemWithin) }

// Controls are what admission depends on besides the transcript. In the zero value the clock makes the calls, and
// no sessions are known. It is safe for concurrent use.
type Controls struct {
	Pull     Pull
	Sessions Sessions
	Unqueued Unqueued
	Refusals Refusals
}

// Pull holds whether visitors are called only when a backend asks for them. In the zero value the clock makes the
// calls. It is safe for concurrent use.
type Pull struct {
	on atomic.Bool // readable without mu

	mu      sync.Mutex // guards the fields below, and changes of on
	changes int        // made on this node
}

// IsOn reports whether visitors are called only when a backend asks for them.
func (p *Pull) IsOn() bool { return p.on.Load() }

// Set applies a change that this node has stored, and reports whether that changes the value.
func (p *Pull) Set(on bool) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	return p.on.Swap(on) != on
}

// Changes returns how often this node has called Set.
func (p *Pull) Changes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes
}

// Take applies what was read from the database, unless this node has called Set since: changes is the number
// before the read. It reports whether that changes the value.
func (p *Pull) Take(on bool, changes int) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes == changes && p.on.Swap(on) != on
}

// Sessions holds how many more sessions are live than passes are valid. The zero value knows nothing, so all
// sessions count. It is safe for concurrent use.
type Sessions struct {
	shift atomic.Int64 // visitors at the site minus valid passes; may be negative
	at    atomic.Int64 // latest time for which shift is known, in Unix milliseconds
}

// Set stores the number of visitors at the site minus the number of valid passes, as of a time.
func (s *Sessions) Set(shift int64, at fairness.Time) {
	s.shift.Store(shift)
	s.at.Store(int64(at))
}

// knownUntil returns the time up to which this node knows which sessions are live. On a node that is slow or has
// lost its database connection, that may be a while ago. Sessions that would have ended since then may have been
// touched, so they keep their places.
func (s *Sessions) knownUntil(now fairness.Time) fairness.Time {
	return min(now, fairness.Time(s.at.Load())+sessionLag)
}

// live returns the number of visitors with a live session, given the number of those with a valid pass.
func (s *Sessions) live(valid uint64) uint64 {
	return uint64(max(int64(valid)+s.shift.Load(), 0)) //nolint:gosec // counts of people
}

// UnqueuedCounts are the counts of a room's unqueued sessions at one moment.
type UnqueuedCounts struct {
	Started uint64 // sessions that began in the last minute
	Active  uint64 // live sessions
	Nodes   uint64 // connectors that reported in the last ten seconds
}

// maxUnqueued limits the unqueued sessions of a room, both live ones and those that begin in a minute, whatever
// its outflow: they are counted four times a second.
const maxUnqueued = 1_000_000

// IsOverfull reports whether a room has too many unqueued sessions: a token holder could invent any number.
func (c UnqueuedCounts) IsOverfull() bool { return max(c.Active, c.Started) >= maxUnqueued }

// Unqueued holds what a node knows about a room's unqueued sessions. The zero value knows nothing. It is safe for
// concurrent use.
type Unqueued struct {
	mu           sync.Mutex // guards the fields below
	isExpected   bool       // there may be unqueued sessions
	reads        int        // number of times that counts were stored
	counts       UnqueuedCounts
	at           fairness.Time // time of the counts; 0: never counted
	busy         fairness.Time // latest time at which most of the outflow was in use
	isTurnedAway bool          // visitors were sent to the line at an open gate, because the nodes' shares were used up
}

// Expect notes that there may be unqueued sessions, so that they are counted.
func (u *Unqueued) Expect() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.isExpected = true
}

// Counts returns the latest counts.
func (u *Unqueued) Counts() UnqueuedCounts {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts
}

// Reads returns how often counts were stored, and whether there may be unqueued sessions to count.
func (u *Unqueued) Reads() (reads int, isExpected bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reads, u.isExpected
}

// areCounted reports whether the unqueued sessions have been counted, or there cannot be any.
func (u *Unqueued) areCounted() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.isExpected || u.at > 0
}

// AnyReads is the number of reads for a [Count] whose counts are stored in any case.
const AnyReads = -1

// take stores counts, unless others have been stored since reads was taken.
func (u *Unqueued) take(c UnqueuedCounts, at fairness.Time, reads int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if reads != AnyReads && reads != u.reads {
		return
	}
	u.reads++
	u.counts, u.at = c, at
	if u.busy == 0 {
		u.busy = at // nothing is known about the time before
	}
}

// note records whether the outflow is busy and whether visitors were sent to the line.
func (u *Unqueued) note(at fairness.Time, isBusy, isTurnedAway bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if isBusy {
		u.busy = at
	}
	u.isTurnedAway = u.isTurnedAway || isTurnedAway
}

// look returns the latest counts and notes.
func (u *Unqueued) look() (counts UnqueuedCounts, at, busy fairness.Time, isTurnedAway bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts, u.at, u.busy, u.isTurnedAway
}

// Switched notes that the gate was switched, and forgets that visitors were sent to the line.
func (u *Unqueued) Switched() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.isTurnedAway = false
}
