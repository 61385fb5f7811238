// Package desk implements what organizers do with their rooms, for the console and the management
// API. Each operation takes an [account.Actor], checks its scopes and its organization, records the
// operation in the activity log, and performs it.
//
// A room of another organization does not exist for the actor.
//
// # Activity log and transcript
//
// Every change is recorded in the activity log, with actor and time, before it is made; so no change
// goes unrecorded. Changes that concern fairness are in the room's public transcript as well, without
// the actor: outflow, pause, windows, message, revoked tickets and the end. The log entry has the
// sizes of the transcript before and after, and so locates the transcript's entry.
package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/desk/pgdesk"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

var (
	// ErrChanged means that something has changed since the caller read it.
	ErrChanged = errors.New("it was changed in the meantime: load it again")
	// ErrDraftUnknown means that there is no such draft.
	ErrDraftUnknown = errors.New("no such draft")
	// ErrNotEnded means that the room to archive has not ended.
	ErrNotEnded = errors.New("only a room that has ended can be archived")
)

// finishTimeout limits the time for recording an outcome.
const finishTimeout = 5 * time.Second

// Options configures [New].
type Options struct {
	Rooms *room.Rooms
	Store *pgdesk.Store
	// OwnsHost reports whether an organization may publish rooms under a custom host; nil: no
	// organization may.
	OwnsHost func(ctx context.Context, org uuid.UUID, host string) (bool, error)
	// OrganizerName returns the public name of an organization, or ""; nil: reports name no
	// organizer.
	OrganizerName func(ctx context.Context, org uuid.UUID) string
	// Rehearsals runs the rehearsals of this server; nil: there are none, and they cannot be started.
	Rehearsals *rehearse.Rehearsals
	Log        *slog.Logger
}

// Desk performs organizers' operations. Safe for concurrent use.
type Desk struct {
	Options
	auditing atomic.Bool // whether an audit for a report is running
}

// New returns a desk.
func New(o Options) *Desk { return &Desk{Options: o} }

// Record adds an activity log entry for something already done.
func (d *Desk) Record(ctx context.Context, actor account.Actor, verb, object string, detail map[string]any) error {
	act, err := newAct(actor, verb, object, detail)
	if err != nil {
		return err
	}
	return d.Store.Note(ctx, actor.Org, act)
}

func newAct(actor account.Actor, verb, object string, detail map[string]any) (pgdesk.Act, error) {
	if detail == nil {
		detail = map[string]any{}
	}
	text, err := json.Marshal(detail)
	if err != nil {
		return pgdesk.Act{}, fmt.Errorf("write act: %w", err)
	}
	object = strings.ToValidUTF8(strings.ReplaceAll(object, "\x00", replacement), replacement)
	return pgdesk.Act{ActorKind: actor.Kind.String(), ActorID: actor.ID, Actor: actor.Name, Verb: verb, Object: object, Detail: storable(text)}, nil
}

// replacement replaces characters that the database cannot store. Input is recorded before it is
// validated.
const replacement = "\uFFFD"

// escapes matches the escape sequences of JSON strings.
var escapes = regexp.MustCompile(`\\(u0000|.)`)

// storable replaces escaped NULs in JSON.
func storable(text []byte) []byte {
	return escapes.ReplaceAllFunc(text, func(escape []byte) []byte {
		if string(escape) == `\u0000` {
			return []byte(replacement)
		}
		return escape
	})
}

// Do adds an activity log entry, runs do, and records the outcome. Other packages use it for their
// own operations.
func (d *Desk) Do(ctx context.Context, actor account.Actor, verb, object string, detail map[string]any, do func() error) error {
	note, err := newAct(actor, verb, object, detail)
	if err != nil {
		return err
	}
	id, err := d.Store.Begin(ctx, actor.Org, note)
	if err != nil {
		return err
	}
	done := do()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := d.Store.Finish(late, actor.Org, id, outcomeOf(done)); err != nil {
		d.Log.Error("cannot record the outcome of an operation", "verb", verb, "object", object, "err", err)
	}
	return done
}

// outcomeOf returns the outcome for an operation's error.
func outcomeOf(err error) pgdesk.Outcome {
	if err == nil {
		return pgdesk.Done
	}
	_, malformed := errors.AsType[*invalid.Error](err)
	_, refused := errors.AsType[*fairness.Violation](err)
	if malformed || refused {
		return pgdesk.Refused
	}
	for _, target := range []error{ErrChanged, ErrDraftUnknown, ErrNotEnded, account.ErrForbidden, account.ErrNotFound, account.ErrExists, account.ErrTooMany, room.ErrNotFound, room.ErrExists, room.ErrTicketUnknown, room.ErrSettled, room.ErrNotPull, room.ErrClosed, rehearse.ErrRunning, rehearse.ErrBusy, rehearse.ErrUnknown, ErrNotOver, ErrAuditing, ErrTooLong} {
		if errors.Is(err, target) {
			return pgdesk.Refused
		}
	}
	return pgdesk.Failed
}

// Room returns a room of the actor's organization. Errors:
// [account.ErrForbidden], [room.ErrNotFound].
func (d *Desk) Room(ctx context.Context, actor account.Actor, slug string) (*room.Room, error) {
	return d.room(ctx, actor, account.Read, slug)
}

// room returns a room after checking that the actor has the scope for it.
func (d *Desk) room(ctx context.Context, actor account.Actor, scope account.Scope, slug string) (*room.Room, error) {
	r, err := d.Rooms.Get(ctx, slug)
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

// Acts is one page of the activity log, newest first.
type Acts struct {
	List []pgdesk.Act
	Next uuid.UUID // pass as before to get the next page; zero: last page
}

// Page sizes of lists.
const (
	DefaultPage = 50
	MaxPage     = 200
)

// Acts returns a page of the activity log of the actor's organization. An object that is not empty
// selects the entries about it; before, unless zero, is the ID of the entry after which the page
// begins.
func (d *Desk) Acts(ctx context.Context, actor account.Actor, object string, before uuid.UUID, most int) (Acts, error) {
	if !actor.May(account.Read) {
		return Acts{}, account.ErrForbidden
	}
	most = pageSize(most)
	list, err := d.Store.Acts(ctx, actor.Org, object, before, most+1)
	if err != nil {
		return Acts{}, err
	}
	page := Acts{List: list}
	if len(list) > most {
		page.List, page.Next = list[:most], list[most-1].ID
	}
	return page, nil
}

// pageSize returns the page size for a requested maximum; 0 or less requests the default.
func pageSize(most int) int {
	if most <= 0 {
		return DefaultPage
	}
	return min(most, MaxPage)
}
