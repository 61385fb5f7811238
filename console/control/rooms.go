package control

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// Filter selects the rooms of a list.
type Filter struct {
	Search   string // text in slug or title; empty: all rooms
	Archived bool   // true: archived rooms and ended rehearsals; false: all other rooms
	Cursor   string // [RoomPage.Next] of the previous page; empty: the first page
	Max      int    // 0: [DefaultPage]
}

// Summary is a room in a list. Snapshot is nil for rooms that have ended, whose log is not loaded for
// a list, and for rooms whose records are missing.
type Summary struct {
	pgroom.Room
	URL      string
	Phase    room.Phase
	Snapshot *room.Snapshot
}

// RoomPage is one page of rooms, newest first.
type RoomPage struct {
	List []Summary
	Next string // cursor of the next page; empty: last page
}

// List returns a page of the actor's organization's rooms.
func (rs *Rooms) List(ctx context.Context, actor account.Actor, f Filter) (RoomPage, error) {
	if !actor.May(account.Read) {
		return RoomPage{}, account.ErrForbidden
	}
	before, err := parseCursor(f.Cursor)
	if err != nil {
		return RoomPage{}, err
	}
	limit := pageSize(f.Max)
	records, err := rs.Records.ListOf(ctx, pgroom.Selection{
		Org: actor.Org, Search: strings.TrimSpace(f.Search), Archived: f.Archived, Before: before, Limit: limit + 1})
	if err != nil {
		return RoomPage{}, err
	}
	var page RoomPage
	if len(records) > limit {
		records = records[:limit]
		page.Next = cursorOf(records[limit-1])
	}
	for _, record := range records {
		s, err := rs.summary(ctx, record)
		if errors.Is(err, room.ErrNotFound) {
			continue // it was never fully created
		}
		if err != nil {
			return RoomPage{}, err
		}
		page.List = append(page.List, s)
	}
	return page, nil
}

func (rs *Rooms) summary(ctx context.Context, record pgroom.Room) (Summary, error) {
	s := Summary{Room: record, URL: rs.Rooms.URL(record), Phase: room.PhaseEnded}
	if record.Ended != nil {
		return s, nil
	}
	r, err := rs.Rooms.Get(ctx, record.Slug)
	switch {
	case errors.Is(err, room.ErrRegressed):
		s.Phase = room.PhaseStopped
		return s, nil
	case errors.Is(err, room.ErrAbandoned):
		return s, nil
	case err != nil:
		return s, err
	}
	s.Snapshot = r.Snapshot()
	s.Phase = s.Snapshot.Phase(r.Now())
	return s, nil
}

// cursorOf returns the cursor for the page that begins after a room.
func cursorOf(r pgroom.Room) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(r.Created.UnixMicro(), 10) + " " + r.Slug))
}

// parseCursor parses a cursor made by cursorOf; nil if it is empty.
func parseCursor(text string) (*pgroom.Room, error) {
	if text == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	micros, slug, _ := strings.Cut(string(b), " ")
	at, numberErr := strconv.ParseInt(micros, 10, 64)
	if err != nil || numberErr != nil || slug == "" || strings.ContainsRune(slug, 0) || !utf8.ValidString(slug) {
		return nil, invalid.Field("cursor", "must be the next cursor of a page of this list")
	}
	return &pgroom.Room{Created: time.UnixMicro(at), Slug: slug}, nil
}

// Place describes where a new room belongs.
type Place struct {
	Host        string     // custom host to publish it under; empty for the server's own
	RehearsalOf *uuid.UUID // room or draft that it rehearses; nil: it is not a rehearsal
}

// Create publishes a room. Errors: [account.ErrForbidden], [*invalid.Error],
// [room.ErrExists].
func (rs *Rooms) Create(ctx context.Context, actor account.Actor, c room.Config, p Place) (r *room.Room, err error) {
	if !actor.May(account.Operate) {
		return nil, account.ErrForbidden
	}
	owner := pgroom.Owner{Org: actor.Org, RehearsalOf: p.RehearsalOf}
	if p.Host != "" {
		if err := rs.checkHost(ctx, actor.Org, p.Host); err != nil {
			return nil, err
		}
		owner.Host = &p.Host
	}
	detail := map[string]any{"title": c.Title, "host": p.Host, "rehearsal": p.RehearsalOf != nil}
	err = rs.Activity.Do(ctx, actor, "room.create", c.Slug, detail, func() error {
		r, err = rs.Rooms.CreateFor(ctx, owner, c)
		return err
	})
	return r, err
}

func (rs *Rooms) checkHost(ctx context.Context, org uuid.UUID, host string) error {
	if rs.OwnsHost != nil {
		owns, err := rs.OwnsHost(ctx, org, host)
		if err != nil || owns {
			return err
		}
	}
	return invalid.Field("host", "must be a host that the organization has shown to be its own")
}

// Amend applies an amendment to a room. If match is not nil, it must hold for the room's latest
// configuration in the database, so that concurrent changes are not lost. Errors:
// [account.ErrForbidden], [room.ErrNotFound], [ErrChanged], [*invalid.Error].
func (rs *Rooms) Amend(ctx context.Context, actor account.Actor, slug string, a room.Amendment,
	match func(room.Config) bool) (*room.Room, error) {
	r, err := rs.room(ctx, actor, account.Operate, slug)
	if err != nil {
		return nil, err
	}
	return r, rs.Activity.Do(ctx, actor, "room.amend", slug, amended(r, a), func() error {
		if match == nil {
			return r.Amend(ctx, a)
		}
		return rs.Store.Locks.Do(ctx, r.ID, func(ctx context.Context) error {
			if err := rs.Rooms.Refresh(ctx, r); err != nil {
				return err
			}
			if !match(r.Config()) {
				return ErrChanged
			}
			return r.Amend(ctx, a)
		})
	})
}

// amended returns the activity-log detail of an amendment: the changed settings, and the outflow before and after.
// It leaves out images and style sheets.
func amended(r *room.Room, a room.Amendment) map[string]any {
	detail := map[string]any{}
	text, _ := json.Marshal(a)        // an amendment contains only texts, numbers, times and lists of them
	_ = json.Unmarshal(text, &detail) // Marshal has just written it
	delete(detail, "outflow")
	s := r.Snapshot()
	detail["size"] = s.Size
	if o := a.Outflow; o != nil {
		if o.PerMinute != nil && *o.PerMinute != s.Outflow.PerMinute {
			detail["per_minute"] = []uint32{s.Outflow.PerMinute, *o.PerMinute}
		}
		if o.MaxActive != nil && *o.MaxActive != s.Outflow.MaxActive {
			detail["max_active"] = []uint32{s.Outflow.MaxActive, *o.MaxActive}
		}
	}
	switch {
	case a.Message != nil && a.Message.IsNone():
		detail["message"] = nil
	case a.Message != nil:
		detail["message"] = a.Message.At(r.Now())
	}
	if a.Brand != nil {
		detail["brand"] = "changed"
	}
	return detail
}

// control performs one operation on a room.
func (rs *Rooms) control(ctx context.Context, actor account.Actor, scope account.Scope, verb, slug string,
	detail map[string]any, do func(*room.Room) error) (*room.Room, error) {
	r, err := rs.room(ctx, actor, scope, slug)
	if err != nil {
		return nil, err
	}
	if detail == nil {
		detail = map[string]any{}
	}
	detail["size"] = r.Snapshot().Size
	return r, rs.Activity.Do(ctx, actor, verb, slug, detail, func() error { return do(r) })
}

// Pause stops calling visitors; they can still join and claim.
func (rs *Rooms) Pause(ctx context.Context, actor account.Actor, slug string) (*room.Room, error) {
	return rs.control(ctx, actor, account.Operate, "room.pause", slug, nil, func(r *room.Room) error {
		return r.Pause(ctx)
	})
}

// FreezeClaims stops calls and freezes claims: called visitors wait, and no claim time runs out.
func (rs *Rooms) FreezeClaims(ctx context.Context, actor account.Actor, slug string) (*room.Room, error) {
	return rs.control(ctx, actor, account.Operate, "room.freeze-claims", slug, nil, func(r *room.Room) error {
		return r.FreezeClaims(ctx)
	})
}

// Resume ends a pause or a freeze.
func (rs *Rooms) Resume(ctx context.Context, actor account.Actor, slug string) (*room.Room, error) {
	return rs.control(ctx, actor, account.Operate, "room.resume", slug, nil, func(r *room.Room) error {
		return r.Resume(ctx)
	})
}

// End closes a room for good.
func (rs *Rooms) End(ctx context.Context, actor account.Actor, slug string) (*room.Room, error) {
	return rs.control(ctx, actor, account.Operate, "room.end", slug, nil, func(r *room.Room) error {
		return r.End(ctx)
	})
}

// Revoke revokes a visitor's ticket.
func (rs *Rooms) Revoke(ctx context.Context, actor account.Actor, slug string, t fairness.Ticket,
	reason fairness.Reason) (*room.Room, error) {
	detail := map[string]any{"ticket": t.String(), "reason": reason}
	return rs.control(ctx, actor, account.Operate, "room.revoke", slug, detail, func(r *room.Room) error {
		return r.Revoke(ctx, t, reason)
	})
}

// Restore gives a revoked ticket its place back.
func (rs *Rooms) Restore(ctx context.Context, actor account.Actor, slug string, t fairness.Ticket) (*room.Room, error) {
	detail := map[string]any{"ticket": t.String()}
	return rs.control(ctx, actor, account.Operate, "room.restore-ticket", slug, detail, func(r *room.Room) error {
		return r.Restore(ctx, t)
	})
}

// Tell writes a statement about stock or price into a room's transcript.
func (rs *Rooms) Tell(ctx context.Context, actor account.Actor, slug string, e fairness.Tell) (*room.Room, error) {
	detail := map[string]any{"subject": e.Subject, "category": e.Name}
	return rs.control(ctx, actor, account.Operate, "room.tell", slug, detail, func(r *room.Room) error {
		return r.Tell(ctx, e)
	})
}

// RotateKeys creates a new signing key for passes and returns its ID.
func (rs *Rooms) RotateKeys(ctx context.Context, actor account.Actor,
	slug string) (r *room.Room, id string, err error) {
	r, err = rs.control(ctx, actor, account.Operate, "room.rotate-keys", slug, nil, func(r *room.Room) error {
		id, err = r.PassKeys.Rotate(ctx)
		return err
	})
	return r, id, err
}

// SetPull sets whether a backend calls visitors, or the room's own clock does.
func (rs *Rooms) SetPull(ctx context.Context, actor account.Actor, slug string, pull bool) (*room.Room, error) {
	detail := map[string]any{"pull": pull}
	return rs.control(ctx, actor, account.Pull, "room.calls", slug, detail, func(r *room.Room) error {
		return r.SetPull(ctx, pull)
	})
}

// Pull calls n visitors. It is not recorded in the activity log, because a backend pulls every few
// seconds and the transcript has every call.
func (rs *Rooms) Pull(ctx context.Context, actor account.Actor, slug string, n uint64) (room.Pulled, error) {
	r, err := rs.Puller(ctx, actor, slug)
	if err != nil {
		return room.Pulled{}, err
	}
	return r.Pull(ctx, n)
}

// Puller returns a room after checking that the actor may call its visitors.
func (rs *Rooms) Puller(ctx context.Context, actor account.Actor, slug string) (*room.Room, error) {
	return rs.room(ctx, actor, account.Pull, slug)
}

// Archive hides a room that has ended from lists, or shows it again. Its transcript stays published.
// Errors: [ErrNotEnded] and those of [Rooms.Room].
func (rs *Rooms) Archive(ctx context.Context, actor account.Actor, slug string, archived bool) (*room.Room, error) {
	verb := "room.archive"
	if !archived {
		verb = "room.unarchive"
	}
	return rs.control(ctx, actor, account.Operate, verb, slug, nil, func(r *room.Room) error {
		if archived && !r.Snapshot().Ended {
			return ErrNotEnded
		}
		return rs.Records.SetArchived(ctx, r.ID, archived)
	})
}
