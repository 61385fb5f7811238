// Package session reads and writes session cookies, and remembers what a node must know about sessions.
//
//	request ─► Finder: cookie, client, proof ─► Session ─► Store: touch due? ─► cookie of the response
package session

import (
	"time"

	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/rules"
)

// Store holds what a node knows about sessions besides their cookies. It is safe for concurrent
// use.
type Store struct {
	signer   *Signer
	extended Extensions
	ended    PassSet // sessions that ended before their cookies expire
	touches  touchTimes
	proven   proofs
	holders  holders
}

// Extensions are sessions that were extended without a new cookie.
type Extensions interface {
	// Ends returns the end of such a session, in ms since 1970; 0: it was not extended.
	Ends(pass id.ID) int64
}

// NewStore returns a store without sessions. The key signs cookies.
func NewStore(key []byte, extended Extensions) *Store {
	return &Store{signer: NewSigner(key), extended: extended}
}

// IsActive reports whether a session belongs to the room and has not ended. It does not
// check the client: see [Finder].
func (s *Store) IsActive(rm *Room, v *Session, now time.Time) bool {
	ms := now.UnixMilli()
	if v.Room != rm.tag || ms >= v.MaxEnds || ms >= v.Ends && ms >= s.extended.Ends(v.Pass) {
		return false
	}
	if v.IsUnqueued() && rm.Mode != rules.SafetyNet {
		return false
	}
	return !s.ended.Has(v.Pass)
}

// End makes the store refuse the cookies of a session from now on. They expire at until, in ms since 1970.
func (s *Store) End(pass id.ID, until int64, now time.Time) {
	s.ended.Add(pass, until, now.UnixMilli())
}

// HasEnded reports whether the cookies of a session are refused.
func (s *Store) HasEnded(pass id.ID) bool { return s.ended.Has(pass) }

// Touch reports whether a session is due for a touch, and records it.
func (s *Store) Touch(v *Session, now time.Time) bool {
	return s.touches.mayTouch(v.Pass, now, min(TouchInterval, time.Duration(v.Length/3)*time.Millisecond))
}

// Use records that a client uses a session. It returns false if too many other clients do.
func (s *Store) Use(pass id.ID, client uint64, now time.Time) bool {
	return s.holders.add(pass, client, now)
}

// MostClients returns the largest number of recent clients of one session.
func (s *Store) MostClients(now time.Time) int { return s.holders.maxClients(now) }

// Cookie returns the Set-Cookie header of a session. It has no Max-Age, because the
// signed value says when the session ends.
func (s *Store) Cookie(rm *Room, v *Session) string {
	return rm.cookie + s.signer.Format(v) + "; Path=/; HttpOnly; Secure; SameSite=Lax"
}
