package control

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// maxDraft is the maximum size of a draft's JSON, in bytes.
const maxDraft = 256 << 10

// Draft is an unpublished room: visitors cannot see it, and it has no transcript.
type Draft struct {
	pgcontrol.Draft
	// Slug and Title are those of the configuration, or empty if it cannot be parsed.
	Slug, Title string
	Host        string
	// Problems prevent the draft from being published now.
	Problems invalid.List
}

// Drafts performs operations on the drafts of an organization. It is safe for concurrent use.
type Drafts struct {
	rooms *Rooms // creates the rooms that drafts become
	store *pgcontrol.Drafts
}

// draftJSON is the stored form of a draft.
type draftJSON struct {
	Host   string          `json:"host,omitempty"`
	Config json.RawMessage `json:"config"`
}

// Config returns the configuration, or the zero value if it cannot be parsed.
func (d Draft) Config() room.Config {
	c, _ := room.ParseConfig(d.Draft.Config)
	return c
}

// draft converts a stored draft, and finds its problems.
func (d *Drafts) draft(stored pgcontrol.Draft) Draft {
	var in draftJSON
	_ = json.Unmarshal(stored.Config, &in) // always valid, since encode wrote it
	out := Draft{Draft: stored, Host: in.Host}
	out.Draft.Config = in.Config
	c, err := room.ParseConfig(in.Config)
	out.Slug, out.Title = c.Slug, c.Title
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		out.Problems = wrong.Problems
	} else {
		out.Problems = d.rooms.Rooms.Problems(c)
	}
	return out
}

func (in draftJSON) encode() (json.RawMessage, error) {
	if len(in.Config) > maxDraft {
		return nil, invalid.Field("", "must be at most 256 KiB")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(in.Config, &object); err != nil || object == nil {
		return nil, invalid.Field("", "must be a JSON object")
	}
	return json.Marshal(in)
}

// List returns the drafts of the actor's organization, latest change first.
func (d *Drafts) List(ctx context.Context, actor account.Actor) ([]Draft, error) {
	if !actor.May(account.Read) {
		return nil, account.ErrForbidden
	}
	stored, err := d.store.List(ctx, actor.Org)
	if err != nil {
		return nil, err
	}
	list := make([]Draft, len(stored))
	for i, one := range stored {
		list[i] = d.draft(one)
	}
	return list, nil
}

// Get returns one draft. Errors: [ErrDraftUnknown], [account.ErrForbidden].
func (d *Drafts) Get(ctx context.Context, actor account.Actor, id uuid.UUID) (Draft, error) {
	if !actor.May(account.Read) {
		return Draft{}, account.ErrForbidden
	}
	return d.asDraft(d.store.Get(ctx, actor.Org, id))
}

func (d *Drafts) asDraft(stored pgcontrol.Draft, err error) (Draft, error) {
	switch {
	case errors.Is(err, pgcontrol.ErrNotFound):
		return Draft{}, ErrDraftUnknown
	case errors.Is(err, pgcontrol.ErrChanged):
		return Draft{}, ErrChanged
	case errors.Is(err, pgcontrol.ErrTooManyDrafts):
		return Draft{}, &account.LimitError{Max: pgcontrol.MaxDrafts, Objects: "drafts"}
	case errors.Is(err, pgcontrol.ErrUnstorable):
		return Draft{}, invalid.Field("", "has text that is not Unicode, or a number that is too large")
	case err != nil:
		return Draft{}, err
	}
	return d.draft(stored), nil
}

// Save stores a configuration as it is, complete or not. A zero id creates a draft; otherwise
// version is that of the draft that the actor has read. Errors: [*invalid.Error] if config is
// not a JSON object, [ErrDraftUnknown], [ErrChanged], [*account.LimitError], [account.ErrForbidden].
func (d *Drafts) Save(ctx context.Context, actor account.Actor, id uuid.UUID, version int64,
	host string, config json.RawMessage) (Draft, error) {
	if !actor.May(account.Operate) {
		return Draft{}, account.ErrForbidden
	}
	text, err := draftJSON{host, config}.encode()
	if err != nil {
		return Draft{}, err
	}
	if id == uuid.Nil {
		draft, err := d.asDraft(d.store.Add(ctx, actor.Org, text, actor.Name))
		if err != nil {
			return Draft{}, err
		}
		return draft, d.rooms.Activity.Record(ctx, actor, "draft.create", draft.ID.String(),
			map[string]any{"slug": draft.Slug})
	}
	return d.asDraft(d.store.Change(ctx, actor.Org, id, version, text, actor.Name))
}

// Delete deletes a draft. Errors: [ErrDraftUnknown], [account.ErrForbidden].
func (d *Drafts) Delete(ctx context.Context, actor account.Actor, id uuid.UUID) error {
	if !actor.May(account.Operate) {
		return account.ErrForbidden
	}
	return d.rooms.Activity.Do(ctx, actor, "draft.delete", id.String(), nil, func() error {
		err := d.store.Delete(ctx, actor.Org, id)
		if errors.Is(err, pgcontrol.ErrNotFound) {
			return ErrDraftUnknown
		}
		return err
	})
}

// SlugTaken is the problem of a slug that another room has.
const SlugTaken = "is taken: another room has this address"

// Publishable returns nil if the draft could be published now, else an [*invalid.Error].
func (d *Drafts) Publishable(ctx context.Context, actor account.Actor, draft Draft) error {
	problems := draft.Problems
	switch _, err := d.rooms.Records.Get(ctx, draft.Slug); {
	case err == nil:
		problems.Add("slug", SlugTaken)
	case !errors.Is(err, pgroom.ErrNotFound):
		return err
	}
	if draft.Host != "" {
		err := d.rooms.checkHost(ctx, actor.Org, draft.Host)
		wrong, ok := errors.AsType[*invalid.Error](err)
		if err != nil && !ok {
			return err
		}
		if ok {
			problems = append(problems, wrong.Problems...)
		}
	}
	return problems.Err()
}

// Publish turns a draft into a room and deletes the draft. After any error the draft stays. Errors:
// those of [Drafts.Get] and [Rooms.Create].
func (d *Drafts) Publish(ctx context.Context, actor account.Actor, id uuid.UUID, version int64) (*room.Room, error) {
	draft, err := d.Get(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	if draft.Version != version {
		return nil, ErrChanged
	}
	c, err := room.ParseConfig(draft.Draft.Config)
	if err != nil {
		return nil, err
	}
	r, err := d.rooms.Create(ctx, actor, c, Place{Host: draft.Host})
	if err != nil {
		return nil, err
	}
	if err := d.store.Delete(ctx, actor.Org, id); err != nil && !errors.Is(err, pgcontrol.ErrNotFound) {
		d.rooms.Log.Error("cannot delete the draft of a published room", "draft", id, "err", err)
	}
	return r, nil
}

// Duplicate creates a draft from a room. All times move by whole weeks, so that the copy opens in the
// future at the same time of the same weekday.
func (d *Drafts) Duplicate(ctx context.Context, actor account.Actor, slug string) (Draft, error) {
	r, err := d.rooms.room(ctx, actor, account.Operate, slug)
	if err != nil {
		return Draft{}, err
	}
	c := d.rooms.forCopy(r, r.Config())
	c.Slug = copyName(c.Slug)
	moveAhead(&c, r.Now())
	config, err := json.Marshal(c)
	if err != nil {
		return Draft{}, err
	}
	host := ""
	if r.Owner.Host != nil {
		host = *r.Owner.Host
	}
	return d.Save(ctx, actor, uuid.Nil, 0, host, config)
}

// copyName returns a slug for a copy, shortened if it would be too long.
func copyName(slug string) string {
	const suffix, most = "-copy", 63
	return slug[:min(len(slug), most-len(suffix))] + suffix
}

const week = 7 * 24 * time.Hour

// moveAhead moves all times of a configuration by the smallest number of whole weeks after which it
// opens in the future.
func moveAhead(c *room.Config, now time.Time) {
	if c.Opens == nil || c.Opens.After(now) {
		return
	}
	by := week * (now.Sub(*c.Opens)/week + 1)
	move := func(t *time.Time) *time.Time {
		if t == nil {
			return nil
		}
		moved := t.Add(by)
		return &moved
	}
	c.Opens, c.Starts, c.Closes = move(c.Opens), move(c.Starts), move(c.Closes)
	for i := range c.Windows {
		c.Windows[i].From = move(c.Windows[i].From)
	}
}
