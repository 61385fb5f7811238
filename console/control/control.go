// Package control is the control plane of rooms: the operations that organizers perform on their
// rooms in the console and the management API. Each operation takes an [account.Actor], checks its
// scopes and its organization, records the operation in the activity log, and performs it.
//
// To the actor, a room of another organization does not exist.
//
// # Activity log and transcript
//
// Every change is recorded in the activity log, with actor and time, before it is made; so no change goes
// unrecorded. Changes that concern fairness are in the room's public transcript as well, without the actor:
// outflow, pause, windows, message, revoked tickets and the end. The log entry has the sizes of the transcript
// before and after, which locates the transcript's entry.
package control

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/console/ready"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

var (
	// ErrChanged means that something has changed since the caller read it.
	ErrChanged = errors.New("it was changed in the meantime: load it again")
	// ErrDraftUnknown means that there is no such draft.
	ErrDraftUnknown = errors.New("no such draft")
	// ErrNotEnded means that the room to archive has not ended.
	ErrNotEnded = errors.New("only a room that has ended can be archived")
)

// Records reads the rooms of the database, including those that have ended. Error:
// [pgroom.ErrNotFound].
type Records interface {
	Get(ctx context.Context, slug string) (pgroom.Room, error)
	ListOf(ctx context.Context, sel pgroom.Selection) ([]pgroom.Room, error)
	SetArchived(ctx context.Context, id uuid.UUID, archived bool) error
	ReportHead(ctx context.Context, id uuid.UUID) (pgroom.Report, error) // reads a report without its page
	SetReport(ctx context.Context, id uuid.UUID, r pgroom.Report) error
}

// Options configures [New].
type Options struct {
	Rooms    *room.Rooms
	Records  Records
	Store    *pgcontrol.Store
	Activity *activity.Log
	// OwnsHost reports whether an organization may publish rooms under a custom host; nil: no
	// organization may.
	OwnsHost func(ctx context.Context, org uuid.UUID, host string) (bool, error)
	// OrganizerName returns the public name of an organization, or ""; nil: reports name no
	// organizer.
	OrganizerName func(ctx context.Context, org uuid.UUID) string
	// Rehearsals runs the rehearsals of this server; nil: there are none, and they cannot be started.
	Rehearsals *rehearse.Rehearsals
	// Issuer is the server's own issuer; nil: there is none.
	Issuer Issuer
	// Ready checks what has to be right before a sale; nil: nothing is checked.
	Ready *ready.Ready
	Log   *slog.Logger
}

// Rooms performs operations on rooms. It is safe for concurrent use.
type Rooms struct {
	Options
	Drafts  *Drafts  // operations on drafts of rooms
	Reports *Reports // reports on rooms that have ended
	Lists   *Lists   // operations on many tickets
	Quotas  *Quotas  // what organizations may use
}

// New returns the operations on the rooms of a server.
func New(o Options) *Rooms {
	rs := &Rooms{Options: o}
	rs.Drafts, rs.Reports = &Drafts{rooms: rs, store: o.Store.Drafts}, &Reports{rooms: rs}
	rs.Lists, rs.Quotas = &Lists{rs}, &Quotas{rs}
	return rs
}

// IsRefusal reports whether an operation's error means that it was refused, for the activity log.
func IsRefusal(err error) bool {
	_, invalid := errors.AsType[*invalid.Error](err)
	_, refused := errors.AsType[*fairness.Violation](err)
	return invalid || refused || account.IsLimit(err) ||
		slices.ContainsFunc(refusals, func(target error) bool { return errors.Is(err, target) })
}

var refusals = []error{
	ErrChanged, ErrDraftUnknown, ErrNotEnded, ErrNotOwn, ErrMembers, ErrCodes, ErrNotOver, ErrAuditing, ErrTooLong,
	account.ErrForbidden, account.ErrNotFound, account.ErrExists,
	room.ErrNotFound, room.ErrExists, room.ErrTicketUnknown, room.ErrSettled, room.ErrNotPull, room.ErrClosed,
	room.ErrDrawing, room.ErrEnded, room.ErrQuota,
	rehearse.ErrRunning, rehearse.ErrBusy, rehearse.ErrUnknown,
}

// Room returns a room of the actor's organization. Errors:
// [account.ErrForbidden], [room.ErrNotFound].
func (rs *Rooms) Room(ctx context.Context, actor account.Actor, slug string) (*room.Room, error) {
	return rs.room(ctx, actor, account.Read, slug)
}

// room returns a room after checking that the actor has the scope for it.
func (rs *Rooms) room(ctx context.Context, actor account.Actor, scope account.Scope, slug string) (*room.Room, error) {
	r, err := rs.Rooms.Get(ctx, slug)
	if r != nil && r.Owner.Org != actor.Org {
		return nil, room.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	if !actor.May(scope) {
		return nil, account.ErrForbidden
	}
	return r, nil
}

// Page sizes of lists.
const (
	DefaultPage = 50
	MaxPage     = 200
)

// pageSize returns the page size for a requested maximum; 0 or less requests the default.
func pageSize(most int) int {
	if most <= 0 {
		return DefaultPage
	}
	return min(most, MaxPage)
}
