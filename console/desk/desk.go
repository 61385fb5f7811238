// Package desk is what organizers do with their rooms, whether by the console
// or by the management API: each operation takes an [account.Actor], looks at
// its scopes and its organization, notes the act, and does it.
//
// A room of another organization is to an actor as one that does not exist.
//
// # Two records of what was done
//
// Every change is noted as an act, with who and when, before it is done; so
// none is without its note. What touches fairness is in the room's public
// transcript as well, without who: outflow, pause, windows, message, revoked
// tickets and the end. The act's detail has the sizes of the transcript before
// and after, between which the entry stands.
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
	"github.com/proofline/proofline/room"
)

var (
	// ErrChanged is returned when something is not as it was when it was read.
	ErrChanged = errors.New("somebody has changed it in the meantime: load it again")
	// ErrDraftUnknown is returned when there is no such draft.
	ErrDraftUnknown = errors.New("no such draft")
	// ErrNotEnded is returned when a room that lives is to be archived.
	ErrNotEnded = errors.New("only a room that has ended can be archived")
)

// finishTimeout bounds how long the note of an outcome may take.
const finishTimeout = 5 * time.Second

// Options is what [New] needs.
type Options struct {
	Rooms *room.Rooms
	Store *pgdesk.Store
	// OwnsHost tells whether an organization may publish rooms under a custom
	// host; nil: none may.
	OwnsHost func(ctx context.Context, org uuid.UUID, host string) (bool, error)
	// OrganizerName returns the public name of an organization, empty for none;
	// nil: reports name no organizer.
	OrganizerName func(ctx context.Context, org uuid.UUID) string
	// Rehearsals are those of the server; nil: nothing is rehearsed.
	Rehearsals *rehearse.Rehearsals
	Log        *slog.Logger
}

// Desk does what organizers want. Safe for concurrent use.
type Desk struct {
	Options
	auditing atomic.Bool // an audit for a report is under way
}

// New returns a desk.
func New(o Options) *Desk { return &Desk{Options: o} }

// Record notes an act that is done, for packages that note nothing before.
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
	object = strings.ToValidUTF8(strings.ReplaceAll(object, "\x00", unshown), unshown)
	return pgdesk.Act{ActorKind: actor.Kind.String(), ActorID: actor.ID, Actor: actor.Name, Verb: verb, Object: object, Detail: storable(text)}, nil
}

// unshown is in the place of what the database does not hold. An act is noted
// before anybody looks whether its input is right.
const unshown = "\uFFFD"

// escapes are what a backslash of JSON begins.
var escapes = regexp.MustCompile(`\\(u0000|.)`)

// storable replaces NULs in JSON.
func storable(text []byte) []byte {
	return escapes.ReplaceAllFunc(text, func(escape []byte) []byte {
		if string(escape) == `\u0000` {
			return []byte(unshown)
		}
		return escape
	})
}

// Do notes what is about to be done, does it, and notes the outcome; for packages
// that do things themselves, too.
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
		d.Log.Error("outcome of an act is not noted", "verb", verb, "object", object, "err", err)
	}
	return done
}

// outcomeOf is what an error says about an act.
func outcomeOf(err error) pgdesk.Outcome {
	if err == nil {
		return pgdesk.Done
	}
	_, invalid := errors.AsType[*room.InvalidError](err)
	_, refused := errors.AsType[*fairness.Violation](err)
	if invalid || refused {
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

// room finds a room that an actor may do something with.
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

// Acts is one page of acts, newest first.
type Acts struct {
	List []pgdesk.Act
	Next uuid.UUID // pass as before for the next page; zero: there is none
}

// Bounds of lists.
const (
	DefaultPage = 50
	MaxPage     = 200
)

// Acts lists what was done in the actor's organization, to one object unless
// that is empty, before an act unless that is zero.
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

// pageSize bounds how many items of a list somebody wants.
func pageSize(most int) int {
	if most <= 0 {
		return DefaultPage
	}
	return min(most, MaxPage)
}
