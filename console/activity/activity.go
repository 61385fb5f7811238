// Package activity keeps the activity log of each organization: what its members and tokens did,
// when, and with which outcome.
//
// [Log.Do] adds an entry before an operation runs, so that no operation goes unrecorded, and adds
// the outcome afterwards. [Log.Record] adds an entry for something already done.
package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity/pgactivity"
)

// Page sizes.
const (
	DefaultPage = 50
	MaxPage     = 200
)

// finishTimeout limits the time for recording an outcome.
const finishTimeout = 5 * time.Second

// Entry is one entry of the activity log.
type Entry = pgactivity.Entry

// Outcome is the outcome of an operation.
type Outcome = pgactivity.Outcome

// The outcomes. Empty means unknown: the server stopped before it could record one.
const (
	Done    = pgactivity.Done
	Refused = pgactivity.Refused
	Failed  = pgactivity.Failed
)

// Options configures [New]. All fields but Kept are required.
type Options struct {
	Store *pgactivity.Store
	Kept  time.Duration // how long entries are kept; 0: forever
	// IsRefusal reports whether an operation's error means that it was refused: by the rules, or
	// because the input was invalid. All other errors are failures of the server.
	IsRefusal func(error) bool
	Log       *slog.Logger
}

// Log writes and reads the activity log. It is safe for concurrent use.
type Log struct{ o Options }

// New returns the activity log of a server.
func New(o Options) *Log { return &Log{o} }

// Record adds an entry for something already done.
func (l *Log) Record(ctx context.Context, actor account.Actor, verb, object string, detail map[string]any) error {
	_, err := l.add(ctx, actor, verb, object, detail, Done)
	return err
}

// Do adds an entry, runs do, and records the outcome. It returns the error of do.
func (l *Log) Do(ctx context.Context, actor account.Actor, verb, object string, detail map[string]any,
	do func() error) error {
	id, err := l.add(ctx, actor, verb, object, detail, "")
	if err != nil {
		return err
	}
	done := do()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := l.o.Store.Finish(late, actor.Org, id, l.outcomeOf(done)); err != nil {
		l.o.Log.Error("cannot record the outcome of an operation", "verb", verb, "object", object, "err", err)
	}
	return done
}

// add adds an entry and returns its ID.
func (l *Log) add(ctx context.Context, actor account.Actor, verb, object string, detail map[string]any,
	outcome Outcome) (uuid.UUID, error) {
	if detail == nil {
		detail = map[string]any{}
	}
	text, err := json.Marshal(detail)
	if err != nil {
		return uuid.Nil, fmt.Errorf("write activity entry: %w", err)
	}
	object = strings.ToValidUTF8(strings.ReplaceAll(object, "\x00", replacement), replacement)
	return l.o.Store.Add(ctx, actor.Org, Entry{
		ActorKind: actor.Kind.String(), ActorID: actor.ID, Actor: actor.Name, Verb: verb, Object: object,
		Detail: storable(text), Outcome: outcome,
	})
}

// outcomeOf returns the outcome for an operation's error.
func (l *Log) outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Done
	case l.o.IsRefusal(err):
		return Refused
	}
	return Failed
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

// Page is one page of the activity log, newest first.
type Page struct {
	Entries []Entry
	Next    uuid.UUID     // pass as before to get the next page; zero: last page
	Kept    time.Duration // how long entries are kept; 0: forever
}

// Entries returns a page of the activity log of the actor's organization, with at most limit
// entries; 0 means [DefaultPage]. An object that is not empty selects the entries about it; before,
// unless zero, is the ID of the entry after which the page begins. It returns
// [account.ErrForbidden].
func (l *Log) Entries(ctx context.Context, actor account.Actor, object string, before uuid.UUID,
	limit int) (Page, error) {
	if !actor.May(account.Read) {
		return Page{}, account.ErrForbidden
	}
	if limit <= 0 {
		limit = DefaultPage
	}
	limit = min(limit, MaxPage)
	list, err := l.o.Store.Entries(ctx, actor.Org, object, before, limit+1)
	if err != nil {
		return Page{}, err
	}
	page := Page{Entries: list, Kept: l.o.Kept}
	if len(list) > limit {
		page.Entries, page.Next = list[:limit], list[limit-1].ID
	}
	return page, nil
}
