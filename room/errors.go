package room

import (
	"errors"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/quota"
	"github.com/proofline/proofline/room/register"
	"github.com/proofline/proofline/room/regression"
	"github.com/proofline/proofline/room/revocation"
	"github.com/proofline/proofline/room/sequence"
	"github.com/proofline/proofline/room/transfer"
)

var (
	// ErrNotFound is returned when the room does not exist.
	ErrNotFound = errors.New("no such room")
	// ErrExists is returned when the slug of a new room is taken.
	ErrExists = errors.New("a room with this slug exists")
	// ErrTicketUnknown is returned when a ticket has not joined the room.
	ErrTicketUnknown = errors.New("no such ticket in this room")
	// ErrNotCalled is returned when a ticket is claimed before its turn.
	ErrNotCalled = errors.New("the ticket is not called yet")
	// ErrClaimsFrozen is returned when a called ticket is claimed while claims are frozen.
	ErrClaimsFrozen = errors.New("claims are frozen for now; the claim time stands still")
	// ErrExpired is returned when a ticket can no longer be claimed.
	ErrExpired = errors.New("the ticket can no longer be claimed")
	// ErrSettled is returned when a place that is given up was already claimed, skipped or revoked, or its
	// room has ended.
	ErrSettled = errors.New("the place can no longer be given up")
	// ErrNotPull is returned for a pull in a room whose calls are made by the clock.
	ErrNotPull = errors.New("the room's clock calls its visitors, not a backend")
)

// Errors of the packages that a room consists of, which its methods return.
var (
	ErrClosed    = sequence.ErrClosed
	ErrFull      = sequence.ErrFull
	ErrBusy      = sequence.ErrBusy
	ErrStopping  = sequence.ErrStopping
	ErrSecret    = transfer.ErrSecret
	ErrTaken     = register.ErrTaken
	ErrRegressed = regression.ErrRegressed
	ErrDrawing   = revocation.ErrDrawing
	ErrEnded     = revocation.ErrEnded
	ErrAbandoned = regression.ErrAbandoned
	ErrQuota     = pgroom.ErrQuota
	ErrStreams   = quota.ErrStreams
	ErrArchived  = pglog.ErrArchived
)

// EarlyError is returned when a room is joined before it opens.
type EarlyError = sequence.EarlyError

// Regression is the difference between the transcript in the database and the published one.
type Regression = regression.Regression

// IsAway reports whether an error means that the database is unavailable for the moment, so that the same
// request may soon succeed.
func IsAway(err error) bool { return pglog.IsAway(err) }

// StaleError is returned when this node has had no answer from the database for so long that its own may be
// out of date.
type StaleError struct{ Wait time.Duration }

// Error implements error. Its text leaves out the time to wait.
func (e *StaleError) Error() string {
	return "this server's view of the line is out of date for a moment"
}
