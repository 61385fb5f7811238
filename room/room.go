package room

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/queueit"
	"github.com/proofline/proofline/room/quota"
	"github.com/proofline/proofline/room/regression"
	"github.com/proofline/proofline/room/revocation"
	"github.com/proofline/proofline/room/safetynet"
	"github.com/proofline/proofline/room/sequence"
	"github.com/proofline/proofline/room/session"
	"github.com/proofline/proofline/room/transfer"
)

// Room is one loaded room. It is safe for concurrent use.
type Room struct {
	ID     uuid.UUID
	Slug   string
	Owner  pgroom.Owner // owning organization, and the room's custom host
	Origin string       // name of the log: host and path
	URL    string       // where the room is published: the log's prefix
	VKey   string       // verifies the log's checkpoints, C2SP signed-note form

	Sessions   *session.Sessions
	PassKeys   *session.PassKeys
	SafetyNet  *safetynet.Net
	Evidence   *evidence.Collector
	QueueIt    *queueit.Connection
	Transfers  *transfer.Transfers
	Lists      *revocation.Lists
	Transcript Transcript
	Refused    Refusals
	Quota      *quota.Share // of the owning organization
	Issuer     Issuer       // the server's own; nil: it has none

	isImported bool // another server has ended the room

	log       *slog.Logger
	clock     *clock.Clock
	keys      *keys.Keys
	store     *pglog.Store
	pull      *pgroom.Controls
	guard     *regression.Guard
	sequencer *sequence.Sequencer
	view      *sequence.View // the sequencer's view
	controls  *projection.Controls
	details   *details
	pace      joinPace
	policy    *fairness.Policy // policy as published, which never changes
	snapshot  atomic.Pointer[Snapshot]
	lastUse   atomic.Int64 // Unix seconds

	published atomic.Pointer[Published] // published checkpoint as of the latest tick
	freed     projection.Freed
	ticked    ticked
}

// Policy returns the rules as they were published.
func (r *Room) Policy() fairness.Policy { return *r.policy }

// Created returns when the room's policy was published.
func (r *Room) Created() time.Time { return millis.Time(r.policy.Created) }

// Config returns the room's current configuration.
func (r *Room) Config() Config {
	c := configOf(r.Slug, r.details.Title(), r.policy, r.Snapshot())
	settings, _ := r.details.Settings()
	c.Settings = *settings
	return c
}

// Settings returns the room's settings, which are immutable: a change creates new ones with a higher version.
func (r *Room) Settings() (settings *Settings, version int64) { return r.details.Settings() }

// Amend applies an amendment. Invalid or refused changes return an
// [*invalid.Error] and have no effect.
func (r *Room) Amend(ctx context.Context, a Amendment) error {
	now := r.Now()
	if err := append(a.problems(), a.Message.untimely(now)...).Err(); err != nil {
		return err
	}
	var hash [fairness.HashSize]byte
	if a.Message != nil && !a.Message.IsNone() {
		var err error
		m := a.Message.At(now)
		if hash, err = r.details.AddMessage(ctx, m); err != nil {
			return err
		}
	}
	err := r.sequencer.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		return a.entries(now, p.State, hash), nil
	})
	if v, ok := errors.AsType[*fairness.Violation](err); ok {
		return refusal(v)
	}
	if err != nil {
		return err
	}
	return r.details.Change(ctx, a.Title, a.SettingsChange)
}

// End ends the room for good. Ending it again is not an error.
func (r *Room) End(ctx context.Context) error {
	return r.sequencer.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		if p.Ended() {
			return nil, nil
		}
		return []fairness.Entry{&fairness.End{Time: now}}, nil
	})
}

// Wanted is the URL that a visitor wants to return to.
type Wanted struct {
	To  string // empty: no particular page
	Sig string // signature of the connector that accepts a pass there; empty: none
}

// Takes reports whether the room sends admitted visitors to the wanted URL: the targets must allow it, and a
// connector must have signed it if the room requires that.
func (r *Room) Takes(w Wanted) bool {
	if w.To == "" {
		return false
	}
	settings, _ := r.details.Settings()
	_, ok := settings.Target(w.To)
	return ok && (!settings.SignedReturn || r.PassKeys.HasSigned(r.URL, w.To, w.Sig))
}

// Target returns the URL that an admitted visitor is sent to: the wanted one if the room takes it, and the
// first target when none is wanted or its signature is missing or wrong. It returns false when the room has
// no targets, or they do not allow the wanted URL.
func (r *Room) Target(w Wanted) (*url.URL, bool) {
	settings, _ := r.details.Settings()
	u, ok := settings.Target(w.To)
	if ok && !r.Takes(w) {
		return settings.Target("")
	}
	return u, ok
}

// Regression returns the difference between the room's transcript and the published one; nil: there is none.
func (r *Room) Regression() *Regression { return r.guard.Regression() }

// Stuck returns how long this node has failed to store what the room has to store; 0 if it has not, or not
// for long.
func (r *Room) Stuck() time.Duration { return r.sequencer.Stuck() }

// ReadLatest waits until this node has read everything that other nodes have appended by now.
func (r *Room) ReadLatest(ctx context.Context) error { return r.sequencer.ReadLatest(ctx) }

// Now returns the time of the database's clock as far as this node knows it, but never before the latest
// entry.
func (r *Room) Now() time.Time {
	now := r.clock.Now()
	if s := r.snapshot.Load(); s != nil && now.Before(s.latest) {
		return s.latest
	}
	return now
}

// touch notes that the room is in use, at most once a second, so that requests do not contend for it.
func (r *Room) touch() {
	if now := time.Now().Unix(); r.lastUse.Load() != now {
		r.lastUse.Store(now)
	}
}
