package room

import (
	"errors"
	"fmt"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room/clock"
)

var (
	// ErrNotFound is returned when the room does not exist.
	ErrNotFound = errors.New("no such room")
	// ErrTicketUnknown is returned when a ticket has not joined the room.
	ErrTicketUnknown = errors.New("no such ticket in this room")
	// ErrTransfer is returned for a transfer code that was used, is too old, or never existed.
	ErrTransfer = errors.New("this link was used, or is older than ten minutes")
	// ErrExists is returned when the slug of a new room is taken.
	ErrExists = errors.New("a room with this slug exists")
	// ErrClosed is returned when a room accepts no more joins: its last window has closed, or it has ended.
	ErrClosed = errors.New("the room takes no more visitors")
	// ErrFull is returned when the line has reached its limit.
	ErrFull = errors.New("the line is full for now")
	// ErrSecret is returned when a secret does not belong to the ticket.
	ErrSecret = errors.New("the secret is not this ticket's")
	// ErrNotCalled is returned when a ticket is claimed before its turn.
	ErrNotCalled = errors.New("the ticket is not called yet")
	// ErrClaimsFrozen is returned when a called ticket is claimed while claims are frozen.
	ErrClaimsFrozen = errors.New("claims are frozen for a moment; the time to go in stands still")
	// ErrExpired is returned when a ticket can no longer be claimed.
	ErrExpired = errors.New("the ticket can no longer be claimed")
	// ErrSettled is returned when a place that is given up was already claimed, skipped or revoked, or its
	// room has ended.
	ErrSettled = errors.New("the place can no longer be given up")
	// ErrPass is returned when a text is not a currently valid pass of the room.
	ErrPass = errors.New("not a valid pass of this room")
	// ErrPassUnknown is returned when a pass is redeemed under the id of another pass.
	ErrPassUnknown = errors.New("the pass shown has another id")
	// ErrPassUsed is returned when a pass was already redeemed.
	ErrPassUsed = errors.New("the pass was redeemed before")
	// ErrPassUnredeemed is returned when a session is touched whose pass was never redeemed: a visitor who
	// has not entered the site keeps the place no longer than the pass is valid.
	ErrPassUnredeemed = errors.New("the pass was not redeemed; redeem it first")
	// ErrSessionOver is returned when a session has expired or was released.
	ErrSessionOver = errors.New("the session is over")
	// ErrRound is returned for a beacon round that no draw waits for, or that
	// does not verify.
	ErrRound = errors.New("not a beacon round that is waited for")
	// ErrNotPull is returned for a pull in a room whose calls are made by the clock.
	ErrNotPull = errors.New("the clock calls the people of this room")
	// ErrBusy is returned when the queue of joins is full.
	ErrBusy = errors.New("too many visitors at this moment")
	// ErrClock is returned for requests that depend on the database's clock, after that has jumped.
	ErrClock = clock.ErrStep
	// ErrStopping is returned while the server shuts down.
	ErrStopping = errors.New("the server is stopping")

	// errRefused is returned when the rules refuse an arrival that they had just offered: a bug, not the
	// visitor's fault.
	errRefused = errors.New("the rules refuse what they offered")
)

// IsAway reports whether an error means that the database is unavailable for the moment, so that the same
// request may soon succeed.
func IsAway(err error) bool { return pglog.IsAway(err) }

// EarlyError is returned when a room is joined before it opens.
type EarlyError struct{ Wait time.Duration }

// Error implements error.
func (e *EarlyError) Error() string {
	return fmt.Sprintf("the room opens in %s", e.Wait.Round(time.Second))
}

// StaleError is returned when this node has had no answer from the database for so long that its own may be
// out of date.
type StaleError struct{ Wait time.Duration }

// Error implements error. Its text leaves out the time to wait.
func (e *StaleError) Error() string {
	return "this server has lost sight of the line for a moment"
}
