package room

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
)

var (
	// ErrNotFound is returned when there is no such room.
	ErrNotFound = errors.New("no such room")
	// ErrTicketUnknown is returned when a ticket has not joined the room.
	ErrTicketUnknown = errors.New("no such ticket in this room")
	// ErrTransfer is returned when a code for another device was used, or is too old,
	// or was never made.
	ErrTransfer = errors.New("this link was used, or is older than ten minutes")
	// ErrExists is returned when a room is created whose slug is taken.
	ErrExists = errors.New("a room with this slug exists")
	// ErrClosed is returned when a room takes no more joins: its last window
	// has closed or it has ended.
	ErrClosed = errors.New("the room takes no more visitors")
	// ErrFull is returned when as many people are in line as may be.
	ErrFull = errors.New("the line is full for now")
	// ErrSecret is returned when a secret is not the ticket's.
	ErrSecret = errors.New("the secret is not this ticket's")
	// ErrNotCalled is returned when a ticket is claimed before its turn.
	ErrNotCalled = errors.New("the ticket is not called yet")
	// ErrHeld is returned when a called ticket is claimed while everybody is held.
	ErrHeld = errors.New("everybody is held for a moment; the time to go in stands still")
	// ErrExpired is returned when a ticket can no longer be claimed.
	ErrExpired = errors.New("the ticket can no longer be claimed")
	// ErrSettled is returned when a place is given up that was claimed, passed
	// over or revoked before, or whose room has ended.
	ErrSettled = errors.New("the place can no longer be given up")
	// ErrPass is returned when a text is no pass of the room that is valid now.
	ErrPass = errors.New("not a valid pass of this room")
	// ErrPassUnknown is returned when a pass is redeemed under the id of another.
	ErrPassUnknown = errors.New("the pass shown has another id")
	// ErrPassUsed is returned when a pass is redeemed that was before.
	ErrPassUsed = errors.New("the pass was redeemed before")
	// ErrPassUnredeemed is returned when a session is touched whose pass was
	// never redeemed: a visitor who has not gone in holds a place no longer than
	// the pass is valid.
	ErrPassUnredeemed = errors.New("the pass was not redeemed; redeem it first")
	// ErrSessionOver is returned when a session is used that ran out or was
	// released.
	ErrSessionOver = errors.New("the session is over")
	// ErrRound is returned for a beacon round that no draw waits for, or that
	// does not verify.
	ErrRound = errors.New("not a beacon round that is waited for")
	// ErrNotPull is returned when people are pulled whom the clock calls.
	ErrNotPull = errors.New("the clock calls the people of this room")
	// ErrBusy is returned when more joins wait than the server can take.
	ErrBusy = errors.New("too many visitors at this moment")
	// ErrClock is returned for what goes by the database's clock while that has
	// jumped.
	ErrClock = errors.New("the database's clock has jumped, and it is not known yet which time is right")
	// ErrStopping is returned while the server shuts down.
	ErrStopping = errors.New("the server is stopping")

	// errRefused is returned when the rules refuse an arrival that they had
	// just offered: a fault of this program, not of the visitor.
	errRefused = errors.New("the rules refuse what they offered")
)

// IsAway reports whether an error means that the database cannot do its work at
// this moment, and the same request may succeed a little later.
func IsAway(err error) bool { return pglog.IsAway(err) }

// EarlyError is returned when a room is joined before it opens.
type EarlyError struct{ Wait time.Duration }

// Error says how long to wait.
func (e *EarlyError) Error() string {
	return fmt.Sprintf("the room opens in %s", e.Wait.Round(time.Second))
}

// StaleError is returned when this node has not heard from the database for so
// long that its answer may be out of date.
type StaleError struct{ Wait time.Duration }

// Error says what is wrong. How long to wait is for the caller.
func (e *StaleError) Error() string {
	return "this server has lost sight of the line for a moment"
}

// InvalidError lists everything wrong with a room's configuration.
type InvalidError struct{ Problems []fairness.Problem }

// Error names the fields, none for the whole, and what is wrong with each: of
// very many the first 100.
func (e *InvalidError) Error() string {
	parts := make([]string, min(len(e.Problems), maxProblems))
	for i, p := range e.Problems[:len(parts)] {
		parts[i] = strings.TrimSpace(p.Field + " " + p.Detail)
	}
	return strings.Join(parts, "; ")
}
